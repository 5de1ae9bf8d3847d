"""Bessel functions of the first and second kind, of integer order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...errors import UnsupportedError
from ...types import TensorType
from ..base import with_attributes
from . import coefficients as C
from .base import Special, special
from .numbers import Num, polynomial, where

__all__ = ["j0", "j1", "jn", "y0", "y1"]

if TYPE_CHECKING:
    from ...operand import Operand

INF, NAN = math.inf, math.nan
TWO_OVER_PI = 2.0 / math.pi
MAX_ORDER = 1000  # the recurrences are unrolled
SMALL = 8.0  # up to here polynomials in x², beyond it Hankel's expansion


def small(x: Num) -> Num:
    return x * x * (1.0 / 32.0) - 1.0


def hankel(order: int, x: Num) -> tuple[Num, Num]:
    """J and Y of x >= 8: sqrt(2 / (πx)) times P cos(χ) - Q sin(χ) and P sin(χ) + Q cos(χ), with χ = x - (order / 2 + 1 / 4) π."""
    inverse = 1.0 / x
    t = inverse * inverse * 128.0 - 1.0
    p = polynomial(t, (C.P0_LARGE, C.P1_LARGE)[order])
    q = polynomial(t, (C.Q0_LARGE, C.Q1_LARGE)[order]) * inverse
    sine, cosine = x.call("sin"), x.call("cos")
    a, b = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -(sine + cosine))  # √2 cos(χ) and √2 sin(χ)
    scale = (inverse * (1.0 / math.pi)).sqrt()
    return scale * (p * a - q * b), scale * (p * b + q * a)


def bounded(x: Num) -> Num:
    return where((x >= SMALL) & (x < INF), x, SMALL)


def j_(order: int, x: Num) -> Num:
    """J0 or J1 of any x."""
    size = abs(x)
    near = size.clamp(None, SMALL)
    low = polynomial(small(near), (C.J0_SMALL, C.J1_SMALL)[order])
    low = low if order == 0 else low * near
    value = where(size < SMALL, low, hankel(order, bounded(size))[0])
    value = where(size.equals(INF), 0.0, where(x.is_nan(), NAN, value))
    return value if order == 0 else where(x < 0.0, -value, where(x.equals(0.0), x, value))


class Bessel(Special, abstract=True):
    """A Bessel function that is regular."""

    singular = False


class J0(Bessel):
    """The Bessel function of the first kind of order 0."""

    def formula(self, *xs: Num) -> Num:
        return j_(0, xs[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return -j1(args[0])


class J1(Bessel):
    """The Bessel function of the first kind of order 1."""

    def formula(self, *xs: Num) -> Num:
        return j_(1, xs[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return 0.5 * (j0(args[0]) - jn(2, args[0]))


@with_attributes
class Jn(Special):
    """The Bessel function of the first kind of an order n >= 2."""

    n: int
    singular = False

    def infer(self, *types: TensorType) -> TensorType:
        if not 2 <= self.n <= MAX_ORDER:
            raise UnsupportedError(f"jn: order {self.n}; orders up to {MAX_ORDER} are supported")
        return super().infer(*types)

    def formula(self, *xs: Num) -> Num:
        (x,) = xs
        n, size = self.n, abs(xs[0])
        above = where(size > float(n), size, float(n))  # the recurrence is stable upwards where x > n
        before, this = j_(0, above), j_(1, above)
        inverse = 2.0 / above
        for k in range(1, n):
            before, this = this, this * inverse * float(k) - before
        value = where(size > float(n), this, self.downwards(size.clamp(None, float(n))))
        value = where(size.equals(INF), 0.0, where(x.is_nan(), NAN, value))
        return value if n % 2 == 0 else where(x < 0.0, -value, value)

    def downwards(self, x: Num) -> Num:
        """Miller's algorithm: from a high order downwards, normalised by 1 = J0 + 2 J2 + 2 J4 + …; small x by the first two terms."""
        n = self.n
        start = n + 20 + 2 * int(math.sqrt(20 * n))
        start += start % 2
        safe = x.clamp(1e-6, None)
        inverse = 2.0 / safe
        above, this = x.like(0.0), x.like(1e-200)
        total, result = x.like(0.0), x.like(0.0)
        for k in range(start, 0, -1):
            above, this = this, this * inverse * float(k) - above  # this = J of order k - 1
            if k - 1 == n:
                result = this
            if (k - 1) % 2 == 0:
                total = total + this * (2.0 if k > 1 else 1.0)
            if k % 4 == 0:
                scale = where(abs(this) > 1e100, x.like(1e-100), 1.0)
                above, this, total, result = above * scale, this * scale, total * scale, result * scale
        first = 1.0 / math.factorial(n) if n <= 170 else 0.0  # beyond, its product with a power of such a small x is 0 long since
        leading = (x * 0.5).power(float(n)) * first * (1.0 - x * x * (0.25 / (n + 1)))
        return where(x < 1e-6, leading, result / total)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return 0.5 * (jn(self.n - 1, args[0]) - jn(self.n + 1, args[0]))


class Y0(Special):
    """The Bessel function of the second kind of order 0, for x > 0."""

    def formula(self, *xs: Num) -> Num:
        (x,) = xs
        near = x.clamp(None, SMALL)
        t = small(near)
        low = polynomial(t, C.Y0_SMALL) + TWO_OVER_PI * near.log() * polynomial(t, C.J0_SMALL)
        return on_positive(x, where(x < SMALL, low, hankel(0, bounded(x))[1]))

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return -y1(args[0])


class Y1(Special):
    """The Bessel function of the second kind of order 1, for x > 0."""

    def formula(self, *xs: Num) -> Num:
        (x,) = xs
        near = x.clamp(None, SMALL)
        t = small(near)
        regular = near * (polynomial(t, C.Y1_SMALL) + TWO_OVER_PI * near.log() * polynomial(t, C.J1_SMALL))
        return on_positive(x, where(x < SMALL, regular - TWO_OVER_PI / near, hankel(1, bounded(x))[1]))

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return y0(args[0]) - y / args[0]


def on_positive(x: Num, value: Num) -> Num:
    value = where(x.equals(INF), 0.0, where(x.equals(0.0), -INF, value))
    return where((x < 0.0) | x.is_nan(), NAN, value)


def j0(x: Operand) -> Operand:
    return special(J0(), x)


def j1(x: Operand) -> Operand:
    return special(J1(), x)


def jn(n: int, x: Operand) -> Operand:
    """The order n is a static integer."""
    if n < 0:
        return (-1.0) ** n * jn(-n, x)
    return special(Jn(n), x) if n > 1 else j1(x) if n else j0(x)


def y0(x: Operand) -> Operand:
    return special(Y0(), x)


def y1(x: Operand) -> Operand:
    return special(Y1(), x)
