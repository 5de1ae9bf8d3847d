"""The complementary error function and its relatives: the normal distribution function, its logarithm and its inverse."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...types import F32, F64
from ..elementary import exp
from ..normal import FORMATS, TAIL
from . import coefficients as C
from .base import Special, special
from .numbers import Num, polynomial, where, where_any

__all__ = ["erfc", "erfcx", "erfinv", "erfcinv", "ndtr", "ndtri", "log_ndtr"]

if TYPE_CHECKING:
    from ...operand import Operand

INF, NAN = math.inf, math.nan
ROOT_HALF = math.sqrt(0.5)
TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)
ROOT_2PI = math.sqrt(2.0 * math.pi)


# ---- formulas


def erfcx_positive(x: Num) -> Num:
    """exp(x²) erfc(x) for x >= 0."""
    bounded = x.clamp(None, x.huge)
    return polynomial((bounded - 3.75) / (bounded + 3.75), C.ERFCX) / (bounded * 2.0 + 1.0)


def gaussian(x: Num, scale: float) -> tuple[Num, Num]:
    """exp(-scale x²) as two factors, of which the second is 1 unless the product is next to the smallest numbers; scale is 1 or 1/2."""
    high, low = x.clamp(-40.0, 40.0).square_pair()
    exponent = high * scale
    deep = exponent > x.by_format(700.0, 80.0)
    factor = where(deep, exponent - 64.0, exponent)
    return (-factor).exp() * (1.0 - low * scale), where(deep, x.like(math.exp(-64.0)), 1.0)


def both_tails(x: Num, scale: float) -> Num:
    """erfc(|x| sqrt(scale)); scale is 1 or 1/2."""
    size = abs(x) if scale == 1.0 else abs(x) * ROOT_HALF
    high, low = x.square_pair()
    near_zero = C.ERFCX_NEAR_SINGLE if x.reg.dtype == F32 else C.ERFCX_NEAR
    above, below = (polynomial(size, coefficients, None) for coefficients in near_zero)
    density = (high * -scale).exp_bounded()
    near = density.mad(low * -scale, density) * (above / below)

    def far() -> Num:
        first, second = gaussian(x, scale)
        return first * erfcx_positive(size) * second

    return where_any(size > 3.0, far, near)


def ndtr_(x: Num) -> Num:
    tail = both_tails(x, 0.5) * 0.5
    return where(x > 0.0, 1.0 - tail, tail)


def quantile(tail: Num, centre: Num) -> Num:
    """The normal quantile: `tail` is the probability beyond it, at most 1/2, and `centre` is 1/2 - tail, which has the result's sign."""
    product = tail * 4.0 * (1.0 - tail)
    value = centre * polynomial(product.log_normal() * -0.4 - 1.0, C.QUANTILE_CENTRE)
    return where_any(product < math.exp(-5.0), lambda: quantile_of_tail(tail).copysign(centre), value)


def quantile_of_tail(tail: Num) -> Num:
    """The positive quantile of tails below 1/8."""
    above, below = FORMATS[F64].tail
    r = (-tail.log()).sqrt()
    shifted = r - TAIL
    value = polynomial(shifted, above, None) / polynomial(shifted, below, None)
    value = where_any(r > 6.4, lambda: polynomial((r - 17.0) * (1.0 / 11.0), C.QUANTILE_FAR), value)
    return where(tail.equals(0.0), INF, value)


# ---- ops


class Erfc(Special):
    """1 - erf(x), accurate for large x."""

    narrow = True

    def formula(self, *xs: Num) -> Num:
        (x,) = xs
        tail = both_tails(x, 1.0)
        return where(x < 0.0, 2.0 - tail, tail)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return -TWO_OVER_ROOT_PI * exp(-args[0] * args[0])


class Erfcx(Special):
    """exp(x²) erfc(x)."""

    def formula(self, *xs: Num) -> Num:
        (x,) = xs
        size = abs(x)
        tail = erfcx_positive(size)
        high, low = size.clamp(None, 30.0).square_pair()
        growing = high.exp()
        growing = where(growing.equals(INF), INF, growing * (low + 1.0))
        value = where(x < 0.0, 2.0 * growing - tail, tail)
        return where(x.equals(INF), 0.0, value)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return 2.0 * args[0] * y - TWO_OVER_ROOT_PI


class Erfinv(Special):
    """The inverse of erf."""

    narrow = True

    def formula(self, *xs: Num) -> Num:
        (y,) = xs
        return quantile((1.0 - abs(y)) * 0.5, y * 0.5) * ROOT_HALF

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return (1.0 / TWO_OVER_ROOT_PI) * exp(y * y)


class Erfcinv(Special):
    """The inverse of erfc."""

    def formula(self, *xs: Num) -> Num:
        (y,) = xs
        return quantile(where(y > 1.0, 2.0 - y, y) * 0.5, (1.0 - y) * 0.5) * ROOT_HALF

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return (-1.0 / TWO_OVER_ROOT_PI) * exp(y * y)


class Ndtr(Special):
    """The standard normal distribution function."""

    narrow = True

    def formula(self, *xs: Num) -> Num:
        return ndtr_(xs[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return (1.0 / ROOT_2PI) * exp(-0.5 * args[0] * args[0])


class Ndtri(Special):
    """The quantile of the standard normal distribution."""

    narrow = True

    def formula(self, *xs: Num) -> Num:
        (p,) = xs
        return quantile(where(p > 0.5, 1.0 - p, p), p - 0.5)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return ROOT_2PI * exp(0.5 * y * y)


class LogNdtr(Special):
    """The logarithm of the standard normal distribution function."""

    narrow = True

    def formula(self, *xs: Num) -> Num:
        (x,) = xs
        scaled = erfcx_positive(abs(x) * ROOT_HALF) * 0.5
        high, low = x.clamp(-40.0, 40.0).square_pair()
        tail = scaled * ((high * -0.5).exp() * (1.0 - low * 0.5))
        # one logarithm for both sides, with what is lost in 1 - tail; that is so little that 2 - p serves as 1 / p
        p, below = 1.0 - tail, x < 0.0
        return where(below, scaled, p).log_normal() + where(below, x * -0.5 * x, ((1.0 - p) - tail) * (2.0 - p))

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return (1.0 / ROOT_2PI) * exp(-0.5 * args[0] * args[0] - y)


# ---- frontend functions


def erfc(x: Operand) -> Operand:
    return special(Erfc(), x)


def erfcx(x: Operand) -> Operand:
    return special(Erfcx(), x)


def erfinv(y: Operand) -> Operand:
    return special(Erfinv(), y)


def erfcinv(y: Operand) -> Operand:
    return special(Erfcinv(), y)


def ndtr(x: Operand) -> Operand:
    return special(Ndtr(), x)


def ndtri(p: Operand) -> Operand:
    return special(Ndtri(), p)


def log_ndtr(x: Operand) -> Operand:
    return special(LogNdtr(), x)
