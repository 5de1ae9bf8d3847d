"""tf.math.segment_* and unsorted_segment_*, tf.dynamic_partition and dynamic_stitch: rows grouped by numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.found_sizes import found_size
from adjit.ir.operand import Operand
from adjit.tracer.regions import is_traced
from adjit.tracer.surface import create, segments, shapes

from .errors import InvalidArgumentError, InvalidShape
from .scattering import COMBINE
from .tensor import convert_to_tensor, dress
from .wrapping import named, public

__all__ = [
    "segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum", "unsorted_segment_max", "unsorted_segment_mean",
    "unsorted_segment_min", "unsorted_segment_prod", "unsorted_segment_sqrt_n", "unsorted_segment_sum",
]  # fmt: skip


def _lowest(x: Operand) -> Any:
    return np.finfo(x.type.dtype).min if x.type.is_float else np.iinfo(x.type.dtype).min


def _highest(x: Operand) -> Any:
    return np.finfo(x.type.dtype).max if x.type.is_float else np.iinfo(x.type.dtype).max


HOW = {"add": ("add", ops.add), **COMBINE}
EMPTY: dict[str, Callable[[Operand], Any]] = {"add": lambda x: 0, "mul": lambda x: 1, "max": _lowest, "min": _highest}


def _combined(how: str, x: Operand, ids: Operand, count: int, empty: Any) -> Operand:
    """The rows of x with one id, combined; `empty` where there are none. Rows with negative ids are dropped, as in TensorFlow."""
    out: Operand = dress(segments.combined(*HOW[how], x, ids, count, lambda dtype: empty))
    return out


def _numbers(ids: Operand, what: str) -> int:
    if is_traced(ids):
        increasing = ops.all(ops.less_equal(ops.getitem(ids, slice(-1)), ops.getitem(ids, slice(1, None))))
        ops.check(increasing, f"{what}: segment ids are not increasing; use the unsorted one")
        return _one_more(ids, what)
    values = np.asarray(ids)
    if np.any(np.diff(values) < 0):
        raise InvalidArgumentError(None, None, f"{what}: segment ids are not increasing; use the unsorted one")
    return int(values[-1]) + 1 if values.size else 0


def _one_more(ids: Operand, what: str) -> int:
    """The number of rows of a result whose last index is the largest of traced indices."""
    if not ids.type.size:
        return 0
    otherwise = f"{what}: the largest index determines the shape; use tf.math.unsorted_segment_sum or tf.scatter_nd, which take the shape"
    return found_size(ops.add(ops.max(ids), 1), otherwise)


def _counts(x: Operand, ids: Operand, count: int) -> Operand:
    """How many rows each segment has, at least 1, in a shape that broadcasts against the segments."""
    ones = dress(create.ones(ids.type.shape, x.type.dtype))
    numbers = ops.maximum(_combined("add", ones, ids, count, 0), ones.literal(1, ones.type.with_shape(())))
    return ops.reshape(numbers, (count, *(1,) * (x.ndim - ids.ndim)))


def _quotient(total: Operand, count: Operand) -> Operand:
    """The mean; that of integers is an integer, rounded towards zero."""
    return ops.div(total, count) if total.type.is_inexact else ops.cast(ops.trunc(ops.div(total, count)), total.type.dtype)


def _segment(name: str, how: str, finish: Callable[[Operand, Operand], Operand] | None = None) -> tuple[Any, Any]:
    def unsorted(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
        x, ids, count = convert_to_tensor(data), convert_to_tensor(segment_ids), int(num_segments)
        out = _combined(how, x, ids, count, EMPTY[how](x))
        return out if finish is None else finish(out, _counts(x, ids, count))

    def in_order(data: Any, segment_ids: Any, name: str | None = None) -> Any:
        x, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        count = _numbers(ids, f"tf.math.segment_{own}")
        out = _combined(how, x, ids, count, 1 if how == "mul" else 0 if how == "add" else EMPTY[how](x))
        if how in ("max", "min"):  # TensorFlow has 0 in segments without rows
            there = ops.greater(_combined("add", ops.astype(ids * 0 + 1, x.type.dtype), ids, count, 0), 0)
            out = ops.where(ops.reshape(there, (count, *(1,) * (x.ndim - 1))), out, 0)
        return out if finish is None else finish(out, _counts(x, ids, count))

    own = name
    return named(public(in_order), f"segment_{name}"), named(public(unsorted), f"unsorted_segment_{name}")


segment_sum, unsorted_segment_sum = _segment("sum", "add")
segment_prod, unsorted_segment_prod = _segment("prod", "mul")
segment_max, unsorted_segment_max = _segment("max", "max")
segment_min, unsorted_segment_min = _segment("min", "min")
segment_mean, _ = _segment("mean", "add", _quotient)
_, unsorted_segment_mean = _segment("mean", "add", lambda total, count: total / count)
_, unsorted_segment_sqrt_n = _segment("sqrt_n", "add", lambda total, count: total / ops.sqrt(count))


@public
def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: str | None = None) -> list[Any]:
    """The rows of data with partition number 0, 1, …, each as a tensor."""
    x, numbers = convert_to_tensor(data), convert_to_tensor(partitions)
    flat = dress(ops.reshape(x, (numbers.type.size, *x.type.shape[numbers.ndim :])))
    if is_traced(numbers):
        part = ops.reshape(numbers, -1)
        return [flat[ops.equal(part, k)] for k in range(num_partitions)]
    found = np.asarray(numbers).ravel()
    return [ops.getitem(flat, np.flatnonzero(found == k)) for k in range(num_partitions)]


@public
def dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Any:
    """The inverse of `dynamic_partition`: row `indices[m][i]` of the result is `data[m][i]`; of several, the last one."""
    places = [convert_to_tensor(i) for i in indices]
    parts = [convert_to_tensor(x) for x in data]
    if len(places) != len(parts) or not places:
        raise InvalidShape(f"dynamic_stitch: needs as many tensors of indices as of data, at least one, not {len(places)} and {len(parts)}")
    if any(map(is_traced, places)):
        return _stitched(places, parts, _one_more(shapes.concatenate([ops.reshape(i, -1) for i in places]), "dynamic_stitch"))
    if any(i.type.size and int(np.min(np.asarray(i))) < 0 for i in places):
        raise InvalidShape("dynamic_stitch: an index is out of range: it must not be negative")
    count = max((int(np.max(np.asarray(i))) + 1 for i in places if i.type.size), default=0)
    return _stitched(places, parts, count)


def _stitched(places: Sequence[Operand], parts: Sequence[Operand], count: int) -> Any:
    rest = parts[0].type.shape[places[0].ndim :]
    out = dress(create.zeros((count, *rest), parts[0].type.dtype))
    for index, part in zip(places, parts, strict=True):
        out = ops.setitem(out, (index,), part)
    return out
