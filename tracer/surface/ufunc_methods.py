"""The methods of NumPy's binary ufuncs: `reduce`, `accumulate` and `reduceat` of those that have no function of their own.

A ufunc combines the elements from left to right, in a loop. Where the order makes no difference, halves are combined instead.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, OutOfBoundsError, ShapeError, UnsupportedError
from adjit.ir.operand import Concrete, Operand
from adjit.ir.types import F16, DType, as_dtype, kept_shape, normalize_axes, normalize_axis, reduced_shape

from ..control import fori_loop, scan
from ..convert import pick, present, to_operand, to_operands
from .create import full
from .elementwise import floating
from .segments import segment_max, segment_min, segment_prod, segment_sum
from .shapes import concatenate, moveaxis, stack

Function = Callable[..., Operand]
ANY_ORDER = {np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.logical_xor, np.gcd, np.lcm, np.hypot, np.logaddexp, np.logaddexp2}
BY_DOUBLING = ANY_ORDER | {np.maximum, np.minimum, np.fmax, np.fmin, np.logical_and, np.logical_or}
OF_SEGMENTS: dict[np.ufunc, Callable[..., Operand]] = {
    np.add: segment_sum,
    np.multiply: segment_prod,
    np.maximum: segment_max,
    np.minimum: segment_min,
}


def loop_dtype(ufunc: np.ufunc, x: Operand, dtype: Any) -> DType:
    """Return the dtype in which NumPy combines the elements of x."""
    wanted = {} if dtype is None else {"signature": (as_dtype(dtype), None, None)}
    if ufunc.nin != 2 or ufunc.nout != 1:
        raise UnsupportedError(f"np.{ufunc.__name__}: only functions of two operands combine the elements of an array")
    try:
        found = as_dtype(ufunc.resolve_dtypes((None, x.dtype, None), reduction=True, **wanted)[0])  # type: ignore[arg-type]
    except TypeError as error:
        raise DTypeError(f"np.{ufunc.__name__} over the elements of {x.type}: {error}") from None
    return floating(x).dtype if found == F16 and dtype is None else found  # adjit computes small integers in wider floats


# ---- reduce


def reduce(
    ufunc: np.ufunc,
    ours: Function,
    x: Any,
    /,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Operand:
    """Combine the elements over the given axes: `ufunc.reduce`."""
    given = to_operand(x)
    kind = loop_dtype(ufunc, given, dtype)
    axes = normalize_axes(axis, given.ndim, f"np.{ufunc.__name__}.reduce")
    if len(axes) > 1 and ufunc.identity is None:
        raise ShapeError(f"np.{ufunc.__name__}.reduce: the order of elements matters, so only one axis can be reduced, not {axes}")
    lines = ops.cast(given, kind)
    mask = None if where is True else ops.broadcast_to(to_operands(given, where)[1], given.shape)
    start = started(ufunc, initial, mask is not None, kind)
    if mask is not None and ufunc in ANY_ORDER:
        lines, mask = ops.where(mask, lines, identity(ufunc, kind)), None
    rows, chosen = first_axis(lines, axes), None if mask is None else first_axis(mask, axes)
    found = combined(ufunc, ours, rows, start, chosen)
    return ops.reshape(found, (kept_shape if keepdims else reduced_shape)(given.shape, axes))


def started(ufunc: np.ufunc, initial: Any, masked: bool, kind: DType) -> Operand | None:
    if initial is not None:
        return ops.cast(to_operand(initial), kind)
    if masked and ufunc.identity is None:
        raise ShapeError(f"np.{ufunc.__name__}.reduce: where= needs initial=, the result if no element is selected")
    return identity(ufunc, kind) if masked else None


def identity(ufunc: np.ufunc, kind: DType) -> Operand:
    return ops.cast(to_operand(ufunc.identity), kind)


def first_axis(x: Operand, axes: tuple[int, ...]) -> Operand:
    """Return x with these axes merged into the first one."""
    moved = moveaxis(x, axes, tuple(range(len(axes))))
    return ops.reshape(moved, (-1 if x.type.size else int(np.prod([x.shape[a] for a in axes])), *moved.shape[len(axes) :]))


def combined(ufunc: np.ufunc, ours: Function, rows: Operand, start: Operand | None, chosen: Operand | None) -> Operand:
    """Combine rows (only those that `chosen` selects), beginning with `start` or the first one."""
    count, shape = rows.shape[0], rows.shape[1:]
    if not count:
        if start is None and ufunc.identity is None:
            raise ShapeError(f"np.{ufunc.__name__}.reduce: there are no elements, and it has no identity")
        return ops.broadcast_to(identity(ufunc, rows.dtype) if start is None else start, shape)
    if ufunc in ANY_ORDER:
        found = by_halves(ours, rows)
        return found if start is None else like(ours(ops.broadcast_to(start, shape), found), rows)

    def step(k: Any, out: Any) -> Any:
        new = like(ours(out, ops.getitem(rows, k)), rows)
        return new if chosen is None else ops.where(ops.getitem(chosen, k), new, out)

    first = pick(rows, 0) if start is None else ops.broadcast_to(start, shape)
    out: Operand = fori_loop(1 if start is None else 0, count, step, first)
    return out


def by_halves(ours: Function, rows: Operand) -> Operand:
    while rows.shape[0] > 1:
        half, odd = divmod(rows.shape[0], 2)
        joined = like(ours(pick(rows, slice(half)), pick(rows, slice(half, 2 * half))), rows)
        rows = concatenate([joined, pick(rows, slice(2 * half, None))]) if odd else joined
    return pick(rows, 0)


def like(x: Operand, rows: Operand) -> Operand:
    return ops.cast(x, rows.dtype)


# ---- accumulate


def accumulate(ufunc: np.ufunc, ours: Function, x: Any, /, axis: int = 0, dtype: Any = None) -> Operand:
    """Return all intermediate results along an axis: `ufunc.accumulate`."""
    given = to_operand(x)
    axis = normalize_axis(axis, given.ndim, f"np.{ufunc.__name__}.accumulate")
    rows = moveaxis(ops.cast(given, loop_dtype(ufunc, given, dtype)), axis, 0)
    if rows.shape[0] < 2:
        return moveaxis(rows, 0, axis)
    if ufunc in BY_DOUBLING:
        return moveaxis(by_doubling(ours, rows), 0, axis)

    def step(out: Any, row: Any) -> Any:
        new = like(ours(out, row), rows)
        return new, new

    _, later = scan(step, pick(rows, 0), pick(rows, slice(1, None)))
    return moveaxis(concatenate([pick(rows, slice(0, 1)), later]), 0, axis)


def by_doubling(ours: Function, rows: Operand) -> Operand:
    """Combine each row with the one 1, 2, 4, … rows before it."""
    step = 1
    while step < rows.shape[0]:
        joined = like(ours(pick(rows, slice(-step)), pick(rows, slice(step, None))), rows)
        rows = concatenate([pick(rows, slice(step)), joined])
        step *= 2
    return rows


# ---- reduceat


def reduceat(ufunc: np.ufunc, reduced: Function, x: Any, indices: Any, /, axis: int = 0, dtype: Any = None) -> Operand:
    """Combine the elements from each index to the next one, the last to the end: `ufunc.reduceat`.

    An index that is not below the next one gives the element there. With indices that are known only when the function runs, each result
    is a reduction over the whole axis with the other elements masked.
    """
    given, at = to_operand(x), to_operand(indices)
    axis = normalize_axis(axis, given.ndim, f"np.{ufunc.__name__}.reduceat")
    rows = moveaxis(ops.cast(given, loop_dtype(ufunc, given, dtype)), axis, 0)
    if at.ndim != 1 or at.dtype.kind not in "iu":
        raise DTypeError(f"np.{ufunc.__name__}.reduceat: the indices must be a vector of integers, not {at.type}")
    known = isinstance(at, Concrete)
    found = at_known(ufunc, reduced, rows, at.buffer) if known else at_traced(ufunc, reduced, rows, at)  # type: ignore[attr-defined]
    return moveaxis(found, 0, axis)


def at_known(ufunc: np.ufunc, reduced: Function, rows: Operand, at: Any) -> Operand:
    count = rows.shape[0]
    for index in at:
        if not 0 <= index < count:
            raise OutOfBoundsError(f"np.{ufunc.__name__}.reduceat: index {index} is out of bounds for an axis of size {count}")
    if not len(at):
        return pick(rows, slice(0, 0))
    ends = np.append(at[1:], count)
    combine = OF_SEGMENTS.get(ufunc)
    if combine is None or (ends < at).any():
        parts = [slice(int(a), int(max(b, a + 1))) for a, b in zip(at, ends, strict=True)]
        return stack([reduced(pick(rows, part), axis=0) for part in parts])
    ids = np.repeat(np.arange(len(at)), ends - at)
    found = combine(pick(rows, slice(int(at[0]), None)), present(Concrete(ids)), len(at))
    alone = np.flatnonzero(at == ends)
    return ops.setitem(found, Concrete(alone), pick(rows, at[alone])) if len(alone) else found


def at_traced(ufunc: np.ufunc, reduced: Function, rows: Operand, at: Operand) -> Operand:
    count, n = rows.shape[0], at.shape[0]
    name = f"np.{ufunc.__name__}.reduceat"
    inside = ops.logical_and(ops.greater_equal(at, 0), ops.less(at, count))
    ops.check(ops.all(inside), f"{name}: an index is not in the range from 0 to {count - 1}", "IndexError")
    begin = ops.cast(at, np.dtype("i8"))
    last = full((1,), count, np.dtype("i8"))
    end = ops.maximum(concatenate([pick(begin, slice(1, None)), last]), begin + 1)
    line = ops.reshape(ops.iota((count,), 0), (1, count))
    mask = ops.logical_and(ops.less_equal(ops.reshape(begin, (n, 1)), line), ops.less(line, ops.reshape(end, (n, 1))))
    ones = (1,) * (rows.ndim - 1)
    wide = ops.broadcast_to(ops.reshape(rows, (1, *rows.shape)), (n, *rows.shape))
    found = reduced(wide, axis=1, where=ops.reshape(mask, (n, count, *ones)), **start_of(ufunc, rows.dtype, name))
    alone = ops.reshape(ops.equal(end, begin + 1), (n, *ones))
    return ops.where(alone, pick(rows, begin), found)  # one element is not combined with the identity


def start_of(ufunc: np.ufunc, dtype: DType, name: str) -> dict[str, Any]:
    """Return the initial value that a masked reduction without an identity needs."""
    if ufunc.identity is not None:
        return {}
    if ufunc not in (np.maximum, np.minimum, np.fmax, np.fmin):
        raise UnsupportedError(f"{name}: the indices must be known while tracing, since the order of elements matters")
    if dtype.kind == "b":
        return {"initial": ufunc in (np.minimum, np.fmin)}
    limits = (-np.inf, np.inf) if dtype.kind in "fc" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return {"initial": operator.getitem(limits, ufunc in (np.minimum, np.fmin))}
