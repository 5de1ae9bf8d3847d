"""NumPy itself, on values that are known: what stands in where no rule of ours does.

Outside of traces a tensor is an array like others. Whatever has no rule here is computed by NumPy on the tensors' arrays, and what comes
out is given as tensors where their dtypes allow. Libraries that were written for NumPy's arrays (`LIBRARIES`) get NumPy's arrays from every
function of NumPy's that they call: they write into them, and hand them to code in C.

A tensor that a tape watches says so when its array is asked for (`Operand.__array__`): nothing is lost in silence here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import numpy as np

from adjit.ir.builder import current_builder
from adjit.ir.func import Value
from adjit.ir.operand import Concrete, Literal, Operand
from adjit.ir.types import DTYPE_NAMES

from .convert import present
from .frames import OURS as BETWEEN

# Of the others that call NumPy with what users gave them, these are known to want arrays back.
LIBRARIES = frozenset({
    "scipy", "sklearn", "pandas", "matplotlib", "mpl_toolkits", "seaborn", "statsmodels", "skimage", "xarray", "polars", "lmfit", "emcee",
    "iminuit", "networkx", "numba", "plotly", "bokeh", "joblib", "dask", "PIL", "cv2", "imageio", "h5py", "zarr",
})  # fmt: skip


def is_known(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether all operands among the arguments have their values now: none is traced, nor a variable that a trace would read."""
    tracing = current_builder() is not None
    return not any(isinstance(x, Value) or (tracing and hasattr(x, "read_operand")) for x in operands_in((args, kwargs)))


def may_fall_back(args: Sequence[Any], kwargs: Mapping[str, Any], written: Any) -> bool:
    """Whether NumPy can do it. `written` is what it writes to: never a tensor, and nothing while tracing, when it would happen but once."""
    writes = [x for x in as_list(written) if x is not None]
    return is_known(args, kwargs) and not any(isinstance(x, Operand) for x in writes) and not (writes and current_builder() is not None)


def called_by_library(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a library for NumPy's arrays made the call that is running, on values that are known and that no tape watches."""
    frame: FrameType | None = sys._getframe(3)  # below are this function, `call_ufunc` or its like, and the method of NumPy's protocol
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        found = _libraries.get(module)
        if found is None:
            found = _libraries[module] = kind_of(module)
        if found is not OURS:
            return found is LIBRARY and is_known(args, kwargs) and not any(x.is_watched for x in operands_in((args, kwargs)))
        frame = frame.f_back
    return False


OURS, LIBRARY, USER = "ours", "library", "user"
_libraries: dict[str, str] = {}  # name of a module -> what it is: this runs for every function of NumPy's on tensors


def kind_of(module: Any) -> str:
    package = str(module).partition(".")[0]
    return OURS if package in BETWEEN else LIBRARY if package in LIBRARIES else USER


def by_numpy(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], wrapped: bool = True) -> Any:
    """What NumPy gives for the operands' arrays. What it gives back of its arguments (`out=`) is the user's own array."""
    arrays = [plain(x) for x in args]
    out = function(*arrays, **{name: plain(x) for name, x in kwargs.items()})
    return tensors(out, {id(x) for x in arrays} | {id(x) for x in as_list(kwargs.get("out"))}) if wrapped else out


def plain(x: Any) -> Any:
    """An argument with arrays in place of the operands in it."""
    if isinstance(x, Operand):
        return x.array() if isinstance(x, Literal) else np.asarray(x)
    if type(x) in (list, tuple) and any(True for _ in operands_in(x)):
        return type(x)(map(plain, x))
    if type(x) is dict and any(True for _ in operands_in(x)):
        return {key: plain(value) for key, value in x.items()}
    return x


def tensors(x: Any, own: set[int]) -> Any:
    """A result as users hold it: arrays and numbers of NumPy's as tensors, where there are tensors of their dtype."""
    if id(x) in own:
        return x
    if type(x) is np.ndarray or isinstance(x, np.generic):
        return present(Concrete(np.asarray(x))) if x.dtype in DTYPE_NAMES else x
    if isinstance(x, tuple) and hasattr(x, "_make"):
        return x._make(tensors(part, own) for part in x)
    return type(x)(tensors(part, own) for part in x) if type(x) in (list, tuple) else x


def operands_in(x: Any) -> Iterator[Operand]:
    if isinstance(x, Operand):
        yield x
    elif isinstance(x, list | tuple):
        for part in x:
            yield from operands_in(part)
    elif isinstance(x, dict):
        yield from operands_in(list(x.values()))


def as_list(x: Any) -> Sequence[Any]:
    return x if isinstance(x, tuple | list) else (x,)
