"""Random numbers without hidden state: a key in, numbers out. The same key gives the same bits, eager and compiled.

    key = random.key(0)
    key, sub = random.split(key)
    x = random.normal(sub, (3, 4))
"""

from __future__ import annotations

from typing import Any

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.tracer.convert import numbers, present, to_operand

__all__ = ["key", "split", "fold_in", "bits", "uniform", "normal", "integers"]


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
