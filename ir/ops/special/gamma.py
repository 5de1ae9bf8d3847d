"""The gamma function, its logarithm and derivatives, the Hurwitz zeta function and the beta function."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from ..arithmetic import round
from ..elementary import sin
from ..maps import where as where_
from . import coefficients as C
from .base import Derived, Special, special
from .numbers import Dual, Num, polynomial, seeded, top, where, where_any

__all__ = ["gamma", "gammaln", "digamma", "zeta", "polygamma", "beta", "betaln"]

if TYPE_CHECKING:
    from ...operand import Operand

INF, NAN, PI = math.inf, math.nan, math.pi
HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
LARGE = 8.0  # from here on the asymptotic series are accurate


def bernoulli(count: int) -> list[Fraction]:
    """The Bernoulli numbers of even index from 2 on."""
    numbers = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        numbers.append(-sum(math.comb(m + 1, k) * b for k, b in enumerate(numbers)) / Fraction(m + 1))
    return numbers[2::2]


BERNOULLI = bernoulli(14)
STIRLING = tuple(float(b / (2 * k * (2 * k - 1))) for k, b in enumerate(BERNOULLI[:11], 1))
DIGAMMA = tuple(float(b / (2 * k)) for k, b in enumerate(BERNOULLI[:12], 1))
ZETA = tuple(float(b / math.factorial(2 * k)) for k, b in enumerate(BERNOULLI, 1))
ZETA_TERMS = 9


def stirling(x: Num) -> Num:
    """lgamma(x) less (x - 1/2) log(x) - x + log(2π) / 2, for x >= 8."""
    inverse = 1.0 / x
    return polynomial(inverse * inverse, STIRLING, 1.0 / 64.0) * inverse


def sin_pi(x: Num) -> Num:
    """sin(πx), exactly 0 at integers, up to sign."""
    return ((x - x.rint()) * PI).call("sin")


def is_odd(x: Num) -> Num:
    """Whether an integer is odd."""
    half = x * 0.5
    return Num(x.emit, x.emit.compare("ne", half.reg, half.floor().reg))


# ---- formulas


def lgamma_positive(x: Num) -> Num:
    """One logarithm serves all three intervals."""
    below = x < 1.0
    near = where(below, x + 1.0, x)
    y, product = x, x.like(1.0)
    for _ in range(5):
        step = y >= 3.0
        y = where(step, y - 1.0, y)
        product = where(step, product * y, product)
    is_small, is_large = x < 2.0, x >= LARGE
    logarithm = where(is_small, where(below, x, 1.0), where(is_large, x, product)).log()
    value = logarithm + (y - 1.0) * (y - 2.0) * polynomial(y * 2.0 - 5.0, C.LGAMMA_2_3)
    value = where_any(is_small, lambda: (near - 1.0) * (near - 2.0) * polynomial(near * 2.0 - 3.0, C.LGAMMA_1_2) - logarithm, value)
    value = where_any(is_large, lambda: (x - 0.5) * logarithm - x + HALF_LOG_2PI + stirling(x), value)
    return where(x > 1e17, x * (logarithm - 1.0), value)


def gammaln_(x: Num) -> Num:
    """log|gamma(x)|."""
    if isinstance(x, Dual):
        return x.chain(gammaln_(x.value), digamma_(x.value))
    size = abs(x)
    positive = lgamma_positive(size)

    def reflected() -> Num:
        tiny = size < 1e-10  # the squares of some of them are 0, and all are so small that both sides of 0 are alike
        sine = sin_pi(size)
        return where(tiny, positive, where(sine.equals(0.0), INF, (PI / abs(size * sine)).log() - positive))

    value = where_any(x < 0.0, reflected, positive)
    return where(size.equals(INF), INF, where(x.equals(0.0), INF, value))


def digamma_(x: Num) -> Num:
    if isinstance(x, Dual):
        return x.chain(digamma_(x.value), zeta_(x.value.like(2.0), x.value))
    negative = x < 0.0
    size = abs(x)
    y, product, slope = size, size.like(1.0), size.like(0.0)
    for _ in range(int(LARGE)):
        step = y < LARGE
        slope = where(step, slope * y + product, slope)
        product = where(step, product * y, product)
        y = where(step, y + 1.0, y)
    inverse = 1.0 / y
    square = inverse * inverse
    shifted = y.log() - 0.5 * inverse - square * polynomial(square, DIGAMMA) - slope / product
    # near the root, relative accuracy; for arguments next to [1, 2], one step of the recurrence
    high, low = C.DIGAMMA_ROOT
    below, above = size < 1.0, size > 2.0
    near = where(below, size + 1.0, where(above, size - 1.0, size))
    factor = polynomial(near * 2.0 - 3.0, C.DIGAMMA_1_2)
    central = ((near - high) - low) * factor
    central = central + where(below, -1.0 / size, where(above, 1.0 / near, 0.0))
    positive = where((size > 0.0) & (size < 3.0), central, where(y.equals(INF), INF, shifted))

    def reflected() -> Num:
        fraction = size - size.rint()
        return where(fraction.equals(0.0), NAN, positive + 1.0 / size + PI / (fraction * PI).call("tan"))

    value = where_any(negative, reflected, positive)
    return where(x.equals(0.0), x.like(-INF).copysign(-x), value)


def zeta_(s: Num, q: Num, power: str = "pow") -> Num:
    """The sum of (q + k)**-s over k >= 0, by Euler and Maclaurin's formula, for s > 1 and q > 0.

    `power` is "pow", or "pow_short" for results that are rounded to float32.
    """
    bounded = where(s > s.huge, s.huge, s)
    total = q.call(power, -bounded)
    for k in range(1, ZETA_TERMS):
        total = total + (q + float(k)).call(power, -bounded)
    end = q + float(ZETA_TERMS)
    last = end.call(power, -bounded)
    total = total + last * end / (s - 1.0) + last * 0.5
    inverse = 1.0 / end
    factor, tail = last * s * inverse, s.like(0.0)
    for k, b in enumerate(ZETA):
        tail = tail + factor * b
        factor = factor * (s + (2.0 * k + 1.0)) * (s + (2.0 * k + 2.0)) * (inverse * inverse)
    # for large s the factors overflow where they do not matter, and a short power is not 0
    value = where(last.primal > (0.0 if power == "pow" else math.exp(-150.0)), total + tail, total)
    plain_s, plain_q = s.primal, q.primal
    value = where(plain_q.equals(0.0), value.like(INF), where(plain_q.equals(INF), value.like(0.0), value))
    outside = (plain_s < 1.0) | (plain_q < 0.0) | plain_s.is_nan() | plain_q.is_nan()
    return where(outside, value.like(NAN), where(plain_s.equals(1.0), value.like(INF), value))


def betaln_(a: Num, b: Num) -> Num:
    """log|beta(a, b)|, without cancellation for large positive arguments."""
    swap = a < b
    a, b = where(swap, b, a), where(swap, a, b)  # a >= b
    total = a + b
    plain = gammaln_(a) + gammaln_(b) - gammaln_(total)
    safe_a, safe_total = a.clamp(LARGE), total.clamp(LARGE)
    safe_b = where(b > 0.0, b, 1.0)
    quotient = (safe_a - 0.5) * (safe_b / safe_a).log1p()
    rest = stirling(safe_a) - stirling(safe_total)
    one = gammaln_(safe_b) - quotient - safe_b * (safe_total.log() - 1.0) + rest
    large_b = safe_b.clamp(LARGE)
    both = HALF_LOG_2PI + stirling(large_b) + rest - quotient + (large_b - 0.5) * (large_b / safe_total).log() - 0.5 * safe_total.log()
    return where((a >= LARGE) & (b > 0.0), where(b >= LARGE, both, one), plain)


# ---- ops


class Gamma(Special):
    """The gamma function; NaN at negative integers, infinite with the argument's sign at zeros."""

    narrow = True

    def formula(self, *xs: Num) -> Num:
        (x,) = xs
        size = abs(x)
        y, above, below = size, x.like(1.0), x.like(1.0)
        for _ in range(2):
            step = y < 2.0
            below = where(step, below * y, below)
            y = where(step, y + 1.0, y)
        for _ in range(5):
            step = y >= 3.0
            y = where(step, y - 1.0, y)
            above = where(step, above * y, above)
        small = polynomial(y * 2.0 - 5.0, C.GAMMA_2_3) * above / below
        z = size.clamp(LARGE, x.by_format(200.0, 40.0))
        is_large = size >= LARGE
        second = where_any(is_large, lambda: z.power(z * 0.5), x.like(1.0))  # z**z would overflow too early, and the exponent must be exact
        first = where_any(is_large, lambda: second * (-z).exp() * (stirling(z).exp() * math.sqrt(2.0 * PI)) / z.sqrt(), small)

        def negative() -> Num:
            sine = sin_pi(size)
            sine = where(is_odd(size.rint()), -sine, sine)
            reflected = -PI / (size * sine) / first / second
            reflected = where(size > x.by_format(190.0, 45.0), reflected * 0.0, reflected)
            return where(size < 1e-10, 1.0 / x, where(sine.equals(0.0), NAN, reflected))  # the squares of some tiny numbers are 0

        value = where_any(x < 0.0, negative, where(size > x.by_format(172.0, 36.0), INF, first * second))
        return where(x.equals(0.0), x.like(INF).copysign(x), where(x.is_nan(), NAN, value))

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return y * digamma(args[0])


class Gammaln(Special):
    """The logarithm of the absolute value of the gamma function."""

    narrow = True

    def formula(self, *xs: Num) -> Num:
        return gammaln_(xs[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return digamma(args[0])


class Digamma(Special):
    """The derivative of the logarithm of the gamma function."""

    def formula(self, *xs: Num) -> Num:
        return digamma_(xs[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return polygamma(1, args[0])


class Zeta(Derived):
    """The Hurwitz zeta function of s and q, for s > 1 and q > 0; `orders[0]` derivatives in s."""

    arity: ClassVar[int | None] = 2

    def value(self, *xs: Num) -> Num:
        s, q = xs
        return zeta_(s, q)

    def single(self, *xs: Num) -> Num:
        s, q = seeded(xs, self.orders)
        return top(zeta_(s, q, "pow_short"))

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        s, q = args
        order = self.orders[0]
        if i == 0:
            return self.raised(0, s, q)
        value = -s * zeta_of_order(order, s + 1.0, q)
        return value if not order else value - float(order) * zeta_of_order(order - 1, s + 1.0, q)


class Betaln(Special):
    """The logarithm of the absolute value of the beta function."""

    arity: ClassVar[int | None] = 2

    def formula(self, *xs: Num) -> Num:
        return betaln_(*xs)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return digamma(args[i]) - digamma(args[0] + args[1])


class Beta(Special):
    """The beta function of positive arguments; NaN for negative ones."""

    arity: ClassVar[int | None] = 2

    def formula(self, *xs: Num) -> Num:
        a, b = xs
        value = betaln_(a, b).exp()
        return where((a < 0.0) | (b < 0.0), NAN, value)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return y * (digamma(args[i]) - digamma(args[0] + args[1]))


# ---- frontend functions


def gamma(x: Operand) -> Operand:
    return special(Gamma(), x)


def gammaln(x: Operand) -> Operand:
    return special(Gammaln(), x)


def digamma(x: Operand) -> Operand:
    return special(Digamma(), x)


def zeta_of_order(order: int, s: Operand | float, q: Operand | float) -> Operand:
    return special(Zeta((order, 0)), s, q)


def zeta(s: Operand | float, q: Operand | float) -> Operand:
    return zeta_of_order(0, s, q)


def polygamma(n: int, x: Operand) -> Operand:
    """The n-th derivative of digamma; negative x by reflection, for n = 1 only."""
    if n == 0:
        return digamma(x)
    value = (-1.0) ** (n + 1) * float(math.factorial(n)) * zeta(n + 1.0, x)
    if n > 1:
        return value
    negative = x <= 0.0
    distance = x - where_(negative, round(x), 0.0)
    sine = sin(math.pi * distance) / math.pi
    return where_(negative, 1.0 / (sine * sine) - zeta(2.0, where_(negative, 1.0 - x, 1.0)), value)


def beta(a: Operand | float, b: Operand | float) -> Operand:
    return special(Beta(), a, b)


def betaln(a: Operand | float, b: Operand | float) -> Operand:
    return special(Betaln(), a, b)
