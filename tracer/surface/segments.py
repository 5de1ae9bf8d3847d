"""Rows combined by the number of their segment: `segment_sum` and the like, in JAX's spelling."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError
from adjit.ir.operand import Operand
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import I64

from ..convert import present, to_operand
from .create import full
from .updates import update_at


def segment_sum(data: Any, segment_ids: Any, /, num_segments: int) -> Operand:
    """Return the sums of the rows that have the same segment id, in any order; 0 for segments without rows.

    Rows with a negative id are left out; an id of `num_segments` or more raises. Ids may have several axes, which are then the first ones
    of `data`.

    >>> aj.segment_sum([1.0, 2.0, 4.0], [0, 2, 0], 3)
    Tensor([5., 0., 2.], f64[3])
    """
    return combined("add", ops.add, data, segment_ids, num_segments, lambda dtype: 0)


def segment_prod(data: Any, segment_ids: Any, /, num_segments: int) -> Operand:
    """Return the products of the rows that have the same segment id; 1 for segments without rows.

    >>> aj.segment_prod([1.0, 2.0, 4.0], [0, 2, 0], 3)
    Tensor([4., 1., 2.], f64[3])
    """
    return combined("multiply", ops.mul, data, segment_ids, num_segments, lambda dtype: 1)


def segment_max(data: Any, segment_ids: Any, /, num_segments: int) -> Operand:
    """Return the maxima of the rows that have the same segment id; -inf, or the lowest integer, for segments without rows.

    >>> aj.segment_max([1.0, 2.0, 4.0], [0, 2, 0], 3)
    Tensor([  4., -inf,   2.], f64[3])
    """
    return combined("maximum", ops.maximum, data, segment_ids, num_segments, lambda dtype: extreme(dtype, -1))


def segment_min(data: Any, segment_ids: Any, /, num_segments: int) -> Operand:
    """Return the minima of the rows that have the same segment id; inf, or the highest integer, for segments without rows.

    >>> aj.segment_min([1.0, 2.0, 4.0], [0, 2, 0], 3)
    Tensor([ 1., inf,  2.], f64[3])
    """
    return combined("minimum", ops.minimum, data, segment_ids, num_segments, lambda dtype: extreme(dtype, 1))


def segment_mean(data: Any, segment_ids: Any, /, num_segments: int) -> Operand:
    """Return the means of the rows that have the same segment id; 0 for segments without rows.

    >>> aj.segment_mean([1.0, 2.0, 4.0], [0, 2, 0], 3)
    Tensor([2.5, 0. , 2. ], f64[3])
    """
    total, ids = segment_sum(data, segment_ids, num_segments), to_operand(segment_ids)
    counts = ops.maximum(segment_sum(full(ids.shape, 1.0, total.dtype if total.type.is_float else float), ids, num_segments), 1)
    return total / ops.reshape(counts, (num_segments, *(1,) * (total.ndim - 1)))


Combine = Callable[..., Operand]


def combined(name: str, function: Combine, data: Any, segment_ids: Any, count: Any, empty: Callable[[Any], Any]) -> Operand:
    x, ids = to_operand(data), to_operand(segment_ids)
    if ids.dtype.kind not in "iu":
        raise DTypeError(f"segment ids must be integers, not {ids.type}")
    if x.shape[: ids.ndim] != ids.shape:
        raise ShapeError(f"segment ids of shape {ids.shape} do not fit the first axes of {x.type}")
    count = operator.index(count)
    start = present(full((count + 1, *x.shape[ids.ndim :]), empty(x.dtype), x.dtype))
    ids = ops.cast(ids, I64)
    inside = ops.where(ops.less(ids, count), ids, count + 1)  # out of bounds, also for `count`: that row receives what is left out
    kept = ops.where(ops.less(ids, 0), count, inside)
    return ops.getitem(update_at(name, function, start, kept, x), slice(0, count))


def extreme(dtype: Any, sign: int) -> Any:
    """The lowest or highest value of a dtype."""
    if dtype.kind == "f":
        return sign * np.inf
    if dtype.kind == "b":
        return sign > 0
    if dtype.kind == "c":
        raise DTypeError("segment_max, segment_min: complex numbers are not supported; take .real or abs() of them")
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


end_at_callers(globals())
