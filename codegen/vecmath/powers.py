"""Powers and cube roots. A power needs a logarithm with extra precision, since the exponent multiplies its error."""

from __future__ import annotations

import math

from adjit.ir.types import F32, F64

from . import coefficients as C
from .exponentials import EXP_RANGE, exp_pair, exp_times, powers_of_two, reduce_by_ln2
from .logarithms import split_exponent
from .numbers import Vec, fast_two_sum, horner, on_numbers, polynomial

INF, NAN = math.inf, math.nan


def _log_pair(x: Vec) -> tuple[Vec, Vec]:
    """log(x) as an unevaluated sum with a relative error below 2**-62, for finite x > 0 in float64."""
    k, m = split_exponent(x)
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


def _power_short(a: Vec, b: Vec) -> Vec:
    """a ** b of float64 lanes to the digits of float32, limited to its range and somewhat more; a is normal and positive."""
    root_half = a.format.root_half
    above = a.bits() - root_half
    m = ((above & ((1 << 52) - 1)) + root_half).float()
    k = (((above + a.format.one) >> 52) | (1075 << 52)).float() - (2.0**52 + 1023)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = (s * z).mad(horner(z, C.LOG_ATANH_WIDE[F64]), s * 2.0)
    exponent = b * k.mad(C.LN2[F64][0], series)
    reduced = reduce_by_ln2(exponent.clamp(-200.0, 200.0))
    return exp_times(reduced.r, reduced.power(), C.EXP_WIDE)


def _power_wide(a: Vec, b: Vec) -> Vec:
    """a ** b of float32 lanes, computed in float64, where their subnormals are normal; a is finite and positive."""
    return _power_short(a.convert(F64), b.convert(F64)).convert(F32)


def _power(a: Vec, b: Vec) -> Vec:
    """a ** b of float64 lanes; a is finite and positive."""
    log_high, log_low = _log_pair(a)
    product = b * log_high
    error = b.mad(log_low, b.fma(log_high, -product))
    error = abs(product).lt(1000.0).choose(error, 0.0)  # it may be NaN if the product overflows
    product = product.clamp(*EXP_RANGE[F64])
    reduced = reduce_by_ln2(product, error)
    value, low = exp_pair(reduced)
    power, rest = powers_of_two(reduced.n_bits, product.lt(0.0), like=value)
    return (value + low) * power * rest


@on_numbers
def pow(a: Vec, b: Vec) -> Vec:
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
def pow_short(a: Vec, b: Vec) -> Vec:
    """a ** b in float64, for results that are rounded to float32."""
    return _power_short(a, b)


@on_numbers
def cbrt(x: Vec) -> Vec:
    """The cube root, with the sign of x; accurate to slightly more than one rounding.

    x = 2**(3 q + j) m with j of -1, 0 or 1: a polynomial approximates the root of m, and one step of Halley's method refines that of a =
    2**j m, from a residual that is computed exactly.
    """
    dtype, magic = x.reg.dtype, x.format.magic
    k, m = split_exponent(abs(x))
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
