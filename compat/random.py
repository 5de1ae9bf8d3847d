"""tf.random: random numbers with global state.

The state is two variables, a key and a counter, so a compiled function draws new numbers at each call, and `set_seed` also affects
functions that are already compiled. The bits are adjit's (a counter-based generator), not TensorFlow's. `stateless_*` take a seed and have
no state.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.operand import Operand, as_operand
from adjit.ir.types import computed
from adjit.runtime import random as keyed
from adjit.runtime.variable import Variable as State
from adjit.tracer.regions import is_traced
from adjit.tracer.surface import indexing

from .dtypes import as_dtype, float32, int32, int64
from .errors import missing, out_of_scope
from .listing import public_names
from .tensor import convert_to_tensor, dress, eager, tracing
from .wrapping import public, sizes_of


class Generator:
    """A stream of random numbers: `tf.random.Generator.from_seed(1).normal([2, 3])`."""

    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None) -> None:
        if copy_from is None or state is not None or alg is not None:
            out_of_scope("tf.random.Generator(state=..., alg=...)", "use tf.random.Generator.from_seed(seed), or copy_from= a generator")
        self._start(copy_from._key.numpy(), copy_from._count.numpy())

    def _start(self, key: Any, count: Any) -> None:
        self._key = State(np.array(key), trainable=False, name="random_key")
        self._count = State(np.int64(count), trainable=False, name="random_count")

    @classmethod
    def from_seed(cls, seed: int, alg: Any = None) -> Generator:
        self = cls.__new__(cls)
        self._start(keyed.key(seed), 0)
        return self

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        return cls.from_seed(int.from_bytes(os.urandom(7), "little"))

    def reset_from_seed(self, seed: int) -> None:
        self._key.assign(np.array(keyed.key(seed)))
        self._count.assign(np.int64(0))

    def next_key(self) -> Operand:
        key = keyed.fold_in(self._key.read_operand(), self._count.read_operand())
        self._count.assign_add(1)
        return key

    def split(self, count: int = 1) -> list[Generator]:
        return [Generator.from_seed(int(np.array(keyed.bits(self.next_key(), (), "u64"))) >> 1) for _ in range(count)]

    def normal(self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: str | None = None) -> Any:
        return _normal(self.next_key(), shape, mean, stddev, dtype)

    def truncated_normal(self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: str | None = None) -> Any:
        return _truncated(self.next_key(), shape, mean, stddev, dtype)

    def uniform(self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = float32, name: str | None = None) -> Any:
        return _uniform(self.next_key(), shape, minval, maxval, dtype)


_global = Generator.from_non_deterministic_state()


def set_seed(seed: int) -> None:
    """Restart the global stream from a seed."""
    _global.reset_from_seed(int(seed))


def get_global_generator() -> Generator:
    return _global


def _next(seed: int | None) -> Operand:
    key = _global.next_key()
    return key if seed is None else keyed.fold_in(key, int(seed) & 0x7FFFFFFF)


@public
def normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, seed: int | None = None, name: str | None = None) -> Any:
    """Normal random numbers."""
    return _normal(_next(seed), shape, mean, stddev, dtype)


@public
def truncated_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, seed: int | None = None, name: str | None = None
) -> Any:
    """Normal random numbers within two standard deviations."""
    return _truncated(_next(seed), shape, mean, stddev, dtype)


@public
def uniform(shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = float32, seed: int | None = None, name: str | None = None) -> Any:
    """Uniform random numbers in [minval, maxval)."""
    return _uniform(_next(seed), shape, minval, maxval, dtype)


@public
def categorical(logits: Any, num_samples: int, dtype: Any = int64, seed: int | None = None, name: str | None = None) -> Any:
    """Samples of classes, for each row of logits."""
    return _categorical(_next(seed), logits, num_samples, dtype)


@public
def shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Any:
    """The rows in random order."""
    x = convert_to_tensor(value)
    rows = x.type.shape[0]
    bits = keyed.bits(_next(seed), (rows,), "u64")
    if tracing():
        # the rank of each number: how many are smaller; equal ones (of 64 bits) keep their order
        mine, others = ops.reshape(bits, (rows, 1)), ops.reshape(bits, (1, rows))
        earlier = ops.less(ops.iota((rows, rows), 1), ops.iota((rows, rows), 0))
        before = ops.logical_or(ops.less(others, mine), ops.logical_and(ops.equal(mine, others), earlier))
        order = ops.sum(ops.cast(before, int64.dtype), 1)
        return indexing.take(x, order, axis=0)
    return indexing.take(x, eager(np.argsort(np.array(dress(bits)), kind="stable")), axis=0)


# ---- stateless


@public
def stateless_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = float32, name: str | None = None, alg: Any = "auto_select"
) -> Any:
    return _normal(_key_of(seed), shape, mean, stddev, dtype)


@public
def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Any:
    return _truncated(_key_of(seed), shape, mean, stddev, dtype)


@public
def stateless_uniform(
    shape: Any, seed: Any, minval: Any = 0, maxval: Any = None, dtype: Any = float32, name: str | None = None, alg: Any = "auto_select"
) -> Any:
    return _uniform(_key_of(seed), shape, minval, maxval, dtype)


@public
def stateless_categorical(logits: Any, num_samples: int, seed: Any, dtype: Any = int64, name: str | None = None) -> Any:
    return _categorical(_key_of(seed), logits, num_samples, dtype)


def _key_of(seed: Any) -> Operand:
    """The key for a seed of two numbers, which may be traced."""
    pair = as_operand(convert_to_tensor(seed, dtype_hint=int32))
    if pair.type.shape != (2,):
        raise ValueError(f"seed must have shape [2], not {list(pair.type.shape)}")
    first, second = (ops.reshape(ops.getitem(pair, i), ()) for i in range(2))
    return keyed.fold_in(keyed.fold_in(keyed.key(0), first), second)


# ---- distributions


def _normal(key: Operand, shape: Any, mean: Any, stddev: Any, dtype: Any) -> Any:
    kind = as_dtype(dtype)
    if computed(kind.dtype) != kind.dtype:
        return ops.cast(_normal(key, shape, mean, stddev, computed(kind.dtype)), kind.dtype)
    out = dress(keyed.normal(key, sizes_of(shape), kind.dtype))
    return _moved(out, mean, stddev, kind)


def _truncated(key: Operand, shape: Any, mean: Any, stddev: Any, dtype: Any) -> Any:
    """Values that are too far away are drawn again, up to eight times; the remaining ones (one in 10^12) are clipped."""
    kind = as_dtype(dtype)
    if computed(kind.dtype) != kind.dtype:
        return ops.cast(_truncated(key, shape, mean, stddev, computed(kind.dtype)), kind.dtype)
    sizes = sizes_of(shape)
    first, second = (keyed.fold_in(key, i) for i in range(2))
    out = dress(keyed.normal(first, sizes, kind.dtype))
    for i in range(8):
        again = dress(keyed.normal(keyed.fold_in(second, i), sizes, kind.dtype))
        out = dress(ops.where(ops.less_equal(ops.absolute(out), 2.0), out, again))
    return _moved(dress(ops.clip(out, -2.0, 2.0)), mean, stddev, kind)


def _moved(x: Any, mean: Any, stddev: Any, kind: Any) -> Any:
    if not (isinstance(stddev, float | int) and stddev == 1):
        x = x * convert_to_tensor(stddev, dtype_hint=kind)
    return x if isinstance(mean, float | int) and mean == 0 else x + convert_to_tensor(mean, dtype_hint=kind)


def _uniform(key: Operand, shape: Any, minval: Any, maxval: Any, dtype: Any) -> Any:
    kind = as_dtype(dtype)
    if computed(kind.dtype) != kind.dtype:
        return ops.cast(_uniform(key, shape, minval, maxval, computed(kind.dtype)), kind.dtype)
    if kind.is_integer:
        if maxval is None:
            raise ValueError("Must specify maxval for integer dtype")
        if is_traced(minval) or is_traced(maxval):
            return _integers(key, sizes_of(shape), *(convert_to_tensor(v, dtype_hint=kind) for v in (minval, maxval)))
        return dress(keyed.integers(key, int(minval), int(maxval), sizes_of(shape), kind.dtype))
    low, high = (convert_to_tensor(v, dtype_hint=kind) for v in (minval, 1 if maxval is None else maxval))
    return dress(keyed.uniform(key, sizes_of(shape), kind.dtype)) * (high - low) + low


def _integers(key: Operand, shape: Any, low: Any, high: Any) -> Any:
    """Integers between bounds that are known only at run time: remainders of 64 random bits, almost uniform, as in TensorFlow."""
    ops.check(ops.all(ops.less(low, high)), "Need minval < maxval")
    span = ops.maximum(ops.cast(high - low, np.dtype("u8")), 1)
    return low + dress(ops.cast(ops.remainder(keyed.bits(key, shape, "u64"), span), low.type.dtype))


def _categorical(key: Operand, logits: Any, samples: int, dtype: Any) -> Any:
    """The argmax of the logits plus Gumbel noise."""
    x = convert_to_tensor(logits)
    rows, classes = x.type.shape
    u = keyed.uniform(key, (rows, samples, classes), x.type.dtype, np.finfo(x.type.dtype).tiny, 1.0)
    noisy = ops.reshape(x, (rows, 1, classes)) - ops.log(ops.neg(ops.log(u)))
    return ops.cast(ops.argmax(noisy, 2), as_dtype(dtype).dtype)


__getattr__ = missing("tf.random", "transform uniform or normal numbers")


def __dir__() -> list[str]:
    return public_names(globals())
