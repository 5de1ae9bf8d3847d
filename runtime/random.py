"""Random numbers without hidden state: a key in, numbers out. The same key gives the same bits, eager and compiled.

key = random.key(0)
key, sub = random.split(key)
x = random.normal(sub, (3, 4))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.tracebacks import end_at_callers, lookup
from adjit.ir.types import as_dtype, as_shape, normalize_axis
from adjit.tracer.convert import numbers, present, to_operand
from adjit.tracer.surface.elementwise import floating

from .hints import hint

__all__ = [
    "key", "split", "fold_in", "bits", "uniform", "normal", "integers", "bernoulli", "exponential", "gumbel", "categorical", "permutation",
    "beta", "cauchy", "choice", "dirichlet", "gamma", "laplace", "logistic", "multivariate_normal", "poisson", "truncated_normal",
]  # fmt: skip

if TYPE_CHECKING:
    from .distributions import (
        beta,
        cauchy,
        choice,
        dirichlet,
        gamma,
        laplace,
        logistic,
        multivariate_normal,
        poisson,
        truncated_normal,
    )  # fmt: skip


@lookup
def __getattr__(name: str) -> Any:
    """Import the distributions of `distributions.py` when one is first used."""
    if name in __all__:
        from . import distributions  # noqa: PLC0415 - which imports this

        return getattr(distributions, name)
    raise AttributeError(f"module 'aj.random' has no attribute {name!r}{hint(name, __all__)}")


def __dir__() -> list[str]:
    return __all__


def key(seed: int) -> Operand:
    """Return the key for an integer seed.

    >>> aj.random.key(42)
    Tensor([42,  0], u32[2])
    """
    return present(ops.random_key(seed))


def split(key: Any, n: int = 2) -> Operand:
    """Return n new keys, one per row; do not use the old key again.

    >>> for_weights, for_noise = aj.random.split(aj.random.key(0))
    >>> for_noise
    Tensor([4017256875, 4208457211], u32[2])
    """
    return ops.random_split(to_operand(key), n)


def fold_in(key: Any, data: Any) -> Operand:
    """Return a new key derived from a key and an integer, such as a step number.

    >>> aj.random.fold_in(aj.random.key(0), 7)
    Tensor([4189216088, 2213341213], u32[2])
    """
    return ops.random_fold_in(to_operand(key), data if type(data) is int else to_operand(data))


def bits(key: Any, shape: Any = (), dtype: Any = "u32") -> Operand:
    """Return uniform random bits, as unsigned integers of 32 or 64 bits.

    >>> aj.random.bits(aj.random.key(0), (2,))
    Tensor([1797259609, 1351547692], u32[2])
    """
    return ops.random_bits(to_operand(key), shape, dtype)


def uniform(key: Any, shape: Any = (), dtype: Any = "f32", low: Any = 0.0, high: Any = 1.0) -> Operand:
    """Return uniform floats in [low, high), differentiable with respect to the bounds.

    >>> aj.random.uniform(aj.random.key(0), (3,), low=-1.0, high=1.0).round(3)
    Tensor([-0.163, -0.371, -0.214], f32[3])
    """
    key, low, high = numbers(to_operand(key), low, high)
    return ops.random_uniform(key, shape, dtype, low, high)


def normal(key: Any, shape: Any = (), dtype: Any = "f32") -> Operand:
    """Return floats from the standard normal distribution.

    >>> aj.random.normal(aj.random.key(0), (3,)).round(3)
    Tensor([0.206, 0.483, 0.271], f32[3])
    """
    return ops.random_normal(to_operand(key), shape, dtype)


def integers(key: Any, low: int, high: int, shape: Any = (), dtype: Any = "i64") -> Operand:
    """Return uniform integers in [low, high).

    >>> aj.random.integers(aj.random.key(0), 0, 10, (5,))
    Tensor([6, 7, 9, 0, 6], i64[5])
    """
    return ops.random_integers(to_operand(key), shape, low, high, dtype)


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Operand:
    """Return booleans that are True with probability p; `shape` defaults to the shape of p.

    >>> aj.random.bernoulli(aj.random.key(0), 0.5, (4,))
    Tensor([ True,  True,  True, False], bool[4])
    """
    key, p = to_operand(key), to_operand(p)
    return ops.less(ops.random_uniform(key, p.shape if shape is None else shape, "f32"), p)


def exponential(key: Any, shape: Any = (), dtype: Any = "f32") -> Operand:
    """Return floats from the exponential distribution with rate 1; eager and compiled results may differ in the last bits.

    >>> aj.random.exponential(aj.random.key(0), (3,)).round(3)
    Tensor([0.542, 0.378, 0.499], f32[3])
    """
    return -ops.log1p(-uniform(key, shape, dtype))


def gumbel(key: Any, shape: Any = (), dtype: Any = "f32") -> Operand:
    """Return floats from the standard Gumbel distribution; eager and compiled results may differ in the last bits, as in `exponential`.

    >>> aj.random.gumbel(aj.random.key(0), (3,)).round(3)
    Tensor([0.612, 0.973, 0.694], f32[3])
    """
    smallest = float(np.finfo(as_dtype(dtype)).tiny)
    return -ops.log(ops.maximum(exponential(key, shape, dtype), smallest))


def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Operand:
    """Return indices along an axis with probabilities softmax(logits); `shape`, that of the result, may add leading axes.

    >>> aj.random.categorical(aj.random.key(0), np.log([0.2, 0.3, 0.5]), shape=(6,))
    Tensor([0, 0, 2, 2, 2, 1], i64[6])
    """
    logits = floating(to_operand(logits))
    axis = normalize_axis(axis, logits.ndim, "categorical")
    rest = (*logits.shape[:axis], *logits.shape[axis + 1 :])
    wanted = rest if shape is None else as_shape(shape, "categorical")
    more = wanted[: len(wanted) - len(rest)]
    if (*more, *rest) != wanted:
        raise ShapeError(f"categorical: the shape {list(wanted)} must end with that of the distributions, {list(rest)}")
    return ops.argmax(logits + gumbel(key, (*more, *logits.shape), logits.dtype), axis + len(more))


def permutation(key: Any, x: Any) -> Operand:
    """Return the rows of an array in random order; for an integer n, a permutation of 0 to n - 1.

    >>> aj.random.permutation(aj.random.key(0), 5)
    Tensor([3, 0, 4, 1, 2], i64[5])
    """
    if isinstance(x, int | np.integer):
        return ops.argsort(ops.random_bits(to_operand(key), (int(x),), "u64"))
    x = to_operand(x)
    return ops.getitem(x, permutation(key, x.shape[0]))


end_at_callers(globals())
