"""Functions that create arrays: constants, ranges, grids, casts."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError, UnsupportedError
from adjit.ir.found_sizes import INSTEAD, found_size, shape_of, size_of
from adjit.ir.func import Value
from adjit.ir.operand import Operand
from adjit.ir.ops.maps import common_dtype
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import F64, as_dtype, as_size, float_dtype, normalize_axes

from ..convert import arithmetic, as_float, numbers, present, rows_joined, to_operand, to_operands
from ..results import apart, copies
from .shapes import moveaxis


def check_device(device: Any) -> None:
    if device not in (None, "cpu"):
        raise UnsupportedError(f"device {device!r} does not exist; the only device is 'cpu'")


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Operand:
    """Return an array filled with one value.

    >>> aj.full((2, 3), 7)
    Tensor([[7, 7, 7],
            [7, 7, 7]], i64[2,3])
    """
    check_device(device)
    (value,) = numbers(fill_value, to_operand(0))[:1]
    return present(ops.full(shape_of(shape, "full"), value, dtype))


def zeros(shape: Any, dtype: Any = F64, *, device: Any = None) -> Operand:
    """Return an array of zeros.

    >>> aj.zeros((2, 2), "float32")
    Tensor([[0., 0.],
            [0., 0.]], f32[2,2])
    """
    return full(shape, 0, as_dtype(F64 if dtype is None else dtype), device=device)


def ones(shape: Any, dtype: Any = F64, *, device: Any = None) -> Operand:
    """Return an array of ones.

    >>> aj.ones(3)
    Tensor([1., 1., 1.], f64[3])
    """
    return full(shape, 1, as_dtype(F64 if dtype is None else dtype), device=device)


def full_like(x: Any, /, fill_value: Any, dtype: Any = None, *, shape: Any = None, device: Any = None) -> Operand:
    """Return an array filled with one value, with the shape and dtype of x.

    >>> aj.full_like([1, 2, 3], 7)
    Tensor([7, 7, 7], i64[3])
    """
    x = to_operand(x)
    return full(x.shape if shape is None else shape, fill_value, x.dtype if dtype is None else as_dtype(dtype), device=device)


def zeros_like(x: Any, /, dtype: Any = None, *, shape: Any = None, device: Any = None) -> Operand:
    """Return zeros with the shape and dtype of x.

    >>> aj.zeros_like([1.5, 2.5])
    Tensor([0., 0.], f64[2])
    """
    return full_like(x, 0, dtype, shape=shape, device=device)


def ones_like(x: Any, /, dtype: Any = None, *, shape: Any = None, device: Any = None) -> Operand:
    """Return ones with the shape and dtype of x.

    >>> aj.ones_like([1.5, 2.5])
    Tensor([1., 1.], f64[2])
    """
    return full_like(x, 1, dtype, shape=shape, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, k: int = 0, dtype: Any = F64, *, device: Any = None) -> Operand:
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    >>> aj.eye(2, 3, k=1)
    Tensor([[0., 1., 0.],
            [0., 0., 1.]], f64[2,3])
    """
    check_device(device)
    kind = as_dtype(F64 if dtype is None else dtype)
    return present(ops.eye(size_of(n_rows, "eye"), None if n_cols is None else size_of(n_cols, "eye"), as_size(k), kind))


def identity(n: int, /, dtype: Any = F64) -> Operand:
    """Return the n×n identity matrix.

    >>> aj.identity(2)
    Tensor([[1., 0.],
            [0., 1.]], f64[2,2])
    """
    return eye(n, dtype=dtype)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Operand:
    """Return evenly spaced numbers from start (default: 0) up to, but not including, stop.

    >>> aj.arange(3), aj.arange(0.0, 1.0, 0.25)
    (Tensor([0, 1, 2], i64[3]), Tensor([0.  , 0.25, 0.5 , 0.75], f64[4]))
    """
    check_device(device)
    start, stop, step = (np.asarray(x)[()] if isinstance(x, Operand) and not isinstance(x, Value) else x for x in (start, stop, step))
    if any(isinstance(x, Value) for x in (start, stop, step)):
        return range_found(0 if stop is None else start, start if stop is None else stop, step, dtype)
    return present(ops.arange(start, stop, step, dtype))


def range_found(start: Any, stop: Any, step: Any, dtype: Any) -> Operand:
    """Return `arange` of traced bounds; its length is found when the function runs."""
    first, last, by = (ops.cast(x, common_dtype(*arithmetic(start, stop, step))) for x in to_operands(start, stop, step))
    steps = ops.ceil(ops.div(ops.sub(last, first), by))
    count = found_size(ops.maximum(steps, 0.0), f"arange: the number of elements cannot depend on traced values here; {INSTEAD}")
    kind = first.type.dtype if dtype is None else as_dtype(dtype)
    return ops.cast(first, kind) + ops.iota((count,), 0, kind) * ops.cast(ops.sub(ops.add(first, by), first), kind)


def linspace(
    start: Any, stop: Any, /, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0, *,
    device: Any = None,
) -> Any:  # fmt: skip
    """Return `num` evenly spaced numbers from start to stop, which may be traced.

    >>> aj.linspace(0.0, 1.0, 5)
    Tensor([0.  , 0.25, 0.5 , 0.75, 1.  ], f64[5])
    >>> aj.grad(lambda stop: aj.linspace(0.0, stop, 3).sum())(1.0)
    Tensor(1.5, f64[])
    """
    check_device(device)
    num = size_of(num, "linspace")
    intervals = num - 1 if endpoint else num
    ends = numbers(start, stop)
    dtype_of_points = float_dtype(common_dtype(*ends))
    first, last = (ops.cast(to_operand(x), dtype_of_points) for x in ends)
    step = (last - first) / as_float(max(intervals, 1))
    first, step = first + 0.0 * step, step + 0.0 * first  # broadcast both to one shape
    counter = ops.cast(ops.iota((num, *(1 for _ in step.shape)), 0), first.dtype)
    out = first + counter * step
    if endpoint and num > 1:
        # the last point is exactly `stop`, without rounding error
        is_last = ops.equal(counter, as_float(num - 1))
        out = ops.where(is_last, last, out)
    if dtype is not None:
        out = ops.cast(ops.floor(out) if as_dtype(dtype).kind in "iu" else out, as_dtype(dtype))
    out = moveaxis(present(out), 0, axis) if axis else present(out)
    return (out, step if intervals > 0 else step * np.nan) if retstep else out


@copies
def meshgrid(*xs: Any, indexing: str = "xy", sparse: bool = False) -> tuple[Operand, ...]:
    """Return coordinate arrays of a grid, from the coordinates along its axes.

    >>> x, y = aj.meshgrid([1, 2, 3], [10, 20])
    >>> x + y
    Tensor([[11, 12, 13],
            [21, 22, 23]], i64[2,3])
    """
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}")
    lines = [ops.reshape(x, -1) for x in to_operands(*xs)]
    order = list(range(len(lines)))
    if indexing == "xy" and len(lines) > 1:
        order[0], order[1] = 1, 0
    shape = [0] * len(lines)
    for line, axis in zip(lines, order, strict=True):
        shape[axis] = line.shape[0]
    out = [ops.reshape(line, tuple(-1 if a == axis else 1 for a in range(len(lines)))) for line, axis in zip(lines, order, strict=True)]
    return tuple(present(x if sparse else ops.broadcast_to(x, tuple(shape))) for x in out)


def tri(n: int, m: int | None = None, /, k: int = 0, dtype: Any = F64) -> Operand:
    """Return a matrix with ones on and below a diagonal, zeros above.

    >>> aj.tri(3)
    Tensor([[1., 0., 0.],
            [1., 1., 0.],
            [1., 1., 1.]], f64[3,3])
    """
    shape = (operator.index(n), operator.index(n if m is None else m))
    below = ops.less_equal(ops.iota(shape, 1), ops.iota(shape, 0) + operator.index(k))
    return present(ops.cast(below, as_dtype(dtype)))


def asarray(x: Any, /, dtype: Any = None, *, device: Any = None, copy: Any = None) -> Operand:
    """Return x as an array; lists of traced values are stacked. A tensor of that dtype is returned itself unless `copy` is true.

    Arrays of other libraries are always copied.

    >>> aj.asarray([1, 2], dtype="float64")
    Tensor([1., 2.], f64[2])
    """
    check_device(device)
    if copy is False and not isinstance(x, Operand):
        raise ValueError("asarray: adjit arrays always own their memory, so copy=False is not possible")
    if isinstance(x, list | tuple) and any(contains_operand(item) for item in x):
        parts = [asarray(item) for item in x]
        x = rows_joined(parts, as_dtype(np.result_type(*(p.dtype for p in parts))))
    out = to_operand(x)
    out = out if dtype is None else ops.cast(out, as_dtype(dtype))
    return apart(out, (x,), False) if copy else out


def contains_operand(x: Any) -> bool:
    return isinstance(x, Operand) or (isinstance(x, list | tuple) and any(contains_operand(item) for item in x))


@copies
def copy(x: Any, /) -> Operand:
    """Return a copy of x."""
    held: Any = to_operand(x)
    out: Operand = held.copy()
    return out


def shape(x: Any, /) -> Sequence[int]:
    """Return the shape, which is known while tracing."""
    return to_operand(x).shape


def ndim(x: Any, /) -> int:
    """Return the number of axes, which is known while tracing."""
    return to_operand(x).ndim


def size(x: Any, /, axis: Any = None) -> int:
    """Return the number of elements (along the given axes), which is known while tracing."""
    operand = to_operand(x)
    return operand.size if axis is None else math.prod(operand.shape[a] for a in normalize_axes(axis, operand.ndim, "size"))


@copies
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Operand:
    """Return x cast to another dtype.

    >>> aj.astype([1.7, -1.7], "int32")
    Tensor([ 1, -1], i32[2])
    """
    check_device(device)
    return to_operand(x).astype(dtype)


@copies
def cast(x: Any, dtype: Any, /) -> Operand:
    """Return x cast to another dtype.

    >>> aj.cast([0, 2], "bool")
    Tensor([False,  True], bool[2])
    """
    return to_operand(x).astype(dtype)


end_at_callers(globals())
