"""Log densities of the usual distributions, with SciPy's names and parameters: `aj.scipy.stats.norm.logpdf(x, loc, scale)`.

Each is differentiable with respect to the variable and every real parameter, and -inf outside the support.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.ir.ops import special
from adjit.tracer.convert import numbers, to_operands
from adjit.tracer.surface import linalg
from adjit.tracer.surface.elementwise import floating
from adjit.tracer.surface.shapes import matrix_transpose

__all__ = [
    "bernoulli", "beta", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "geom", "gumbel_r", "halfnorm", "invgamma", "laplace",
    "logistic", "lognorm", "multivariate_normal", "nbinom", "norm", "pareto", "poisson", "rayleigh", "t", "uniform", "weibull_min",
]  # fmt: skip

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


def operands(*xs: Any) -> list[Operand]:
    """The arguments as floating-point operands; Python scalars take the dtype of the others."""
    given = numbers(*xs)
    leader = next(x for x in given if isinstance(x, Operand))
    dtype = floating(leader).dtype
    return [floating(x) if isinstance(x, Operand) else leader.literal(x, leader.type.with_shape(()).with_dtype(dtype)) for x in given]


class Continuous:
    """A family of continuous distributions with a location and a scale, given by the log density of the standard one."""

    def __init__(self, density: Callable[..., Operand], shapes: int, low: float = -math.inf, high: float = math.inf) -> None:
        self.density, self.shapes, self.low, self.high = density, shapes, low, high

    def logpdf(self, x: Any, *parameters: Any, loc: Any = 0.0, scale: Any = 1.0) -> Operand:
        """The logarithm of the density at x; the shape parameters come first, then the location and the scale."""
        if not self.shapes <= len(parameters) <= self.shapes + 2:
            raise TypeError(f"logpdf: takes {self.shapes} shape parameters, then loc and scale, not {len(parameters)} in all")
        given = list(parameters[self.shapes :])
        loc, scale = [*given, *[loc, scale][len(given) :]]
        x, loc, scale, *shapes = operands(x, loc, scale, *parameters[: self.shapes])
        z = (x - loc) / scale
        inside = ops.logical_and(ops.greater_equal(z, self.low), ops.less_equal(z, self.high))
        bounded = math.isfinite(self.low) or math.isfinite(self.high)
        middle = self.low + 1.0 if math.isinf(self.high) else 0.5 * (self.low + self.high)
        safe = ops.where(inside, z, middle) if bounded else z
        value = self.density(safe, *shapes) - ops.log(scale)
        value = ops.where(ops.logical_or(inside, ops.isnan(z)), value, -math.inf) if bounded else value
        return ops.where(scale > 0.0, value, math.nan)

    def pdf(self, x: Any, *parameters: Any, loc: Any = 0.0, scale: Any = 1.0) -> Operand:
        """The density at x."""
        return ops.exp(self.logpdf(x, *parameters, loc=loc, scale=scale))


class Discrete:
    """A family of distributions on integers from `low` on, given by the log probability; `last` gives the largest integer."""

    def __init__(self, probability: Callable[..., Operand], low: int = 0, last: Callable[..., Any] | None = None) -> None:
        self.probability, self.low, self.last = probability, low, last

    def logpmf(self, k: Any, *parameters: Any, loc: Any = 0.0) -> Operand:
        """The logarithm of the probability of k."""
        k, loc, *shapes = operands(k, loc, *parameters)
        n = k - loc
        inside = ops.logical_and(ops.greater_equal(n, float(self.low)), ops.equal(n, ops.floor(n)))
        if self.last is not None:
            inside = ops.logical_and(inside, ops.less_equal(n, self.last(*shapes)))
        return ops.where(inside, self.probability(ops.where(inside, n, float(self.low)), *shapes), -math.inf)

    def pmf(self, k: Any, *parameters: Any, loc: Any = 0.0) -> Operand:
        """The probability of k."""
        return ops.exp(self.logpmf(k, *parameters, loc=loc))


def student(z: Operand, df: Operand) -> Operand:
    return -0.5 * (df + 1.0) * ops.log1p(z * z / df) - special.betaln(0.5 * df, 0.5) - 0.5 * ops.log(df)


def logistic_density(z: Operand) -> Operand:
    size = ops.absolute(z)
    return -size - 2.0 * ops.softplus(-size)


def lognormal(z: Operand, s: Operand) -> Operand:
    ratio = ops.log(z) / s
    return ops.where(z == 0.0, -math.inf, -0.5 * ratio * ratio - ops.log(s * z) - HALF_LOG_2PI)


norm = Continuous(lambda z: -0.5 * z * z - HALF_LOG_2PI, 0)
expon = Continuous(lambda z: -z, 0, 0.0)
uniform = Continuous(lambda z: 0.0 * z, 0, 0.0, 1.0)
laplace = Continuous(lambda z: -ops.absolute(z) - math.log(2.0), 0)
logistic = Continuous(logistic_density, 0)
cauchy = Continuous(lambda z: -math.log(math.pi) - ops.log1p(z * z), 0)
gumbel_r = Continuous(lambda z: -z - ops.exp(-z), 0)
rayleigh = Continuous(lambda z: ops.log(z) - 0.5 * z * z, 0, 0.0)
halfnorm = Continuous(lambda z: 0.5 * math.log(2.0 / math.pi) - 0.5 * z * z, 0, 0.0)
t = Continuous(student, 1)
gamma = Continuous(lambda z, a: special.xlogy(a - 1.0, z) - z - special.gammaln(a), 1, 0.0)
chi2 = Continuous(lambda z, df: special.xlogy(0.5 * df - 1.0, z) - 0.5 * z - special.gammaln(0.5 * df) - 0.5 * math.log(2.0) * df, 1, 0.0)
beta = Continuous(lambda z, a, b: special.xlogy(a - 1.0, z) + special.xlog1py(b - 1.0, -z) - special.betaln(a, b), 2, 0.0, 1.0)
lognorm = Continuous(lognormal, 1, 0.0)
weibull_min = Continuous(lambda z, c: ops.log(c) + special.xlogy(c - 1.0, z) - ops.power(z, c), 1, 0.0)
pareto = Continuous(lambda z, b: ops.log(b) - (b + 1.0) * ops.log(z), 1, 1.0)
invgamma = Continuous(lambda z, a: -(a + 1.0) * ops.log(z) - special.gammaln(a) - 1.0 / z, 1, 0.0)

poisson = Discrete(lambda k, mu: special.xlogy(k, mu) - special.gammaln(k + 1.0) - mu)
bernoulli = Discrete(lambda k, p: special.xlogy(k, p) + special.xlog1py(1.0 - k, -p), 0, lambda p: 1.0)
binom = Discrete(
    lambda k, n, p: special.xlogy(k, p) + special.xlog1py(n - k, -p) - special.betaln(n - k + 1.0, k + 1.0) - ops.log(n + 1.0),
    0, lambda n, p: n,
)  # fmt: skip
geom = Discrete(lambda k, p: special.xlog1py(k - 1.0, -p) + ops.log(p), 1)
nbinom = Discrete(
    lambda k, n, p: special.gammaln(k + n) - special.gammaln(k + 1.0) - special.gammaln(n) + n * ops.log(p) + special.xlog1py(k, -p)
)


class MultivariateNormal:
    """The normal distribution of vectors."""

    def logpdf(self, x: Any, mean: Any = 0.0, cov: Any = 1.0) -> Operand:
        """The logarithm of the density of vectors along the last axis; `cov` is positive definite, or a number times the identity."""
        x, mean, cov = operands(x, mean, cov)
        x = ops.reshape(x, (*x.shape, 1)) if not x.ndim else x
        size = cov.shape[-1] if cov.ndim == 2 else x.shape[-1]
        rest = ops.broadcast_to(x - mean, (*x.shape[:-1], size))
        if cov.ndim < 2:
            squares: Operand = ops.sum(rest * rest, -1) / cov
            return squares * -0.5 - (ops.log(cov) * 0.5 + HALF_LOG_2PI) * float(size)
        factor = linalg.cholesky(cov)
        flat = ops.reshape(rest, (-1, size))
        turned = ops.solve(factor, matrix_transpose(flat))
        logs = ops.sum(ops.log(linalg.diagonal(factor)))
        found = -0.5 * ops.sum(turned * turned, 0) - logs - size * HALF_LOG_2PI
        return ops.reshape(found, rest.shape[:-1])

    def pdf(self, x: Any, mean: Any = 0.0, cov: Any = 1.0) -> Operand:
        """The density."""
        return ops.exp(self.logpdf(x, mean, cov))


class Dirichlet:
    """Dirichlet's distribution of vectors of positive numbers with the sum 1."""

    def logpdf(self, x: Any, alpha: Any) -> Operand:
        """The logarithm of the density of vectors along the first axis, all elements of which are given."""
        x, alpha = (floating(v) for v in to_operands(x, alpha))
        weights = ops.reshape(alpha, (*alpha.shape, *[1] * (x.ndim - 1)))
        constant = special.gammaln(ops.sum(alpha)) - ops.sum(special.gammaln(alpha))
        return ops.sum(special.xlogy(weights - 1.0, x), 0) + constant

    def pdf(self, x: Any, alpha: Any) -> Operand:
        """The density."""
        return ops.exp(self.logpdf(x, alpha))


multivariate_normal, dirichlet = MultivariateNormal(), Dirichlet()


def __dir__() -> list[str]:
    return __all__
