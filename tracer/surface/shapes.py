"""Functions that rearrange elements: reshaping, joining, splitting, repeating. Sizes and positions are static."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError
from adjit.ir.found_sizes import INSTEAD, found_size, shape_of, size_of, sizes_in
from adjit.ir.func import Value
from adjit.ir.operand import Operand, as_operand
from adjit.ir.sizes import is_symbolic
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import I64, Shape, as_dtype, broadcast_shapes, listed_axes, normalize_axes, normalize_axis

from ..convert import along, array_of_list, counting, pick, present, rows_at_once, to_operand, to_operands, with_axes
from ..results import copies, views
from .range_checks import check_not_negative


@views
def reshape(x: Any, /, shape: Any, order: str = "C", *, copy: Any = None) -> Operand:
    """Return the elements of x in another shape; one size may be -1.

    >>> aj.reshape([1, 2, 3, 4], (2, -1))
    Tensor([[1, 2],
            [3, 4]], i64[2,2])
    """
    if order == "F":
        return ops.transpose(ops.reshape(ops.transpose(to_operand(x)), tuple(reversed(as_sizes(sizes_in(shape, "reshape"))))))
    return ops.reshape(to_operand(x), sizes_in(shape, "reshape"))


def as_sizes(shape: Any) -> tuple[int, ...]:
    return tuple(n if is_symbolic(n) else operator.index(n) for n in listed_axes(shape))


@views
def ravel(x: Any, /, order: str = "C") -> Operand:
    """Return x flattened to one axis.

    >>> aj.ravel([[1, 2], [3, 4]])
    Tensor([1, 2, 3, 4], i64[4])
    """
    return reshape(x, -1, order=order)


@views
def transpose(x: Any, /, axes: Any = None) -> Operand:
    """Return x with its axes permuted; by default, reversed.

    >>> aj.transpose([[1, 2, 3], [4, 5, 6]])
    Tensor([[1, 4],
            [2, 5],
            [3, 6]], i64[3,2])
    >>> aj.transpose(aj.ones((2, 3, 4)), (0, 2, 1)).shape
    (2, 4, 3)
    """
    return ops.transpose(to_operand(x), axes)


def matrix_transpose(x: Any, /) -> Operand:
    """Return x with its last two axes swapped.

    >>> aj.matrix_transpose(aj.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    return swapaxes(x, -1, -2)


@views
def swapaxes(x: Any, axis1: int, axis2: int, /) -> Operand:
    """Return x with two axes swapped.

    >>> aj.swapaxes(aj.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = to_operand(x)
    order = list(range(x.ndim))
    a, b = normalize_axis(axis1, x.ndim, "swapaxes"), normalize_axis(axis2, x.ndim, "swapaxes")
    order[a], order[b] = b, a
    return ops.transpose(x, tuple(order))


@views
def moveaxis(x: Any, source: Any, destination: Any, /) -> Operand:
    """Return x with axes moved to other positions; the others keep their order.

    >>> aj.moveaxis(aj.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = to_operand(x)
    sources = [normalize_axis(a, x.ndim, "moveaxis") for a in as_sizes(source)]
    places = [normalize_axis(a, x.ndim, "moveaxis") for a in as_sizes(destination)]
    if len(sources) != len(places):
        raise ShapeError(f"moveaxis: {len(sources)} axes for {len(places)} destinations; give one for each")
    order = [a for a in range(x.ndim) if a not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return ops.transpose(x, tuple(order))


@views
def squeeze(x: Any, /, axis: Any = None) -> Operand:
    """Return x without axes of size 1 (all of them, or the given ones).

    >>> aj.squeeze(aj.ones((1, 2, 1)), axis=0).shape
    (2, 1)
    """
    x = to_operand(x)
    axis = None if not x.ndim and type(axis) is int and axis in (0, -1) else axis  # as in NumPy
    axes = [a for a, n in enumerate(x.shape) if n == 1] if axis is None else normalize_axes(axis, x.ndim, "squeeze")
    if any(x.shape[a] != 1 for a in axes):
        raise ShapeError(f"squeeze: axis {axis} of {x.type} is not of size 1")
    return ops.reshape(x, tuple(n for a, n in enumerate(x.shape) if a not in axes))


@views
def expand_dims(x: Any, /, axis: Any = 0) -> Operand:
    """Return x with axes of size 1 inserted at the given positions of the result.

    >>> aj.expand_dims(aj.ones((2, 3)), axis=1).shape
    (2, 1, 3)
    """
    x = to_operand(x)
    places = as_sizes(axis)
    axes = normalize_axes(places, x.ndim + len(places), "expand_dims")
    sizes = iter(x.shape)
    return ops.reshape(x, tuple(1 if a in axes else next(sizes) for a in range(x.ndim + len(axes))))


def atleast_1d(*xs: Any) -> Any:
    """Return arrays with at least one axis.

    >>> aj.atleast_1d(1.0)
    Tensor([1.], f64[1])
    """
    return each(xs, lambda x: ops.reshape(x, widened(x.shape, 1)))


def atleast_2d(*xs: Any) -> Any:
    """Return arrays with at least two axes, adding leading ones.

    >>> aj.atleast_2d([1.0, 2.0])
    Tensor([[1., 2.]], f64[1,2])
    """
    return each(xs, lambda x: ops.reshape(x, widened(x.shape, 2)))


def atleast_3d(*xs: Any) -> Any:
    """Return arrays with at least three axes, as NumPy does: a matrix gets a trailing axis, a vector one on either side.

    >>> aj.atleast_3d(aj.ones((2, 3))).shape
    (2, 3, 1)
    """
    return each(xs, lambda x: ops.reshape(x, widened(x.shape, 3)))


def each(xs: Sequence[Any], change: Any) -> Any:
    out = tuple(change(to_operand(x)) for x in xs)
    return out[0] if len(out) == 1 else out


@views
def broadcast_to(x: Any, /, shape: Any) -> Operand:
    """Return x broadcast to a shape.

    >>> aj.broadcast_to([1, 2], (2, 2))
    Tensor([[1, 2],
            [1, 2]], i64[2,2])
    """
    operand, wanted = to_operand(x), shape_of(shape, "broadcast_to")
    if broadcast_shapes("broadcast_to", operand.shape, wanted) != wanted:
        raise ShapeError(f"broadcast_to: {operand.type} does not broadcast to {list(wanted)}")
    return ops.broadcast_to(operand, wanted)


@views
def broadcast_arrays(*xs: Any) -> tuple[Operand, ...]:
    """Return the arrays broadcast to their common shape.

    >>> a, b = aj.broadcast_arrays([1, 2], [[0], [0]])
    >>> a
    Tensor([[1, 2],
            [1, 2]], i64[2,2])
    """
    operands = to_operands(*xs)
    shape = broadcast_shapes("broadcast_arrays", *(x.shape for x in operands))
    return tuple(present(ops.broadcast_to(x, shape)) for x in operands)


# ---- joining and splitting


@copies
def concatenate(xs: Any, /, axis: int | None = 0, dtype: Any = None) -> Operand:
    """Return the arrays joined along an existing axis.

    >>> aj.concatenate([[[1, 2]], [[3, 4]]], axis=1)
    Tensor([[1, 2, 3, 4]], i64[1,4])
    """
    return joined(xs, "concatenate", lambda shape: shape, lambda ndim: axis, dtype)


def joined(xs: Any, what: str, change: Callable[[Shape], Shape], axis_of: Callable[[int], int | None], dtype: Any = None) -> Operand:
    """Join arrays of changed shapes along an existing axis, which depends on how many there are.

    A single array, or a list that a traced loop made, is taken as its rows: there may be any number of them.
    """
    rows = to_operand(xs) if isinstance(xs, Operand) else rows_at_once(xs)
    if rows is None or not rows.ndim:
        operands = [ops.reshape(x, change(x.shape)) for x in operands_of(xs, what)]
        axis = axis_of(operands[0].ndim)
        return ops.concatenate(operands if dtype is None else [ops.cast(x, as_dtype(dtype)) for x in operands], axis)
    rows = ops.reshape(rows if dtype is None else ops.cast(rows, as_dtype(dtype)), (rows.shape[0], *change(rows.shape[1:])))
    axis = axis_of(rows.ndim - 1)
    if axis is None:
        return ops.reshape(rows, -1)
    axis = normalize_axis(axis, rows.ndim - 1, what)
    shape = rows.shape[1:]
    return ops.reshape(moveaxis(rows, 0, axis), (*shape[:axis], rows.shape[0] * shape[axis], *shape[axis + 1 :]))


def widened(shape: Shape, least: int) -> Shape:
    """Return a shape with at least one, two or three axes, added where NumPy adds them."""
    if len(shape) >= least:
        return shape
    if not shape:
        return (1,) * least
    return (1, *shape, *(1,) * (least - 2)) if len(shape) == 1 else (*shape, 1)


def operands_of(xs: Any, what: str) -> list[Operand]:
    """Return operands from a list of arrays, or from the leading axis of one array."""
    if isinstance(xs, Operand):
        xs = unstack(xs)
    out = to_operands(*xs)
    if not out:
        raise ShapeError(f"{what}: needs at least one array")
    return out


@copies
def stack(xs: Any, /, axis: int = 0, dtype: Any = None) -> Operand:
    """Join arrays of one shape along a new axis."""
    operands = operands_of(xs, "stack")
    if any(x.shape != operands[0].shape for x in operands):
        raise ShapeError(f"stack: all arrays must have the same shape, not {', '.join(str(list(x.shape)) for x in operands)}")
    return concatenate([expand_dims(x, axis) for x in operands], normalize_axis(axis, operands[0].ndim + 1, "stack"), dtype)


@views
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Operand, ...]:
    """Return the arrays that x consists of along an axis, without that axis.

    >>> aj.unstack([[1, 2], [3, 4]], axis=1)
    (Tensor([1, 3], i64[2]), Tensor([2, 4], i64[2]))
    """
    moved = moveaxis(x, axis, 0)
    return tuple(pick(moved, i) for i in range(len(moved)))


@copies
def hstack(xs: Any, /, dtype: Any = None) -> Operand:
    """Return the arrays joined horizontally: along the second axis, or the first for vectors.

    >>> aj.hstack([[[1], [2]], [[3], [4]]])
    Tensor([[1, 3],
            [2, 4]], i64[2,2])
    """
    return joined(xs, "hstack", lambda shape: widened(shape, 1), lambda ndim: min(ndim - 1, 1), dtype)


@copies
def vstack(xs: Any, /, dtype: Any = None) -> Operand:
    """Return the arrays joined vertically: along the first axis, with vectors as rows.

    >>> aj.vstack([[1, 2], [3, 4]])
    Tensor([[1, 2],
            [3, 4]], i64[2,2])
    """
    return joined(xs, "vstack", lambda shape: widened(shape, 2), lambda ndim: 0, dtype)


@copies
def dstack(xs: Any, /) -> Operand:
    """Return the arrays joined along the third axis.

    >>> aj.dstack([[1, 2], [3, 4]])
    Tensor([[[1, 3],
             [2, 4]]], i64[1,2,2])
    """
    return joined(xs, "dstack", lambda shape: widened(shape, 3), lambda ndim: 2)


@copies
def column_stack(xs: Any, /) -> Operand:
    """Return the matrix with the given vectors as columns.

    >>> aj.column_stack([[1, 2], [3, 4]])
    Tensor([[1, 3],
            [2, 4]], i64[2,2])
    """
    return joined(xs, "column_stack", lambda shape: (*shape, *(1,) * (2 - len(shape))), lambda ndim: 1)


def append(x: Any, values: Any, /, axis: int | None = None) -> Operand:
    """Append `values` to x; both are flattened unless an axis is given."""
    return concatenate([x, values], axis)


# ---- flipping, rotating and repeating


@views
def flip(x: Any, /, axis: Any = None) -> Operand:
    """Return x with the order of the elements reversed along axes (default: all).

    >>> aj.flip([[1, 2], [3, 4]], axis=1)
    Tensor([[2, 1],
            [4, 3]], i64[2,2])
    """
    return ops.flip(to_operand(x), axis)


@views
def fliplr(x: Any, /) -> Operand:
    """Reverse the elements along the second axis."""
    return ops.flip(to_operand(x), 1)


@views
def flipud(x: Any, /) -> Operand:
    """Reverse the elements along the first axis."""
    return ops.flip(to_operand(x), 0)


@views
def rot90(x: Any, /, k: int = 1, axes: Sequence[int] = (0, 1)) -> Operand:
    """Return x rotated by 90 degrees, k times, in the plane of two axes.

    >>> aj.rot90([[1, 2], [3, 4]])
    Tensor([[2, 4],
            [1, 3]], i64[2,2])
    """
    operand = to_operand(x)
    a, b = (normalize_axis(axis, operand.ndim, "rot90") for axis in axes)
    if a == b:
        raise ShapeError(f"rot90: a plane has two different axes, not {axes!r}")
    match k % 4:
        case 0:
            return operand
        case 1:
            return swapaxes(ops.flip(operand, b), a, b)
        case 2:
            return ops.flip(operand, (a, b))
        case _:
            return ops.flip(swapaxes(operand, a, b), b)


@copies
def roll(x: Any, /, shift: Any, axis: Any = None) -> Operand:
    """Return x with elements shifted along an axis; those shifted past the end reappear at the start.

    >>> aj.roll([1, 2, 3, 4], 1)
    Tensor([4, 1, 2, 3], i64[4])
    """
    out = to_operand(x)
    if axis is None:
        return ops.reshape(roll(ops.reshape(out, -1), shift, axis=0), out.shape)
    axes, shifts = as_sizes(axis), shifts_of(shift)
    if len(axes) != len(shifts) and 1 not in (len(axes), len(shifts)):
        raise ShapeError(f"roll: {len(shifts)} shifts for {len(axes)} axes; give one for all, or one for each")
    for a, by in zip(axes * len(shifts) if len(axes) == 1 else axes, shifts * len(axes) if len(shifts) == 1 else shifts, strict=True):
        at = normalize_axis(a, out.ndim, "roll")
        if isinstance(by, Operand):
            out = rolled(out, by, at)
            continue
        size = out.shape[at]
        cut = size - by % size if size else 0
        if cut not in (0, size):
            head = [slice(None)] * at
            out = ops.concatenate([ops.slice_(out, [*head, slice(cut, None)]), ops.slice_(out, [*head, slice(None, cut)])], at)
    return out


def shifts_of(shift: Any) -> tuple[int | Operand, ...]:
    if not isinstance(shift, Operand):
        return as_sizes(shift)
    flat = ops.reshape(as_operand(shift), -1)
    return tuple(pick(flat, i) for i in range(flat.shape[0]))


def rolled(x: Operand, shift: Operand, axis: int) -> Operand:
    """Shift elements along an axis by a number known only at run time."""
    size = max(x.shape[axis], 1)
    return pick(x, (*[slice(None)] * axis, (ops.iota((x.shape[axis],), 0) - shift) % size))


@views
def rollaxis(x: Any, axis: int, /, start: int = 0) -> Operand:
    """Move an axis before another."""
    x = to_operand(x)
    axis = normalize_axis(axis, x.ndim, "rollaxis")
    start = start + x.ndim if start < 0 else start
    return moveaxis(x, axis, start - 1 if axis < start else start)


def resize(x: Any, new_shape: Any, /) -> Operand:
    """Return an array of a new shape, repeating the elements if there are too few."""
    x, shape = to_operand(x), shape_of(new_shape, "resize")
    if not x.type.size:
        return present(ops.full(shape, 0, x.dtype))
    return ops.reshape(pick(ops.reshape(x, -1), counting(math.prod(shape)) % x.type.size), shape)


@copies
def tile(x: Any, repeats: Any, /) -> Operand:
    """Return an array that repeats the whole of x along each axis.

    >>> aj.tile([1, 2], (2, 2))
    Tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]], i64[2,4])
    """
    x = to_operand(x)
    counts = shape_of(repeats, "tile")
    counts = (1,) * (x.ndim - len(counts)) + counts
    shape = (1,) * (len(counts) - x.ndim) + x.shape
    wide = ops.reshape(x, tuple(m for n in shape for m in (1, n)))
    wide = ops.broadcast_to(wide, tuple(m for n, k in zip(shape, counts, strict=True) for m in (k, n)))
    return ops.reshape(wide, tuple(n * k for n, k in zip(shape, counts, strict=True)))


@copies
def repeat(x: Any, repeats: Any, /, axis: int | None = None) -> Operand:
    """Return an array that repeats each element along an axis. With traced counts, the size of the result is found when the function runs.

    >>> aj.repeat([1, 2], [1, 3])
    Tensor([1, 2, 2, 2], i64[4])
    """
    x = to_operand(x)
    x, axis = along(with_axes(x), axis, "repeat")
    repeats = array_of_list(repeats)
    if isinstance(repeats, Value) and repeats.type.shape:
        return pick(x, (*[slice(None)] * axis, positions_of_counts(repeats, x.shape[axis])))
    if isinstance(repeats, Operand) and not isinstance(repeats, Value):
        repeats = np.asarray(repeats)
    counts = np.broadcast_to(repeats, (x.shape[axis],)) if np.ndim(repeats) else size_of(repeats, "repeat")
    if isinstance(counts, int):
        wide = ops.reshape(x, (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]))
        wide = ops.broadcast_to(wide, (*x.shape[: axis + 1], counts, *x.shape[axis + 1 :]))
        return ops.reshape(wide, (*x.shape[:axis], x.shape[axis] * counts, *x.shape[axis + 1 :]))
    return pick(x, (*[slice(None)] * axis, np.repeat(np.arange(x.shape[axis]), counts)))


def positions_of_counts(counts: Operand, size: int) -> Operand:
    """Return 0, 1, … size-1, each repeated by the traced count at its position."""
    if counts.dtype.kind not in "iu":
        raise DTypeError(f"repeat: the counts must be integers, not {counts.type}")
    if counts.shape not in ((1,), (size,)):
        raise ShapeError(f"repeat: {counts.type} has a count for each of {counts.shape}, but the axis has {size} elements")
    counts = ops.broadcast_to(ops.cast(counts, I64), (size,))
    if not size:
        return counts
    check_not_negative(counts, "repeat: the counts must not be negative")
    total = found_size(ops.sum(counts), f"repeat: the size of the result cannot depend on traced counts here; {INSTEAD}")
    ends = ops.additem(ops.full((total + 1,), 0, I64), ops.cumsum(counts, 0), 1)  # how many elements end before each place
    return ops.cumsum(ops.slice_(ends, [slice(0, total)]), 0)


end_at_callers(globals())
