"""Compute the coefficients in ir/ops/special/coefficients.py: `python benchmarks/fit_special.py > ir/ops/special/coefficients.py`.

Each row is a function, an interval and a change of variable that maps the interval onto [-1, 1]. The polynomial interpolates the function
at Chebyshev's points, in 60 digits, which is within a small factor of the best polynomial. Its degree is the lowest whose error, relative
to the largest value on the interval, is below 2**-57. Rational functions are fitted as in fit_normal.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import mpmath as mp
from fit_normal import fit as fit_rational
from fit_normal import nodes

BOUND = mp.mpf(2) ** -57
Function = Callable[[Any], Any]


class Fit(NamedTuple):
    """`inverse` maps t in [-1, 1] to the argument of `function`."""

    name: str
    comment: str
    function: Function
    inverse: Function


def linear(low: Any, high: Any) -> Function:
    return lambda t: (mp.mpf(low) + high) / 2 + t * (mp.mpf(high) - low) / 2


def ratio(k: Any, low: Any) -> Function:
    """s = (x - k) / (x + k) for x from `low` to infinity, stretched to [-1, 1]."""
    first = (mp.mpf(low) - k) / (low + k)

    def inverse(t: Any) -> Any:
        s = first + (1 - first) * (t + 1) / 2
        return k * (1 + s) / (1 - s) if s < 1 else mp.inf

    return inverse


def over(c: Any) -> Function:
    """x from c to infinity, by t = 2 c / x - 1."""
    return lambda t: 2 * mp.mpf(c) / (t + 1) if t > -1 else mp.inf


def over_squared(c: Any) -> Function:
    """x from c to infinity, by t = 2 (c / x)² - 1."""
    return lambda t: mp.mpf(c) * mp.sqrt(2 / (t + 1)) if t > -1 else mp.inf


def squared(high: Any) -> Function:
    """x from 0 to `high`, by t = 2 (x / high)² - 1."""
    return lambda t: mp.mpf(high) * mp.sqrt((t + 1) / 2)


def interpolated(function: Function, n: int) -> list[Any]:
    """Chebyshev coefficients of the polynomial of degree n - 1 through Chebyshev's points."""
    points = [mp.cos(mp.pi * (2 * k + 1) / (2 * n)) for k in range(n)]
    values = [function(t) for t in points]
    out = []
    for j in range(n):
        total = sum(v * mp.cos(mp.pi * j * (2 * k + 1) / (2 * n)) for k, v in enumerate(values))
        out.append(total * (1 if j == 0 else 2) / n)
    return out


def monomials(chebyshev: list[Any]) -> list[Any]:
    """A Chebyshev series in powers of t."""
    out = [mp.mpf(0)] * len(chebyshev)
    before, this = [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]
    for c in chebyshev:
        for i, v in enumerate(before):
            out[i] += c * v
        following = [mp.mpf(0), *(2 * v for v in this)]
        for i, v in enumerate(before):
            following[i] -= v
        before, this = this, following
    return out


def fitted(fit: Fit) -> list[Any]:
    series = interpolated(lambda t: fit.function(fit.inverse(t)), 64)
    size = max(abs(fit.function(fit.inverse(mp.mpf(k) / 8))) for k in range(-7, 8))
    degree = next((n for n in range(64) if sum(map(abs, series[n + 1 :])) < BOUND * size), 63)
    return series[: degree + 1]


def lgamma_quotient(x: Any) -> Any:
    if x == 1:
        return mp.euler
    if x == 2:
        return 1 - mp.euler
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def digamma_quotient(x: Any) -> Any:
    return mp.digamma(x) / (x - ROOT) if x != ROOT else mp.polygamma(1, x)


def ein(x: Any) -> Any:
    """The entire part of the exponential integral, the sum of x**k / (k k!)."""
    return x * mp.hyp2f2(1, 1, 2, 2, x) if x else mp.mpf(0)


def ei_quotient(x: Any) -> Any:
    return (ein(x) - ein(EI_ROOT)) / (x - EI_ROOT)


def hankel(order: int, cosine: bool) -> Function:
    """The slowly varying factors P and x Q of Hankel's expansion."""

    def function(x: Any) -> Any:
        if x == mp.inf:
            return mp.mpf(1) if cosine else mp.mpf(4 * order * order - 1) / 8
        chi = x - (mp.mpf(order) / 2 + mp.mpf(1) / 4) * mp.pi
        j, y, scale = mp.besselj(order, x), mp.bessely(order, x), mp.sqrt(mp.pi * x / 2)
        return scale * (j * mp.cos(chi) + y * mp.sin(chi)) if cosine else x * scale * (y * mp.cos(chi) - j * mp.sin(chi))

    return function


def normal_quantile(r: Any) -> Any:
    """The z > 0 beyond which a standard normal variable is with probability exp(-r²)."""
    start = mp.sqrt(2) * r - mp.log(4 * mp.pi * r * r) / (2 * mp.sqrt(2) * r)
    return mp.findroot(lambda z: mp.log(mp.erfc(z / mp.sqrt(2)) / 2) + r * r, start)


def quantile_quotient(w: Any) -> Any:
    """The normal quantile over c, its probability less 1/2, in w = -log(1 - 4 c²)."""
    c = mp.sqrt(-mp.expm1(-w)) / 2
    return mp.sqrt(2) * mp.erfinv(2 * c) / c if c else mp.sqrt(2 * mp.pi)


def y0_part(x: Any) -> Any:
    return mp.bessely(0, x) - 2 / mp.pi * mp.log(x) * mp.besselj(0, x)


def y1_part(x: Any) -> Any:
    return (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x


def k0_part(x: Any) -> Any:
    return mp.besselk(0, x) + mp.log(x / 2) * mp.besseli(0, x)


def k1_part(x: Any) -> Any:
    return (mp.besselk(1, x) - 1 / x - mp.log(x / 2) * mp.besseli(1, x)) / x


def at_infinity(function: Function, limit: Any) -> Function:
    return lambda x: limit if x == mp.inf else function(x)


def rows() -> Iterator[Fit]:
    yield Fit("LGAMMA_1_2", "lgamma(x) / ((x - 1) (x - 2)), t = 2 x - 3", lgamma_quotient, linear(1, 2))
    yield Fit("LGAMMA_2_3", "the same, t = 2 x - 5", lgamma_quotient, linear(2, 3))
    yield Fit("GAMMA_2_3", "gamma(x), t = 2 x - 5", mp.gamma, linear(2, 3))
    yield Fit("DIGAMMA_1_2", "digamma(x) / (x - root), t = 2 x - 3", digamma_quotient, linear(1, 2))
    yield Fit(
        "ERFCX",
        "(1 + 2 x) erfcx(x), t = (x - 3.75) / (x + 3.75)",
        at_infinity(lambda x: (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x), 2 / mp.sqrt(mp.pi)),
        ratio(mp.mpf(3.75), 0),
    )
    yield Fit(
        "QUANTILE_CENTRE", "the normal quantile over c = p - 1/2, in w = -log(1 - 4 c²), t = w / 2.5 - 1", quantile_quotient, linear(0, 5)
    )
    yield Fit("QUANTILE_FAR", "the normal quantile of p < 2**-60 in r = sqrt(-log(p)), t = (r - 17) / 11", normal_quantile, linear(6, 28))
    yield Fit("E1_SMALL", "exp1(x) + log(x), t = 2 x - 1", lambda x: mp.e1(x) + mp.log(x), linear(0, 1))
    yield Fit(
        "E1_LARGE",
        "x exp(x) exp1(x), t = (3 s - 1) / 2 with s = (x - 2) / (x + 2)",
        at_infinity(lambda x: x * mp.exp(x) * mp.e1(x), mp.mpf(1)),
        ratio(2, 1),
    )
    yield Fit("EI_SMALL", "(ein(x) - ein(root)) / (x - root), t = x / 3 - 1", ei_quotient, linear(0, 6))
    for low in (6, 12, 24):
        yield Fit(
            f"EI_{low}",
            f"x exp(-x) ei(x), t = {low * 4} / x - 3",
            lambda x: x * mp.exp(-x) * mp.ei(x),
            lambda t, low=low: mp.mpf(4 * low) / (t + 3),
        )
    yield Fit("EI_48", "x exp(-x) ei(x), t = 96 / x - 1", at_infinity(lambda x: x * mp.exp(-x) * mp.ei(x), mp.mpf(1)), over(48))
    for n in (0, 1):
        yield Fit(
            f"I{n}_MIDDLE",
            f"sqrt(x) exp(-x) I{n}(x), t = 32 / (3 x) - 5 / 3",
            lambda x, n=n: mp.sqrt(x) * mp.exp(-x) * mp.besseli(n, x),
            lambda t: 32 / (3 * t + 5),
        )
        yield Fit(
            f"I{n}_LARGE",
            "the same, t = 32 / x - 1",
            at_infinity(lambda x, n=n: mp.sqrt(x) * mp.exp(-x) * mp.besseli(n, x), 1 / mp.sqrt(2 * mp.pi)),
            over(16),
        )
    yield Fit("K0_SMALL", "K0(x) + log(x / 2) I0(x), t = x² / 2 - 1", k0_part, squared(2))
    yield Fit("K1_SMALL", "(K1(x) - 1 / x - log(x / 2) I1(x)) / x, t = x² / 2 - 1", k1_part, squared(2))
    for n in (0, 1):
        yield Fit(
            f"K{n}_LARGE",
            f"sqrt(x) exp(x) K{n}(x), t = (3 s - 1) / 2 with s = (x - 4) / (x + 4)",
            at_infinity(lambda x, n=n: mp.sqrt(x) * mp.exp(x) * mp.besselk(n, x), mp.sqrt(mp.pi / 2)),
            ratio(4, 2),
        )
    for n in (0, 1):
        yield Fit(f"J{n}_SMALL", f"J{n}(x){' / x' * n}, t = x² / 32 - 1", lambda x, n=n: mp.besselj(n, x) / x**n, squared(8))
        yield Fit(f"Y{n}_SMALL", "the entire part of " + ("Y0(x)", "Y1(x) / x")[n] + ", the same t", (y0_part, y1_part)[n], squared(8))
        yield Fit(f"P{n}_LARGE", f"Hankel's P{n}(x), t = 2 (8 / x)² - 1", hankel(n, True), over_squared(8))
        yield Fit(f"Q{n}_LARGE", f"x Q{n}(x), the same t", hankel(n, False), over_squared(8))


def rationals() -> Iterator[tuple[str, str, list[list[Any]]]]:
    """Names, comments, and the coefficients of numerators and denominators."""
    xs = nodes(mp.mpf(0), mp.mpf(3), 60)
    _, *coefficients = fit_rational(xs, [mp.exp(x * x) * mp.erfc(x) for x in xs], 7, 8)
    yield "ERFCX_NEAR", "erfcx(x) for x from 0 to 3, numerator and denominator", coefficients
    _, *coefficients = fit_rational(xs, [mp.exp(x * x) * mp.erfc(x) for x in xs], 3, 4)
    yield "ERFCX_NEAR_SINGLE", "the same for float32", coefficients


ROOT = EI_ROOT = mp.mpf(0)  # of digamma and of ei, found by `main`


def main() -> None:
    global ROOT, EI_ROOT
    mp.mp.dps = 60
    ROOT, EI_ROOT = mp.findroot(mp.digamma, 1.46), mp.findroot(mp.ei, 0.3725)
    print('"""Polynomials for special functions, computed by benchmarks/fit_special.py; the constant term comes first."""\n')
    for name, value in (("DIGAMMA_ROOT", ROOT), ("EI_ROOT", EI_ROOT)):
        high = float(value)
        print(f"# a root as the sum of two floats\n{name} = ({high!r}, {float(value - high)!r})")
    for fit in rows():
        print(f"\n# {fit.comment}\n{fit.name} = (")
        write(monomials(fitted(fit)), 4)
        print(")  # fmt: skip")
    for label, comment, parts in rationals():
        print(f"\n# {comment}\n{label} = (")
        for part in parts:
            print("    (")
            write(part, 8)
            print("    ),")
        print(")  # fmt: skip")


def write(coefficients: list[Any], indent: int) -> None:
    numbers = [repr(float(c)) for c in coefficients]
    for start in range(0, len(numbers), 5):
        print(f"{' ' * indent}{', '.join(numbers[start : start + 5])},")


if __name__ == "__main__":
    main()
