"""Incomplete gamma and beta functions, with derivatives in every argument.

Both are a factor that has a closed form, times a series or continued fraction. Derivatives in the argument are closed; those in the
parameters are computed by the same iterations, on dual numbers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from ..elementary import exp, log, log1p
from .base import Derived, special
from .gamma import LARGE, betaln, digamma, gammaln, gammaln_, polygamma, stirling
from .modified import is_small
from .numbers import Num, iterate, polynomial, where

__all__ = ["gammainc", "gammaincc", "betainc"]

if TYPE_CHECKING:
    from ...operand import Operand

INF, NAN = math.inf, math.nan
ITERATIONS = 10_000  # at most; about 9 sqrt(a) are needed where x is next to a
ATANH = tuple(2.0 / (2 * k + 3) for k in range(18))
ROOT_2PI = math.sqrt(2.0 * math.pi)
TINY = 1e-300


def log_gap(x: Num, ratio: Num) -> Num:
    """x - log(1 + x), without cancellation around 0; `ratio` is 1 + x."""
    s = x / (x + 2.0)
    square = s * s
    near = x * s - s * square * polynomial(square, ATANH)
    return where((x > -0.5) & (x < 0.9), near, x - ratio.log())


def gamma_star(a: Num) -> Num:
    """log of gamma(a) / (sqrt(2π / a) (a / e)**a), for a > 0."""
    small = gammaln_(a) - (a - 0.5) * a.log() + a - 0.5 * math.log(2.0 * math.pi)
    return where(a >= LARGE, stirling(a.clamp(LARGE)), small)


def gamma_factor(a: Num, x: Num) -> Num:
    """x**a exp(-x) / gamma(a)."""
    small = (a * x.log() - x - gammaln_(a)).exp()
    mu = (x - a) / a
    large = (-a * log_gap(mu, x / a) - stirling(a.clamp(LARGE))).exp() * (a.clamp(LARGE) * (1.0 / (2.0 * math.pi))).sqrt()
    return where(a >= LARGE, large, small)


def gamma_pair(a: Num, x: Num) -> tuple[Num, Num, Num]:
    """The factor x**a exp(-x) / gamma(a), the series of P (for x < a + 1) and the continued fraction of Q, each up to that factor."""
    one = a * 0.0 + 1.0
    is_series, is_fraction = x.primal < a.primal + 1.0, x.primal >= a.primal + 1.0  # elements of the other kind do not prolong a loop
    near, far = where(is_series, x, a), where(is_series, a + 2.0, x)

    def series(n: Num, term: Num, total: Num) -> tuple[Num, list[Num]]:
        """Two terms, for one division."""
        over = n + 1.0
        quotient = term * near / (n * over)
        following = quotient * near
        return is_small(following, total) | is_fraction, [n + 2.0, following, total + (quotient * over + following)]

    _, _, sum_ = iterate(ITERATIONS, [a + 1.0, 1.0 / a * one, 1.0 / a * one], series)

    def fraction(n: Num, b: Num, d: Num, change: Num, total: Num) -> tuple[Num, list[Num]]:
        """Steed's algorithm: the denominators are positive."""
        below = b + 2.0
        d_next = 1.0 / (below - n * (n - a) * d)
        following = change * (below * d_next - 1.0)
        return is_small(following, total) | is_series, [n + 1.0, below, d_next, following, total + following]

    start = far + 1.0 - a
    first = 1.0 / start * one
    *_, fraction_ = iterate(ITERATIONS, [one, start * one, first, first, first], fraction)
    return gamma_factor(a, x), sum_, fraction_


def nonzero(x: Num) -> Num:
    return where(abs(x).primal < TINY, x * 0.0 + TINY, x)


class IncompleteGamma(Derived, abstract=True):
    """P or Q, the regularised incomplete gamma functions of a > 0 and x >= 0; `orders[0]` derivatives in a."""

    arity: ClassVar[int | None] = 2
    upper = False

    def value(self, *xs: Num) -> Num:
        a, x = xs
        plain_a, plain_x = a.primal, x.primal
        inside = (plain_a > 0.0) & (plain_x > 0.0) & (plain_x < INF) & (plain_a < INF)
        a, x = where(inside, a, 1.0), where(inside, x, 1.0)
        factor, series, fraction = gamma_pair(a, x)
        is_series = x.primal < a.primal + 1.0
        if self.upper:
            value = where(is_series, 1.0 - factor * series, factor * fraction)
        else:
            value = where(is_series, factor * series, 1.0 - factor * fraction)
        zero, one = (value.like(float(self.upper)), value.like(float(not self.upper)))
        known = (plain_a > 0.0) & (plain_a < INF)
        value = where(inside, value, where(known & plain_x.equals(0.0), zero, where(known & plain_x.equals(INF), one, value.like(NAN))))
        at_pole = plain_a.equals(0.0) & (plain_x > 0.0)
        return where(at_pole, one, value)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        a, x = args
        if i == 0:
            return self.raised(0, a, x)
        slope = density_derivative(self.orders[0], a, x)
        return -slope if self.upper else slope


class Gammainc(IncompleteGamma):
    """The regularised lower incomplete gamma function."""


class Gammaincc(IncompleteGamma):
    """The regularised upper incomplete gamma function."""

    upper = True


def density_derivative(order: int, a: Operand, x: Operand) -> Operand:
    """The derivative of some order in a of x**(a - 1) exp(-x) / gamma(a), whose logarithm has the derivative log(x) - digamma(a)."""
    density = exp((a - 1.0) * log(x) - x - gammaln(a))
    values = [density]
    slopes = [log(x) - digamma(a), *(-polygamma(k, a) for k in range(1, order))]
    for n in range(order):
        total = values[n] * slopes[0]
        for k in range(1, n + 1):
            total = total + math.comb(n, k) * values[n - k] * slopes[k]
        values.append(total)
    return values[order]


# ---- the beta function


def beta_factor(a: Num, b: Num, x: Num, y: Num) -> Num:
    """x**a y**b / beta(a, b), with y = 1 - x."""
    total = a + b
    mean, rest = a / total, b / total
    distance = where(x.primal < 0.5, x - mean, rest - y)
    exponent = a * log_gap(distance / mean, x / mean) + b * log_gap(-distance / rest, y / rest)
    scale = (a * rest * (1.0 / (2.0 * math.pi))).sqrt()
    large = scale * (gamma_star(total) - gamma_star(a) - gamma_star(b) - exponent).exp()
    plain = (a * x.log() + b * y.log() - (gammaln_(a) + gammaln_(b) - gammaln_(total))).exp()
    is_large = (a.primal >= 1.0) & (b.primal >= 1.0)
    return where(is_large, large, plain)


def beta_fraction(a: Num, b: Num, x: Num) -> Num:
    """The continued fraction of I_x(a, b), which converges fast for x < (a + 1) / (a + b + 2), by Lentz's algorithm."""
    one = a * 0.0 + b * 0.0 + x * 0.0 + 1.0
    total = a + b
    first = 1.0 / nonzero(one - total * x / (a + 1.0))

    def step(m: Num, c: Num, d: Num, h: Num) -> tuple[Num, list[Num]]:
        double = m * 2.0
        even = m * (b - m) * x / ((a + double - 1.0) * (a + double))
        d1 = 1.0 / nonzero(even * d + 1.0)
        c1 = nonzero(even / c + 1.0)
        middle = h * (d1 * c1)
        odd = -(a + m) * (total + m) * x / ((a + double) * (a + double + 1.0))
        d2 = 1.0 / nonzero(odd * d1 + 1.0)
        c2 = nonzero(odd / c1 + 1.0)
        following = middle * (d2 * c2)
        return is_small(following - h, h), [m + 1.0, c2, d2, following]

    *_, value = iterate(ITERATIONS, [one, one, first, first], step)
    return value


class Betainc(Derived):
    """The regularised incomplete beta function of a, b > 0 and x in [0, 1]; `orders` derivatives in a and b."""

    arity: ClassVar[int | None] = 3

    def value(self, *xs: Num) -> Num:
        a, b, x = xs
        plain_a, plain_b, plain_x = (v.primal for v in xs)
        valid = (plain_a > 0.0) & (plain_b > 0.0) & (plain_a < INF) & (plain_b < INF)
        inside = valid & (plain_x > 0.0) & (plain_x < 1.0)
        a, b, x = where(inside, a, 1.0), where(inside, b, 1.0), where(inside, x, 0.5)
        mirrored = x.primal > (a.primal + 1.0) / (a.primal + b.primal + 2.0)
        y = 1.0 - x
        p, q, u = where(mirrored, b, a), where(mirrored, a, b), where(mirrored, y, x)
        value = beta_factor(a, b, x, y) * beta_fraction(p, q, u) / p
        value = where(mirrored, 1.0 - value, value)
        ends = where(valid & plain_x.equals(0.0), value.like(0.0), where(valid & plain_x.equals(1.0), value.like(1.0), value.like(NAN)))
        return where(inside, value, ends)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        a, b, x = args
        return self.raised(i, a, b, x) if i < 2 else beta_density_derivative(self.orders[0], self.orders[1], a, b, x)


def beta_density_derivative(m: int, n: int, a: Operand, b: Operand, x: Operand) -> Operand:
    """The derivatives of order m in a and n in b of x**(a - 1) (1 - x)**(b - 1) / beta(a, b).

    The logarithm of the density has derivatives log(x) - digamma(a) + digamma(a + b) in a, and likewise in b; its mixed derivatives, and
    those of higher order, are polygammas of a + b and of one parameter.
    """
    if not m and not n:
        return exp((a - 1.0) * log(x) + (b - 1.0) * log1p(-x) - betaln(a, b))

    def slope(i: int, j: int) -> Operand:
        """The derivative of order i in a and j in b of the logarithm, i + j > 0."""
        value = polygamma(i + j - 1, a + b)
        if not j:
            value = value - polygamma(i - 1, a)
        if not i:
            value = value - polygamma(j - 1, b)
        return value + (log(x) if (i, j) == (1, 0) else log1p(-x)) if i + j == 1 else value

    total: Operand | None = None
    first = (1, 0) if m else (0, 1)
    rest = (m - first[0], n - first[1])
    for i in range(rest[0] + 1):
        for j in range(rest[1] + 1):
            part = beta_density_derivative(rest[0] - i, rest[1] - j, a, b, x) * slope(i + first[0], j + first[1])
            part = part * float(math.comb(rest[0], i) * math.comb(rest[1], j))
            total = part if total is None else total + part
    assert total is not None
    return total


def gammainc(a: Operand | float, x: Operand | float) -> Operand:
    return special(Gammainc((0, 0)), a, x)


def gammaincc(a: Operand | float, x: Operand | float) -> Operand:
    return special(Gammaincc((0, 0)), a, x)


def betainc(a: Operand | float, b: Operand | float, x: Operand | float) -> Operand:
    return special(Betainc((0, 0, 0)), a, b, x)
