"""Fallback to NumPy itself, on known values, for functions that adjit does not implement.

Outside traces, a tensor is an array like any other. Functions without a rule are computed by NumPy on the tensors' arrays, and the results
are converted to tensors if their dtypes allow. Libraries written for NumPy arrays (`LIBRARIES`) get NumPy arrays from every NumPy function
that they call: they write into them, and pass them to C code.

A tensor watched by a tape reports it when its array is requested (`Operand.__array__`): no gradient is lost silently.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import numpy as np

from adjit.ir.active import current_builder
from adjit.ir.func import Value
from adjit.ir.operand import Concrete, Literal, Operand
from adjit.ir.types import DTYPE_NAMES

from .convert import present
from .frames import BETWEEN

# Libraries that call NumPy with users' arguments and are known to expect arrays back.
LIBRARIES = frozenset({
    "scipy", "sklearn", "pandas", "matplotlib", "mpl_toolkits", "seaborn", "statsmodels", "skimage", "xarray", "polars", "lmfit", "emcee",
    "iminuit", "networkx", "numba", "plotly", "bokeh", "joblib", "dask", "PIL", "cv2", "imageio", "h5py", "zarr",
})  # fmt: skip


def is_known(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether all operands among the arguments have known values: none is traced, and none is a variable that a trace would read."""
    tracing = current_builder() is not None
    return not any(isinstance(x, Value) or (tracing and hasattr(x, "read_operand")) for x in operands_in((args, kwargs)))


def may_fall_back(args: Sequence[Any], kwargs: Mapping[str, Any], written: Any) -> bool:
    """Whether NumPy can compute a call. Its outputs, `written`, may not be tensors; while tracing, no outputs are allowed."""
    writes = [x for x in as_list(written) if x is not None]
    return is_known(args, kwargs) and not any(isinstance(x, Operand) for x in writes) and not (writes and current_builder() is not None)


def called_by_library(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a library for NumPy arrays made the running call, on known values that no tape watches."""
    frame: FrameType | None = sys._getframe(3)  # skips this function, `call_ufunc` or similar, and the method of NumPy's protocol
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        found = kinds.get(module)
        if found is None:
            found = kinds[module] = kind_of(module)
        if found is not OURS:
            return found is LIBRARY and is_known(args, kwargs) and not any(x.is_watched for x in operands_in((args, kwargs)))
        frame = frame.f_back
    return False


OURS, LIBRARY, USER = "ours", "library", "user"
kinds: dict[str, str] = {}  # module name -> its kind: this is looked up by every NumPy function on tensors


def kind_of(module: Any) -> str:
    package = str(module).partition(".")[0]
    return OURS if package in BETWEEN else LIBRARY if package in LIBRARIES else USER


class _Loaded:
    """`without`: the number of modules that Python had loaded when none of them was a library; loading a library changes that number."""

    def __init__(self) -> None:
        self.without = -1
        self.word = ctypes.c_int64(-1)  # the same, for native code

    def note(self, without: int) -> None:
        self.without = self.word.value = without


loaded = _Loaded()


def called_by_user() -> bool:
    """Whether the method of NumPy's protocol that calls this was certainly called by the user, not by a library or adjit.

    A module is known from its second call on. If no library is loaded, only the user can be the caller.
    """
    if len(sys.modules) == loaded.without:
        return True
    if LIBRARIES.isdisjoint(sys.modules):
        loaded.note(len(sys.modules))
    return kinds.get(sys._getframe(2).f_globals.get("__name__", "")) is USER


def by_numpy(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], wrapped: bool = True) -> Any:
    """Call NumPy on the operands' arrays. Arguments that it returns (`out=`) stay the user's own arrays."""
    arrays = [plain(x) for x in args]
    out = function(*arrays, **{name: plain(x) for name, x in kwargs.items()})
    return tensors(out, {id(x) for x in arrays} | {id(x) for x in as_list(kwargs.get("out"))}) if wrapped else out


def plain(x: Any) -> Any:
    """Return an argument with its operands replaced by arrays."""
    if isinstance(x, Operand):
        return x.array() if isinstance(x, Literal) else np.asarray(x)
    if type(x) in (list, tuple) and any(True for _ in operands_in(x)):
        return type(x)(map(plain, x))
    if type(x) is dict and any(True for _ in operands_in(x)):
        return {key: plain(value) for key, value in x.items()}
    return x


def tensors(x: Any, own: set[int]) -> Any:
    """Return a result in the form that users hold: NumPy arrays and scalars as tensors, if their dtype is supported."""
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
