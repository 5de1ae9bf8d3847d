"""The table of primitives, and the functions that apply them with NumPy's promotion and broadcasting.

Each module lists its functions in `__all__`; op classes are imported from their modules.
"""

import sys
from types import ModuleType
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
from .complex import *
from .create import *
from .division import *
from .effects import *
from .elementary import *
from .index import *
from .join import *
from .keys import *
from .linalg import *
from .logic import *
from .maps import *
from .numbers import *
from .powers import *
from .reduce import *
from .shape import *

if TYPE_CHECKING:
    from .cholesky import *
    from .convolution import *
    from .factor import *
    from .lu import *
    from .pooling import *
    from .qr import *
    from .random import *
    from .scan import *
    from .select import *
    from .solve import *
    from .sort import *
    from .triangular import *


class _Functions(ModuleType):
    """This module: a function keeps its name when a module of the same name is imported, such as `solve`."""

    def __setattr__(self, name: str, value: object) -> None:
        is_module = isinstance(value, ModuleType) and name in late.MODULE_OF
        super().__setattr__(name, getattr(value, name) if is_module else value)


sys.modules[__name__].__class__ = _Functions


def __getattr__(name: str) -> object:
    found = globals()[name] = late.function(name)
    return found


vars(vocabulary.functions).update({name: value for name, value in vars().items() if not name.startswith("_")})
