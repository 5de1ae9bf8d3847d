"""Indices of nonzero elements, and set operations.

The length of the results depends on values. For traced ones it is found when the function runs (`ir.found_sizes`), or given by `size=`:
shorter results are padded, longer ones are truncated.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError, UnsupportedError
from adjit.ir.found_sizes import INSTEAD, found_size
from adjit.ir.operand import Concrete, Operand
from adjit.ir.ops.maps import common_dtype
from adjit.ir.records import NamedTuple
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import I64, normalize_axes, normalize_axis

from ..convert import pick, present, to_operand, to_operands, with_axes
from .indexing import isin, take, unravel_index
from .reductions import cumsum
from .shapes import concatenate, stack


class Unique(NamedTuple):
    """The distinct elements; the index of the first occurrence of each; for each element, its index among them; and their counts."""

    values: Operand
    indices: Operand
    inverse_indices: Operand
    counts: Operand


# ---- positions


def nonzero(x: Any, /, *, size: int | None = None, fill_value: int = 0) -> tuple[Operand, ...]:
    """Return the indices of nonzero elements, one array per axis; `size` of them if x is traced.

    >>> aj.nonzero([[0, 1], [2, 0]])
    (Tensor([0, 1], i64[2]), Tensor([1, 0], i64[2]))
    """
    x = to_operand(x)
    if not x.ndim:
        raise ShapeError("nonzero: a 0-dimensional value has no positions; use np.atleast_1d(x).nonzero()")
    flat = flatnonzero(x, size=size, fill_value=-1)
    if size is None:
        return tuple(unravel_index(flat, x.shape))
    there = ops.greater_equal(flat, 0)
    return tuple(ops.where(there, at, fill_value) for at in unravel_index(ops.where(there, flat, 0), x.shape))


def flatnonzero(x: Any, /, *, size: int | None = None, fill_value: int = 0) -> Operand:
    """Return the indices of nonzero elements in the flattened array; `size` of them if x is traced.

    >>> aj.flatnonzero([0, 3, 0, 4])
    Tensor([1, 3], i64[2])
    """
    mask = ops.not_equal(ops.reshape(to_operand(x), -1), 0)
    return positions(mask, "flatnonzero", size, fill_value)


def argwhere(x: Any, /, *, size: int | None = None, fill_value: int = 0) -> Operand:
    """Return the indices of nonzero elements, one row each; `size` of them if x is traced.

    >>> aj.argwhere([[0, 1], [2, 0]])
    Tensor([[0, 1],
            [1, 0]], i64[2,2])
    """
    return stack(nonzero(x, size=size, fill_value=fill_value), axis=1)


def positions(mask: Operand, what: str, size: int | None, fill: Any) -> Operand:
    """Return the indices where a vector is True, in order."""
    if size is None and isinstance(mask, Concrete):
        return present(Concrete(np.flatnonzero(mask.buffer)))
    if size is None:
        return found_positions(
            mask,
            f"{what}: the shape of its result depends on values that are not known while tracing; give the largest size possible, with "
            f"adjit.{what}(..., size=n), or mask with np.where(condition, a, b)",
        )
    n = mask.shape[0]
    order = _true_first(mask)
    if size > n:
        order = ops.pad(order, [0], [size - n])
    return ops.where(ops.less(ops.iota((size,), 0), ops.sum(mask)), ops.slice_(order, [slice(size)]), fill)


def found_positions(mask: Operand, otherwise: str) -> Operand:
    """Return the indices where a vector is True; their number is found when the function runs."""
    return ops.slice_(_true_first(mask), [slice(found_size(ops.sum(mask), otherwise))])


def _true_first(mask: Operand) -> Operand:
    """Return the indices of a vector, those where it is True first, each kind in order: the sort is stable."""
    return ops.argsort(ops.cast(ops.logical_not(mask), np.dtype("i1")), 0)


def chosen(values: Operand, mask: Operand, what: str, size: int | None, fill: Any) -> Operand:
    """Select the elements of a vector where a mask is True; the default padding is the first of them."""
    at = positions(mask, what, size, 0 if fill is None else -1)
    if size is None:
        return pick(values, at)
    if not values.shape[0]:
        return ops.full((size,), 0 if fill is None else fill, values.dtype)
    if fill is None:
        first = ops.argmax(mask)
        return pick(values, ops.where(ops.less(ops.iota((size,), 0), ops.sum(mask)), at, first))
    return ops.where(ops.greater_equal(at, 0), pick(values, ops.maximum(at, 0)), ops.cast(to_operand(fill), values.dtype))


def trim_zeros(x: Any, /, trim: str = "fb", axis: Any = None) -> Operand:
    """Return x without the zeros at the front ("f"), the back ("b") or both ends ("fb") of the given axes (None: all).

    >>> aj.trim_zeros([0.0, 1.0, 0.0, 2.0, 0.0])
    Tensor([1., 0., 2.], f64[3])
    """
    out = to_operand(x)
    ends = trim.lower()
    if ends not in ("fb", "bf", "f", "b"):
        raise ShapeError(f"trim_zeros: trim must consist of 'f' (front) and 'b' (back), not {trim!r}")
    there = ops.not_equal(out, 0)
    spans = [trimmed(there, at, ends) for at in normalize_axes(axis, out.ndim, "trim_zeros")]
    for at, places in zip(normalize_axes(axis, out.ndim, "trim_zeros"), spans, strict=True):
        out = pick(out, (*[slice(None)] * at, places))
    return out


def trimmed(there: Operand, axis: int, ends: str) -> Operand:
    """Return the positions along an axis that remain: from the first to the last one with a nonzero element."""
    size = there.shape[axis]
    line = ops.any(there, tuple(a for a in range(there.ndim) if a != axis))
    anything = ops.any(line)
    first = ops.where(anything, ops.argmax(line), size) if size and "f" in ends else to_operand(0)
    last = ops.where(anything, size - ops.argmax(pick(line, slice(None, None, -1))), 0) if size and "b" in ends else to_operand(size)
    length = ops.maximum(last - first, 0)
    otherwise = f"trim_zeros: the shape of its result depends on values that are not known while tracing; {INSTEAD}"
    count = int(length) if isinstance(length, Concrete) else found_size(length, otherwise)
    places: Operand = first + ops.iota((count,), 0)
    return places


def compress(condition: Any, x: Any, /, axis: int | None = None, *, size: int | None = None, fill_value: Any = 0) -> Operand:
    """Return the elements along an axis where a condition holds; `size` of them if the condition is traced.

    >>> aj.compress([True, False, True], [1, 2, 3])
    Tensor([1, 3], i64[2])
    """
    return compressed("compress", to_operand(condition), to_operand(x), axis, size, fill_value)


def extract(condition: Any, x: Any, /, *, size: int | None = None, fill_value: Any = 0) -> Operand:
    """Return the elements where a condition holds, as a vector; `size` of them if the condition is traced.

    >>> aj.extract([[True, False], [False, True]], [[1, 2], [3, 4]])
    Tensor([1, 4], i64[2])
    """
    return compressed("extract", ops.reshape(to_operand(condition), -1), to_operand(x), None, size, fill_value)


def compressed(what: str, condition: Operand, x: Operand, axis: int | None, size: int | None, fill: Any) -> Operand:
    mask = ops.not_equal(condition, 0)
    if mask.ndim != 1:
        raise ShapeError(f"{what}: the condition must be a vector, not {condition.type}")
    x = ops.reshape(x, -1) if axis is None else with_axes(x)
    axis = 0 if axis is None else normalize_axis(axis, x.ndim, what)
    at = positions(mask, what, size, -1)
    taken = take(x, at if size is None else ops.maximum(at, 0), axis)
    if size is None:
        return taken
    given = ops.reshape(ops.greater_equal(at, 0), [size if a == axis else 1 for a in range(x.ndim)])
    return ops.where(given, taken, ops.cast(to_operand(fill), x.dtype))


# ---- distinct elements


def unique(
    x: Any, /, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None, *,
    equal_nan: bool = True, sorted: bool = True, size: int | None = None, fill_value: Any = None,
) -> Any:  # fmt: skip
    """Return the distinct elements, sorted; `size` of them if x is traced. Derivatives go to the first occurrence of each.

    Optionally also returns the index of each first occurrence, the index of each element among the distinct ones, and their counts.

    >>> aj.unique([3, 1, 3])
    Tensor([1, 3], i64[2])
    >>> aj.unique([3, 1, 3], return_counts=True)
    (Tensor([1, 3], i64[2]), Tensor([1, 2], i64[2]))
    """
    if axis is not None:
        raise UnsupportedError("unique: axis= is not supported; only the distinct elements of the whole array are")
    found = distinct(to_operand(x), equal_nan, size, fill_value, "unique")
    wanted = [part for part, asked in zip(found, (True, return_index, return_inverse, return_counts), strict=True) if asked]
    return wanted[0] if len(wanted) == 1 else tuple(wanted)


def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Unique:
    """Return the distinct elements, their first indices, the index of each element among them, and their counts.

    >>> aj.unique_all([3, 1, 3]).indices
    Tensor([1, 0], i64[2])
    """
    return distinct(to_operand(x), False, size, fill_value, "unique_all")


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Operand:
    """Return the distinct elements, sorted.

    >>> aj.unique_values([3, 1, 3])
    Tensor([1, 3], i64[2])
    """
    return distinct(to_operand(x), False, size, fill_value, "unique_values").values


def unique_counts(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Return the distinct elements and their counts.

    >>> values, counts = aj.unique_counts([3, 1, 3])
    >>> counts
    Tensor([1, 2], i64[2])
    """
    found = distinct(to_operand(x), False, size, fill_value, "unique_counts")
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Return the distinct elements, and the index of each element among them.

    >>> values, inverse = aj.unique_inverse([3, 1, 3])
    >>> inverse
    Tensor([1, 0, 1], i64[3])
    """
    found = distinct(to_operand(x), False, size, fill_value, "unique_inverse")
    return UniqueInverse(found.values, found.inverse_indices)


class UniqueCounts(NamedTuple):
    values: Operand
    counts: Operand


class UniqueInverse(NamedTuple):
    values: Operand
    inverse_indices: Operand


def distinct(x: Operand, equal_nan: bool, size: int | None, fill: Any, what: str) -> Unique:
    flat = ops.reshape(x, -1)
    n = flat.shape[0]
    order = ops.argsort(flat, 0)
    ordered = pick(flat, order)
    first = is_first(ordered, equal_nan)
    rank = cumsum(ops.cast(first, I64)) - 1
    values, indices = chosen(ordered, first, what, size, fill), chosen(order, first, what, size, None)
    inverse = ops.reshape(ops.setitem(ops.full((n,), 0, I64), order, rank), x.shape)
    count = values.shape[0]
    inside = ops.less(rank, count)
    counts = ops.additem(ops.full((builtins.max(count, 1),), 0, I64), ops.where(inside, rank, 0), ops.cast(inside, I64))
    return Unique(values, indices, inverse, ops.slice_(counts, [slice(count)]))


def is_first(ordered: Operand, equal_nan: bool = True) -> Operand:
    """Whether each element of a sorted vector differs from the previous one."""
    n = ordered.shape[0]
    before, after = ops.slice_(ordered, [slice(0, builtins.max(n - 1, 0))]), ops.slice_(ordered, [slice(1, None)])
    differs = ops.not_equal(before, after)
    if equal_nan and ordered.type.is_float:
        differs = ops.logical_and(differs, ops.logical_not(ops.isnan(before)))  # NaN sorts last: all elements after one are NaN
    return concatenate([ops.full((builtins.min(n, 1),), True, np.dtype("?")), differs], 0)


# ---- sets


def union1d(a: Any, b: Any, /, *, size: int | None = None, fill_value: Any = None) -> Operand:
    """Return the distinct elements of either array, sorted.

    >>> aj.union1d([1, 2], [2, 3])
    Tensor([1, 2, 3], i64[3])
    """
    ordered = sorted_together(a, b)
    return chosen(ordered, is_first(ordered), "union1d", size, fill_value)


def intersect1d(a: Any, b: Any, /, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None) -> Operand:
    """Return the distinct elements that occur in both arrays, sorted.

    >>> aj.intersect1d([3, 1, 2], [2, 3, 4])
    Tensor([2, 3], i64[2])
    """
    first, second = to_operands(a, b)
    ordered = sorted_together(ops.cast(first, common_dtype(first, second)))
    return chosen(ordered, ops.logical_and(is_first(ordered, False), isin(ordered, second)), "intersect1d", size, fill_value)


def setdiff1d(a: Any, b: Any, /, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None) -> Operand:
    """Return the distinct elements of `a` that are not in `b`: sorted, or in their original order with `assume_unique`.

    >>> aj.setdiff1d([3, 1, 2], [2])
    Tensor([1, 3], i64[2])
    """
    ordered = ops.reshape(to_operand(a), -1) if assume_unique else sorted_together(a)
    missing = ops.logical_not(isin(ordered, b))
    mask = missing if assume_unique else ops.logical_and(is_first(ordered), missing)
    return chosen(ordered, mask, "setdiff1d", size, fill_value)


def setxor1d(a: Any, b: Any, /, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None) -> Operand:
    """Return the distinct elements that occur in exactly one of the arrays, sorted.

    >>> aj.setxor1d([1, 2], [2, 3])
    Tensor([1, 3], i64[2])
    """
    ordered = sorted_together(a, b)
    mask = ops.logical_and(is_first(ordered, False), ops.not_equal(isin(ordered, a), isin(ordered, b)))
    return chosen(ordered, mask, "setxor1d", size, fill_value)


def sorted_together(*xs: Any) -> Operand:
    return ops.sort(concatenate([ops.reshape(x, -1) for x in to_operands(*xs)], 0), 0)


end_at_callers(globals())
