"""The `Emitter` on NumPy arrays: evaluates an op's lowering directly.

Ops whose eager and compiled results must be bitwise equal implement their algorithm once, against the `Emitter`, and evaluate it with this.
Every operation here rounds once, as those of `Emitter.strict()` do in native code. Does not support what NumPy cannot do with one rounding
(fma), what needs the vector math library (call), and positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from ..errors import AdjitError
from ..types import DType
from .base import Array, Reg

PIECE = 8192  # elements evaluated at a time, so that intermediate values stay in the cache


class HostEmitter:
    """Implements `Emitter`; registers are NumPy arrays or scalars."""

    ufuncs: ClassVar[dict[str, np.ufunc]] = {
        "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    }  # fmt: skip

    def const(self, dtype: DType, value: float | int | bool) -> Reg:
        return dtype.type(value)

    def like(self, x: Reg, value: float | int | bool) -> Reg:
        return x.dtype.type(value)

    def add(self, a: Reg, b: Reg) -> Reg:
        return np.add(a, b)

    def sub(self, a: Reg, b: Reg) -> Reg:
        return np.subtract(a, b)

    def mul(self, a: Reg, b: Reg) -> Reg:
        return np.multiply(a, b)

    def fdiv(self, a: Reg, b: Reg) -> Reg:
        return np.divide(a, b)

    def neg(self, a: Reg) -> Reg:
        return np.negative(a)

    def fma(self, a: Reg, b: Reg, c: Reg) -> Reg:
        raise AdjitError("NumPy has no fma; an op that is evaluated through its lowering does without")

    def mad(self, a: Reg, b: Reg, c: Reg) -> Reg:
        return np.add(np.multiply(a, b), c)

    def fabs(self, a: Reg) -> Reg:
        return np.fabs(a)

    def copysign(self, magnitude: Reg, sign: Reg) -> Reg:
        return np.copysign(magnitude, sign)

    def sqrt(self, a: Reg) -> Reg:
        return np.sqrt(a)

    def floor(self, a: Reg) -> Reg:
        return np.floor(a)

    def ceil(self, a: Reg) -> Reg:
        return np.ceil(a)

    def rint(self, a: Reg) -> Reg:
        return np.rint(a)

    def trunc(self, a: Reg) -> Reg:
        return np.trunc(a)

    def compare(self, predicate: str, a: Reg, b: Reg) -> Reg:
        return self.ufuncs[predicate](a, b)

    def unordered(self, a: Reg, b: Reg) -> Reg:
        return np.logical_or(np.not_equal(a, a), np.not_equal(b, b))

    def select(self, condition: Reg, a: Reg, b: Reg) -> Reg:
        return np.where(condition, a, b)

    def and_(self, a: Reg, b: Reg) -> Reg:
        return np.bitwise_and(a, b)

    def or_(self, a: Reg, b: Reg) -> Reg:
        return np.bitwise_or(a, b)

    def xor(self, a: Reg, b: Reg) -> Reg:
        return np.bitwise_xor(a, b)

    def shl(self, a: Reg, b: Reg) -> Reg:
        return np.left_shift(a, b)

    def shr(self, a: Reg, b: Reg) -> Reg:
        return np.right_shift(a, b)

    def bitcast(self, a: Reg, dtype: DType) -> Reg:
        return a.view(dtype)

    def idiv(self, a: Reg, b: Reg) -> Reg:
        """Truncating division, as in hardware; no divisor may be 0."""
        return np.floor_divide(np.subtract(a, self.irem(a, b)), b)

    def irem(self, a: Reg, b: Reg) -> Reg:
        return np.fmod(a, b)

    def convert(self, a: Reg, dtype: DType) -> Reg:
        return np.asarray(a).astype(dtype)

    def call(self, function: str, *args: Reg) -> Reg:
        raise AdjitError(f"{function} rounds differently in NumPy; an op that is evaluated through its lowering does without")

    def iterate(self, limit: int, state: Sequence[Reg], step: Callable[..., tuple[Reg, Sequence[Reg]]]) -> list[Reg]:
        current, finished = list(state), np.False_
        for _ in range(limit):
            done, following = step(*current)
            current = [np.where(finished, old, new) for old, new in zip(current, following, strict=True)]
            finished = finished | done
            if np.all(finished):
                break
        return current

    def where_any(self, condition: Reg, compute: Callable[[], Sequence[Reg]], otherwise: Sequence[Reg]) -> list[Reg]:
        if not np.any(condition):
            return list(otherwise)
        return [np.where(condition, new, old) for new, old in zip(compute(), otherwise, strict=True)]

    def strict(self) -> HostEmitter:
        return self

    def index(self, axis: int) -> Reg:
        raise AdjitError("an op that is evaluated through its lowering has no domain to take a position in")


def by_pieces(function: Callable[..., Array], dtype: DType, *arrays: Array) -> Array:
    """Apply `function` to arrays that broadcast to one shape, a piece at a time; one that repeats an element is passed as a scalar."""
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    out = np.empty(shape, dtype)
    flat = out.reshape(-1)
    given = [a.flat[0] if a.size and not any(a.strides) else np.broadcast_to(a, shape).reshape(-1) for a in arrays]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for start in range(0, flat.size, PIECE):
            piece = slice(start, start + PIECE)
            flat[piece] = function(*(x[piece] if x.ndim else x for x in given))
    return out
