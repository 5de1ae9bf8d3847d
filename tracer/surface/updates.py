"""NumPy's in-place functions, as functions that return a new array; and functions applied along axes.

    x = aj.put(x, indices, values)

`np.put(x, ...)` itself returns nothing. AutoGraph assigns the new array to the variable `x`; elsewhere it raises on a traced value.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, OutOfBoundsError, ShapeError, UnsupportedError
from adjit.ir.operand import Concrete, Operand, as_arithmetic
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import I64, normalize_axis

from ..control import fori_loop
from ..convert import array_of_list, numbers, pick, to_operand, to_operands
from .indexing import wrapped
from .reductions import cumsum
from .shapes import broadcast_arrays, moveaxis, stack


def put(x: Any, indices: Any, values: Any, /, mode: str = "raise") -> Operand:
    """Return x with values at indices into the flattened array; values are repeated as needed.

    >>> aj.put([1, 2, 3], [0, 2], [10, 20])
    Tensor([10,  2, 20], i64[3])
    """
    x, at = to_operands(x, indices)
    at = wrapped(ops.reshape(at, -1), x.type.size, mode, "put")
    flat = ops.setitem(ops.reshape(x, -1), at, repeated(values, x, at.shape[0]))
    return ops.reshape(flat, x.shape)


def put_along_axis(x: Any, indices: Any, values: Any, /, axis: int | None) -> Operand:
    """Return x with values at indices given for each slice along an axis.

    >>> aj.put_along_axis([[1, 2], [3, 4]], [[0], [1]], 9, axis=1)
    Tensor([[9, 2],
            [3, 9]], i64[2,2])
    """
    x, at = to_operands(x, indices)
    if axis is None:
        return ops.reshape(ops.setitem(ops.reshape(x, -1), ops.reshape(at, -1), values), x.shape)
    axis = normalize_axis(axis, x.ndim, "put_along_axis")
    if at.ndim != x.ndim:
        raise ShapeError(f"put_along_axis: indices of rank {at.ndim} for an array of rank {x.ndim}; the ranks must be equal")
    lines = [np.arange(n).reshape([-1 if b == a else 1 for b in range(x.ndim)]) for a, n in enumerate(x.shape)]
    return ops.setitem(x, tuple(at if a == axis else line for a, line in enumerate(lines)), values)


def putmask(x: Any, mask: Any, values: Any, /) -> Operand:
    """Return x with values where a mask is True; values are repeated to the size of x and used at the same positions.

    >>> aj.putmask([1, 2, 3], [True, False, True], [10, 20, 30])
    Tensor([10,  2, 30], i64[3])
    """
    x, mask = to_operands(x, mask)
    return ops.where(ops.not_equal(mask, 0), ops.reshape(repeated(values, x, x.type.size), x.shape), x)


def place(x: Any, mask: Any, values: Any, /) -> Operand:
    """Return x with consecutive values at the positions where a mask is True.

    >>> aj.place([1, 2, 3], [True, False, True], [10, 20])
    Tensor([10,  2, 20], i64[3])
    """
    x, mask = to_operands(x, mask)
    mask = ops.not_equal(mask, 0)
    given = ops.reshape(same_kind(values, x), -1)
    rank = ops.reshape(cumsum(ops.cast(ops.reshape(mask, -1), I64)) - 1, mask.shape)
    return ops.where(mask, pick(given, ops.maximum(rank, 0) % given.shape[0]), x)


def fill_diagonal(x: Any, value: Any, /, wrap: bool = False) -> Operand:
    """Return x with values on its main diagonal.

    >>> aj.fill_diagonal(aj.zeros((2, 2)), 5.0)
    Tensor([[5., 0.],
            [0., 5.]], f64[2,2])
    """
    x = to_operand(x)
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ShapeError(f"fill_diagonal: takes a matrix, or an array with axes of one length, not {x.type}")
    step = 1 + sum(math.prod(x.shape[a + 1 :]) for a in range(x.ndim - 1))
    end = x.shape[1] * x.shape[1] if x.ndim == 2 and not wrap else x.type.size
    at = np.arange(0, min(end, x.type.size), step)
    return ops.reshape(ops.setitem(ops.reshape(x, -1), Concrete(at), repeated(value, x, len(at))), x.shape)


def copyto(x: Any, source: Any, /, casting: str = "same_kind", where: Any = True) -> Operand:
    """Return x with the elements of an array that is broadcast to its shape, where a condition holds."""
    x = to_operand(x)
    (given,) = to_operands(source) if not isinstance(source, bool | int | float | complex) else numbers(source)
    source = to_operand(given)
    if not np.can_cast(source.dtype, x.dtype, casting):  # type: ignore[arg-type]
        raise DTypeError(f"copyto: {source.type} cannot be cast to the dtype of {x.type} according to the rule {casting!r}")
    new = ops.broadcast_to(ops.cast(source, x.dtype), x.shape)
    return new if where is True else ops.where(ops.broadcast_to(to_operand(where), x.shape), new, x)


def update_at(name: str, function: Callable[..., Operand], x: Operand, indices: Any, values: Any = None) -> Operand:
    """Return x after `np.NAME.at(x, indices, values)`, where `function` is the ufunc: it is applied for each of several equal indices."""
    if name in ("add", "subtract") and values is not None:
        return ops.additem(x, indices, array_of_list(values) if name == "add" else -as_arithmetic(values))
    if any(isinstance(i, Operand) and not isinstance(i, Concrete) for i in (indices if isinstance(indices, tuple) else (indices,))):
        return update_one_by_one(name, function, x, indices if isinstance(indices, tuple) else (indices,), values)
    key = tuple(i.buffer if isinstance(i, Concrete) else i for i in (indices if isinstance(indices, tuple) else (indices,)))
    try:
        at = np.arange(x.type.size).reshape(x.shape)[key]
    except IndexError as error:
        raise OutOfBoundsError(f"np.{name}.at of {x.type}: {error}") from None
    given = [] if values is None else [ops.reshape(ops.broadcast_to(to_operand(values), at.shape), -1)]
    flat, at = ops.reshape(x, -1), at.reshape(-1)
    for chosen in distinct(at):
        updated = function(pick(flat, at[chosen]), *(pick(v, chosen) for v in given))
        check_kind(name, updated, x)
        flat = ops.setitem(flat, Concrete(at[chosen]), updated)
    return ops.reshape(flat, x.shape)


def update_one_by_one(name: str, function: Callable[..., Operand], x: Operand, key: tuple[Any, ...], values: Any) -> Operand:
    """Update x in a loop over the indices, since which of them are equal is known only when the function runs."""
    if not all(isinstance(i, int | np.integer | np.ndarray | list | Operand) and to_operand(i).dtype.kind in "iu" for i in key):
        raise UnsupportedError(
            f"np.{name}.at: indices that are known only when the function runs must be integers, without slices and masks"
        )
    places = broadcast_arrays(*to_operands(*key))
    count, rest = math.prod(places[0].shape), x.shape[len(key) :]
    rows = [ops.reshape(index, (count,)) for index in places]
    given = [] if values is None else [ops.reshape(ops.broadcast_to(to_operand(values), (*places[0].shape, *rest)), (count, *rest))]

    def step(k: Any, out: Any) -> Any:
        at = tuple(ops.getitem(row, k) for row in rows)
        updated = function(ops.getitem(out, at), *(ops.getitem(part, k) for part in given))
        check_kind(name, updated, x)
        return ops.setitem(out, at, updated)

    out: Operand = fori_loop(0, count, step, x)
    return out


def check_kind(name: str, updated: Operand, x: Operand) -> None:
    if not np.can_cast(updated.dtype, x.dtype, "same_kind"):
        raise DTypeError(f"np.{name}.at: the result, {updated.dtype}, would lose its kind in {x.type}; cast either first")


def distinct(at: Any) -> list[Any]:
    """Split positions into groups without equal ones: the first occurrences of all, the second ones, ..."""
    order = np.argsort(at, kind="stable")
    starts = np.r_[True, at[order][1:] != at[order][:-1]] if at.size else np.zeros(0, bool)
    rank = np.empty(at.size, int)
    rank[order] = np.arange(at.size) - np.maximum.accumulate(np.where(starts, np.arange(at.size), 0))
    return [np.flatnonzero(rank == k) for k in range(rank.max(initial=-1) + 1)]


def same_kind(values: Any, x: Operand) -> Operand:
    (given,) = to_operands(values) if not isinstance(values, bool | int | float | complex) else numbers(values)
    return ops.cast(to_operand(given), x.dtype)


def repeated(values: Any, x: Operand, size: int) -> Operand:
    """Repeat values cyclically to a vector of this size."""
    given = ops.reshape(same_kind(values, x), -1)
    return pick(given, np.arange(size) % given.shape[0])


# ---- functions along axes


def apply_along_axis(function: Callable[..., Any], axis: int, x: Any, /, *args: Any, **kwargs: Any) -> Operand:
    """Return the results of a function applied to each slice along an axis; they replace that axis.

    >>> aj.apply_along_axis(lambda row: row / row.sum(), 1, [[1.0, 3.0], [2.0, 2.0]])
    Tensor([[0.25, 0.75],
            [0.5 , 0.5 ]], f64[2,2])
    """
    x = to_operand(x)
    axis = normalize_axis(axis, x.ndim, "apply_along_axis")
    lines = moveaxis(x, axis, -1)
    places = list(itertools.product(*(range(n) for n in lines.shape[:-1])))
    if not places:
        raise ShapeError(f"apply_along_axis: {x.type} has no lines along axis {axis}")
    out = stack([to_operand(function(pick(lines, at), *args, **kwargs)) for at in places])
    return moved_back(ops.reshape(out, (*lines.shape[:-1], *out.shape[1:])), len(lines.shape) - 1, axis)


def moved_back(x: Operand, others: int, axis: int) -> Operand:
    """Move the axes after the first `others` to the position `axis`."""
    order = list(range(others))
    order[axis:axis] = range(others, x.ndim)
    return ops.transpose(x, order)


def apply_over_axes(function: Callable[[Any, int], Any], x: Any, axes: Any, /) -> Operand:
    """Return the result of a reduction over one axis after another, each kept with size 1.

    >>> aj.apply_over_axes(aj.sum, [[1, 2], [3, 4]], [0, 1])
    Tensor([[10]], i64[1,1])
    """
    out = to_operand(x)
    rank = out.ndim
    for axis in np.atleast_1d(axes).tolist():
        axis = normalize_axis(axis, rank, "apply_over_axes")
        reduced = to_operand(function(out, axis))
        out = reduced if reduced.ndim == rank else ops.reshape(reduced, (*reduced.shape[:axis], 1, *reduced.shape[axis:]))
        if out.ndim != rank:
            raise ShapeError("apply_over_axes: the function must keep the axes, or drop the one that it is given")
    return out


end_at_callers(globals())
