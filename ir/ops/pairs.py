"""Arithmetic and elementary functions of complex numbers that are given as pairs of real ones, in terms of real ops.

Used by `passes.complex`, after differentiation. Special cases are those of NumPy, which follow Annex G of the C standard for functions, but
not for products: (inf + 0j) * (1 + 0j) has a NaN. Results are as close to the truth as sums and products of rounded numbers allow; the
logarithm has a small absolute, not relative, error near the unit circle.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..records import NamedTuple
from ..types import F32
from . import arithmetic, elementary, logic
from .arithmetic import absolute, copysign, maximum
from .base import apply
from .complex import Interleave
from .elementary import asinh as real_asinh
from .elementary import atan2, cos, exp, expm1, hypot, log1p, sin, sqrt
from .elementary import log as real_log
from .maps import where
from .shape import reshape, slice_

if TYPE_CHECKING:
    from ..operand import Operand


class Pair(NamedTuple):
    """The parts of complex numbers."""

    re: Operand
    im: Operand

    @property
    def zero(self) -> Operand:
        return self.re.literal(0.0, self.re.type)

    @property
    def one(self) -> Operand:
        return self.re.literal(1.0, self.re.type)


class Parted(Pair):
    """The parts of an array whose last axis holds them, which is `whole`."""

    whole: Operand


def parted(x: Operand) -> Parted:
    """The parts along the last axis of x, as views."""
    *shape, _ = x.type.shape
    whole = [slice(None)] * len(shape)
    out = Parted(*(reshape(slice_(x, [*whole, slice(k, k + 1)]), shape) for k in (0, 1)))
    out.whole = x
    return out


def joined(z: Pair) -> Operand:
    """An array whose last axis holds the parts: the one that they come from, if there is one."""
    return z.whole if isinstance(z, Parted) else apply(Interleave(), z.re, z.im)


class FloatLimits(NamedTuple):
    """Of a dtype: arguments up to which exp is finite, and from which tanh is 1; scales for squares that would over- or underflow."""

    exp: float
    tanh: float
    vanishing: float  # exp(-2x) is 0 from here on
    large: float
    small: float
    up: float  # an even power of two that makes subnormal numbers normal
    near: float  # beyond this magnitude, 1 + z is z


DOUBLE = FloatLimits(709.0, 22.0, 375.0, 2.0**1019, 2.0**-1000, 2.0**108, 2.0**28)
SINGLE = FloatLimits(88.0, 11.0, 52.0, 2.0**123, 2.0**-100, 2.0**48, 2.0**13)


def limits(x: Operand) -> FloatLimits:
    return SINGLE if x.type.dtype == F32 else DOUBLE


def choice(x: Operand, condition: Operand, a: Operand | float, b: Operand | float) -> Operand:
    """One of two constants, in the dtype of x: `where` gives two Python numbers float64."""
    return where(condition, *(x.literal(v, x.type) if isinstance(v, float) else v for v in (a, b)))


def isfinite(x: Operand) -> Operand:
    return logic.isfinite(x)


# ---- arithmetic


def add(a: Pair, b: Pair) -> Pair:
    return Pair(a.re + b.re, a.im + b.im)


def sub(a: Pair, b: Pair) -> Pair:
    return Pair(a.re - b.re, a.im - b.im)


def neg(z: Pair) -> Pair:
    return Pair(-z.re, -z.im)


def conj(z: Pair) -> Pair:
    return Pair(z.re, -z.im)


def mul(a: Pair, b: Pair) -> Pair:
    return Pair(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)


def div(a: Pair, b: Pair) -> Pair:
    """Smith's algorithm, as in NumPy: divides by the larger part first, so that no square can overflow."""
    plain = absolute(b.re) >= absolute(b.im)
    p, q = where(plain, b.re, b.im), where(plain, b.im, b.re)
    x, y = where(plain, a.re, a.im), where(plain, a.im, a.re)
    ratio = q / p
    scale = 1.0 / (p + q * ratio)
    re, im = (x + y * ratio) * scale, (y - x * ratio) * scale
    zero = logic.logical_and(p == 0.0, q == 0.0)
    return Pair(where(zero, a.re * math.inf, re), where(zero, a.im * math.inf, where(plain, im, -im)))


def equal(a: Pair, b: Pair) -> Operand:
    return logic.logical_and(a.re == b.re, a.im == b.im)


def not_equal(a: Pair, b: Pair) -> Operand:
    return logic.logical_or(a.re != b.re, a.im != b.im)


def is_nonzero(z: Pair) -> Operand:
    return logic.logical_or(z.re != 0.0, z.im != 0.0)


def select(condition: Operand, a: Pair, b: Pair) -> Pair:
    return Pair(where(condition, a.re, b.re), where(condition, a.im, b.im))


def times(z: Pair, factor: float) -> Pair:
    return Pair(z.re * factor, z.im * factor)


def times_i(z: Pair) -> Pair:
    return Pair(-z.im, z.re)


def over_i(z: Pair) -> Pair:
    return Pair(z.im, -z.re)


# ---- exponentials and logarithms


def cexp(z: Pair) -> Pair:
    """e to the power of z; finite where the product of an overflowing exponential with a small cosine is."""
    x, y = z
    most = limits(x).exp
    high = logic.logical_and(x > most, x < math.inf)
    grown = exp(where(high, x - most, x))
    scale = choice(x, high, math.exp(most), 1.0)
    odd = logic.logical_and(absolute(x) == math.inf, logic.logical_not(isfinite(y)))
    re, im = grown * cos(y) * scale, grown * sin(y) * scale
    lost = choice(x, x > 0.0, math.nan, 0.0)
    return Pair(where(odd, grown, re), where(y == 0.0, y, where(odd, lost, im)))


def cexpm1(z: Pair) -> Pair:
    half = sin(z.im * 0.5)
    return Pair(expm1(z.re) * cos(z.im) - 2.0 * (half * half), exp(z.re) * sin(z.im))


def clog(z: Pair) -> Pair:
    """The logarithm; near the unit circle by log1p, which loses no digits of a small result on the axes."""
    a, b = absolute(z.re), absolute(z.im)
    large, small = maximum(a, b), arithmetic.minimum(a, b)
    length = hypot(a, b)
    near = logic.logical_and(length > 0.5, length < 2.0)
    excess = (large - 1.0) * (large + 1.0) + small * small
    # where the length over- or underflows, the logarithm is that of a scaled length
    tiny, huge = large < limits(a).small, large > limits(a).large
    up, down = limits(a).up, 0.0625
    scale = choice(a, tiny, up, choice(a, huge, down, 1.0))
    far = real_log(hypot(a * scale, b * scale)) - choice(a, tiny, math.log(up), choice(a, huge, math.log(down), 0.0))
    return Pair(where(near, 0.5 * log1p(where(near, excess, 0.0)), far), atan2(z.im, z.re))


def clog1p(z: Pair) -> Pair:
    return Pair(real_log(hypot(z.re + 1.0, z.im)), atan2(z.im, z.re + 1.0))


# ---- roots and powers


def csqrt(z: Pair) -> Pair:
    """The root with a real part that is not negative."""
    bound = limits(z.re)
    largest = maximum(absolute(z.re), absolute(z.im))
    huge, tiny = largest > bound.large, largest < bound.small
    scale = choice(z.re, huge, 0.0625, choice(z.re, tiny, bound.up, 1.0))
    back = choice(z.re, huge, 4.0, choice(z.re, tiny, bound.up**-0.5, 1.0))
    x, y = z.re * scale, z.im * scale
    root = sqrt(0.5 * (absolute(x) + hypot(x, y)))
    other = absolute(y) / (2.0 * root)
    right = copysign(z.one, x) > 0.0
    zero, flat = largest == 0.0, absolute(x) == math.inf
    other = where(logic.logical_or(zero, logic.logical_and(flat, isfinite(y))), 0.0, other)
    re, im = where(right, root, other) * back, copysign(where(right, other, root) * back, y)
    endless = absolute(z.im) == math.inf
    return Pair(where(endless, math.inf, re), where(endless, z.im, im))


def crsqrt(z: Pair) -> Pair:
    return div(Pair(z.one, z.zero), csqrt(z))


def cpow(a: Pair, b: Pair) -> Pair:
    """a to the power of b, by logarithms; 1 where b is 0, and 0 or NaN where a is 0."""
    out = cexp(mul(b, clog(a)))
    nothing = choice(b.re, b.re > 0.0, 0.0, math.nan)
    out = select(is_nonzero(a), out, Pair(nothing, nothing))
    return select(is_nonzero(b), out, Pair(a.one, a.zero))


# ---- hyperbolic and trigonometric functions


def hyperbolic(x: Operand) -> tuple[Operand, Operand, Operand]:
    """sinh and cosh of x, divided by a scale (the last result) where they would overflow."""
    size = absolute(x)
    most = limits(x).exp
    high = logic.logical_and(size > most, size < math.inf)
    grown = expm1(where(high, size - most, size))
    whole = grown + 1.0
    inverse = where(high, 0.0, 1.0 / whole)
    rising = where(logic.logical_or(high, size == math.inf), whole, grown + grown * inverse)
    return copysign(0.5 * rising, x), 0.5 * (whole + inverse), choice(x, high, math.exp(most), 1.0)


def csinh(z: Pair) -> Pair:
    x, y = z
    s, c, scale = hyperbolic(x)
    odd = logic.logical_and(absolute(x) == math.inf, logic.logical_not(isfinite(y)))
    re = where(logic.logical_or(x == 0.0, odd), x, s * cos(y) * scale)
    return Pair(re, where(y == 0.0, y, c * sin(y) * scale))


def ccosh(z: Pair) -> Pair:
    x, y = z
    s, c, scale = hyperbolic(x)
    odd = logic.logical_and(absolute(x) == math.inf, logic.logical_not(isfinite(y)))
    re = where(odd, math.inf, c * cos(y) * scale)
    flat = logic.logical_or(x == 0.0, y == 0.0)
    return Pair(re, where(flat, copysign(z.zero, y) * copysign(z.one, x), s * sin(y) * scale))


def ctanh(z: Pair) -> Pair:
    """By the tangent of y and the hyperbolic sine of x, as in NumPy; where tanh(x) is 1, by an exponential."""
    x, y = z
    bound = limits(x)
    size = absolute(x)
    sine, cosine = sin(y), cos(y)
    grown = expm1(where(size >= bound.vanishing, bound.vanishing, size))
    whole = grown + 1.0
    inverse = 1.0 / whole
    moderate = size < bound.tanh
    s = where(moderate, 0.5 * (grown + grown * inverse), 0.0)
    t = sine / cosine
    beta = 1.0 + t * t
    denominator = 1.0 + beta * s * s
    re, im = copysign(beta * 0.5 * (whole + inverse) * s / denominator, x), t / denominator
    far = 4.0 * (sine * inverse) * (cosine * inverse)
    endless = size == math.inf
    im = where(moderate, im, where(endless, copysign(z.zero, where(isfinite(y), sine * cosine, 1.0)), far))
    edge = logic.logical_and(logic.logical_not(isfinite(y)), logic.logical_not(endless))
    re = where(moderate, re, where(logic.isnan(x), x, copysign(z.one, x)))
    re = where(edge, where(x == 0.0, x, math.nan), re)
    return Pair(re, where(edge, math.nan, where(y == 0.0, y, im)))


def csin(z: Pair) -> Pair:
    a, b = csinh(Pair(z.im, z.re))
    return Pair(b, a)


def ccos(z: Pair) -> Pair:
    return conj(ccosh(Pair(z.im, z.re)))


def ctan(z: Pair) -> Pair:
    a, b = ctanh(Pair(z.im, z.re))
    return Pair(b, a)


# ---- their inverses, by Kahan's formulas, whose branch cuts are those of the C standard


def roots(z: Pair) -> tuple[Pair, Pair]:
    """The roots of 1 - z and 1 + z, with the signs of zeros that the branch cuts need."""
    return csqrt(Pair(1.0 - z.re, -z.im)), csqrt(Pair(1.0 + z.re, z.im))


def is_far(z: Pair) -> Operand:
    near = limits(z.re).near
    return logic.logical_or(absolute(z.re) > near, absolute(z.im) > near)


def log_of_twice(z: Pair) -> Operand:
    """log(2 |z|)."""
    a, b = absolute(z.re), absolute(z.im)
    return real_log(hypot(a * 0.5, b * 0.5)) + 2.0 * math.log(2.0)


def casin(z: Pair) -> Pair:
    left, right = roots(z)
    re = atan2(z.re, left.re * right.re - left.im * right.im)
    im = real_asinh(left.re * right.im - left.im * right.re)
    far = is_far(z)
    re = where(z.re == 0.0, z.re, re)
    return Pair(where(far, atan2(z.re, absolute(z.im)), re), copysign(where(far, log_of_twice(z), absolute(im)), z.im))


def cacos(z: Pair) -> Pair:
    left, right = roots(z)
    re = where(z.re == 0.0, math.pi / 2, 2.0 * atan2(left.re, right.re))
    im = real_asinh(right.re * left.im - right.im * left.re)
    far = is_far(z)
    return Pair(where(far, atan2(absolute(z.im), z.re), re), copysign(where(far, log_of_twice(z), absolute(im)), -z.im))


def cacosh(z: Pair) -> Pair:
    """±i acos(z), with a real part that is not negative."""
    a, b = cacos(z)
    return Pair(absolute(b), copysign(a, z.im))


def casinh(z: Pair) -> Pair:
    return over_i(casin(times_i(z)))


def catanh(z: Pair) -> Pair:
    x, y = z
    far = is_far(z)
    near = Pair(where(far, 0.5, absolute(x)), where(far, 0.5, y))
    gap = (1.0 - near.re) * (1.0 - near.re) + near.im * near.im
    pole = 0.5 * (real_log(hypot(2.0, y)) - real_log(absolute(y)))  # where the square of a tiny y would vanish
    size = where(absolute(x) == 1.0, pole, 0.25 * log1p(4.0 * near.re / gap))
    re = where(x == 0.0, x, copysign(size, x))
    im = 0.5 * atan2(2.0 * near.im, (1.0 - near.re) * (1.0 + near.re) - near.im * near.im)
    endless = logic.logical_or(absolute(x) == math.inf, absolute(y) == math.inf)
    inverse = div(Pair(z.one, z.zero), z)
    inverse = Pair(*(where(endless, copysign(z.zero, part), rest) for part, rest in zip((x, -y), inverse, strict=True)))
    quarter = where(logic.isnan(y), y, copysign(z.one * (math.pi / 2), y) + inverse.im)
    return Pair(where(far, inverse.re, re), where(far, quarter, im))


def catan(z: Pair) -> Pair:
    return over_i(catanh(times_i(z)))


FUNCTIONS = {
    elementary.Exp: cexp, elementary.Expm1: cexpm1, elementary.Log: clog, elementary.Log1p: clog1p,
    elementary.Sqrt: csqrt, elementary.Rsqrt: crsqrt,
    elementary.Sin: csin, elementary.Cos: ccos, elementary.Tan: ctan,
    elementary.Asin: casin, elementary.Acos: cacos, elementary.Atan: catan,
    elementary.Sinh: csinh, elementary.Cosh: ccosh, elementary.Tanh: ctanh,
    elementary.Asinh: casinh, elementary.Acosh: cacosh, elementary.Atanh: catanh,
}  # fmt: skip
