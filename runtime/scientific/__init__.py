"""`aj.scipy`: differentiable counterparts of SciPy's functions, under SciPy's names. They run eagerly and compiled; SciPy is not needed.

Sub-modules are imported when they are first used.
"""

from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING

from adjit.ir.tracebacks import lookup as _lookup

if _TYPE_CHECKING:
    from . import integrate as integrate
    from . import interpolate as interpolate
    from . import ndimage as ndimage
    from . import optimize as optimize
    from . import signal as signal
    from . import spatial as spatial
    from . import stats as stats

__all__ = ["integrate", "interpolate", "ndimage", "optimize", "signal", "spatial", "stats"]


@_lookup
def __getattr__(name: str) -> _ModuleType:
    if name in __all__:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'aj.scipy' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
