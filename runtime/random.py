"""Random numbers without hidden state: a key in, numbers out. The same key gives the same bits, eager and compiled.

    key = random.key(0)
    key, sub = random.split(key)
    x = random.normal(sub, (3, 4))
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.types import as_dtype, as_shape, normalize_axis
from adjit.tracer.convert import numbers, present, to_operand
from adjit.tracer.surface.elementwise import floating

__all__ = [
    "key", "split", "fold_in", "bits", "uniform", "normal", "integers", "bernoulli", "exponential", "gumbel", "categorical", "permutation",
]  # fmt: skip


def key(seed: int) -> Operand:
    """The key of a seed."""
    return present(ops.random_key(seed))


def split(key: Any, n: int = 2) -> Operand:
    """n new keys, one a row; the old key should not be used again."""
    return ops.random_split(to_operand(key), n)


def fold_in(key: Any, data: Any) -> Operand:
    """A new key for an integer, such as the number of a step."""
    return ops.random_fold_in(to_operand(key), data if type(data) is int else to_operand(data))


def bits(key: Any, shape: Any = (), dtype: Any = "u32") -> Operand:
    """Uniform random bits, as unsigned integers of 32 or 64 bits."""
    return ops.random_bits(to_operand(key), shape, dtype)


def uniform(key: Any, shape: Any = (), dtype: Any = "f32", low: Any = 0.0, high: Any = 1.0) -> Operand:
    """Uniform floats in [low, high), differentiable by the bounds."""
    key, low, high = numbers(to_operand(key), low, high)
    return ops.random_uniform(key, shape, dtype, low, high)


def normal(key: Any, shape: Any = (), dtype: Any = "f32") -> Operand:
    """Standard normal floats."""
    return ops.random_normal(to_operand(key), shape, dtype)


def integers(key: Any, low: int, high: int, shape: Any = (), dtype: Any = "i64") -> Operand:
    """Uniform integers in [low, high)."""
    return ops.random_integers(to_operand(key), shape, low, high, dtype)


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Operand:
    """True with probability p, which has the shape of the result unless one is given."""
    key, p = to_operand(key), to_operand(p)
    return ops.less(ops.random_uniform(key, p.shape if shape is None else shape, "f32"), p)


def exponential(key: Any, shape: Any = (), dtype: Any = "f32") -> Operand:
    """Floats of the exponential distribution of rate 1; eager and compiled agree but for the last bits, as logarithms do."""
    return -ops.log1p(-uniform(key, shape, dtype))


def gumbel(key: Any, shape: Any = (), dtype: Any = "f32") -> Operand:
    """Floats of the standard Gumbel distribution, that of the largest of many; the last bits are as those of `exponential`."""
    smallest = float(np.finfo(as_dtype(dtype)).tiny)
    return -ops.log(ops.maximum(exponential(key, shape, dtype), smallest))


def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Operand:
    """Positions along an axis, drawn with probabilities softmax(logits); `shape`, of the result, may have more leading axes."""
    logits = floating(to_operand(logits))
    axis = normalize_axis(axis, logits.ndim, "categorical")
    rest = (*logits.shape[:axis], *logits.shape[axis + 1 :])
    wanted = rest if shape is None else as_shape(shape, "categorical")
    more = wanted[: len(wanted) - len(rest)]
    if (*more, *rest) != wanted:
        raise ShapeError(f"categorical: the shape {list(wanted)} does not end in that of the distributions, {list(rest)}")
    return ops.argmax(logits + gumbel(key, (*more, *logits.shape), logits.dtype), axis + len(more))


def permutation(key: Any, x: Any) -> Operand:
    """The rows of an array in random order; of a number n, the numbers up to n."""
    if isinstance(x, int | np.integer):
        return ops.argsort(ops.random_bits(to_operand(key), (int(x),), "u64"))
    x = to_operand(x)
    return ops.getitem(x, permutation(key, x.shape[0]))
