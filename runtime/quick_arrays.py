"""Indexing, layout, reductions and joining of tensors at little more than the cost of NumPy's own calls: see `quick.py`.

Only calls that no tape records, with the arguments that most calls have. NumPy gives the same bits as the ops that the general way would
evaluate; anything else, and every error, takes the general way.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from adjit.ir.ops.base import Array
from adjit.ir.ops.reduce import Max, Min, Reduce, Sum
from adjit.ir.silence import silence
from adjit.ir.tracebacks import trim
from adjit.ir.types import BOOL, F32, F64
from adjit.tracer.numpy_fallback import is_users

from .quick import Method, wrapped
from .recording import listening

if TYPE_CHECKING:
    from .tensor import Tensor

FAILURES = (RuntimeError, ValueError, IndexError, TypeError)  # the general way says what is wrong
PLACES = frozenset({int, type(None), type(Ellipsis)})  # of which the key of a view consists, and of slices
BOUNDS = frozenset({int, type(None)})

_tensor: type[Tensor]
_reductions: dict[tuple[type[Reduce], int | None, int], Callable[[Array], Array]] = {}  # by op, axis and number of axes


def equip(tensor: type[Tensor], weak: type[Tensor]) -> None:
    """Give a class these methods. Its subclass of weakly typed numbers, which are promoted, keeps the general ones."""
    global _tensor
    _tensor = tensor
    methods: dict[str, Any] = {
        "__getitem__": item(tensor.__getitem__),
        "T": property(turned(tensor.T.fget)),  # type: ignore[attr-defined] # a property
        "reshape": reshaped(tensor.reshape),
        "sum": reduction(Sum, tensor.sum),
        "max": reduction(Max, tensor.max),
        "min": reduction(Min, tensor.min),
        "mean": average(tensor.mean),
        "__array_function__": functions(tensor.__array_function__),
    }
    for name, method in methods.items():
        setattr(weak, name, getattr(tensor, name))
        setattr(tensor, name, method)


def item(general: Method) -> Method:
    def method(self: Tensor, key: Any) -> Any:
        if not listening.recorders and (is_place(key) or (type(key) is tuple and all(map(is_place, key)))):
            try:
                return wrapped(self.buffer[key])
            except FAILURES:
                pass
        try:
            return general(self, key)
        except Exception as error:
            trim(error)
            raise

    return method


def is_place(key: Any) -> bool:
    """Whether a part of a key selects a view. The bounds of a slice may be traced, if a compiled function indexes a tensor from outside."""
    if type(key) is slice:
        return type(key.start) in BOUNDS and type(key.stop) in BOUNDS and type(key.step) in BOUNDS
    return type(key) in PLACES


def turned(general: Method) -> Method:
    def method(self: Tensor) -> Any:
        if not listening.recorders:
            return wrapped(self.buffer.T)
        try:
            return general(self)
        except Exception as error:
            trim(error)
            raise

    return method


def reshaped(general: Method) -> Method:
    def method(self: Tensor, *shape: Any, order: str = "C") -> Any:
        given = shape[0] if len(shape) == 1 else shape
        if not listening.recorders and order == "C" and type(given) is tuple and all(type(n) is int for n in given):
            try:
                return wrapped(self.buffer.reshape(given))
            except ValueError:
                pass
        try:
            return general(self, *shape, order=order)
        except Exception as error:
            trim(error)
            raise

    return method


def reduction(op: type[Reduce], general: Method) -> Method:
    def method(self: Tensor, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        array = self.buffer
        if (array.dtype is F64 or array.dtype is F32) and not args and not kwargs and not listening.recorders:
            try:
                return wrapped(silence.run(reducing(op, axis, array.ndim), array))
            except FAILURES:
                pass
        try:
            return general(self, axis, *args, **kwargs)
        except Exception as error:
            trim(error)
            raise

    return method


def average(general: Method) -> Method:
    def method(self: Tensor, axis: Any = None, *args: Any, **kwargs: Any) -> Any:
        array = self.buffer
        if (array.dtype is F64 or array.dtype is F32) and array.size and not args and not kwargs and not listening.recorders:
            try:
                total = silence.run(reducing(Sum, axis, array.ndim), array)
                return wrapped(silence.run(np.divide, total, float(array.size if axis is None else array.shape[axis])))
            except FAILURES:
                pass
        try:
            return general(self, axis, *args, **kwargs)
        except Exception as error:
            trim(error)
            raise

    return method


def reducing(op: type[Reduce], axis: Any, rank: int) -> Callable[[Array], Array]:
    """The evaluation of a reduction over one axis, or all."""
    if axis is not None and type(axis) is not int:
        raise TypeError("several axes take the general way")
    key = (op, axis, rank)
    if key not in _reductions:
        _reductions[key] = op(tuple(range(rank)) if axis is None else (range(rank)[axis],)).evaluate
    return _reductions[key]


def functions(general: Method) -> Method:
    """`__array_function__`."""

    def method(self: Tensor, function: Method, types: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if not kwargs and function in FUNCTIONS and not listening.recorders and is_users(sys._getframe(1)):
            try:
                out = FUNCTIONS[function](*args)
            except FAILURES:
                out = None
            if out is not None:
                return out
        try:
            return general(self, function, types, args, kwargs)
        except Exception as error:
            trim(error)
            raise

    return method


def dot(a: Any, b: Any) -> Any:
    if type(a) is _tensor and type(b) is _tensor and 0 < a.buffer.ndim <= 2 and 0 < b.buffer.ndim <= 2:
        return a @ b
    return None


def where(condition: Any, a: Any, b: Any) -> Any:
    if type(condition) is _tensor and condition.buffer.dtype is BOOL and (arrays := floats((a, b))) is not None:
        return wrapped(np.where(condition.buffer, *arrays))
    return None


def concatenate(xs: Any, axis: Any = 0) -> Any:
    arrays = floats(xs) if type(axis) is int else None
    return None if arrays is None else wrapped(np.concatenate(arrays, axis))


def stack(xs: Any, axis: Any = 0) -> Any:
    arrays = floats(xs) if type(axis) is int else None
    return None if arrays is None else wrapped(np.stack(arrays, axis))


def floats(xs: Any) -> Sequence[Array] | None:
    """The arrays of tensors of one float dtype; None for anything else."""
    if type(xs) not in (list, tuple) or not all(type(x) is _tensor for x in xs):
        return None
    arrays = [x.buffer for x in xs]
    dtype = arrays[0].dtype if arrays else None
    return arrays if (dtype is F64 or dtype is F32) and all(array.dtype is dtype for array in arrays) else None


def of_tensor(name: str) -> Method:
    """One of the methods, of the tensor that is the first argument."""
    return lambda x, *args: getattr(x, name)(*args) if type(x) is _tensor and len(args) <= 1 else None


FUNCTIONS: dict[Method, Method] = {
    **{function: of_tensor(function.__name__) for function in (np.sum, np.mean, np.reshape)},
    np.max: of_tensor("max"), np.min: of_tensor("min"), np.dot: dot, np.where: where, np.concatenate: concatenate, np.stack: stack,
}  # fmt: skip
