"""Checks of values, as in NumPy: immediately if the values are known, or else when the function runs."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, OutOfBoundsError
from adjit.ir.operand import Operand

from ..convert import pick


def check_quantiles(q: Operand, what: str) -> None:
    inside = ops.logical_and(ops.greater_equal(q, 0), ops.less_equal(q, 1))
    ops.check(ops.all(inside), f"{what}: quantiles must be in the range [0, 1]", "ValueError")


def check_monotonic(x: Operand, message: str, may_decrease: bool = False) -> None:
    earlier, later = pick(x, slice(-1)), pick(x, slice(1, None))
    ordered = ops.all(ops.less_equal(earlier, later))
    if may_decrease:
        ordered = ops.logical_or(ordered, ops.all(ops.greater_equal(earlier, later)))
    ops.check(ordered, message, "ValueError")


def check_range(low: Operand, high: Operand, what: str) -> None:
    fits = ops.logical_and(ops.less_equal(low, high), ops.isfinite(high - low))
    ops.check(ops.all(fits), f"{what}: the range must be finite, and its end not below its start", "ValueError")


def check_below(index: Operand, size: int, what: str) -> None:
    """Check indices that do not count from the end when they are negative."""
    if index.dtype.kind not in "iu":
        raise DTypeError(f"{what}: indices are integers, not {index.type}")
    inside = ops.logical_and(ops.greater_equal(index, 0), ops.less(index, size))
    ops.check(ops.all(inside), f"{what}: an index is not in the range from 0 to {size - 1}", "ValueError")


def check_not_negative(x: Operand, message: str) -> None:
    if x.dtype.kind == "i":
        ops.check(ops.all(ops.greater_equal(x, 0)), message, "ValueError")


def check_places(kth: Any, size: int, what: str) -> None:
    for k in np.ravel(kth):
        if not -size <= operator.index(k) < size:
            raise OutOfBoundsError(f"{what}: kth={k} is out of bounds for an axis of size {size}")
