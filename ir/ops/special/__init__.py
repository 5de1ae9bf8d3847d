"""Special functions: one op per function, each algorithm written once for native code and NumPy.

This package is imported when one of its functions is first used, or when the parser meets one of its ops.
"""

from .bessel import *
from .elliptic import *
from .error import *
from .gamma import *
from .incomplete import *
from .integrals import *
from .logarithmic import *
from .modified import *
