"""Floor division and remainder with NumPy's results for every operand: no divisor traps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..types import BOOL, I8
from .base import Array, Emitter, Reg, apply
from .maps import Binary, common_dtype, promoted

__all__ = ["floor_divide", "remainder"]

if TYPE_CHECKING:
    from ..operand import Operand


class FloorDivide(Binary):
    """The largest integer not above a / b. Integers: division by zero gives 0, the lowest by -1 gives itself, both as in NumPy."""

    kinds = "fiu"
    differentiable = False

    def evaluate(self, *arrays: Array) -> Array:
        return np.floor_divide(*arrays)

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        a, b = xs
        zero, one = emit.like(b, 0), emit.like(b, 1)
        by_zero = emit.compare("eq", b, zero)
        if b.dtype.kind == "f":
            rest = truncated_remainder(emit, a, b)
            quotient = emit.rint(emit.fdiv(emit.sub(a, rest), b))
            quotient = emit.select(signs_differ(emit, rest, b), emit.sub(quotient, one), quotient)
            return emit.select(by_zero, emit.fdiv(a, b), quotient)
        divisor = safe_divisor(emit, a, b)
        quotient = emit.idiv(a, divisor)
        if b.dtype.kind == "i":
            rest = emit.irem(a, divisor)
            quotient = emit.select(signs_differ(emit, rest, divisor), emit.sub(quotient, one), quotient)
        return emit.select(by_zero, zero, quotient)


class Remainder(Binary):
    """a - b * floor(a / b), with the sign of b; 0 for integers where b is 0, as in NumPy."""

    kinds = "fiu"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.remainder(*arrays)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand | float:
        return 1.0 if i == 0 else -floor_divide(*args)

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        a, b = xs
        if b.dtype.kind == "f":
            rest = truncated_remainder(emit, a, b)
            rest = emit.select(signs_differ(emit, rest, b), emit.add(rest, b), rest)
            return emit.select(emit.compare("eq", rest, emit.like(b, 0)), emit.copysign(rest, b), rest)
        divisor = safe_divisor(emit, a, b)
        rest = emit.irem(a, divisor)
        return emit.select(signs_differ(emit, rest, divisor), emit.add(rest, divisor), rest) if b.dtype.kind == "i" else rest


def safe_divisor(emit: Emitter, a: Reg, b: Reg) -> Reg:
    """b, but 1 where dividing by b would trap: a // 1 and a % 1 are what NumPy gives there (but for a // 0)."""
    trap = emit.compare("eq", b, emit.like(b, 0))
    if b.dtype.kind == "i":
        lowest = emit.compare("eq", a, emit.like(a, int(np.iinfo(a.dtype).min)))
        trap = emit.or_(trap, emit.and_(lowest, emit.compare("eq", b, emit.like(b, -1))))
    return emit.select(trap, emit.like(b, 1), b)


def signs_differ(emit: Emitter, rest: Reg, b: Reg) -> Reg:
    """Whether a remainder that is not 0 has another sign than the divisor."""
    zero = emit.like(b, 0)
    return emit.and_(emit.compare("ne", rest, zero), emit.xor(emit.compare("lt", rest, zero), emit.compare("lt", b, zero)))


def truncated_remainder(emit: Emitter, a: Reg, b: Reg) -> Reg:
    """a - q * b for an integer q that leaves less than |b|, exactly: by FMA, the remainder of a rounded quotient has no error.

    One step reaches it while |a / b| is below 2**53 (2**24 in float32), two while it is below the square of that. A larger quotient has no
    digit left that a remainder could be read from.
    """
    for _ in range(2):
        quotient = emit.trunc(emit.fdiv(a, b))
        reduced = emit.fma(emit.neg(quotient), b, a)
        a = emit.select(emit.compare("lt", emit.fabs(a), emit.fabs(b)), a, reduced)
    return a


def divide(op: FloorDivide | Remainder, a: Operand | float, b: Operand | float) -> Operand:
    dtype = common_dtype(a, b)
    return apply(op, *promoted(op.name, (a, b), I8 if dtype == BOOL else dtype))


def floor_divide(a: Operand | float, b: Operand | float) -> Operand:
    return divide(FloorDivide(), a, b)


def remainder(a: Operand | float, b: Operand | float) -> Operand:
    return divide(Remainder(), a, b)
