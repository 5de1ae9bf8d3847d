"""Indexing, layout, reductions and joining of tensors at little more than the cost of NumPy's own calls: see `quick.py`.

Only the usual arguments are handled here, for which NumPy gives the same bits as the ops of the general path; all others, and every error,
take that path. The ops that an index or a new shape consists of are determined by running the general path when a tape first records it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from sys import modules as _modules
from typing import TYPE_CHECKING, Any

import numpy as np

from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array, Op
from adjit.ir.ops.join import Concatenate
from adjit.ir.ops.maps import Where
from adjit.ir.ops.reduce import Max, Min, Reduce, Sum
from adjit.ir.ops.shape import Reshape
from adjit.ir.tracebacks import trim
from adjit.ir.types import BOOL, F32, F64, kept_shape
from adjit.tracer.numpy_fallback import called_by_user, loaded

from . import quick
from .log import Chain, TapeLog, number_of
from .quick import Method, noted, product, value_of, wrapped
from .recording import Recorder, listening

if TYPE_CHECKING:
    from .tensor import Tensor

FAILURES = (RuntimeError, ValueError, IndexError, TypeError)  # the general path raises them with adjit's messages
PLACES = frozenset({int, type(None), type(Ellipsis)})  # of which the key of a view consists, and of slices
BOUNDS = frozenset({int, type(None)})
KEPT = 4_096  # calls whose ops are remembered
REDUCTIONS: dict[type[Reduce], Method] = {Sum: np.add.reduce, Max: np.maximum.reduce, Min: np.minimum.reduce}
WHERE = Where()
WHERE_NUMBER = number_of(WHERE)

_tensor: type[Tensor]
_new, _array, _asarray, _loaded = object.__new__, np.ndarray, np.asarray, loaded
_ops: dict[Hashable, tuple[Op, int] | None] = {}  # the op that a call is, and its number, by method, shape and arguments


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


# ---- views


def item(general: Method) -> Method:
    def method(self: Tensor, key: Any) -> Any:
        if next(quick.calls):
            quick.proceed()
        if type(key) is int or is_view(key):
            here = listening.here
            try:
                if not here.recorders:
                    array = self.buffer[key]
                    out = _new(_tensor)
                    out.buffer = array if type(array) is _array else _asarray(array)
                    return out
                if (log := here.log) is not None:
                    return viewed(log, self, "item", key, general, lambda array: array[key])
            except FAILURES:
                pass
        try:
            return general(self, key)
        except Exception as error:
            trim(error)
            raise

    return method


def is_view(key: Any) -> bool:
    """Whether a key selects a view. The bounds of a slice may be traced, if a compiled function indexes a tensor from outside."""
    for part in key if type(key) is tuple else (key,):
        kind = type(part)
        if kind is slice:
            if type(part.start) not in BOUNDS or type(part.stop) not in BOUNDS or type(part.step) not in BOUNDS:
                return False
        elif kind not in PLACES:
            return False
    return True


def turned(general: Method) -> Method:
    def method(self: Tensor) -> Any:
        here = listening.here
        if not here.recorders:
            out = _new(_tensor)
            out.buffer = self.buffer.T
            return out
        if (log := here.log) is not None and self.buffer.ndim > 1:
            try:
                return viewed(log, self, "T", (), lambda x, _: general(x), lambda array: array.T)
            except FAILURES:
                pass
        try:
            return general(self)
        except Exception as error:
            trim(error)
            raise

    return method


def reshaped(general: Method) -> Method:
    def method(self: Tensor, *shape: Any, order: str = "C") -> Any:
        given = shape[0] if len(shape) == 1 else shape
        if order == "C" and (type(given) is int or (type(given) is tuple and all(type(n) is int for n in given))):
            here = listening.here
            try:
                if not here.recorders:
                    return wrapped(self.buffer.reshape(given))
                if (log := here.log) is not None:
                    return viewed(log, self, "reshape", given, general, lambda array: array.reshape(given))
            except FAILURES:
                pass
        try:
            return general(self, *shape, order=order)
        except Exception as error:
            trim(error)
            raise

    return method


def viewed(log: TapeLog, x: Tensor, name: str, given: Any, general: Method, view: Callable[[Array], Array]) -> Any:
    """A view of a tensor, with an entry in the log of the only tape that is recording."""
    array = x.buffer
    source = log.numbers.get(id(x))
    if source is None:
        if log.lost:
            raise RuntimeError("perhaps a dead end, which the general path records")
        return wrapped(view(array))
    key = (name, array.shape, array.dtype.char, hashable(given))
    known = _ops.get(key) or (None if key in _ops else remember(key, by_example(array, given, general)))
    if known is None:
        raise RuntimeError("not a chain of views")
    op, number = known
    out = wrapped(view(array))
    log.structure.append((number, source))
    log.entries.append((op, (x,), (out,)))
    log.numbers[id(out)] = len(log.entries)
    return out


def hashable(key: Any) -> Hashable:
    """The key of a view, in which slices, which cannot be hashed before Python 3.12, are tuples."""
    if type(key) is slice:
        return (slice, key.start, key.stop, key.step)
    return tuple(map(hashable, key)) if type(key) is tuple else key


def remember(key: Hashable, op: Op | None) -> tuple[Op, int] | None:
    if len(_ops) >= KEPT:
        _ops.clear()
    _ops[key] = known = None if op is None else (op, number_of(op))
    return known


class NotedOps(Recorder):
    """Notes the ops of one call."""

    def __init__(self) -> None:
        self.entries: list[tuple[Op, tuple[Operand, ...], tuple[Operand, ...]]] = []

    def applied(self, op: Op, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> None:
        self.entries.append((op, args, results))

    def stand_ins(self, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return args

    def read(self, variable: Any, value: Operand) -> None: ...

    def last_read(self, store: Any) -> None:
        return None


def by_example(array: Array, given: Any, general: Method) -> Op | None:
    """Return the op that the general path records, several as one `Chain`; None if they do not form a chain."""
    x: Operand = wrapped(np.zeros(array.shape, array.dtype))
    example = NotedOps()
    before = listening.recorders
    listening.recorders = (example,)
    try:
        last = general(x, given)
    finally:
        listening.recorders = before
    parts = []
    for op, args, results in example.entries:
        if len(args) != 1 or args[0] is not x or len(results) != 1:
            return None
        parts.append(op)
        (x,) = results
    if x is not last or not parts:
        return None
    return parts[0] if len(parts) == 1 else Chain(tuple(parts))


# ---- reductions


def reduction(kind: type[Reduce], general: Method) -> Method:
    reduce = REDUCTIONS[kind]

    def method(self: Tensor, axis: Any = None, *args: Any, keepdims: Any = False, **kwargs: Any) -> Any:
        array = self.buffer
        if (array.dtype is F64 or array.dtype is F32) and not args and not kwargs and type(keepdims) is bool:
            here = listening.here
            try:
                if not here.recorders:
                    if axis is None or type(axis) is int:
                        return wrapped(here.run(reduce, array, axis, None, None, keepdims) if keepdims else here.run(reduce, array, axis))
                elif (log := here.log) is not None:
                    key = (kind, array.shape if keepdims else array.ndim, axis)
                    op, number = _ops.get(key) or reducing(key, kind, axis, array, keepdims)
                    if keepdims:
                        return noted(here, log, lambda x: reduce(x, axis, None, None, True), op, number, self, array)
                    return noted(here, log, reduce if axis == 0 else lambda x: reduce(x, axis), op, number, self, array)
            except FAILURES:
                pass
        try:
            return general(self, axis, *args, **({**kwargs, "keepdims": keepdims} if keepdims is not False else kwargs))
        except Exception as error:
            trim(error)
            raise

    return method


def reducing(key: Hashable, kind: type[Reduce], axis: Any, array: Array, keepdims: bool) -> tuple[Op, int]:
    """The op of a reduction over one axis, or all."""
    rank = array.ndim
    if axis is not None and type(axis) is not int:
        raise TypeError("several axes take the general path")
    axes = tuple(range(rank)) if axis is None else (range(rank)[axis],)
    op = kind(axes)
    known = remember(key, Chain((op, Reshape(kept_shape(array.shape, axes)))) if keepdims and rank else op)
    assert known is not None
    return known


def average(general: Method) -> Method:
    def method(self: Tensor, axis: Any = None, *args: Any, keepdims: Any = False, **kwargs: Any) -> Any:
        array = self.buffer
        is_usual = (array.dtype is F64 or array.dtype is F32) and array.size and not args and not kwargs and type(keepdims) is bool
        if is_usual and (axis is None or type(axis) is int):
            here = listening.here
            if not here.recorders or here.log is not None:
                try:
                    count = float(array.size if axis is None else array.shape[axis])
                    if not here.recorders:
                        total = here.run(np.add.reduce, array, axis, None, None, keepdims)
                        return wrapped(here.run(np.divide, total, count))
                    return self.sum(axis, keepdims=keepdims) / count
                except FAILURES:
                    pass
        try:
            return general(self, axis, *args, **({**kwargs, "keepdims": keepdims} if keepdims is not False else kwargs))
        except Exception as error:
            trim(error)
            raise

    return method


# ---- functions of NumPy


def functions(general: Method) -> Method:
    """`__array_function__`, of tensors and variables."""

    def method(self: Operand, function: Method, types: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if function in FUNCTIONS and (len(_modules) == _loaded.without or called_by_user()):
            try:
                if type(self) is not _tensor:
                    args = tuple(map(value_of, args))
                out = FUNCTIONS[function](*args, **kwargs) if kwargs else FUNCTIONS[function](*args)
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


def unknown(*args: Any) -> None:
    return None


def where(condition: Any, a: Any, b: Any) -> Any:
    array = condition.buffer if type(condition) is _tensor else condition
    if type(array) is not _array or array.dtype is not BOOL or (arrays := floats((a, b))) is None:
        return None
    here = listening.here
    if not here.recorders:
        return wrapped(np.where(array, *arrays))
    log = here.log
    if log is None or type(condition) is not _tensor:
        return None
    return joined(log, lambda: np.where(array, *arrays), WHERE, WHERE_NUMBER, (condition, a, b))


def concatenate(xs: Any, axis: Any = 0) -> Any:
    arrays = floats(xs) if type(axis) is int else None
    if arrays is None:
        return None
    here = listening.here
    if not here.recorders:
        return wrapped(np.concatenate(arrays, axis))
    if (log := here.log) is None:
        return None
    key = (Concatenate, arrays[0].ndim, axis)
    op, number = _ops.get(key) or remember(key, Concatenate(range(arrays[0].ndim)[axis]))  # type: ignore[misc]
    return joined(log, lambda: np.concatenate(arrays, axis), op, number, tuple(xs))


def joined(log: TapeLog, compute: Callable[[], Array], op: Op, number: int, xs: tuple[Any, ...]) -> Any:
    """Compute an op of several tensors, with an entry in the log of the only tape that is recording."""
    numbers = log.numbers
    sources = [numbers.get(id(x)) for x in xs]
    is_watched = any(n is not None for n in sources)
    if not is_watched and log.lost:
        return None  # perhaps a dead end, which the general path records
    out = wrapped(compute())
    if is_watched:
        log.structure.append((number, *[log.constant(op, x) if n is None else n for x, n in zip(xs, sources, strict=True)]))
        log.entries.append((op, xs, (out,)))
        numbers[id(out)] = len(log.entries)
    return out


def stack(xs: Any, axis: Any = 0) -> Any:
    arrays = floats(xs) if type(axis) is int else None
    if arrays is None:
        return None
    if not listening.here.recorders:
        return wrapped(np.stack(arrays, axis))
    shape = arrays[0].shape
    if listening.here.log is None or any(array.shape != shape for array in arrays):
        return None
    at = range(len(shape) + 1)[axis]
    return concatenate([x.reshape((*shape[:at], 1, *shape[at:])) for x in xs], at)


def floats(xs: Any) -> Sequence[Array] | None:
    """The arrays of tensors of one float dtype; None for anything else."""
    if type(xs) not in (list, tuple) or not all(type(x) is _tensor for x in xs):
        return None
    arrays = [x.buffer for x in xs]
    dtype = arrays[0].dtype if arrays else None
    return arrays if (dtype is F64 or dtype is F32) and all(array.dtype is dtype for array in arrays) else None


def of_tensor(name: str) -> Method:
    """One of the methods, of the tensor that is the first argument."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        is_usual = type(x) is _tensor and len(args) <= 1 and (not kwargs or kwargs.keys() <= {"axis", "keepdims"})
        return getattr(x, name)(*args, **kwargs) if is_usual else None

    return call


_dot = product(_array.dot, unknown)


def dot(a: Any, b: Any) -> Any:
    return _dot(a, b) if type(a) is _tensor else None


FUNCTIONS: dict[Method, Method] = {
    **{function: of_tensor(function.__name__) for function in (np.sum, np.mean, np.reshape)},
    np.max: of_tensor("max"), np.min: of_tensor("min"), np.where: where, np.concatenate: concatenate, np.stack: stack,
    np.dot: dot,
}  # fmt: skip
