"""Logarithms, and the functions that are logarithms of 1 + y: `softplus` and the inverse hyperbolic functions."""

from __future__ import annotations

import math

from adjit.ir.types import F32, F64

from . import coefficients as C
from . import tables
from .exponentials import EXP_RANGE, exp_pair, ln2_pair, reduce_by_ln2
from .numbers import Format, Vec, fast_two_sum, horner, on_numbers, polynomial, rarely, two_sum

INF, NAN = math.inf, math.nan


def split_exponent(x: Vec, is_normal: bool = False) -> tuple[Vec, Vec]:
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


def _log_gap(f: Vec) -> Vec:
    """f - log(1 + f), for 1 + f in [sqrt(1/2), sqrt(2))."""
    if f.reg.dtype == F32:
        square = f * f
        return (square * f).mad(-polynomial(f, C.LOG[F32]), square * 0.5)
    half_square = f * 0.5 * f
    s = f / (f + 2.0)
    z = s * s
    return half_square - s * z.mad(polynomial(z, C.LOG_ATANH[F64]), half_square)


def _log_sum(k: Vec, f: Vec, low: Vec | None = None) -> Vec:
    """k log(2) + log(1 + f) + low."""
    ln2_high, ln2_low = ln2_pair(f)
    gap = k.mad(-ln2_low, _log_gap(f))
    return k.mad(ln2_high, f - (gap if low is None else gap - low))


def _log_ends(x: Vec, value: Vec, zero: float = 0.0) -> Vec:
    """`value` with the rest of the domain filled in; the logarithm's singularity is where x = zero."""
    value = x.eq(INF).choose(INF, value)
    value = x.eq(zero).choose(-INF, value)
    inside = x.lt(zero) | x.unordered(x)
    return inside.choose(NAN, value)


def _log_anywhere(x: Vec) -> Vec:
    k, m = split_exponent(x)
    return _log_ends(x, _log_sum(k, m - 1.0))


def _log_inside(x: Vec) -> Vec:
    """log(x) of positive normal numbers; others give some number."""
    if x.reg.dtype == F32 and x.lanes.text.target.tables:
        return _log_by_table(x)
    k, m = split_exponent(x, is_normal=True)
    return _log_sum(k, m - 1.0)


def _whole(k_bits: Vec, form: Format) -> tuple[Vec, float]:
    """k, shifted into the place of an exponent, as a float times a power of two. AVX2 lacks the conversion for i64."""
    if form.dtype == F32:
        return k_bits.convert(F32), 2.0**-form.fraction
    biased = ((k_bits + form.one) >> form.fraction) | ((form.bias + form.fraction) << form.fraction)
    return biased.float() - (2.0**form.fraction + form.bias), 1.0


def _log_by_table(x: Vec) -> Vec:
    """The same with x = 2**k m and log(m) = log(c m) - log(c), where c is one of 16 numbers, and r = c m - 1 is small.

    k log(2) - log(c) is exact, apart from a small multiple of k.
    """
    form = x.format
    above = x.bits() - tables.LOG_BASE
    k_bits, j = above & -(1 << form.fraction), above >> (form.fraction - 4)
    k, unit = _whole(k_bits, form)
    high, low = (part * unit for part in tables.LOG_2)
    r = (x.bits() - k_bits).float().fma(j.lookup(tables.LOG_FACTORS), -1.0)
    rest = (r * r).mad(horner(r, C.LOG_NEAR[F32]), r)
    return k.mad(high, j.lookup(tables.LOG_STARTS)) + k.mad(low, rest)


def _not_normal(x: Vec, end: int) -> Vec:
    """Whether the bits of x are not those of a normal positive number, or are at least `end`."""
    smallest = 1 << x.format.fraction
    return (x.bits() - smallest).at_least(end - smallest)


@on_numbers
def log(x: Vec) -> Vec:
    infinity = x.format.one * 2 + (1 << x.format.fraction)
    (value,) = rarely(_not_normal(x, infinity), [_log_inside(x)], lambda: [_log_anywhere(x)])
    return value


@on_numbers
def log_normal(x: Vec) -> Vec:
    return _log_inside(x)


def _log_to_base(x: Vec, of_e: tuple[float, ...], of_2: tuple[float, ...]) -> Vec:
    """The logarithm to another base, given those of e and of 2 to that base, each as a sum of two terms."""
    k, m = split_exponent(x)
    f = m - 1.0
    rest = _log_gap(f).mad(-of_e[0], f * of_e[1])
    if of_2[1]:
        rest = k.mad(of_2[1], rest)
    return _log_ends(x, k.fma(of_2[0], f.fma(of_e[0], rest)))


@on_numbers
def log2(x: Vec) -> Vec:
    """Exact at powers of two."""
    return _log_to_base(x, C.LOG2E[x.reg.dtype], (1.0, 0.0))


@on_numbers
def log10(x: Vec) -> Vec:
    """Exact at powers of ten."""
    return _log_to_base(x, C.LOG10E[x.reg.dtype], C.LOG10_2[x.reg.dtype])


def log1p_of_sum(x: Vec, x_low: Vec | None = None) -> Vec:
    """log(1 + x + x_low), for finite x > -1."""
    form = x.format
    total, error = two_sum(x.like(1.0), x)
    k, m = split_exponent(total)
    # the error of 1 + x, scaled like m, restores the bits of x below an ULP of 1: for small x, f is x itself
    power = (m.bits() - total.bits() + form.one).float()
    power = x.gt(2.0**60).choose(0.0, power)  # 2**-k leaves the exponent range, but the error is negligible
    f, f_low = fast_two_sum(m - 1.0, error * power)
    if x_low is not None:
        f_low = x_low.mad(power, f_low)
    return _log_sum(k, f, f_low)


@on_numbers
def log1p(x: Vec) -> Vec:
    value = _log_ends(x, log1p_of_sum(x), zero=-1.0)
    return x.eq(0.0).choose(x, value)


@on_numbers
def softplus(x: Vec) -> Vec:
    """log(1 + exp(x))."""
    reduced = reduce_by_ln2((-abs(x)).clamp(EXP_RANGE[x.reg.dtype][0], None))
    e, error = exp_pair(reduced)
    power = reduced.power(64)
    return x.gt(0.0).choose(x, 0.0) + log1p_of_sum(e * power * 2.0**-64, error * power * 2.0**-64)


@on_numbers
def logit(p: Vec) -> Vec:
    """log(p / (1 - p)). It is odd around 1/2, so let p be at most 1/2.

    With q = 1 - p and 2**k the power of two next to p / q, it is k log(2) + 2 atanh(s) with s = (p - 2**k q) / (p + 2**k q). Both terms of
    that fraction, times 2**-k, are sums of 1 and a multiple of p, rounded once; around 1/2, k is 0 and s = 2 p - 1 is exact.
    """
    (value,) = rarely(_not_normal(p, p.format.one), [_logit_inside(p)], lambda: [_logit_ends(p)])
    return value


def _logit_inside(p: Vec) -> Vec:
    """The same for normal p < 1."""
    form = p.format
    rest = 1.0 - p
    lower = p.lt(rest).choose(p, rest)
    # the difference of the bits of floats is nearly that of their logarithms
    k_bits = (lower.bits() - (1.0 - lower).bits() + (1 << (form.fraction - 1))) & -(1 << form.fraction)
    k, unit = _whole(k_bits, form)
    scale = (k_bits.like(form.one) - k_bits).float()  # 2**-k
    s = lower.fma(scale + 1.0, -1.0) / lower.mad(scale - 1.0, 1.0)
    z = s * s
    ln2_high, ln2_low = (part * unit for part in ln2_pair(p))
    tail = (s * z).mad(horner(z, C.LOGIT[form.dtype]), k * ln2_low)
    return (k.mad(ln2_high, s + s) + tail).copysign(p - 0.5)


def _logit_ends(p: Vec) -> Vec:
    """The same elsewhere: for subnormal numbers, where 1 - p is 1, and at the ends and outside of the domain."""
    return p.gt(1.0).choose(NAN, p.eq(1.0).choose(INF, _log_anywhere(p)))


# ---- inverse hyperbolic functions: log(1 + y) of a y with extra precision

LARGE = 2.0**28  # from here on asinh(x) and acosh(x) are log(2 x); log(x) is log(1 + y) of y = x - 1


@on_numbers
def asinh(x: Vec) -> Vec:
    size = abs(x)
    large = size.gt(LARGE)
    square = size * size
    y, low = fast_two_sum(size, square / ((square + 1.0).sqrt() + 1.0))
    value = log1p_of_sum(large.choose(size - 1.0, y), large.choose(0.0, low))
    value = large.choose(value + C.LN2[x.reg.dtype][0], value)
    unchanged = size.lt(x.format.tiny) | size.eq(INF) | x.unordered(x)
    return unchanged.choose(x, value.copysign(x))


@on_numbers
def acosh(x: Vec) -> Vec:
    large, above = x.gt(LARGE), x - 1.0
    double = above + above
    square = above.fma(above, double)  # (x - 1) (x + 1)
    root = square.sqrt()
    root_low = (root.fma(-root, square) + above.fma(above, double - square)) / (root + root)
    y, low = fast_two_sum(root, above)
    value = log1p_of_sum(large.choose(above, y), large.choose(0.0, low + root_low))
    value = large.choose(value + C.LN2[x.reg.dtype][0], value)
    value = x.eq(1.0).choose(0.0, x.eq(INF).choose(INF, value))
    return (x.lt(1.0) | x.unordered(x)).choose(NAN, value)


@on_numbers
def atanh(x: Vec) -> Vec:
    """log(1 + 2 x / (1 - x)) / 2."""
    size = abs(x)
    rest, rest_low = fast_two_sum(x.like(1.0), -size)
    reciprocal, double = 1.0 / rest, size + size
    y = double * reciprocal
    low = y.fma(-rest_low, y.fma(-rest, double)) * reciprocal
    value = size.eq(1.0).choose(INF, log1p_of_sum(y, low) * 0.5)
    value = size.lt(x.format.tiny).choose(size, value).copysign(x)
    return (size.gt(1.0) | x.unordered(x)).choose(NAN, value)
