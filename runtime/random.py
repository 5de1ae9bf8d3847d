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
from adjit.ir.types import as_dtype, as_shape, normalize_axis
from adjit.tracer.convert import numbers, present, to_operand
from adjit.tracer.surface.elementwise import floating

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


def __getattr__(name: str) -> Any:
    """Load the distributions that need more, when one is used."""
    if name in __all__:
        from . import distributions  # noqa: PLC0415 - which imports this

        return getattr(distributions, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


def key(seed: int) -> Operand:
    """Return the key for an integer seed."""
    return present(ops.random_key(seed))


def split(key: Any, n: int = 2) -> Operand:
    """Return n new keys, one per row; do not use the old key again."""
    return ops.random_split(to_operand(key), n)


def fold_in(key: Any, data: Any) -> Operand:
    """Return a new key derived from a key and an integer, such as a step number."""
    return ops.random_fold_in(to_operand(key), data if type(data) is int else to_operand(data))


def bits(key: Any, shape: Any = (), dtype: Any = "u32") -> Operand:
    """Return uniform random bits, as unsigned integers of 32 or 64 bits."""
    return ops.random_bits(to_operand(key), shape, dtype)


def uniform(key: Any, shape: Any = (), dtype: Any = "f32", low: Any = 0.0, high: Any = 1.0) -> Operand:
    """Draw uniform floats in [low, high), differentiable with respect to the bounds."""
    key, low, high = numbers(to_operand(key), low, high)
    return ops.random_uniform(key, shape, dtype, low, high)


def normal(key: Any, shape: Any = (), dtype: Any = "f32") -> Operand:
    """Draw floats from the standard normal distribution."""
    return ops.random_normal(to_operand(key), shape, dtype)


def integers(key: Any, low: int, high: int, shape: Any = (), dtype: Any = "i64") -> Operand:
    """Draw uniform integers in [low, high)."""
    return ops.random_integers(to_operand(key), shape, low, high, dtype)


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Operand:
    """Draw booleans that are True with probability p; `shape` defaults to the shape of p."""
    key, p = to_operand(key), to_operand(p)
    return ops.less(ops.random_uniform(key, p.shape if shape is None else shape, "f32"), p)


def exponential(key: Any, shape: Any = (), dtype: Any = "f32") -> Operand:
    """Draw floats from the exponential distribution with rate 1; eager and compiled results may differ in the last bits."""
    return -ops.log1p(-uniform(key, shape, dtype))


def gumbel(key: Any, shape: Any = (), dtype: Any = "f32") -> Operand:
    """Draw floats from the standard Gumbel distribution; eager and compiled results may differ in the last bits, as in `exponential`."""
    smallest = float(np.finfo(as_dtype(dtype)).tiny)
    return -ops.log(ops.maximum(exponential(key, shape, dtype), smallest))


def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Operand:
    """Draw indices along an axis with probabilities softmax(logits); `shape`, that of the result, may add leading axes."""
    logits = floating(to_operand(logits))
    axis = normalize_axis(axis, logits.ndim, "categorical")
    rest = (*logits.shape[:axis], *logits.shape[axis + 1 :])
    wanted = rest if shape is None else as_shape(shape, "categorical")
    more = wanted[: len(wanted) - len(rest)]
    if (*more, *rest) != wanted:
        raise ShapeError(f"categorical: the shape {list(wanted)} does not end in that of the distributions, {list(rest)}")
    return ops.argmax(logits + gumbel(key, (*more, *logits.shape), logits.dtype), axis + len(more))


def permutation(key: Any, x: Any) -> Operand:
    """Shuffle the rows of an array; for an integer n, return a permutation of 0 to n - 1."""
    if isinstance(x, int | np.integer):
        return ops.argsort(ops.random_bits(to_operand(key), (int(x),), "u64"))
    x = to_operand(x)
    return ops.getitem(x, permutation(key, x.shape[0]))
