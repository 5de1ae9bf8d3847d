"""Modified Bessel functions, plain and scaled by exponentials."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from ..base import with_attributes
from ..elementary import exp
from ..maps import where as where_
from . import coefficients as C
from .base import Derived, Special, special
from .gamma import gammaln_
from .numbers import Num, iterate, polynomial, where, where_any

__all__ = ["i0", "i0e", "i1", "i1e", "k0", "k0e", "k1", "k1e", "iv", "ive"]

if TYPE_CHECKING:
    from ...operand import Operand

INF, NAN = math.inf, math.nan
EPSILON = 2.0**-54
TERMS = 5000  # at most, in the series of `iv`


# ---- formulas of orders 0 and 1


def i_series(order: int, x: Num) -> Num:
    """I0(x) or I1(x) / x for |x| <= 4; all terms of the power series are positive."""
    return polynomial(x * x * 0.25, tuple(0.5**order / (math.factorial(k) * math.factorial(k + order)) for k in range(20)), 4.0)


def i_scaled(order: int, size: Num) -> Num:
    """exp(-x) I(x) for x >= 0."""
    near = size.clamp(None, 4.0)
    low = i_series(order, near) * (-near).exp()
    low = low if order == 0 else low * near
    return where_any(size >= 4.0, lambda: i_scaled_far(order, size), low)


def i_scaled_far(order: int, size: Num) -> Num:
    """exp(-x) I(x) for x >= 4."""
    far = size.clamp(4.0, size.by_format(1.7e308, 3.4e38))
    inverse = 1.0 / far
    value = polynomial(inverse * (32.0 / 3.0) - 5.0 / 3.0, (C.I0_MIDDLE, C.I1_MIDDLE)[order])
    value = where_any(size >= 16.0, lambda: polynomial(inverse * 32.0 - 1.0, (C.I0_LARGE, C.I1_LARGE)[order]), value)
    return where(size.equals(INF), 0.0, value / far.sqrt())


def i_plain(order: int, size: Num) -> Num:
    """I(x) for x >= 0."""
    near = size.clamp(None, 4.0)
    low = i_series(order, near)

    def far() -> Num:
        half = (size * 0.5).exp()  # its square overflows too early
        return where(size > 714.0, INF, half * i_scaled_far(order, size) * half)

    return where_any(size >= 4.0, far, low if order == 0 else low * near)


def k_scaled(order: int, x: Num) -> Num:
    """exp(x) K(x) for x > 0."""
    near = x.clamp(None, 2.0)

    def small() -> Num:
        t = near * near * 0.5 - 1.0
        logarithm = (near * 0.5).log()
        if order == 0:
            low = polynomial(t, C.K0_SMALL) - logarithm * i_series(0, near)
        else:
            low = 1.0 / near + near * (polynomial(t, C.K1_SMALL) + logarithm * i_series(1, near))
        return low * near.exp()

    far = x.clamp(2.0, 1e300)
    s = (far - 4.0) / (far + 4.0)
    large = polynomial(s * 1.5 - 0.5, (C.K0_LARGE, C.K1_LARGE)[order]) / far.sqrt()
    value = where_any(x < 2.0, small, large)
    return where(x.equals(0.0), INF, where(x < 0.0, NAN, where(x.equals(INF), 0.0, value)))


@with_attributes
class ModifiedFirst(Special, abstract=True):
    """I0 or I1, scaled by exp(-|x|) or not."""

    narrow = True
    singular = False
    order: ClassVar[int]
    scaled: ClassVar[bool]

    def formula(self, *xs: Num) -> Num:
        (x,) = xs
        size = abs(x)
        value = (i_scaled if self.scaled else i_plain)(self.order, size)
        value = where(x.is_nan(), NAN, value)
        return value if self.order == 0 else where(x < 0.0, -value, where(x.equals(0.0), x, value))

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        (x,) = args
        first, second = (i0e, i1e) if self.scaled else (i0, i1)
        if self.order == 0:
            slope = second(x)
        else:  # I1' = I0 - I1 / x, which is 1/2 at 0
            nonzero = where_(x == 0.0, 1.0, x)
            slope = first(x) - where_(x == 0.0, 0.5, y / nonzero)
        return slope - sign(x) * y if self.scaled else slope


def sign(x: Operand) -> Operand:
    return where_(x < 0.0, -1.0, where_(x > 0.0, 1.0, 0.0 * x))


class I0(ModifiedFirst):
    """The modified Bessel function of the first kind of order 0."""

    order, scaled = 0, False


class I0E(ModifiedFirst):
    """exp(-|x|) I0(x)."""

    name = "i0e"
    order, scaled = 0, True


class I1(ModifiedFirst):
    """The modified Bessel function of the first kind of order 1."""

    order, scaled = 1, False


class I1E(ModifiedFirst):
    """exp(-|x|) I1(x)."""

    name = "i1e"
    order, scaled = 1, True


@with_attributes
class ModifiedSecond(Special, abstract=True):
    """K0 or K1 of x > 0, scaled by exp(x) or not."""

    order: ClassVar[int]
    scaled: ClassVar[bool]

    def formula(self, *xs: Num) -> Num:
        (x,) = xs
        value = k_scaled(self.order, x)
        if self.scaled:
            return value
        half = (x * -0.5).exp()
        return where(x > 600.0, half * value * half, (-x).exp() * value)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        (x,) = args
        first, second = (k0e, k1e) if self.scaled else (k0, k1)
        slope = -second(x) if self.order == 0 else -first(x) - y / x
        return slope + y if self.scaled else slope


class K0(ModifiedSecond):
    """The modified Bessel function of the second kind of order 0."""

    order, scaled = 0, False


class K0E(ModifiedSecond):
    """exp(x) K0(x)."""

    name = "k0e"
    order, scaled = 0, True


class K1(ModifiedSecond):
    """The modified Bessel function of the second kind of order 1."""

    order, scaled = 1, False


class K1E(ModifiedSecond):
    """exp(x) K1(x)."""

    name = "k1e"
    order, scaled = 1, True


# ---- any order


class Ive(Derived):
    """exp(-x) times the modified Bessel function of the first kind of real order v >= 0, of x >= 0; `orders[0]` derivatives in v.

    The power series is summed from its largest term in both directions, so that no term overflows. NaN for x >= 1e5.
    """

    arity: ClassVar[int | None] = 2

    def value(self, *xs: Num) -> Num:
        v, x = xs
        plain_v, plain_x = v.primal, x.primal
        inside = (plain_v >= 0.0) & (plain_x > 0.0) & (plain_x < 1e5)
        v, x = where(inside, v, 1.0), where(inside, x, 1.0)
        quarter = x * x * 0.25
        root = (v * v + x * x).primal.sqrt()
        peak = ((root - v.primal) * 0.5).floor()  # the index of the largest term
        peak = peak.clamp(0.0)
        log_peak = (v + peak * 2.0) * (x * 0.5).log() - gammaln_(v + peak + 1.0) - gammaln_(peak + 1.0) - x
        one = v * 0.0 + 1.0

        def upwards(k: Num, term: Num, total: Num) -> tuple[Num, list[Num]]:
            following = term * (quarter / ((k + 1.0) * (v + k + 1.0)))
            return is_small(following, total), [k + 1.0, following, total + following]

        def downwards(k: Num, term: Num, total: Num) -> tuple[Num, list[Num]]:
            following = where(k > 0.0, term * (k * (v + k) / quarter), 0.0 * term)
            return is_small(following, total) | (k <= 1.0), [k - 1.0, following, total + following]

        _, _, above = iterate(TERMS, [peak, one, one], upwards)
        _, _, below = iterate(TERMS, [peak, one, 0.0 * one], downwards)
        value = log_peak.exp() * (above + below)
        at_zero = where(plain_v.equals(0.0), value.like(1.0), 0.0)
        return where(inside, value, where((plain_v >= 0.0) & plain_x.equals(0.0), at_zero, value.like(NAN)))

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        v, x = args
        if i == 0:
            return self.raised(0, v, x)
        # I_v' = I_{v+1} + (v / x) I_v; each derivative in v adds one of the factor v
        order = self.orders[0]
        value = ive_of_order(order, v + 1.0, x) + v / x * y - y
        return value if not order else value + float(order) / x * ive_of_order(order - 1, v, x)


def is_small(term: Num, total: Num) -> Num:
    """Whether a term, and its derivatives, no longer change the total."""
    done = None
    for t, s in zip(term.leaves(), total.leaves(), strict=True):
        small = abs(Num(term.emit, t)) <= abs(Num(term.emit, s)) * EPSILON
        done = small if done is None else done & small
    assert done is not None
    return done


# ---- frontend functions


def i0(x: Operand) -> Operand:
    return special(I0(), x)


def i0e(x: Operand) -> Operand:
    return special(I0E(), x)


def i1(x: Operand) -> Operand:
    return special(I1(), x)


def i1e(x: Operand) -> Operand:
    return special(I1E(), x)


def k0(x: Operand) -> Operand:
    return special(K0(), x)


def k0e(x: Operand) -> Operand:
    return special(K0E(), x)


def k1(x: Operand) -> Operand:
    return special(K1(), x)


def k1e(x: Operand) -> Operand:
    return special(K1E(), x)


def ive_of_order(order: int, v: Operand | float, x: Operand | float) -> Operand:
    return special(Ive((order, 0)), v, x)


def ive(v: Operand | float, x: Operand | float) -> Operand:
    return ive_of_order(0, v, x)


def iv(v: Operand | float, x: Operand) -> Operand:
    return ive(v, x) * exp(x)
