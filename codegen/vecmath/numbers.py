"""Numbers with operators that emit instructions, in terms of which the vector math library is written.

This module has `Vec` (a register with operators, always strict: no contraction, so that every lane width, and every CPU with FMA, computes
the same bits), the layout of the two float formats, and error-free transformations, but no particular elementary function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import NamedTuple

from adjit.ir.types import BOOL, F32, F64, I32, I64, U32, U64, DType

from ..llvm.lanes import Lanes, Reg

Numbers = Sequence[float]


class Format(NamedTuple):
    """The layout of one float dtype."""

    dtype: DType
    bits: DType  # the signed integer of the same width
    unsigned: DType
    fraction: int  # stored bits of the significand
    bias: int
    magic: float  # 1.5 * 2**fraction: adding it rounds to an integer and leaves that integer in the low bits
    tiny: float  # the smallest normal number
    root_half: int  # the bits of sqrt(1/2)

    @property
    def one(self) -> int:
        return self.bias << self.fraction

    @property
    def sign(self) -> int:
        return -(1 << (self.dtype.itemsize * 8 - 1))


FORMATS: dict[DType, Format] = {
    F32: Format(F32, I32, U32, 23, 127, 1.5 * 2.0**23, 2.0**-126, 0x3F3504F3),
    F64: Format(F64, I64, U64, 52, 1023, 1.5 * 2.0**52, 2.0**-1022, 0x3FE6A09E667F3BCD),
}


class Vec:
    """A register with Python's operators; Python numbers as operands become constants of its dtype.

    Comparisons are methods and return a `Vec` of bools; `choose` selects by it. `>>` on bits is logical: AVX2 has no arithmetic shift for
    i64.
    """

    __slots__ = ("lanes", "reg")

    def __init__(self, lanes: Lanes, reg: Reg) -> None:
        self.lanes = lanes
        self.reg = reg

    @property
    def format(self) -> Format:
        return FORMATS[self.reg.dtype]

    def _operand(self, other: Vec | float | int) -> Reg:
        return other.reg if isinstance(other, Vec) else self.lanes.const(self.reg.dtype, other)

    def like(self, value: float | int) -> Vec:
        return Vec(self.lanes, self.lanes.like(self.reg, value))

    # ---- arithmetic

    def __add__(self, other: Vec | float | int) -> Vec:
        return Vec(self.lanes, self.lanes.add(self.reg, self._operand(other)))

    def __radd__(self, other: float | int) -> Vec:
        return Vec(self.lanes, self.lanes.add(self._operand(other), self.reg))

    def __sub__(self, other: Vec | float | int) -> Vec:
        return Vec(self.lanes, self.lanes.sub(self.reg, self._operand(other)))

    def __rsub__(self, other: float | int) -> Vec:
        return Vec(self.lanes, self.lanes.sub(self._operand(other), self.reg))

    def __mul__(self, other: Vec | float | int) -> Vec:
        return Vec(self.lanes, self.lanes.mul(self.reg, self._operand(other)))

    __rmul__ = __mul__

    def __truediv__(self, other: Vec | float | int) -> Vec:
        return Vec(self.lanes, self.lanes.fdiv(self.reg, self._operand(other)))

    def __rtruediv__(self, other: float | int) -> Vec:
        return Vec(self.lanes, self.lanes.fdiv(self._operand(other), self.reg))

    def __neg__(self) -> Vec:
        return Vec(self.lanes, self.lanes.neg(self.reg))

    def __abs__(self) -> Vec:
        return Vec(self.lanes, self.lanes.fabs(self.reg))

    def mad(self, factor: Vec | float, addend: Vec | float) -> Vec:
        """self * factor + addend, where a second rounding is harmless: CPUs without FMA round twice."""
        return Vec(self.lanes, self.lanes.mad(self.reg, self._operand(factor), self._operand(addend)))

    def fma(self, factor: Vec | float, addend: Vec | float) -> Vec:
        """self * factor + addend with the exact product: for remainders and the errors of products, on which the error bounds rely.

        It takes fifteen instructions on a CPU without FMA; use `mad` for everything else.
        """
        return Vec(self.lanes, self.lanes.fma(self.reg, self._operand(factor), self._operand(addend)))

    def sqrt(self) -> Vec:
        return Vec(self.lanes, self.lanes.sqrt(self.reg))

    def trunc(self) -> Vec:
        return Vec(self.lanes, self.lanes.trunc(self.reg))

    def floor(self) -> Vec:
        return Vec(self.lanes, self.lanes.floor(self.reg))

    def copysign(self, sign: Vec) -> Vec:
        return Vec(self.lanes, self.lanes.copysign(self.reg, sign.reg))

    # ---- comparisons (false for NaN) and selection

    def _compare(self, predicate: str, other: Vec | float | int) -> Vec:
        return Vec(self.lanes, self.lanes.compare(predicate, self.reg, self._operand(other)))

    def lt(self, other: Vec | float | int) -> Vec:
        return self._compare("lt", other)

    def gt(self, other: Vec | float | int) -> Vec:
        return self._compare("gt", other)

    def eq(self, other: Vec | float | int) -> Vec:
        return self._compare("eq", other)

    def ne(self, other: Vec | float | int) -> Vec:
        return self._compare("ne", other)

    def at_least(self, other: int) -> Vec:
        """Of bits as an unsigned integer."""
        unsigned = U32 if self.reg.dtype.itemsize == 4 else U64
        return Vec(self.lanes, self.lanes.compare("ge", Reg(self.reg.name, unsigned), self.lanes.const(unsigned, other)))

    def unordered(self, other: Vec) -> Vec:
        return Vec(self.lanes, self.lanes.unordered(self.reg, other.reg))

    def choose(self, yes: Vec | float, no: Vec | float, like: Vec | None = None) -> Vec:
        """`yes` where self (bools) is true, else `no`; `like` gives the dtype if both are Python numbers."""
        model = yes if isinstance(yes, Vec) else no if isinstance(no, Vec) else like
        assert model is not None, "choose between two Python numbers needs like="
        return Vec(self.lanes, self.lanes.select(self.reg, model._operand(yes), model._operand(no)))

    def clamp(self, low: float | None, high: float | None) -> Vec:
        """self limited to [low, high]; NaN stays NaN, since comparisons with it are false."""
        out = self
        if low is not None:
            out = out.lt(low).choose(low, out)
        if high is not None:
            out = out.gt(high).choose(high, out)
        return out

    # ---- bits

    def __and__(self, other: Vec | int) -> Vec:
        return Vec(self.lanes, self.lanes.and_(self.reg, self._operand(other)))

    def __or__(self, other: Vec | int) -> Vec:
        return Vec(self.lanes, self.lanes.or_(self.reg, self._operand(other)))

    def __xor__(self, other: Vec | int) -> Vec:
        return Vec(self.lanes, self.lanes.xor(self.reg, self._operand(other)))

    def __lshift__(self, count: int) -> Vec:
        return Vec(self.lanes, self.lanes.shl(self.reg, self._operand(count)))

    def __rshift__(self, count: int) -> Vec:
        unsigned = U32 if self.reg.dtype.itemsize == 4 else U64
        logical = Reg(self.reg.name, unsigned)
        shifted = self.lanes.shr(logical, self.lanes.const(unsigned, count))
        return Vec(self.lanes, Reg(shifted.name, self.reg.dtype))

    def bits(self) -> Vec:
        return Vec(self.lanes, self.lanes.bitcast(self.reg, self.format.bits))

    def float(self) -> Vec:
        """The float with these bits."""
        return Vec(self.lanes, self.lanes.bitcast(self.reg, F32 if self.reg.dtype.itemsize == 4 else F64))

    def convert(self, dtype: DType) -> Vec:
        return Vec(self.lanes, self.lanes.convert(self.reg, dtype))

    def lookup(self, table: Numbers) -> Vec:
        """`table[self % 16]`, floats of the width of these integers."""
        return Vec(self.lanes, self.lanes.lookup(self.reg, table, F32 if self.reg.dtype.itemsize == 4 else F64))

    def negated_if(self, bit: Vec) -> Vec:
        """self with the sign flipped where the top bit of `bit` is set; the other bits of `bit` must be 0."""
        return (self.bits() ^ bit).float()

    def sign_bit(self) -> Vec:
        return self.bits() & self.format.sign


def rarely(condition: Vec, usual: Sequence[Vec], otherwise: Callable[[], Sequence[Vec]]) -> list[Vec]:
    """`usual`, replaced by the values of `otherwise` in the lanes where the condition holds. The branch is skipped if there are none."""
    lanes, text = condition.lanes, condition.lanes.text
    before, slow, after = text.block, text.fresh_label(), text.fresh_label()
    text.put(f"br i1 {_any(condition)}, label %{slow}, label %{after}")
    text.start(slow)
    chosen = [condition.choose(ours, theirs) for ours, theirs in zip(otherwise(), usual, strict=True)]
    last = text.block
    text.jump(after)
    text.start(after)
    joined = []
    for theirs, ours in zip(usual, chosen, strict=True):
        phi = f"phi {lanes.type(ours.reg.dtype)} [{theirs.reg.name}, %{before}], [{ours.reg.name}, %{last}]"
        joined.append(Vec(lanes, Reg(text.define(phi), ours.reg.dtype)))
    return joined


def _any(condition: Vec) -> str:
    """One i1: whether the condition holds in any lane."""
    lanes = condition.lanes
    if lanes.width == 1:
        return condition.reg.name
    ty = lanes.type(BOOL)
    callee = f"i1 @llvm.vector.reduce.or.v{lanes.width}i1"
    lanes.text.declares.add(f"declare {callee}({ty})")
    return lanes.text.define(f"call {callee}({ty} {condition.reg.name})")


def on_numbers(function: Callable[..., Vec]) -> Callable[..., Reg]:
    """Turn a function on Nums into one on registers, `f(e, x)`; it is strict whatever `e` is."""

    @wraps(function)
    def on_registers(e: Lanes, *args: Reg) -> Reg:
        dtype = args[0].dtype
        if dtype not in FORMATS or any(a.dtype != dtype for a in args):
            types = ", ".join(str(a.dtype) for a in args)
            raise TypeError(f"{function.__name__}: vector math is for float32 or float64, all alike, not ({types}); convert them first")
        strict = Lanes(e.text, e.width, strict=True)
        return function(*(Vec(strict, a) for a in args)).reg

    return on_registers


# ---- polynomials and error-free transformations


def horner(x: Vec, coefficients: Sequence[float]) -> Vec:
    """The polynomial with these coefficients, constant term first."""
    out = x.like(coefficients[-1])
    for c in coefficients[-2::-1]:
        out = out.mad(x, c)
    return out


def polynomial(x: Vec, coefficients: Sequence[float]) -> Vec:
    """Like `horner`, but by halves (Estrin's scheme): the latency grows with the logarithm of the degree, at the cost of a few products."""
    terms: list[Vec | float] = list(coefficients)
    power = x
    while len(terms) > 1:
        pairs = [power.like(b).mad(power, a) if isinstance(b, float) else b.mad(power, a) for a, b in zip(terms[::2], terms[1::2])]
        terms = [*pairs, *terms[len(pairs) * 2 :]]
        power = power * power
    (out,) = terms
    return x.like(out) if isinstance(out, float) else out


def halves(x: Vec, square: Vec, coefficients: Sequence[float]) -> Vec:
    """Like `horner`, but as two polynomials of x², which is given: half of the latency and no other products."""
    return horner(square, coefficients[1::2]).mad(x, horner(square, coefficients[::2]))


def fast_two_sum(a: Vec, b: Vec) -> tuple[Vec, Vec]:
    """a + b exactly, as a rounded sum and its error; needs |a| >= |b| or a = 0."""
    total = a + b
    return total, b - (total - a)


def two_sum(a: Vec, b: Vec) -> tuple[Vec, Vec]:
    """a + b exactly, as a rounded sum and its error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def divide(n: Vec, n_low: Vec, d: Vec, d_low: Vec) -> Vec:
    """(n + n_low) / (d + d_low) with little more than one rounding; the low parts are a few ULP of the high parts."""
    reciprocal = 1.0 / d
    quotient = n * reciprocal
    rest = d.fma(-quotient, n) + quotient.mad(-d_low, n_low)
    return rest.mad(reciprocal, quotient)
