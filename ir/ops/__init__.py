"""The table of primitives, and the functions that apply them with NumPy's promotion and broadcasting.

Each module lists its functions in `__all__`; op classes are imported from their modules.
"""

from typing import TYPE_CHECKING

from .. import vocabulary
from . import control as control
from . import late
from . import stack as stack
from .arithmetic import *
from .base import REGISTRY as REGISTRY
from .base import Op as Op
from .base import apply as apply
from .base import perform as perform
from .bases import *
from .cholesky import *
from .complex import *
from .create import *
from .division import *
from .effects import *
from .elementary import *
from .factor import *
from .index import *
from .join import *
from .keys import *
from .linalg import *
from .logic import *
from .lu import *
from .maps import *
from .powers import *
from .qr import *
from .reduce import *
from .select import *
from .shape import *
from .solve import *
from .sort import *
from .triangular import *

if TYPE_CHECKING:
    from .convolution import *
    from .pooling import *
    from .random import *
    from .scan import *


def __getattr__(name: str) -> object:
    found = globals()[name] = late.function(name)
    return found


vars(vocabulary.functions).update({name: value for name, value in vars().items() if not name.startswith("_")})
