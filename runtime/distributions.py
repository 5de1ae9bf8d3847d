"""Random numbers of the distributions that need more than one formula: rejection sampling, factorisations, special functions.

Parameters broadcast against each other; `shape`, that of the result, defaults to their common shape. Draws are differentiable with respect
to the parameters of continuous distributions. Eager and compiled results may differ in the last bits; if these decide a rejection, another
number is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array
from adjit.ir.types import as_dtype, as_shape, broadcast_shapes
from adjit.tracer.control import while_loop
from adjit.tracer.convert import present, to_operand
from adjit.tracer.surface import elementwise, indexing, linalg, products, reductions, shapes

from .custom_jvp import custom_jvp
from .random import categorical, fold_in, gumbel, integers, normal, permutation, split, uniform

__all__ = [
    "beta", "cauchy", "choice", "dirichlet", "gamma", "laplace", "logistic", "multivariate_normal", "poisson", "truncated_normal",
]  # fmt: skip


MOST_ROUNDS = 1000  # of rejection sampling, which usually takes fewer than ten


def spread(what: str, shape: Any, dtype: Any, *parameters: Any) -> tuple[tuple[int, ...], list[Operand]]:
    """The shape of a result, and the parameters broadcast to it, in its dtype."""
    given = [ops.cast(to_operand(p), as_dtype(dtype)) for p in parameters]
    common = broadcast_shapes(what, *(p.shape for p in given))
    wanted = common if shape is None else as_shape(shape, what)
    try:
        return wanted, [ops.broadcast_to(p, wanted) for p in given]
    except ShapeError:
        raise ShapeError(f"{what}: parameters of shape {list(common)} do not broadcast to the shape {list(wanted)}") from None


def laplace(key: Any, shape: Any = (), dtype: Any = "f32") -> Operand:
    """Return floats from the Laplace distribution with mean 0 and scale 1.

    >>> aj.random.laplace(aj.random.key(0), (3,)).round(3)
    Tensor([-0.178, -0.463, -0.24 ], f32[3])
    """
    u = uniform(key, shape, dtype, -1.0, 1.0)
    return present(-elementwise.sign(u) * elementwise.log1p(-elementwise.absolute(u)))


def logistic(key: Any, shape: Any = (), dtype: Any = "f32") -> Operand:
    """Return floats from the logistic distribution with mean 0 and scale 1.

    >>> aj.random.logistic(aj.random.key(0), (3,)).round(3)
    Tensor([-0.329, -0.778, -0.434], f32[3])
    """
    tiny = float(np.finfo(as_dtype(dtype)).tiny)
    u = elementwise.maximum(uniform(key, shape, dtype), tiny)
    return present(elementwise.log(u) - elementwise.log1p(-u))


def cauchy(key: Any, shape: Any = (), dtype: Any = "f32") -> Operand:
    """Return floats from the standard Cauchy distribution.

    >>> aj.random.cauchy(aj.random.key(0), (3,)).round(3)
    Tensor([-0.262, -0.658, -0.349], f32[3])
    """
    return present(elementwise.tan(math.pi * (uniform(key, shape, dtype) - 0.5)))


def truncated_normal(key: Any, lower: Any = -2.0, upper: Any = 2.0, shape: Any = None, dtype: Any = "f32") -> Operand:
    """Return floats from the standard normal distribution between two bounds, differentiable with respect to the bounds.

    >>> aj.random.truncated_normal(aj.random.key(0), -1.0, 1.0, (3,)).round(3)
    Tensor([-0.14 , -0.323, -0.184], f32[3])
    """
    from adjit.tracer.surface import special  # noqa: PLC0415 - loaded when used

    wanted, (low, high) = spread("truncated_normal", shape, dtype, lower, upper)
    below, above = special.ndtr(low), special.ndtr(high)
    x = special.ndtri(below + (above - below) * uniform(key, wanted, dtype))
    return present(elementwise.minimum(elementwise.maximum(x, low), high))


def multivariate_normal(key: Any, mean: Any, cov: Any, shape: Any = None, dtype: Any = None) -> Operand:
    """Return vectors from the normal distribution with this mean and covariance; `shape` is that of the result without the last axis.

    >>> aj.random.multivariate_normal(aj.random.key(0), [0.0, 5.0], [[1.0, 0.5], [0.5, 1.0]]).round(3)
    Tensor([-1.279,  3.786], f64[2])
    """
    mean, cov = to_operand(mean), to_operand(cov)
    if mean.ndim < 1 or cov.ndim < 2 or cov.shape[-1] != cov.shape[-2] or cov.shape[-1] != mean.shape[-1]:
        raise ShapeError(f"multivariate_normal: a mean of n elements needs a covariance of n x n; given are {mean.type} and {cov.type}")
    dtype = as_dtype(dtype) if dtype is not None else as_dtype(np.result_type(mean.dtype, cov.dtype, np.float32))
    batch = broadcast_shapes("multivariate_normal", mean.shape[:-1], cov.shape[:-2])
    wanted = batch if shape is None else as_shape(shape, "multivariate_normal")
    factor = linalg.cholesky(ops.cast(cov, dtype))
    z = normal(key, (*wanted, mean.shape[-1]), dtype)
    return present(ops.cast(mean, dtype) + shapes.squeeze(products.matmul(factor, shapes.expand_dims(z, -1)), -1))


# ---- the gamma family


def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = "f32") -> Operand:
    """Return floats from the gamma distribution with shape parameter `a` and scale 1, differentiable with respect to `a`; NaN if a < 0.

    The derivative is that of the quantile at a fixed probability (implicit reparameterisation).

    >>> aj.random.gamma(aj.random.key(0), [0.5, 2.0]).round(3)
    Tensor([0.077, 1.034], f32[2])
    """
    _, (alpha,) = spread("gamma", shape, dtype, a)
    return present(_gamma(alpha, to_operand(key)))


@custom_jvp
def _gamma(alpha: Any, key: Any) -> Any:
    return _marsaglia_tsang(key, alpha)


@_gamma.defjvp
def _gamma_jvp(primals: Any, tangents: Any) -> Any:
    from adjit.tracer.surface import special  # noqa: PLC0415 - loaded when used

    from .transforms import jvp  # noqa: PLC0415 - imports tapes

    (alpha, key), (d_alpha, _) = primals, tangents
    x = _gamma(alpha, key)
    _, d_probability = jvp(lambda a: special.gammainc(a, x), (alpha,), (d_alpha,))
    log_density = (alpha - 1.0) * elementwise.log(x) - x - special.gammaln(alpha)
    return x, -d_probability * elementwise.exp(-log_density)


def _marsaglia_tsang(key: Any, alpha: Any) -> Any:
    """Rejection from a transformed normal: all elements are drawn until the last one is accepted, which takes few rounds.

    Below 1, the draw for `alpha + 1` is scaled by a power of a uniform number.
    """
    dtype, wanted = alpha.dtype, alpha.shape
    boosted = elementwise.where(alpha < 1.0, alpha + 1.0, alpha)
    d = boosted - 1.0 / 3.0
    c = 1.0 / elementwise.sqrt(9.0 * d)
    tiny = float(np.finfo(dtype).tiny)

    def propose(one: Any, two: Any) -> tuple[Any, Any]:
        z = normal(one, wanted, dtype)
        v = (1.0 + c * z) ** 3
        u = elementwise.maximum(uniform(two, wanted, dtype), tiny)
        positive = elementwise.where(v > 0.0, v, 1.0)
        fine = elementwise.logical_and(v > 0.0, elementwise.log(u) < 0.5 * z * z + d - d * v + d * elementwise.log(positive))
        return d * positive, fine

    x = _accepted(key, np.ones(wanted, dtype), propose)
    u = elementwise.maximum(uniform(fold_in(key, -1), wanted, dtype), tiny)
    drawn = elementwise.where(alpha < 1.0, elementwise.maximum(x * u ** (1.0 / alpha), tiny), x)
    return elementwise.where(alpha >= 0.0, drawn, math.nan)  # nothing is accepted for NaN


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = "f32") -> Operand:
    """Return floats from the beta distribution, differentiable with respect to both parameters.

    >>> aj.random.beta(aj.random.key(0), 2.0, 3.0, (3,)).round(3)
    Tensor([0.394, 0.216, 0.164], f32[3])
    """
    wanted, _ = spread("beta", shape, dtype, a, b)
    keys = split(key)
    x, y = gamma(keys[0], a, wanted, dtype), gamma(keys[1], b, wanted, dtype)
    return present(x / (x + y))


def dirichlet(key: Any, alpha: Any, shape: Any = None, dtype: Any = "f32") -> Operand:
    """Return vectors of probabilities from the Dirichlet distribution; `shape` is that of the result without the last axis.

    >>> aj.random.dirichlet(aj.random.key(0), [1.0, 2.0, 3.0]).round(3)
    Tensor([0.102, 0.374, 0.525], f32[3])
    """
    alpha = to_operand(alpha)
    if not alpha.ndim:
        raise ShapeError("dirichlet: the parameter is a vector, or vectors along the last axis")
    wanted = alpha.shape if shape is None else (*as_shape(shape, "dirichlet"), alpha.shape[-1])
    x = gamma(key, alpha, wanted, dtype)
    return present(x / reductions.sum(x, -1, keepdims=True))


# ---- integers


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = "i64") -> Operand:
    """Return integers from the Poisson distribution with mean `lam`; -1 if that is negative or NaN.

    >>> aj.random.poisson(aj.random.key(0), 4.0, (5,))
    Tensor([2, 3, 1, 6, 4], i64[5])
    """
    _, (rate,) = spread("poisson", shape, "f64", lam)
    keys = split(key)
    small = elementwise.where(rate < 10.0, rate, 1.0)
    large = elementwise.where(rate < 10.0, 10.0, rate)
    few, many = _by_products(keys[0], small), _by_rejection(keys[1], large)
    drawn = elementwise.where(rate >= 0.0, elementwise.where(rate < 10.0, few, many), -1.0)
    return present(ops.cast(to_operand(drawn), as_dtype(dtype)))


def _by_products(key: Any, rate: Any) -> Any:
    """Knuth's method: the number of uniform factors until the product falls below exp(-rate)."""
    limit = elementwise.exp(-rate)

    def again(state: Any) -> Any:
        round, product, _ = state
        return elementwise.logical_and(reductions.any(product > limit), round < 10_000)

    def draw(state: Any) -> Any:
        round, product, count = state
        product = product * uniform(fold_in(key, round), rate.shape, "f64")
        return round + 1, product, count + elementwise.where(product > limit, 1.0, 0.0)

    start = (np.zeros((), np.int64), np.ones(rate.shape), np.zeros(rate.shape))
    return while_loop(again, draw, tuple(present(to_operand(s)) for s in start))[2]


def _by_rejection(key: Any, rate: Any) -> Any:
    """Hörmann's transformed rejection with squeeze (PTRS), for means of 10 and more."""
    from adjit.tracer.surface import special  # noqa: PLC0415 - loaded when used

    log_rate = elementwise.log(rate)
    b = 0.931 + 2.53 * elementwise.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2.0)

    def propose(one: Any, two: Any) -> tuple[Any, Any]:
        u, v = uniform(one, rate.shape, "f64") - 0.5, elementwise.maximum(uniform(two, rate.shape, "f64"), 1e-300)
        us = elementwise.maximum(0.5 - elementwise.absolute(u), 1e-300)
        new = elementwise.floor((2.0 * a / us + b) * u + rate + 0.43)
        likely = elementwise.logical_and(us >= 0.07, v <= v_r)
        out = elementwise.logical_or(new < 0.0, elementwise.logical_and(us < 0.013, v > us))
        kept = elementwise.maximum(new, 0.0)
        left = elementwise.log(v * inverse_alpha / (a / (us * us) + b))
        right = kept * log_rate - rate - special.gammaln(kept + 1.0)
        return new, elementwise.logical_or(likely, elementwise.logical_and(elementwise.logical_not(out), left <= right))

    return _accepted(key, np.zeros(rate.shape), propose)


def _accepted(key: Any, start: Array, propose: Callable[[Any, Any], tuple[Any, Any]]) -> Any:
    """The first accepted proposal for each element. `propose` takes two keys, and returns numbers and which of them are accepted."""

    def again(state: Any) -> Any:
        round, _, accepted = state
        return elementwise.logical_and(elementwise.logical_not(reductions.all(accepted)), round < MOST_ROUNDS)

    def draw(state: Any) -> Any:
        round, x, accepted = state
        new, fine = propose(*(fold_in(fold_in(key, round), k) for k in (0, 1)))
        first = elementwise.logical_and(fine, elementwise.logical_not(accepted))
        return round + 1, elementwise.where(first, new, x), elementwise.logical_or(accepted, fine)

    given = (np.zeros((), np.int64), start, np.zeros(start.shape, bool))
    return while_loop(again, draw, tuple(present(to_operand(s)) for s in given))[1]


def choice(key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None) -> Operand:
    """Return elements from the rows of an array, or from 0 to a - 1 for an integer, with probabilities `p` if given.

    Without `replace`, no element is drawn twice.

    >>> aj.random.choice(aj.random.key(0), 5, (3,), replace=False)
    Tensor([3, 0, 4], i64[3])
    """
    wanted = as_shape(shape, "choice")
    rows = None if isinstance(a, int | np.integer) else to_operand(a)
    if rows is not None and not rows.ndim:
        raise ShapeError("choice: takes an integer, or an array with at least one axis")
    count = int(a) if rows is None else rows.shape[0]
    size = math.prod(wanted)
    if size and (count < 1 or (not replace and size > count)):
        raise ShapeError(f"choice: cannot draw {size} of {count} elements" + ("" if replace else " without replacement"))
    if p is None:
        drawn = integers(key, 0, count, wanted) if replace else permutation(key, count)[:size]
    else:
        p = elementwise.floating(to_operand(p))
        if p.shape != (count,):
            raise ShapeError(f"choice: takes {count} probabilities, not {p.type}")
        logits = elementwise.log(p)
        if replace:
            drawn = categorical(key, logits, shape=wanted)
        else:  # the largest of perturbed logarithms are a sample without replacement
            drawn = indexing.argsort(-(logits + gumbel(key, (count,), logits.dtype)))[:size]
    drawn = shapes.reshape(drawn, wanted)
    return present(drawn if rows is None else ops.getitem(rows, drawn))
