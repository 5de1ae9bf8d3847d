"""Exponentials and what is made of them: powers of e and 2, the logistic function, hyperbolic functions and `erf`."""

from __future__ import annotations

import math
from typing import NamedTuple

from adjit.ir.types import F32, F64

from . import coefficients as C
from . import tables
from .numbers import Vec, fast_two_sum, halves, horner, on_numbers, polynomial, rarely

# exp(x) is 0 below the first bound and infinite above the second
EXP_RANGE = {F32: (-104.0, 89.0), F64: (-746.0, 710.0)}
EXP2_RANGE = {F32: (-151.0, 129.0), F64: (-1076.0, 1025.0)}


class Reduced(NamedTuple):
    """x = n log(2) + r + low with |r| <= log(2)/2; `n` is an integral float and `n_bits` holds the same integer in its low bits."""

    n: Vec
    n_bits: Vec
    r: Vec
    low: Vec

    def power(self, extra: int = 0) -> Vec:
        """2**(n + extra), which must be a normal number."""
        form = self.r.format
        return ((self.n_bits << form.fraction) + ((form.bias + extra) << form.fraction)).float()


def ln2_pair(x: Vec) -> tuple[float, float]:
    """log(2) as an unevaluated sum of two terms; the product of the first with an exponent is exact, by FMA or because it has few bits."""
    high, low = (C.LN2 if x.lanes.text.target.fma else C.LN2_SHORT)[x.reg.dtype]
    return high, low


def reduce_by_ln2(x: Vec, x_low: Vec | None = None) -> Reduced:
    magic, dtype = x.format.magic, x.reg.dtype
    high, low = ln2_pair(x)
    shifted = x.mad(C.LOG2E[dtype][0], magic)
    n = shifted - magic
    first = n.mad(-high, x)  # exact: both terms are multiples of an ULP of log(2) and nearly cancel
    r = n.mad(-low, first)
    rest = n.mad(-low, first - r)
    if x_low is not None:
        r, rest = fast_two_sum(r, x_low + rest)
    return Reduced(n, shifted.bits(), r, rest)


def exp_times(r: Vec, power: Vec, coefficients: C.Coefficients = C.EXP) -> Vec:
    """exp(r) * power."""
    less_one = (r * r).mad(polynomial(r, coefficients[r.reg.dtype]), r)
    return less_one.mad(power, power)


def exp_pair(reduced: Reduced) -> tuple[Vec, Vec]:
    """exp(r + low) as a rounded value and its error."""
    r = reduced.r
    tail = (r * r).mad(polynomial(r, C.EXP[r.reg.dtype]), reduced.low)
    one_plus, error = fast_two_sum(r.like(1.0), r)
    return fast_two_sum(one_plus, error + tail)


def _exp(x: Vec) -> Vec:
    x = x.clamp(*EXP_RANGE[x.reg.dtype])
    reduced = reduce_by_ln2(x)
    power, rest = powers_of_two(reduced.n_bits, x.lt(0.0), like=x)
    return exp_times(reduced.r, power) * rest


def powers_of_two(n_bits: Vec, shrinks: Vec, like: Vec) -> tuple[Vec, Vec]:
    """2**n as two factors: the first stays in the middle of the exponent range, so that only the last product can overflow or underflow."""
    form = like.format
    detour = shrinks.choose(n_bits.like((form.bias + 64) << form.fraction), (form.bias - 64) << form.fraction)
    power = ((n_bits << form.fraction) + detour).float()
    return power, shrinks.choose(2.0**-64, 2.0**64, like=like)


def _expm1_pair(x: Vec) -> tuple[Vec, Vec]:
    """expm1(x) as an unevaluated sum, for |x| so small that 2**n and 2**-n are normal."""
    reduced = reduce_by_ln2(x)
    r = reduced.r
    tail = (r * r).mad(polynomial(r, C.EXPM1[r.reg.dtype]), reduced.low)
    power = reduced.power()
    high, error = fast_two_sum(power - 1.0, r * power)
    return high, tail.mad(power, error)


@on_numbers
def exp(x: Vec) -> Vec:
    return _exp(x)


@on_numbers
def exp_bounded(x: Vec) -> Vec:
    """exp(x) where it is a normal number; others give some number."""
    if x.reg.dtype == F32 and x.lanes.text.target.tables:
        return _exp_by_table(x)
    reduced = reduce_by_ln2(x)
    return exp_times(reduced.r, reduced.power())


def _exp_by_table(x: Vec) -> Vec:
    """The same in float32 as 2**(k / 16) exp(r) with a small r."""
    k, r = _sixteenths(x)
    power = (k.lookup(tables.POWER_ROUNDED).bits() + (k << (x.format.fraction - 4))).float()
    return exp_times(r, power, C.EXP_NEAR_F32)


def _sixteenths(x: Vec) -> tuple[Vec, Vec]:
    """x = k log(2) / 16 + r; k is an integer in the low bits."""
    form = x.format
    high, low = (part / 16.0 for part in C.LN2[form.dtype])
    shifted = x.mad(16.0 * C.LOG2E[form.dtype][0], form.magic)
    n = shifted - form.magic
    return shifted.bits(), n.mad(-low, n.mad(-high, x))


@on_numbers
def expm1(x: Vec) -> Vec:
    low, high = (-20.0, 88.0) if x.reg.dtype == F32 else (-40.0, 709.0)
    value, error = _expm1_pair(x.clamp(low, high))
    return x.gt(high).choose(_exp(x), (value + error).copysign(x))


@on_numbers
def exp2(x: Vec) -> Vec:
    """2**x. The distance to the nearest integer is exact, so powers of two are exact too."""
    x = x.clamp(*EXP2_RANGE[x.reg.dtype])
    shifted = x + x.format.magic
    n = shifted - x.format.magic
    r = (x - n) * C.LN2[x.reg.dtype][0]
    power, rest = powers_of_two(shifted.bits(), x.lt(0.0), like=x)
    return exp_times(r, power) * rest


@on_numbers
def sigmoid(x: Vec) -> Vec:
    """1 / (1 + exp(-x)), where 1 + exp(-x) = (1 + 2**n) + expm1(r) 2**n.

    The first sum is exact, or close enough, unless 2**n is next to the first integer without a successor; 2**n must be a normal number.
    """
    if x.lanes.text.target.tables:
        return _sigmoid_by_table(x)
    form = x.format
    reduced = reduce_by_ln2(-x)
    r, power = reduced.r, reduced.power()
    square = r * r
    less_one = square.mad(halves(r, square, C.EXP[form.dtype]), r)
    usual = 1.0 / less_one.mad(power, power + 1.0)
    inexact = abs(x + (form.fraction + 2) * math.log(2.0)).lt(1.2)
    (value,) = rarely(inexact | abs(x).gt(85.0 if form.dtype == F32 else 700.0), [usual], lambda: [_sigmoid_slow(x)])
    return value


def _sigmoid_by_table(x: Vec) -> Vec:
    """The same with exp(-x) = 2**n t exp(r), where t is one of 16 numbers with few bits and r is small: 1 + 2**n t is exact."""
    form = x.format
    dtype = form.dtype
    k, rest = _sixteenths(-x)
    r = rest + k.lookup(tables.POWER_REST[dtype])
    power = (k.lookup(tables.POWER_TABLE[dtype]).bits() + (k << (form.fraction - 4))).float()
    square = r * r
    less_one = square.mad(halves(r, square, (C.EXP_NEAR_F32 if dtype == F32 else C.EXP_NEAR_F64)[dtype]), r)
    usual = 1.0 / less_one.mad(power, power + 1.0)
    (value,) = rarely(abs(x).gt(12.4 if dtype == F32 else 30.4), [usual], lambda: [_sigmoid_slow(x)])
    return value


def _sigmoid_slow(x: Vec) -> Vec:
    """The same for all x: with e = exp(-|x|), it is 1 - q or q = e / (1 + e)."""
    reduced = reduce_by_ln2((-abs(x)).clamp(EXP_RANGE[x.reg.dtype][0], None))
    e = exp_times(reduced.r, reduced.power(64)) * 2.0**-64  # scaled by 2**64, since it may be subnormal
    denominator, low = fast_two_sum(x.like(1.0), e)
    q = e / denominator
    rest = low.mad(-q, denominator.fma(-q, e))
    complement = 1.0 - q  # which is also the reciprocal of the denominator
    return x.lt(0.0).choose(rest.mad(complement, q), complement)


# ---- hyperbolic functions


@on_numbers
def tanh(x: Vec) -> Vec:
    limit = 10.0 if x.reg.dtype == F32 else 22.0  # tanh rounds to 1 from here on
    high, error = _expm1_pair(abs(x).clamp(None, limit) * -2.0)
    value = high + error
    denominator, low = fast_two_sum(x.like(2.0), value)
    q = value / denominator
    rest = low.mad(-q, denominator.fma(-q, value))
    return rest.mad(q.mad(-0.5, 0.5), q).copysign(x)  # (1 - q) / 2 is the reciprocal of the denominator


def _sinh_cosh(x: Vec, odd: bool) -> Vec:
    """sinh or cosh of x >= 0.

    With x = n log(2) + r: sinh(x) = a cosh(r) + b sinh(r) and cosh(x) = b cosh(r) + a sinh(r), for a, b = (2**n -+ 2**-n) / 2.
    """
    dtype = x.reg.dtype
    limit, large = (90.0, 80.0) if dtype == F32 else (711.0, 700.0)
    x = x.clamp(None, limit)
    reduced = reduce_by_ln2(x)
    r = reduced.r
    z = r * r
    # sinh(r) - r and cosh(r) - 1
    sinh_tail = (z * r).mad(horner(z, C.SINH[dtype]), reduced.low)
    cosh_tail = z * horner(z, C.COSH[dtype])
    form = x.format
    shift, detour = reduced.n_bits << form.fraction, 64 << form.fraction
    is_large = x.gt(large)
    up = (shift + form.one - (1 << form.fraction) - is_large.choose(shift.like(detour), 0)).float()
    # where 2**-n is negligible it must not leave the exponent range
    down = x.gt(60.0).choose(0.0, (shift.like(form.one - (1 << form.fraction)) - shift).float())
    a, b = up - down, up + down
    lead, slope = (a, b) if odd else (b, a)
    total = slope.mad(r, lead)
    rounding = (down if not odd else -down) - (lead - up)
    error = slope.fma(r, lead - total) + rounding
    tail = lead.mad(cosh_tail, slope.mad(sinh_tail, error))
    return (total + tail) * is_large.choose(2.0**64, 1.0, like=x)


@on_numbers
def sinh(x: Vec) -> Vec:
    return _sinh_cosh(abs(x), odd=True).copysign(x)


@on_numbers
def cosh(x: Vec) -> Vec:
    return _sinh_cosh(abs(x), odd=False)


# ---- the error function


@on_numbers
def erf(x: Vec) -> Vec:
    dtype = x.reg.dtype
    size = abs(x)
    if x.lanes.text.target.tables:
        return _erf_by_table(size).copysign(x)
    small = x.mad(polynomial(x * x, C.ERF_SMALL[dtype]), x)
    limit, coefficients = (4.0, C.ERF_LARGE_F32[F32]) if dtype == F32 else (6.0, C.ERF_LARGE[F64])
    bounded = size.clamp(None, limit)
    reduced = reduce_by_ln2(-(bounded * polynomial(bounded, coefficients)))
    complement = exp_times(reduced.r, reduced.power())
    return size.lt(1.0).choose(small, (1.0 - complement).copysign(x))


def _erf_by_table(size: Vec) -> Vec:
    """erf of |x|: the polynomial around the nearest of 16 numbers, whose coefficients are looked up."""
    dtype = size.reg.dtype
    (middles, starts, *slopes), step = tables.ERF_TABLES[dtype], tables.ERF_STEP[dtype]
    bounded = size.clamp(None, 15.0 * step)
    j = bounded.mad(1.0 / step, size.format.magic).bits()
    t = bounded - j.lookup(middles)
    slope = j.lookup(slopes[-1])
    for table in slopes[-2::-1]:
        slope = slope.mad(t, j.lookup(table))
    start = j.lookup(starts)
    return slope.mad(t, bounded.lt(1.5 * step).choose(start + t, start))  # there t is larger than erf(x), and so would be its errors
