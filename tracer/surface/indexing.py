"""Functions that select elements by index, and parts of matrices."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, OutOfBoundsError, ShapeError, UnsupportedError
from adjit.ir.operand import Concrete, Operand, as_arithmetic, as_operand
from adjit.ir.ops.maps import checked_scalar
from adjit.ir.records import NamedTuple
from adjit.ir.sizes import is_symbolic
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import C64, C128, I64, normalize_axis

from ..convert import KNOWN, along, counting, pick, present, to_operand, to_operands, with_axes
from ..results import apart
from .elementwise import floating
from .range_checks import check_below, check_places
from .reductions import sum as total
from .shapes import as_sizes, moveaxis, reshape

COMPARED = 256  # elements: with a sorted vector up to this length, all elements are compared; in longer ones, bisection is used


def take(x: Any, indices: Any, /, axis: int | None = None, mode: str = "raise") -> Operand:
    """Return the elements at indices along an axis (or of the flattened array).

    >>> aj.take([[1, 2], [3, 4]], [1, 0, 1], axis=1)
    Tensor([[2, 1, 2],
            [4, 3, 4]], i64[2,3])
    """
    x, positions = to_operands(x, np.array(indices, int) if isinstance(indices, list | tuple) and not len(indices) else indices)
    x, axis = along(with_axes(x), axis, "take")
    return apart(pick(x, (*[slice(None)] * axis, wrapped(positions, x.shape[axis], mode, "take"))), (x,), False)  # type: ignore[no-any-return]


def wrapped(positions: Operand, size: int, mode: str, what: str) -> Operand:
    """Wrap or clip out-of-bounds indices, depending on `mode`."""
    if mode == "clip":
        return ops.clip(positions, 0, size - 1)
    if mode == "wrap":
        return positions % size
    if mode != "raise":
        raise UnsupportedError(f"{what}: mode {mode!r}; raise, wrap and clip are supported")
    return positions


def take_along_axis(x: Any, indices: Any, /, axis: int | None = -1) -> Operand:
    """Return elements at indices given for each slice along an axis.

    >>> aj.take_along_axis(aj.array([[3, 1], [2, 4]]), aj.array([[1], [0]]), axis=1)
    Tensor([[1],
            [2]], i64[2,1])
    """
    x, positions = to_operands(x, indices)
    if axis is None:
        return pick(ops.reshape(x, -1), ops.reshape(positions, -1))
    axis = normalize_axis(axis, x.ndim, "take_along_axis")
    if positions.ndim != x.ndim:
        raise ShapeError(f"take_along_axis: indices of rank {positions.ndim} for an array of rank {x.ndim}; the ranks must be equal")
    where: list[Any] = []
    for a, n in enumerate(x.shape):
        where.append(positions if a == axis else counting(n, x.ndim, a))
    return pick(x, tuple(where))


def argsort(x: Any, /, axis: int | None = -1, *, descending: bool = False, stable: bool | None = True) -> Operand:
    """Return the indices that sort along an axis (None: the flattened array). The sort is stable; NaN comes last.

    >>> aj.argsort([3, 1, 2])
    Tensor([1, 2, 0], i64[3])
    """
    x = with_axes(to_operand(x))
    return ops.argsort(ops.reshape(x, -1), 0, descending) if axis is None else ops.argsort(x, axis, descending)


def sort(x: Any, /, axis: int | None = -1, *, descending: bool = False, stable: bool | None = True) -> Operand:
    """Return x sorted along an axis (None: the flattened array). Derivatives go to the original positions of the elements.

    >>> aj.sort([[3, 1]], axis=1)
    Tensor([[1, 3]], i64[1,2])
    >>> aj.grad(lambda x: aj.sort(x)[0])(np.array([3.0, 1.0, 2.0]))
    Tensor([0., 1., 0.], f64[3])
    """
    x = to_operand(x)
    return ops.sort(ops.reshape(x, -1), 0, descending) if axis is None else ops.sort(x, axis, descending)


def sort_complex(x: Any, /) -> Operand:
    """Return the elements as sorted complex numbers, along the last axis: by real parts, then by imaginary parts."""
    x = to_operand(x)
    if not x.type.is_complex:  # NumPy's choice of precision
        x = ops.cast(x, C64 if x.dtype.kind in "iu" and x.dtype.itemsize < 4 else C128)
    return ops.sort(x, x.ndim - 1)


class TopKResult(NamedTuple):
    """The result of `top_k`."""

    values: Operand
    indices: Operand


def top_k(x: Any, k: int, /, axis: int = -1) -> TopKResult:
    """Return the k largest elements along an axis, in descending order, and their indices; the first of equal elements, NaN last.

    They are selected, which is much faster than sorting for small k. Derivatives go to the positions of the elements.

    >>> values, indices = aj.top_k([1.0, 5.0, 3.0], 2)
    >>> values, indices
    (Tensor([5., 3.], f64[2]), Tensor([1, 2], i64[2]))
    """
    return TopKResult(*ops.top_k(to_operand(x), operator.index(k), axis))


def searchsorted(a: Any, v: Any, /, side: str = "left", sorter: Any = None) -> Operand:
    """Return where to insert elements in a sorted vector: the number of smaller (or not larger) elements.

    >>> aj.searchsorted([1, 2, 3], [0, 2, 9], side="right")
    Tensor([0, 2, 3], i64[3])
    """
    a, v = to_operands(a, v)
    if a.ndim != 1:
        raise ShapeError(f"searchsorted: the sorted operand must be a vector, not {a.type}")
    if sorter is not None:
        order = to_operand(sorter)
        if order.shape != a.shape:
            raise ShapeError(f"searchsorted: a sorter of type {order.type} for {a.type}; it must have an integer for each element")
        a = take(a, order)
    if side not in ("left", "right"):
        raise ShapeError(f"searchsorted: side {side!r} is neither left nor right")
    size = a.shape[0]
    if is_symbolic(size) or size <= COMPARED:
        return ops.sum(comes_before(a, ops.reshape(v, (*v.shape, 1)), side), -1)
    out = ops.full(v.shape, 0, I64)
    for step in (1 << k for k in reversed(range(size.bit_length()))):  # binary search for all at once
        here = out + step
        element = pick(a, ops.minimum(here, size) - 1)
        advances = ops.logical_and(ops.less_equal(here, size), comes_before(element, v, side))
        out = ops.where(advances, here, out)
    return out


def comes_before(a: Operand, v: Operand, side: str) -> Operand:
    """Return whether elements of a sorted vector come before v, or on the right side, not after it. NaN is after all numbers."""
    if a.type.is_complex or v.type.is_complex:
        from adjit.ir.ops.order import sorts_before  # noqa: PLC0415 - few programs need it

        return sorts_before(a, v, side == "left")
    below = ops.less(a, v) if side == "left" else ops.less_equal(a, v)
    if not v.type.is_float:
        return below
    last = ops.isnan(v)
    return ops.logical_or(below, ops.logical_and(last, ops.logical_not(ops.isnan(a))) if side == "left" else last)


def interp(x: Any, xp: Any, fp: Any, /, left: Any = None, right: Any = None) -> Operand:
    """Return the linear interpolation at x between the points (xp, fp).

    >>> aj.interp([0.5, 1.5], [0.0, 1.0, 2.0], [0.0, 10.0, 0.0])
    Tensor([5., 5.], f64[2])
    """
    x, xp, fp = (floating(v) for v in to_operands(x, xp, fp))
    if x.type.is_complex or xp.type.is_complex:
        raise DTypeError(f"interp: x and xp must be real, not {x.type} and {xp.type}")
    if xp.ndim != 1 or xp.shape != fp.shape:
        raise ShapeError(f"interp: xp and fp must be vectors of one length, not {xp.type} and {fp.type}")
    if not xp.shape[0]:
        raise ShapeError("interp: there are no points to interpolate between")
    last = xp.shape[0] - 1
    if last == 0:
        inner = pick(fp, 0) + 0.0 * x
    else:
        at = ops.clip(searchsorted(xp, ops.stop_gradient(x), side="right") - 1, 0, as_arithmetic(last - 1))
        x0, x1, f0, f1 = pick(xp, at), pick(xp, at + 1), pick(fp, at), pick(fp, at + 1)
        inner = f0 + (f1 - f0) / (x1 - x0) * (x - x0)
    low = pick(fp, 0) if left is None else left
    high = pick(fp, -1) if right is None else right
    return ops.where(x < pick(xp, 0), low, ops.where(x > pick(xp, -1), high, inner))


# ---- parts of matrices


def tril(x: Any, /, k: int = 0) -> Operand:
    """Return the lower triangle: elements above the k-th diagonal are zero.

    >>> aj.tril([[1, 2], [3, 4]])
    Tensor([[1, 0],
            [3, 4]], i64[2,2])
    """
    x = to_operand(x)
    return ops.where(triangle(x, k), x, zero(x))


def triu(x: Any, /, k: int = 0) -> Operand:
    """Return the upper triangle: elements below the k-th diagonal are zero.

    >>> aj.triu([[1, 2], [3, 4]])
    Tensor([[1, 2],
            [0, 4]], i64[2,2])
    """
    x = to_operand(x)
    return ops.where(triangle(x, k - 1), zero(x), x)


def zero(x: Operand) -> Operand:
    return ops.cast(to_operand(0), x.dtype)


def triangle(x: Operand, k: int) -> Operand:
    """Return a mask that is True on and below the k-th diagonal of the last two axes."""
    if x.ndim < 2:
        if not x.ndim:
            raise ShapeError(f"tril, triu: takes a matrix, not {x.type}")
        x = ops.broadcast_to(x, (x.shape[0], x.shape[0]))  # as in NumPy, each row of the matrix is the vector
    rows, columns = (ops.iota(x.shape[-2:], axis, I64) for axis in (0, 1))
    return ops.less_equal(columns, rows + operator.index(k))


def diagonal(x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Operand:
    """Return the diagonal of two axes, as a new last axis.

    >>> aj.diagonal([[1, 2, 3], [4, 5, 6]], offset=1)
    Tensor([2, 6], i64[2])
    """
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = x.shape[-2:]
    size = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    # a diagonal is a strided slice of the flattened matrix: a view, where indexing would gather
    start = offset if offset >= 0 else -offset * columns
    flat = ops.reshape(x, (*x.shape[:-2], rows * columns))
    stop = start + (size - 1) * (columns + 1) + 1 if size else start
    return ops.slice_(flat, [slice(None)] * (flat.ndim - 1) + [slice(start, stop, columns + 1)])


def trace(x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Operand:
    """Return the sum of the elements on the diagonal.

    >>> aj.trace([[1, 2], [3, 4]])
    Tensor(5, i64[])
    """
    line = diagonal(x, offset, axis1, axis2)
    return total(line, -1, dtype)


def diag(x: Any, /, k: int = 0) -> Operand:
    """Return the diagonal of a matrix, or a matrix with a vector on its diagonal.

    >>> aj.diag([1, 2])
    Tensor([[1, 0],
            [0, 2]], i64[2,2])
    """
    x = to_operand(x)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ShapeError(f"diag: takes a vector or a matrix, not {x.type}")
    size = x.shape[0] + abs(k)
    # a row of the result is one element followed by `size` zeros: interior padding and slicing avoid a scatter
    flat = ops.pad(x, [k if k >= 0 else -k * size], [0], [size])
    return ops.reshape(ops.pad(flat, [0], [size * size - flat.shape[0]]), (size, size))


def diagflat(x: Any, /, k: int = 0) -> Operand:
    """Return a matrix with the flattened elements on its diagonal."""
    return diag(ops.reshape(to_operand(x), -1), k)


def one_hot(indices: Any, depth: int, /, dtype: Any = np.float32, axis: int = -1) -> Operand:
    """Return indices encoded as vectors of zeros with a single 1, along a new axis; out-of-bounds indices give zeros only.

    >>> aj.one_hot([0, 2], 3)
    Tensor([[1., 0., 0.],
            [0., 0., 1.]], f32[2,3])
    """
    out = present(ops.one_hot(to_operand(indices), operator.index(depth), dtype=np.dtype(dtype)))
    return out if axis == -1 else moveaxis(out, -1, axis)


def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Operand:
    """Return the differences of adjacent elements along an axis, taken n times.

    >>> aj.diff([1, 4, 9, 16]), aj.diff([1, 4, 9, 16], n=2)
    (Tensor([3, 5, 7], i64[3]), Tensor([2, 2], i64[2]))
    """
    out = to_operand(x)
    if n < 0:
        raise ShapeError(f"diff: n must not be negative: {n}")
    axis = normalize_axis(axis, out.ndim, "diff")
    parts = [out]
    for end, at in ((prepend, 0), (append, 1)):
        if end is not None and n:
            _, piece = to_operands(out, end)
            shape = (*out.shape[:axis], 1, *out.shape[axis + 1 :])
            parts.insert(at * len(parts), piece if piece.ndim else ops.broadcast_to(piece, shape))
    out = ops.concatenate(parts, axis) if len(parts) > 1 else out
    head = [slice(None)] * axis
    for _ in range(operator.index(n)):
        later, earlier = ops.slice_(out, [*head, slice(1, None)]), ops.slice_(out, [*head, slice(None, -1)])
        out = ops.not_equal(later, earlier) if out.dtype.kind == "b" else later - earlier
    return out


def ediff1d(x: Any, /, to_end: Any = None, to_begin: Any = None) -> Operand:
    """Compute differences of adjacent elements of the flattened array, with optional elements before and after them."""
    steps = diff(ops.reshape(to_operand(x), -1))
    ends = [None if end is None else ops.cast(ops.reshape(to_operand(end), -1), steps.dtype) for end in (to_begin, to_end)]
    parts = [part for part in (ends[0], steps, ends[1]) if part is not None]
    return ops.concatenate(parts, 0) if len(parts) > 1 else steps


# ---- selection by static indices


def delete(x: Any, obj: Any, /, axis: int | None = None) -> Operand:
    """Return x without the elements at indices, which must be known while tracing.

    >>> aj.delete([1, 2, 3, 4], [0, 2])
    Tensor([2, 4], i64[2])
    """
    x = to_operand(x)
    x, axis = along(x, axis, "delete")
    index, size, before = static_index("delete", obj), x.shape[axis], [slice(None)] * axis
    if size > KNOWN and np.ndim(index) == 0 and not isinstance(index, slice) and -size <= index < size:
        at = int(index) % size
        return ops.concatenate([pick(x, (*before, slice(at))), pick(x, (*before, slice(at + 1, None)))], axis)
    return pick(x, (*before, np.delete(np.arange(size), index)))


def insert(x: Any, obj: Any, values: Any, /, axis: int | None = None) -> Operand:
    """Return x with values inserted before an index, which must be known while tracing.

    >>> aj.insert([1, 2, 3], 1, 9)
    Tensor([1, 9, 2, 3], i64[4])
    """
    x = to_operand(x)
    if type(values) is int:
        checked_scalar("insert", values, x.dtype)
    values = to_operand(values)
    x, axis = along(x, axis, "insert")
    at = static_index("insert", obj)
    if not isinstance(at, int | np.integer):
        raise UnsupportedError("insert: takes one position; insert one after the other, or use np.concatenate")
    size = x.shape[axis]
    if not -size <= at <= size:
        raise OutOfBoundsError(f"insert: position {at} is out of bounds for axis {axis} of {x.type}, of size {size}")
    at = int(at) + size if at < 0 else int(at)
    values = ops.cast(values, x.dtype)
    if x.ndim == 1:
        new = ops.reshape(values, -1)
    else:
        row = (*x.shape[:axis], *x.shape[axis + 1 :])
        new = ops.reshape(ops.broadcast_to(values, row), (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    head = [slice(None)] * axis
    return ops.concatenate([ops.slice_(x, [*head, slice(at)]), new, ops.slice_(x, [*head, slice(at, None)])], axis)


def static_index(what: str, index: Any) -> Any:
    """Return an index or mask that determines the shape of the result; it must be known while tracing."""
    if not isinstance(index, Operand):
        return index
    index = as_operand(index)
    if not isinstance(index, Concrete):
        raise UnsupportedError(f"{what}: the shape of its result would depend on values of {index.type}, and shapes are static")
    return index.buffer


def isin(x: Any, test: Any, /, *, invert: bool = False) -> Operand:
    """Return whether each element occurs in another array. Compares with all of its elements.

    >>> aj.isin([1, 2, 3], [3, 1])
    Tensor([ True, False,  True], bool[3])
    """
    x, test = to_operands(x, test)
    found = ops.any(ops.equal(ops.reshape(x, (*x.shape, 1)), ops.reshape(test, -1)), -1)
    return ops.logical_not(found) if invert else found


def partition(x: Any, kth: Any, /, axis: int | None = -1) -> Operand:
    """Sort along an axis, which is a valid partition."""
    x, axis = along(to_operand(x), axis, "partition")
    check_places(static_index("partition", kth), x.shape[axis], "partition")
    return sort(x, axis)


def argpartition(x: Any, kth: Any, /, axis: int | None = -1) -> Operand:
    """Return the indices that sort along an axis, which is a valid partition."""
    x, axis = along(with_axes(to_operand(x)), axis, "argpartition")
    check_places(static_index("argpartition", kth), x.shape[axis], "argpartition")
    return argsort(x, axis)


def lexsort(keys: Any, /, axis: int = -1) -> Operand:
    """Return the indices that sort by the last key, then by the one before it, and so on.

    >>> aj.lexsort(([1, 0, 2], [5, 5, 4]))
    Tensor([2, 1, 0], i64[3])
    """
    given = to_operands(*keys)
    if not given[0].ndim:
        return present(ops.full((), 0, I64))
    order = argsort(given[0], axis)
    for key in given[1:]:
        order = take_along_axis(order, argsort(take_along_axis(key, order, axis), axis), axis)
    return order


def unravel_index(index: Any, shape: Any, /, order: str = "C") -> tuple[Operand, ...]:
    """Return the indices along each axis for indices into the flattened array.

    >>> aj.unravel_index(5, (2, 3))
    (Tensor(1, i64[]), Tensor(2, i64[]))
    """
    index, sizes = to_operand(index), as_sizes(shape)
    if order == "F":
        return unravel_index(index, sizes[::-1])[::-1]
    check_below(index, math.prod(sizes), "unravel_index")
    index = ops.cast(index, I64)
    out: list[Operand] = []
    for size in reversed(sizes[1:]):
        out.insert(0, index % size)
        index = index // size
    return (index, *out) if sizes else ()


def ix_(*xs: Any) -> tuple[Operand, ...]:
    """Return index arrays for the grid of several index vectors, for x[ix_(rows, columns)].

    >>> x = aj.arange(9).reshape(3, 3)
    >>> x[aj.ix_([0, 2], [0, 1])]
    Tensor([[0, 1],
            [6, 7]], i64[2,2])
    """
    out: list[Operand] = []
    for axis, x in enumerate(map(to_operand, xs)):
        if x.ndim != 1:
            raise ShapeError(f"ix_: takes vectors of positions, not {x.type}")
        if x.dtype.kind == "b":
            x = to_operand(np.flatnonzero(static_index("ix_", x)))
        out.append(reshape(x, tuple(-1 if a == axis else 1 for a in range(len(xs)))))
    return tuple(out)


def tril_indices_from(x: Any, /, k: int = 0) -> Any:
    """Return the indices of the lower triangle, as NumPy arrays."""
    rows, columns = to_operand(x).shape
    return np.tril_indices(rows, k, columns)


def triu_indices_from(x: Any, /, k: int = 0) -> Any:
    """Return the indices of the upper triangle, as NumPy arrays."""
    rows, columns = to_operand(x).shape
    return np.triu_indices(rows, k, columns)


def diag_indices_from(x: Any, /) -> Any:
    """Return the indices of the diagonal, as NumPy arrays."""
    x = to_operand(x)
    return np.diag_indices(x.shape[0], x.ndim)


end_at_callers(globals())
