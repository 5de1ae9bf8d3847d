"""Floor division and remainders with NumPy's results for all operands: no divisor traps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..cost import Cost
from ..types import BOOL, I8, TensorType
from .arithmetic import round
from .base import Array, Emitter, Reg, apply
from .maps import Binary, common_dtype, promoted

__all__ = ["floor_divide", "fmod", "remainder"]

if TYPE_CHECKING:
    from ..operand import Operand


class Division(Binary, abstract=True):
    """Native code computes a quotient of floats a few bits at a time, of up to 2000."""

    kinds = "fiu"

    def cost(self, *types: TensorType) -> Cost:
        cost = super().cost(*types)
        return cost._replace(worst=300.0 * cost.flops) if types[0].is_float else cost


class FloorDivide(Division):
    """The largest integer that is at most a / b. Integers: division by zero gives 0, the lowest by -1 gives itself, as in NumPy."""

    numpy = "{} // {}"
    differentiable = False

    def evaluate(self, *arrays: Array) -> Array:
        return np.floor_divide(*arrays)

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        a, b = xs
        if b.dtype.kind == "f":
            return emit.call("floor_divide", a, b)
        zero = emit.like(b, 0)
        divisor = safe_divisor(emit, a, b)
        quotient = emit.idiv(a, divisor)
        if b.dtype.kind == "i":
            rest = emit.irem(a, divisor)
            quotient = emit.select(signs_differ(emit, rest, divisor), emit.sub(quotient, emit.like(b, 1)), quotient)
        return emit.select(emit.compare("eq", b, zero), zero, quotient)


class Remainder(Division):
    """a - b * floor(a / b), with the sign of b; 0 for integers if b is 0, as in NumPy."""

    numpy = "{} % {}"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.remainder(*arrays)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand | float:
        return 1.0 if i == 0 else -floor_divide(*args)

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        a, b = xs
        if b.dtype.kind == "f":
            return emit.call("remainder", a, b)
        divisor = safe_divisor(emit, a, b)
        rest = emit.irem(a, divisor)
        return emit.select(signs_differ(emit, rest, divisor), emit.add(rest, divisor), rest) if b.dtype.kind == "i" else rest


class Fmod(Division):
    """a - b * trunc(a / b), with the sign of a; 0 for integers if b is 0, as in NumPy."""

    numpy = "np.fmod({}, {})"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.fmod(*arrays)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand | float:
        return 1.0 if i == 0 else -round((args[0] - y) / args[1])

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        a, b = xs
        return emit.call("fmod", a, b) if b.dtype.kind == "f" else emit.irem(a, safe_divisor(emit, a, b))


def safe_divisor(emit: Emitter, a: Reg, b: Reg) -> Reg:
    """b, but 1 where dividing by b would trap: a // 1 and a % 1 are NumPy's results there (except for a // 0)."""
    trap = emit.compare("eq", b, emit.like(b, 0))
    if b.dtype.kind == "i":
        lowest = emit.compare("eq", a, emit.like(a, int(np.iinfo(a.dtype).min)))
        trap = emit.or_(trap, emit.and_(lowest, emit.compare("eq", b, emit.like(b, -1))))
    return emit.select(trap, emit.like(b, 1), b)


def signs_differ(emit: Emitter, rest: Reg, b: Reg) -> Reg:
    """Whether a nonzero remainder and the divisor have different signs."""
    zero = emit.like(b, 0)
    return emit.and_(emit.compare("ne", rest, zero), emit.xor(emit.compare("lt", rest, zero), emit.compare("lt", b, zero)))


def divide(op: FloorDivide | Remainder | Fmod, a: Operand | float, b: Operand | float) -> Operand:
    dtype = common_dtype(a, b)
    return apply(op, *promoted(op.name, (a, b), I8 if dtype == BOOL else dtype))


def floor_divide(a: Operand | float, b: Operand | float) -> Operand:
    return divide(FloorDivide(), a, b)


def remainder(a: Operand | float, b: Operand | float) -> Operand:
    return divide(Remainder(), a, b)


def fmod(a: Operand | float, b: Operand | float) -> Operand:
    return divide(Fmod(), a, b)
