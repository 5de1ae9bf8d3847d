"""NumPy's functions that do not dispatch on all of their arguments: on traced values, and on lists that contain some."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError
from adjit.ir.found_sizes import size_of
from adjit.ir.operand import Operand, as_operand
from adjit.ir.ops.maps import common_dtype
from adjit.ir.sizes import is_symbolic
from adjit.ir.types import BOOL, DTYPE_NAMES, DType, broadcast_shapes

from .. import joining
from ..convert import arithmetic, holds_operands, of_rows, present, to_operand
from ..frames import user_location
from ..growing import TracedList
from ..numpy_table import NUMPY, call_function, late_module, surface
from ..pytree import flatten
from ..regions import is_traced
from ..surface import shapes

# ---- arrays from existing values


def stack_(xs: Any, /, axis: int = 0, **options: Any) -> Any:
    return joining.stack(xs, axis, **options) if isinstance(xs, TracedList) else np.stack(xs, axis, **options)


def _joining(numpy: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    def public(xs: Any, /, *args: Any, **options: Any) -> Any:
        return (ours if isinstance(xs, TracedList) else numpy)(xs, *args, **options)

    return public


def _array(numpy: Callable[..., Any], copies: bool = False) -> Callable[..., Any]:
    def public(x: Any, /, *args: Any, **options: Any) -> Any:
        if isinstance(x, TracedList):
            return _typed(x.stacked(), False, *args, **options)
        if is_traced(x) or is_symbolic(x):
            return _typed(as_operand(x), copies, *args, **options)
        return _typed(of_rows(x), False, *args, **options) if holds_operands(x) else numpy(x, *args, **options)

    return public


def is_numpy(function: Any) -> bool:
    """Whether this is a NumPy function that adjit implements."""
    try:
        return (function in NUMPY or late_module(function) is not None) and not isinstance(function, np.ufunc)
    except TypeError:  # not hashable
        return False


def array_like(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a NumPy function that adjit implements: NumPy dispatches on arrays among its arguments, but not on lists."""

    def public(*args: Any, **options: Any) -> Any:
        ours = any(map(holds_operands, args)) and not any(isinstance(a, TracedList) for a in args)
        return call_function(function, args, options) if ours else function(*args, **options)

    return public


def _typed(x: Operand, copies: bool, dtype: Any = None, copy: bool | None = None, order: str = "C", ndmin: int = 0) -> Operand:
    copies = copies if copy is None else copy
    if dtype is not None or x.weak:
        x = x.astype(x.type.dtype if dtype is None else dtype)
    elif copies:
        x = surface("create").copy(x)
    return ops.reshape(x, (1,) * (ndmin - x.ndim) + x.type.shape) if x.ndim < ndmin else x


def _scalar(numpy: Callable[..., Any], dtype: DType) -> Callable[..., Any]:
    """Implement `np.float64(x)` and similar."""

    def public(x: Any = 0, /) -> Any:
        return as_operand(x).astype(dtype) if is_traced(x) or is_symbolic(x) else numpy(x)

    return public


def joined(how: Any, key: Any) -> Any:
    """Implement `np.r_[...]` and `np.c_[...]`, which are not functions."""
    parts = key if isinstance(key, tuple) else (key,)
    if not any(is_traced(part) or holds_operands(part) for part in parts) or any(isinstance(part, str) for part in parts):
        return how[key]
    given = arithmetic(*(how[part] if isinstance(part, slice) else part for part in parts))
    dtype = common_dtype(*given)
    arrays = [ops.cast(to_operand(part), dtype) for part in given]
    if how is np.r_:
        return shapes.concatenate([shapes.atleast_1d(a) for a in arrays])
    return shapes.concatenate([shapes.reshape(a, (-1, 1)) if a.ndim < 2 else a for a in arrays], -1)


# ---- output arrays


def fresh_out(function: Callable[..., Any]) -> Callable[..., Any]:
    """Implement a call with `out=np.zeros(...)`: nothing else refers to that array, so it is equivalent to the return value.

    With `where=`, the result has the array's elements where the condition is false.
    """

    def public(*args: Any, out: Any, where: Any = True, **options: Any) -> Any:
        if not any(map(is_traced, (*args, out, where))) or not isinstance(out, np.ndarray | Operand):
            return function(*args, out=out, where=where, **options) if where is not True else function(*args, out=out, **options)
        casting = options.pop("casting", "same_kind")
        return stored(to_operand(function(*args, **options)), to_operand(out), where, casting)

    return public


def stored(result: Operand, target: Operand, where: Any, casting: Any) -> Operand:
    """Return the new value of an array given as `out=`; raise an error if the result does not fit into it, as in NumPy."""
    if not np.can_cast(result.dtype, target.dtype, casting):
        rule = f"according to the rule {casting!r}"
        raise DTypeError(f"out=: {result.type} cannot be cast to the dtype of {target.type} {rule}").at(user_location())
    if broadcast_shapes("out=", result.shape, target.shape) != target.shape:
        raise ShapeError(f"out=: {result.type} does not fit {target.type}").at(user_location())
    chosen = ops.cast(result, target.dtype)
    chosen = chosen if where is True else ops.where(ops.cast(to_operand(where), BOOL), chosen, target)
    return ops.broadcast_to(chosen, target.shape)


# ---- arrays of a given size


def _sized(numpy: Callable[..., Any], name: str) -> Callable[..., Any]:
    def public(*args: Any, **options: Any) -> Any:
        return getattr(surface("create"), name)(*args, **options) if is_sized((args, options)) else numpy(*args, **options)

    return public


def is_sized(values: Any) -> bool:
    """Whether the arguments of a function contain sizes that are known only at run time, or values that determine sizes."""
    return any(is_symbolic(x) or is_traced(x) for x in flatten(values)[0])


def full(shape: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Any:
    if is_sized((shape, fill_value)):
        return surface("create").full(shape, fill_value, dtype)
    return np.full(shape, fill_value, dtype, **options)


def empty(shape: Any, dtype: Any = None, **options: Any) -> Any:
    return surface("create").zeros(shape, dtype) if is_sized(shape) else np.empty(shape, dtype, **options)


_SIZED = ("zeros", "ones", "arange", "eye", "identity", "linspace")

# parameters that NumPy needs as numbers while tracing: there is a program for each value
_NUMBERED: dict[Any, tuple[str, ...]] = {
    np.tri: ("N", "M", "k"), np.triu_indices: ("n", "k", "m"), np.tril_indices: ("n", "k", "m"), np.diag_indices: ("n", "ndim"),
    np.indices: ("dimensions",), np.vander: ("N",), np.logspace: ("num",), np.geomspace: ("num",),
    np.bartlett: ("M",), np.blackman: ("M",), np.hamming: ("M",), np.hanning: ("M",), np.kaiser: ("M",),
}  # fmt: skip

# The same for packages that NumPy imports only for programs that use them. A first call does not: that would take some milliseconds.
_NUMBERED_IN_PACKAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "fftfreq": ("numpy.fft", ("n",)), "rfftfreq": ("numpy.fft", ("n",)),
    "leggauss": ("numpy.polynomial.legendre", ("deg",)), "chebgauss": ("numpy.polynomial.chebyshev", ("deg",)),
    "hermgauss": ("numpy.polynomial.hermite", ("deg",)), "hermegauss": ("numpy.polynomial.hermite_e", ("deg",)),
    "laggauss": ("numpy.polynomial.laguerre", ("deg",)),
}  # fmt: skip


def _numbered(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    def public(*args: Any, **options: Any) -> Any:
        if not any(map(is_traced, flatten((args, options))[0])):
            return function(*args, **options)
        given = signature(function).bind(*args, **options)
        found = {name: _number(given.arguments[name], f"np.{function.__name__}") for name in names if name in given.arguments}
        given.arguments.update(found)
        return array_like(function)(*given.args, **given.kwargs)

    return public


def _number(x: Any, what: str) -> Any:
    if isinstance(x, list | tuple):
        return tuple(_number(n, what) for n in x)
    return operator.index(size_of(x, what)) if is_traced(x) else x


# ---- constant arrays with traced indices, counts, fill values


def _dispatching(function: Callable[..., Any]) -> Callable[..., Any]:
    """Implement a function that NumPy dispatches by its array alone: with a constant array, other traced arguments need this dispatch."""

    def public(*args: Any, **options: Any) -> Any:
        return call_function(function, args, options) if is_sized((args, options)) else function(*args, **options)

    return public


def method_of_constant(array: Any, name: str) -> Callable[..., Any]:
    """Implement a method of a NumPy array, whose arguments may be traced."""

    def public(*args: Any, **options: Any) -> Any:
        return getattr(present(to_operand(array)) if is_sized((args, options)) else array, name)(*args, **options)

    return public


METHODS = frozenset(("take", "repeat", "reshape", "sum", "prod", "max", "min", "mean", "clip", "dot", "searchsorted"))

_BY_ARRAY = (
    np.take, np.repeat, np.roll, np.pad, np.resize, np.nan_to_num, np.full_like, np.sum, np.prod, np.max, np.amax, np.min, np.amin,
)  # fmt: skip

_JOINS = ("concatenate", "vstack", "hstack", "dstack", "column_stack")  # they iterate over a list themselves

_NUMPY_OVERLOADS: dict[Any, Callable[..., Any]] = {
    np.stack: stack_, np.full: full, np.empty: empty, np.array: _array(np.array, copies=True),
    **{getattr(np, name): _joining(getattr(np, name), getattr(shapes, name)) for name in _JOINS},
    **{numpy: _array(numpy) for numpy in (np.asarray, np.asanyarray, np.ascontiguousarray)},
    **{numpy: _dispatching(numpy) for numpy in _BY_ARRAY},
    **{getattr(np, name): _sized(getattr(np, name), name) for name in _SIZED},
    **{numpy: _numbered(numpy, names) for numpy, names in _NUMBERED.items()},
    **{dtype.type: _scalar(dtype.type, dtype) for dtype in DTYPE_NAMES},
}  # fmt: skip


def numpy_overload(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return what converted code calls in place of one of NumPy's functions; None if it calls that itself."""
    found = _NUMPY_OVERLOADS.get(function)
    if found is None:
        module, names = _NUMBERED_IN_PACKAGES.get(getattr(function, "__name__", ""), ("", ()))
        if module and getattr(sys.modules.get(module), function.__name__, None) is function:
            found = _NUMPY_OVERLOADS[function] = _numbered(function, names)
    return found
