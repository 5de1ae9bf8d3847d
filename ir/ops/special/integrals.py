"""Exponential integrals, and Lambert's W."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..base import with_attributes
from ..elementary import exp
from . import coefficients as C
from .base import Special, special
from .numbers import Num, polynomial, where

__all__ = ["exp1", "expi", "lambertw"]

if TYPE_CHECKING:
    from ...operand import Operand

INF, NAN = math.inf, math.nan


def exp1_(x: Num) -> Num:
    """The integral of exp(-t) / t from x > 0 to infinity."""
    small = polynomial(x * 2.0 - 1.0, C.E1_SMALL) - x.log()
    bounded = x.clamp(1.0, 800.0)
    s = (bounded - 2.0) / (bounded + 2.0)
    large = (-bounded).exp() * polynomial(s * 1.5 - 0.5, C.E1_LARGE) / bounded
    return where(x < 1.0, small, large)


def expi_positive(x: Num) -> Num:
    """The principal value of the integral of exp(t) / t from minus infinity to x > 0."""
    high, low = C.EI_ROOT
    beyond = (x - high) - low
    small = where(abs(beyond) < 0.2, (beyond / high).clamp(-0.9).log1p(), (x / high).log())
    small = small + beyond * polynomial(x * (1.0 / 3.0) - 1.0, C.EI_SMALL)
    bounded = x.clamp(6.0, 800.0)
    inverse = 1.0 / bounded
    large = polynomial(96.0 * inverse - 1.0, C.EI_48)
    for start, coefficients in ((24.0, C.EI_24), (12.0, C.EI_12), (6.0, C.EI_6)):
        large = where(bounded < 2.0 * start, polynomial(4.0 * start * inverse - 3.0, coefficients), large)
    half = (bounded * 0.5).exp()
    return where(x < 6.0, small, half * (large * inverse) * half)


class Exp1(Special):
    """The exponential integral E1 of x > 0."""

    def formula(self, *xs: Num) -> Num:
        (x,) = xs
        return where(x.equals(0.0), INF, where((x < 0.0) | x.is_nan(), NAN, exp1_(x)))

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return -exp(-args[0]) / args[0]


class Expi(Special):
    """The exponential integral Ei."""

    def formula(self, *xs: Num) -> Num:
        (x,) = xs
        value = where(x < 0.0, -exp1_(-x), expi_positive(x))
        return where(x.equals(0.0), -INF, where(x.is_nan(), NAN, value))

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return exp(args[0]) / args[0]


@with_attributes
class Lambertw(Special):
    """The real solution w of w exp(w) = x: w >= -1 for branch 0, w <= -1 for branch -1."""

    branch: int

    def formula(self, *xs: Num) -> Num:
        (x,) = xs
        turn = x.fma(math.e, 1.0) + x * 1.4456468917292502e-16  # e x + 1, whose zero is the branching point
        p = (turn.clamp(0.0) * 2.0).sqrt()
        p = p if self.branch == 0 else -p
        near = polynomial(p, (-1.0, 1.0, -1.0 / 3.0, 11.0 / 72.0, -43.0 / 540.0, 769.0 / 17280.0, -221.0 / 8505.0))
        if self.branch == 0:
            small = x.clamp(-0.3, 1e300).log1p()
            middle = small * (1.0 - small.log1p() / (small + 2.0))
            first = x.clamp(3.0, None).log()
            far = first - first.log() + first.log() / first
            guess = where(x < -0.25, near, where(x < 20.0, middle, far))
        else:
            first = (-x.clamp(None, -1e-320)).log()
            second = (-first).clamp(0.1).log()
            guess = where(x < -0.25, near, first - second + second / first)
        w = guess
        for _ in range(4):
            rest = (x / w).log() - w
            slope = w + 1.0
            q = 2.0 * slope * (slope + rest * (2.0 / 3.0))
            correction = rest / slope * (q - rest) / (q - 2.0 * rest)
            w = where(abs(slope) < 1e-3, w, w + w * correction)
        if self.branch == 0:
            w = where(abs(x) < 1e-8, x - x * x, where(x.equals(INF), INF, w))
            return where((turn < 0.0) | x.is_nan(), NAN, w)
        w = where(x.equals(0.0), -INF, w)
        return where((turn < 0.0) | (x > 0.0) | x.is_nan(), NAN, w)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return exp(-y) / (1.0 + y)


def exp1(x: Operand) -> Operand:
    return special(Exp1(), x)


def expi(x: Operand) -> Operand:
    return special(Expi(), x)


def lambertw(x: Operand, branch: int = 0) -> Operand:
    return special(Lambertw(branch), x)
