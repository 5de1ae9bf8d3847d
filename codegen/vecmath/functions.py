"""Elementary functions on lanes: inlined polynomials, without branches, within 2 ULP over the whole range of float32 and float64.

This module has exponentials, logarithms, powers, hyperbolic functions and `erf`, and the table `FUNCTIONS` in which the code generator
looks up the whole library (trigonometric functions are in `trigonometry.py`). Subnormals, infinities, NaN and signed zeros follow C99 Annex
F, as NumPy does. There is no support for integers (convert first) or fast-math: the code is strict, so the same argument gives the same
bits in a vector, in the scalar tail of a loop, and on every CPU with FMA; CPUs without it differ in the last bits.
benchmarks/ulp_vecmath.py measures the errors; benchmarks/fit_vecmath.py computed the coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from adjit.ir.types import F32, F64

from ..llvm.lanes import Reg
from . import coefficients as C
from . import division
from . import trigonometry as trig
from .numbers import Num, fast_two_sum, halves, horner, on_numbers, polynomial, rarely, two_sum

INF, NAN = math.inf, math.nan

# exp(x) is 0 below the first bound and infinite above the second
EXP_RANGE = {F32: (-104.0, 89.0), F64: (-746.0, 710.0)}
EXP2_RANGE = {F32: (-151.0, 129.0), F64: (-1076.0, 1025.0)}

# ---- exponentials


class _Reduced(NamedTuple):
    """x = n log(2) + r + low with |r| <= log(2)/2; `n` is an integral float and `n_bits` holds the same integer in its low bits."""

    n: Num
    n_bits: Num
    r: Num
    low: Num

    def power(self, extra: int = 0) -> Num:
        """2**(n + extra), which must be a normal number."""
        form = self.r.format
        return ((self.n_bits << form.fraction) + ((form.bias + extra) << form.fraction)).float()


def _ln2(x: Num) -> tuple[float, float]:
    """log(2) as an unevaluated sum of two terms; the product of the first with an exponent is exact, by FMA or because it has few bits."""
    high, low = (C.LN2 if x.lanes.text.target.fma else C.LN2_SHORT)[x.reg.dtype]
    return high, low


def _reduce(x: Num, x_low: Num | None = None) -> _Reduced:
    magic, dtype = x.format.magic, x.reg.dtype
    high, low = _ln2(x)
    shifted = x.mad(C.LOG2E[dtype][0], magic)
    n = shifted - magic
    first = n.mad(-high, x)  # exact: both terms are multiples of an ULP of log(2) and nearly cancel
    r = n.mad(-low, first)
    rest = n.mad(-low, first - r)
    if x_low is not None:
        r, rest = fast_two_sum(r, x_low + rest)
    return _Reduced(n, shifted.bits(), r, rest)


def _exp_times(r: Num, power: Num, coefficients: C.Coefficients = C.EXP) -> Num:
    """exp(r) * power."""
    less_one = (r * r).mad(polynomial(r, coefficients[r.reg.dtype]), r)
    return less_one.mad(power, power)


def _exp_pair(reduced: _Reduced) -> tuple[Num, Num]:
    """exp(r + low) as a rounded value and its error."""
    r = reduced.r
    tail = (r * r).mad(polynomial(r, C.EXP[r.reg.dtype]), reduced.low)
    one_plus, error = fast_two_sum(r.like(1.0), r)
    return fast_two_sum(one_plus, error + tail)


def _exp(x: Num) -> Num:
    x = x.clamp(*EXP_RANGE[x.reg.dtype])
    reduced = _reduce(x)
    power, rest = _powers(reduced.n_bits, x.lt(0.0), like=x)
    return _exp_times(reduced.r, power) * rest


def _powers(n_bits: Num, shrinks: Num, like: Num) -> tuple[Num, Num]:
    """2**n as two factors: the first stays in the middle of the exponent range, so that only the last product can overflow or underflow."""
    form = like.format
    detour = shrinks.choose(n_bits.like((form.bias + 64) << form.fraction), (form.bias - 64) << form.fraction)
    power = ((n_bits << form.fraction) + detour).float()
    return power, shrinks.choose(2.0**-64, 2.0**64, like=like)


def _expm1_pair(x: Num) -> tuple[Num, Num]:
    """expm1(x) as an unevaluated sum, for |x| so small that 2**n and 2**-n are normal."""
    reduced = _reduce(x)
    r = reduced.r
    tail = (r * r).mad(polynomial(r, C.EXPM1[r.reg.dtype]), reduced.low)
    power = reduced.power()
    high, error = fast_two_sum(power - 1.0, r * power)
    return high, tail.mad(power, error)


@on_numbers
def exp(x: Num) -> Num:
    return _exp(x)


@on_numbers
def exp_bounded(x: Num) -> Num:
    """exp(x) where it is a normal number; others give some number."""
    reduced = _reduce(x)
    return _exp_times(reduced.r, reduced.power())


@on_numbers
def expm1(x: Num) -> Num:
    low, high = (-20.0, 88.0) if x.reg.dtype == F32 else (-40.0, 709.0)
    value, error = _expm1_pair(x.clamp(low, high))
    return x.gt(high).choose(_exp(x), (value + error).copysign(x))


@on_numbers
def exp2(x: Num) -> Num:
    """2**x. The distance to the nearest integer is exact, so powers of two are exact too."""
    x = x.clamp(*EXP2_RANGE[x.reg.dtype])
    shifted = x + x.format.magic
    n = shifted - x.format.magic
    r = (x - n) * C.LN2[x.reg.dtype][0]
    power, rest = _powers(shifted.bits(), x.lt(0.0), like=x)
    return _exp_times(r, power) * rest


@on_numbers
def sigmoid(x: Num) -> Num:
    """1 / (1 + exp(-x)), where 1 + exp(-x) = (1 + 2**n) + expm1(r) 2**n.

    The first sum is exact, or close enough, unless 2**n is next to the first integer without a successor; 2**n must be a normal number.
    """
    form = x.format
    reduced = _reduce(-x)
    r, power = reduced.r, reduced.power()
    square = r * r
    less_one = square.mad(halves(r, square, C.EXP[form.dtype]), r)
    usual = 1.0 / less_one.mad(power, power + 1.0)
    inexact = abs(x + (form.fraction + 2) * math.log(2.0)).lt(1.2)
    (value,) = rarely(inexact | abs(x).gt(85.0 if form.dtype == F32 else 700.0), [usual], lambda: [_sigmoid_slow(x)])
    return value


def _sigmoid_slow(x: Num) -> Num:
    """The same for all x: with e = exp(-|x|), it is 1 - q or q = e / (1 + e)."""
    reduced = _reduce((-abs(x)).clamp(EXP_RANGE[x.reg.dtype][0], None))
    e = _exp_times(reduced.r, reduced.power(64)) * 2.0**-64  # scaled by 2**64, since it may be subnormal
    denominator, low = fast_two_sum(x.like(1.0), e)
    q = e / denominator
    rest = low.mad(-q, denominator.fma(-q, e))
    complement = 1.0 - q  # which is also the reciprocal of the denominator
    return x.lt(0.0).choose(rest.mad(complement, q), complement)


@on_numbers
def softplus(x: Num) -> Num:
    """log(1 + exp(x))."""
    reduced = _reduce((-abs(x)).clamp(EXP_RANGE[x.reg.dtype][0], None))
    e, error = _exp_pair(reduced)
    power = reduced.power(64)
    return x.gt(0.0).choose(x, 0.0) + _log1p(e * power * 2.0**-64, error * power * 2.0**-64)


# ---- hyperbolic functions


@on_numbers
def tanh(x: Num) -> Num:
    limit = 10.0 if x.reg.dtype == F32 else 22.0  # tanh rounds to 1 from here on
    high, error = _expm1_pair(abs(x).clamp(None, limit) * -2.0)
    value = high + error
    denominator, low = fast_two_sum(x.like(2.0), value)
    q = value / denominator
    rest = low.mad(-q, denominator.fma(-q, value))
    return rest.mad(q.mad(-0.5, 0.5), q).copysign(x)  # (1 - q) / 2 is the reciprocal of the denominator


def _sinh_cosh(x: Num, odd: bool) -> Num:
    """sinh or cosh of x >= 0.

    With x = n log(2) + r: sinh(x) = a cosh(r) + b sinh(r) and cosh(x) = b cosh(r) + a sinh(r), for a, b = (2**n -+ 2**-n) / 2.
    """
    dtype = x.reg.dtype
    limit, large = (90.0, 80.0) if dtype == F32 else (711.0, 700.0)
    x = x.clamp(None, limit)
    reduced = _reduce(x)
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
def sinh(x: Num) -> Num:
    return _sinh_cosh(abs(x), odd=True).copysign(x)


@on_numbers
def cosh(x: Num) -> Num:
    return _sinh_cosh(abs(x), odd=False)


# ---- logarithms


def _split(x: Num, is_normal: bool = False) -> tuple[Num, Num]:
    """x = 2**k * m with m in [sqrt(1/2), sqrt(2)), for positive x, subnormal or not; k as a float."""
    form = x.format
    subnormal = x.lt(form.tiny)
    if not is_normal:
        x = subnormal.choose(x * 2.0**form.fraction, x)
    above = x.bits() - form.root_half
    m = ((above & ((1 << form.fraction) - 1)) + form.root_half).float()
    # a float 2**fraction + j has j in its low bits: a conversion from integers that AVX2 lacks for i64
    whole = 2.0**form.fraction
    biased = ((above + form.one) >> form.fraction) | ((form.bias + form.fraction) << form.fraction)
    offset = whole + form.bias
    return biased.float() - (offset if is_normal else subnormal.choose(offset + form.fraction, offset, like=x)), m


def _log_gap(f: Num) -> Num:
    """f - log(1 + f), for 1 + f in [sqrt(1/2), sqrt(2))."""
    if f.reg.dtype == F32:
        square = f * f
        return (square * f).mad(-polynomial(f, C.LOG[F32]), square * 0.5)
    half_square = f * 0.5 * f
    s = f / (f + 2.0)
    z = s * s
    return half_square - s * z.mad(polynomial(z, C.LOG_ATANH[F64]), half_square)


def _log_sum(k: Num, f: Num, low: Num | None = None) -> Num:
    """k log(2) + log(1 + f) + low."""
    ln2_high, ln2_low = _ln2(f)
    gap = k.mad(-ln2_low, _log_gap(f))
    return k.mad(ln2_high, f - (gap if low is None else gap - low))


def _log_ends(x: Num, value: Num, zero: float = 0.0) -> Num:
    """`value` with the rest of the domain filled in; the logarithm's singularity is where x = zero."""
    value = x.eq(INF).choose(INF, value)
    value = x.eq(zero).choose(-INF, value)
    inside = x.lt(zero) | x.unordered(x)
    return inside.choose(NAN, value)


@on_numbers
def log(x: Num) -> Num:
    k, m = _split(x)
    return _log_ends(x, _log_sum(k, m - 1.0))


@on_numbers
def log_normal(x: Num) -> Num:
    """log(x) of positive normal numbers; others give some number."""
    k, m = _split(x, is_normal=True)
    return _log_sum(k, m - 1.0)


def _log_to_base(x: Num, of_e: tuple[float, ...], of_2: tuple[float, ...]) -> Num:
    """The logarithm to another base, given those of e and of 2 to that base, each as a sum of two terms."""
    k, m = _split(x)
    f = m - 1.0
    rest = _log_gap(f).mad(-of_e[0], f * of_e[1])
    if of_2[1]:
        rest = k.mad(of_2[1], rest)
    return _log_ends(x, k.fma(of_2[0], f.fma(of_e[0], rest)))


@on_numbers
def log2(x: Num) -> Num:
    """Exact at powers of two."""
    return _log_to_base(x, C.LOG2E[x.reg.dtype], (1.0, 0.0))


@on_numbers
def log10(x: Num) -> Num:
    """Exact at powers of ten."""
    return _log_to_base(x, C.LOG10E[x.reg.dtype], C.LOG10_2[x.reg.dtype])


def _log1p(x: Num, x_low: Num | None = None) -> Num:
    """log(1 + x + x_low), for finite x > -1."""
    form = x.format
    total, error = two_sum(x.like(1.0), x)
    k, m = _split(total)
    # the error of 1 + x, scaled like m, restores the bits of x below an ULP of 1: for small x, f is x itself
    power = (m.bits() - total.bits() + form.one).float()
    power = x.gt(2.0**60).choose(0.0, power)  # 2**-k leaves the exponent range, but the error is negligible
    f, f_low = fast_two_sum(m - 1.0, error * power)
    if x_low is not None:
        f_low = x_low.mad(power, f_low)
    return _log_sum(k, f, f_low)


@on_numbers
def log1p(x: Num) -> Num:
    value = _log_ends(x, _log1p(x), zero=-1.0)
    return x.eq(0.0).choose(x, value)


# ---- inverse hyperbolic functions: log(1 + y) of a y with extra precision

LARGE = 2.0**28  # from here on asinh(x) and acosh(x) are log(2 x); log(x) is log(1 + y) of y = x - 1


@on_numbers
def asinh(x: Num) -> Num:
    size = abs(x)
    large = size.gt(LARGE)
    square = size * size
    y, low = fast_two_sum(size, square / ((square + 1.0).sqrt() + 1.0))
    value = _log1p(large.choose(size - 1.0, y), large.choose(0.0, low))
    value = large.choose(value + C.LN2[x.reg.dtype][0], value)
    unchanged = size.lt(x.format.tiny) | size.eq(INF) | x.unordered(x)
    return unchanged.choose(x, value.copysign(x))


@on_numbers
def acosh(x: Num) -> Num:
    large, above = x.gt(LARGE), x - 1.0
    double = above + above
    square = above.fma(above, double)  # (x - 1) (x + 1)
    root = square.sqrt()
    root_low = (root.fma(-root, square) + above.fma(above, double - square)) / (root + root)
    y, low = fast_two_sum(root, above)
    value = _log1p(large.choose(above, y), large.choose(0.0, low + root_low))
    value = large.choose(value + C.LN2[x.reg.dtype][0], value)
    value = x.eq(1.0).choose(0.0, x.eq(INF).choose(INF, value))
    return (x.lt(1.0) | x.unordered(x)).choose(NAN, value)


@on_numbers
def atanh(x: Num) -> Num:
    """log(1 + 2 x / (1 - x)) / 2."""
    size = abs(x)
    rest, rest_low = fast_two_sum(x.like(1.0), -size)
    reciprocal, double = 1.0 / rest, size + size
    y = double * reciprocal
    low = y.fma(-rest_low, y.fma(-rest, double)) * reciprocal
    value = size.eq(1.0).choose(INF, _log1p(y, low) * 0.5)
    value = size.lt(x.format.tiny).choose(size, value).copysign(x)
    return (size.gt(1.0) | x.unordered(x)).choose(NAN, value)


# ---- powers


def _log_pair(x: Num) -> tuple[Num, Num]:
    """log(x) as an unevaluated sum with a relative error below 2**-62, for finite x > 0 in float64."""
    k, m = _split(x)
    denominator, denominator_low = fast_two_sum(x.like(1.0), m)
    f = m - 1.0
    reciprocal = 1.0 / denominator
    s = f * reciprocal
    s_low = s.mad(-denominator_low, denominator.fma(-s, f)) * reciprocal
    # log(m) = 2s + s³ (2/3 + s² p(s²)): all but the innermost product as unevaluated sums, since the exponent multiplies every error by
    # up to 745, the largest b log(a)
    z = s * s
    z_low = s.fma(s, -z) + s * 2.0 * s_low
    third, third_low = C.TWO_THIRDS[F64]
    factor, factor_low = fast_two_sum(x.like(third), z * polynomial(z, C.LOG_TAIL[F64]))
    u = z * factor
    u_low = z_low.mad(factor, z.mad(factor_low + third_low, z.fma(factor, -u)))
    cube = s * u
    cube_low = s_low.mad(u, s.mad(u_low, s.fma(u, -cube)))
    ln2_high, ln2_low = C.LN2_SHORT[F64]
    total, first = fast_two_sum(k * ln2_high, s * 2.0)
    total, second = fast_two_sum(total, cube)
    low = first + (second + k.mad(ln2_low, s_low.mad(2.0, cube_low)))
    return fast_two_sum(total, low)


def _power_wide(a: Num, b: Num) -> Num:
    """a ** b of float32 lanes, computed in float64; a is finite and positive."""
    a, b = a.convert(F64), b.convert(F64)
    root_half = a.format.root_half
    above = a.bits() - root_half  # subnormals of float32 are normal here
    m = ((above & ((1 << 52) - 1)) + root_half).float()
    k = (((above + a.format.one) >> 52) | (1075 << 52)).float() - (2.0**52 + 1023)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = (s * z).mad(horner(z, C.LOG_ATANH_WIDE[F64]), s * 2.0)
    exponent = b * k.mad(C.LN2[F64][0], series)
    reduced = _reduce(exponent.clamp(-200.0, 200.0))
    return _exp_times(reduced.r, reduced.power(), C.EXP_WIDE).convert(F32)


def _power(a: Num, b: Num) -> Num:
    """a ** b of float64 lanes; a is finite and positive."""
    log_high, log_low = _log_pair(a)
    product = b * log_high
    error = b.mad(log_low, b.fma(log_high, -product))
    error = abs(product).lt(1000.0).choose(error, 0.0)  # it may be NaN if the product overflows
    product = product.clamp(*EXP_RANGE[F64])
    reduced = _reduce(product, error)
    value, low = _exp_pair(reduced)
    power, rest = _powers(reduced.n_bits, product.lt(0.0), like=value)
    return (value + low) * power * rest


@on_numbers
def pow(a: Num, b: Num) -> Num:
    """a ** b with the special cases of C99 (F.9.4.4)."""
    magnitude = abs(a)
    value = _power_wide(magnitude, b) if a.reg.dtype == F32 else _power(magnitude, b)
    endless = abs(b).eq(INF)
    # a zero or infinite base, or an infinite exponent: 0 or infinity, depending on whether the power grows or shrinks
    extreme = magnitude.eq(0.0) | magnitude.eq(INF) | endless
    shrinks = magnitude.gt(1.0) ^ b.gt(0.0)
    value = extreme.choose(shrinks.choose(0.0, INF, like=a), value)
    half = b * 0.5
    whole = b.eq(b.trunc())
    odd = whole & half.ne(half.trunc()) & abs(b).lt(2.0 ** (a.format.fraction + 1))
    value = odd.choose(value.negated_if(a.sign_bit()), value)
    undefined = a.lt(0.0) & a.gt(-INF) & b.ne(b.trunc())
    value = (undefined | a.unordered(b)).choose(NAN, value)
    one = b.eq(0.0) | a.eq(1.0) | (a.eq(-1.0) & endless)
    return one.choose(1.0, value)


@on_numbers
def cbrt(x: Num) -> Num:
    """The cube root, with the sign of x; accurate to slightly more than one rounding.

    x = 2**(3 q + j) m with j of -1, 0 or 1: a polynomial approximates the root of m, and one step of Halley's method refines that of a =
    2**j m, from a residual that is computed exactly.
    """
    dtype, magic = x.reg.dtype, x.format.magic
    k, m = _split(abs(x))
    shifted = k.mad(1.0 / 3.0, magic)
    j = (shifted - magic).mad(-3.0, k)
    up, down = j.gt(0.5), j.lt(-0.5)
    a = m * up.choose(x.like(2.0), down.choose(0.5, 1.0, like=x))
    guess = polynomial(m, C.CBRT[dtype]) * up.choose(x.like(2.0 ** (1 / 3)), down.choose(0.5 ** (1 / 3), 1.0, like=x))
    square = guess * guess
    square_low = guess.fma(guess, -square)
    residual = guess.mad(-square_low, guess.fma(-square, a))
    step = guess * residual / (square * guess).mad(2.0, a)
    power = ((shifted.bits() << x.format.fraction) + x.format.one).float()
    root = ((guess + step) * power).copysign(x)
    return (x.eq(0.0) | abs(x).eq(INF) | x.unordered(x)).choose(x, root)


# ---- the error function


@on_numbers
def erf(x: Num) -> Num:
    dtype = x.reg.dtype
    size = abs(x)
    small = x.mad(polynomial(x * x, C.ERF_SMALL[dtype]), x)
    limit, coefficients = (4.0, C.ERF_LARGE_F32[F32]) if dtype == F32 else (6.0, C.ERF_LARGE[F64])
    bounded = size.clamp(None, limit)
    reduced = _reduce(-(bounded * polynomial(bounded, coefficients)))
    complement = _exp_times(reduced.r, reduced.power())
    return size.lt(1.0).choose(small, (1.0 - complement).copysign(x))


FUNCTIONS: dict[str, Callable[..., Reg]] = {
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "log": log,
    "log1p": log1p,
    "log2": log2,
    "log10": log10,
    "pow": pow,
    "cbrt": cbrt,
    "sin": trig.sin,
    "cos": trig.cos,
    "tan": trig.tan,
    "asin": trig.asin,
    "acos": trig.acos,
    "atan": trig.atan,
    "atan2": trig.atan2,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "asinh": asinh,
    "acosh": acosh,
    "atanh": atanh,
    "erf": erf,
    "fmod": division.fmod,
    "remainder": division.remainder,
    "floor_divide": division.floor_divide,
    "sigmoid": sigmoid,
    "softplus": softplus,
}

# variants for part of the domain, for formulas that bound their arguments or discard the results elsewhere
PARTIAL: dict[str, Callable[..., Reg]] = {"exp_bounded": exp_bounded, "log_normal": log_normal}
LIBRARY = FUNCTIONS | PARTIAL
