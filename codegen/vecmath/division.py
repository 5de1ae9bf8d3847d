"""Remainders and floored quotients of floats on lanes: exact for every ratio, with the signs and special cases of C and NumPy.

A quotient that fits in the significand gives its remainder with one fused multiply-add. Larger ones are divided by an out-of-line function,
digit by digit in integers, which is called only if some lane needs it. The call is a branch, so the text continues in another basic block.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from adjit.ir.types import F64

from ..llvm.lanes import Reg
from .numbers import Vec, on_numbers, rarely

INF = math.inf


class _Divided(NamedTuple):
    """|a| divided by |b|: the rounded ratio and the remainder; NaN if a is infinite or b is 0."""

    ratio: Vec
    rest: Vec
    huge: Vec  # whether the ratio is so large that the remainder was computed by long division


def _divide(a: Vec, b: Vec) -> _Divided:
    x, y = abs(a), abs(b)
    ratio = x / y
    # the ratio may have been rounded up to the next integer, which makes the remainder negative
    rest = ratio.trunc().fma(-y, x)
    rest = rest.lt(0.0).choose(rest + y, rest)
    rest = x.lt(y).choose(x, rest)  # also if y is infinite
    huge = ratio.gt(2.0 ** (x.format.fraction - 2)) & x.lt(INF) & y.gt(0.0)
    (rest,) = rarely(huge, [rest], lambda: [_call_long_division(huge.choose(x, 1.0), huge.choose(y, 1.0))])
    return _Divided(ratio, rest, huge)


@on_numbers
def fmod(a: Vec, b: Vec) -> Vec:
    """a - b * trunc(a / b), with the sign of a."""
    return _divide(a, b).rest.copysign(a)


def _passes_zero(rest: Vec, a: Vec, b: Vec) -> Vec:
    """Whether the remainder is nonzero and a and b differ in sign, so that truncation and floor differ."""
    return rest.ne(0.0) & (a.bits() ^ b.bits()).lt(0)


@on_numbers
def remainder(a: Vec, b: Vec) -> Vec:
    """a - b * floor(a / b), with the sign of b."""
    rest = _divide(a, b).rest
    rest = _passes_zero(rest, a, b).choose(abs(b) - rest, rest)
    return rest.copysign(b)


@on_numbers
def floor_divide(a: Vec, b: Vec) -> Vec:
    """floor(a / b) as defined by Python and NumPy: the quotient that matches the remainder, rounded to the nearest integer."""
    ratio, rest, huge = _divide(a, b)
    sign = (a.bits() ^ b.bits()) & a.format.sign
    whole = ratio.trunc()
    # a ratio that was rounded up to an integer is one too large
    whole = (whole.eq(ratio) & rest.gt(abs(b) * 0.5)).choose(whole - 1.0, whole)
    whole = whole.negated_if(sign)
    passes = _passes_zero(rest, a, b)
    whole = passes.choose(whole - 1.0, whole)

    def of_huge() -> list[Vec]:
        quotient = (a - rest.copysign(a)) / b
        quotient = passes.choose(quotient - 1.0, quotient)
        below = quotient.floor()
        return [(quotient - below).gt(0.5).choose(below + 1.0, below)]

    (whole,) = rarely(huge, [whole], of_huge)
    whole = rest.unordered(rest).choose(rest, whole)
    return b.eq(0.0).choose(ratio.negated_if(sign), whole)


def _call_long_division(x: Vec, y: Vec) -> Vec:
    """Compute the remainder by the out-of-line function, passing lanes through the stack: one function serves every width."""
    lanes, text = x.lanes, x.lanes.text
    text.declares.add(_long_division())
    slots = [text.reserve(lanes.type(F64)) for _ in range(2)]
    for operand, slot in zip((x, y), slots, strict=True):
        text.put(f"store {lanes.type(F64)} {operand.convert(F64).reg.name}, ptr {slot}")
    text.put(f"call void @adjit.long_division(ptr {slots[0]}, ptr {slots[1]}, i64 {lanes.width})")
    rest = Reg(text.define(f"load {lanes.type(F64)}, ptr {slots[0]}"), F64)
    return Vec(lanes, rest).convert(x.reg.dtype)


@lru_cache(maxsize=1)
def _long_division() -> str:
    """A function that replaces `count` finite doubles x >= y > 0 by x modulo y.

    x and y are integers below 2**53 times powers of two. While the exponent of x is larger than that of y, 11 bits of it move into the
    integer, which stays below 2**64, and the integer is reduced.
    """
    mask, hidden = (1 << 52) - 1, 1 << 52
    apart = [
        line
        for name in ("x", "y")
        for line in (
            f"%{name}.address = getelementptr double, ptr %{name}, i64 %i",
            f"%{name}.bits = load i64, ptr %{name}.address",
            f"%{name}.biased = lshr i64 %{name}.bits, 52",
            f"%{name}.fraction = and i64 %{name}.bits, {mask}",
            f"%{name}.subnormal = icmp eq i64 %{name}.biased, 0",
            f"%{name}.normal = or i64 %{name}.fraction, {hidden}",
            f"%{name}.integer = select i1 %{name}.subnormal, i64 %{name}.fraction, i64 %{name}.normal",
            f"%{name}.exponent = select i1 %{name}.subnormal, i64 1, i64 %{name}.biased",
        )
    ]
    return "\n".join([
        "define internal void @adjit.long_division(ptr %x, ptr %y, i64 %count) noinline cold nounwind {",
        "entry:",
        "br label %element",
        "element:",
        "%i = phi i64 [0, %entry], [%next, %done]",
        *apart,
        "%first = urem i64 %x.integer, %y.integer",
        "%gap = sub i64 %x.exponent, %y.exponent",
        "%some = icmp sgt i64 %gap, 0",
        "br i1 %some, label %digits, label %done",
        "digits:",
        "%rest = phi i64 [%first, %element], [%reduced, %digits]",
        "%left = phi i64 [%gap, %element], [%fewer, %digits]",
        "%few = icmp slt i64 %left, 11",
        "%step = select i1 %few, i64 %left, i64 11",
        "%shifted = shl i64 %rest, %step",
        "%reduced = urem i64 %shifted, %y.integer",
        "%fewer = sub i64 %left, %step",
        "%more = icmp sgt i64 %fewer, 0",
        "br i1 %more, label %digits, label %done",
        "done:",
        "%last = phi i64 [%first, %element], [%reduced, %digits]",
        "%whole = uitofp i64 %last to double",
        # two exact products, since the power of a subnormal y is not a normal number
        "%scaled = fmul double %whole, 0x3CB0000000000000",  # 2**-52
        "%power.bits = shl i64 %y.exponent, 52",
        "%power = bitcast i64 %power.bits to double",
        "%result = fmul double %scaled, %power",
        "store double %result, ptr %x.address",
        "%next = add i64 %i, 1",
        "%again = icmp ult i64 %next, %count",
        "br i1 %again, label %element, label %exit",
        "exit:",
        "ret void",
        "}",
    ])  # fmt: skip
