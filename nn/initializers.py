"""Initial values of variables, from seeds: the same seed gives the same bits.

An initialiser is a function of a shape and a dtype. `set_seed` starts the sequence from which modules take a seed when they are created,
for their initialisers and dropout; until it is called, the sequence starts at a random seed.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from adjit.ir.errors import ShapeError
from adjit.ir.locks import new_lock
from adjit.ir.ops.base import Array
from adjit.ir.types import DType, as_dtype
from adjit.runtime import random

from .recorded import Recorded

__all__ = [
    "Initializer", "Zeros", "Ones", "Constant", "Identity", "RandomNormal", "RandomUniform", "TruncatedNormal", "VarianceScaling",
    "GlorotUniform", "GlorotNormal", "HeUniform", "HeNormal", "LecunUniform", "LecunNormal", "Orthogonal", "get_initializer",
    "next_seed", "seeds_from", "set_seed",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__


TRUNCATED_STD = 0.87962566103423978  # of a standard normal distribution truncated at two standard deviations


class SeedSequence:
    """A sequence of seeds derived from a first one."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self.start(int.from_bytes(os.urandom(4), "little"))

    def start(self, seed: int) -> None:
        with self._lock:
            self._words = np.random.SeedSequence(seed)

    def next(self) -> int:
        with self._lock:
            return int(self._words.spawn(1)[0].generate_state(1, np.uint32)[0] >> 1)


class _Local(threading.local):
    source: Callable[[], int] | None = None


_seeds = SeedSequence()
_local = _Local()


def set_seed(seed: int) -> None:
    """Start the sequence of seeds: models created afterwards are the same in every run.

    >>> aj.nn.set_seed(0)
    >>> a = aj.nn.Dense(2)(np.ones((1, 3), "f4"))
    >>> aj.nn.set_seed(0)
    >>> bool(np.all(a == aj.nn.Dense(2)(np.ones((1, 3), "f4"))))
    True
    """
    _seeds.start(seed)


def next_seed() -> int:
    """Return the next seed: that of the module whose variables are being created, otherwise that of the process.

    >>> aj.nn.set_seed(7)
    >>> first = aj.nn.initializers.next_seed()
    >>> aj.nn.set_seed(7)
    >>> aj.nn.initializers.next_seed() == first
    True
    """
    return _seeds.next() if _local.source is None else _local.source()


@contextmanager
def seeds_from(source: Callable[[], int]) -> Iterator[None]:
    """Return a context in which initialisers without their own seed take it from `source`.

    >>> with aj.nn.initializers.seeds_from(lambda: 42):
    ...     print(aj.nn.initializers.next_seed())
    42
    """
    before, _local.source = _local.source, source
    try:
        yield
    finally:
        _local.source = before


class Initializer(Recorded):
    """Base of initialisers: `draw(key, shape, dtype)` returns the values for a random key.

    >>> class Halves(aj.nn.initializers.Initializer):
    ...     def draw(self, key, shape, dtype):
    ...         return np.full(shape, 0.5)
    >>> Halves()((2, 2))
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed

    def __call__(self, shape: Sequence[int], dtype: Any = np.float32) -> Array:
        seed = next_seed() if self.seed is None else self.seed
        return np.asarray(self.draw(random.key(seed), tuple(shape), as_dtype(np.dtype(dtype))))

    def draw(self, key: Any, shape: tuple[int, ...], dtype: DType) -> Any:
        raise NotImplementedError(type(self).__name__)


class Constant(Initializer):
    """One value everywhere.

    >>> aj.nn.initializers.Constant(0.5)((2, 2))
    array([[0.5, 0.5],
           [0.5, 0.5]], dtype=float32)
    """

    def __init__(self, value: Any = 0.0) -> None:
        self.value = value

    def __call__(self, shape: Sequence[int], dtype: Any = np.float32) -> Array:
        return np.broadcast_to(np.asarray(self.value, dtype), tuple(shape)).copy()


class Zeros(Constant):
    """0 everywhere.

    >>> aj.nn.initializers.Zeros()((2, 2))
    array([[0., 0.],
           [0., 0.]], dtype=float32)
    """

    def __init__(self) -> None:
        super().__init__(0)


class Ones(Constant):
    """1 everywhere.

    >>> aj.nn.initializers.Ones()((2, 2))
    array([[1., 1.],
           [1., 1.]], dtype=float32)
    """

    def __init__(self) -> None:
        super().__init__(1)


class Identity(Initializer):
    """The identity matrix, times `gain`.

    >>> aj.nn.initializers.Identity()((2, 2))
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def __call__(self, shape: Sequence[int], dtype: Any = np.float32) -> Array:
        if len(shape) != 2:
            raise ShapeError(f"Identity: takes the shape of a matrix, not {list(shape)}")
        return np.asarray(self.gain * np.eye(shape[0], shape[1]), dtype)


class RandomNormal(Initializer):
    """Normally distributed values.

    >>> aj.nn.initializers.RandomNormal(seed=0)((3, 2)).shape
    (3, 2)
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        super().__init__(seed)
        self.mean, self.stddev = mean, stddev

    def draw(self, key: Any, shape: tuple[int, ...], dtype: DType) -> Any:
        return random.normal(key, shape, dtype) * self.stddev + self.mean


class RandomUniform(Initializer):
    """Uniformly distributed values in [minval, maxval).

    >>> aj.nn.initializers.RandomUniform(seed=0)((3, 2)).shape
    (3, 2)
    """

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: int | None = None) -> None:
        super().__init__(seed)
        self.minval, self.maxval = minval, maxval

    def draw(self, key: Any, shape: tuple[int, ...], dtype: DType) -> Any:
        return random.uniform(key, shape, dtype, self.minval, self.maxval)


class TruncatedNormal(Initializer):
    """Normally distributed values; those beyond two standard deviations are drawn again.

    >>> aj.nn.initializers.TruncatedNormal(seed=0)((3, 2)).shape
    (3, 2)
    """

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: int | None = None) -> None:
        super().__init__(seed)
        self.mean, self.stddev = mean, stddev

    def draw(self, key: Any, shape: tuple[int, ...], dtype: DType) -> Any:
        out = np.array(random.normal(key, shape, dtype))
        for attempt in range(1, 1000):
            outside = np.abs(out) > 2.0
            if not outside.any():
                break
            again = np.asarray(random.normal(random.fold_in(key, attempt), shape, dtype))
            out[outside] = again[outside]
        return out * dtype.type(self.stddev) + dtype.type(self.mean)


class VarianceScaling(Initializer):
    """Values whose variance is `scale` over the number of inputs ("fan_in"), outputs ("fan_out") or their mean ("fan_avg").

    >>> aj.nn.initializers.VarianceScaling(seed=0)((3, 2)).shape
    (3, 2)
    """

    def __init__(self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal", seed: int | None = None) -> None:
        super().__init__(seed)
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"VarianceScaling: mode is fan_in, fan_out or fan_avg, not {mode!r}")
        if distribution not in ("truncated_normal", "untruncated_normal", "uniform"):
            raise ValueError(f"VarianceScaling: distribution is truncated_normal, untruncated_normal or uniform, not {distribution!r}")
        self.scale, self.mode, self.distribution = scale, mode, distribution

    def draw(self, key: Any, shape: tuple[int, ...], dtype: DType) -> Any:
        inputs, outputs = fans(shape)
        fan = {"fan_in": inputs, "fan_out": outputs, "fan_avg": (inputs + outputs) / 2.0}[self.mode]
        variance = self.scale / max(1.0, fan)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return random.uniform(key, shape, dtype, -limit, limit)
        if self.distribution == "untruncated_normal":
            return random.normal(key, shape, dtype) * math.sqrt(variance)
        return TruncatedNormal(stddev=math.sqrt(variance) / TRUNCATED_STD).draw(key, shape, dtype)


def fans(shape: Sequence[int]) -> tuple[float, float]:
    """The numbers of inputs and outputs of a unit: the last two axes of a kernel, times its other axes (the size of a filter)."""
    if len(shape) < 2:
        size = float(shape[0]) if shape else 1.0
        return size, size
    places = math.prod(shape[:-2])
    return float(shape[-2] * places), float(shape[-1] * places)


class GlorotUniform(VarianceScaling):
    """Glorot and Bengio's initialiser: variance 2 / (inputs + outputs), uniform.

    >>> aj.nn.initializers.GlorotUniform(seed=0)((3, 2)).shape
    (3, 2)
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed)


class GlorotNormal(VarianceScaling):
    """Glorot and Bengio's initialiser: variance 2 / (inputs + outputs), truncated normal.

    >>> aj.nn.initializers.GlorotNormal(seed=0)((3, 2)).shape
    (3, 2)
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed)


class HeUniform(VarianceScaling):
    """He's initialiser for rectified units: variance 2 / inputs, uniform.

    >>> aj.nn.initializers.HeUniform(seed=0)((3, 2)).shape
    (3, 2)
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(2.0, "fan_in", "uniform", seed)


class HeNormal(VarianceScaling):
    """He's initialiser for rectified units: variance 2 / inputs, truncated normal.

    >>> aj.nn.initializers.HeNormal(seed=0)((3, 2)).shape
    (3, 2)
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(2.0, "fan_in", "truncated_normal", seed)


class LecunUniform(VarianceScaling):
    """LeCun's initialiser: variance 1 / inputs, uniform.

    >>> aj.nn.initializers.LecunUniform(seed=0)((3, 2)).shape
    (3, 2)
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(1.0, "fan_in", "uniform", seed)


class LecunNormal(VarianceScaling):
    """LeCun's initialiser: variance 1 / inputs, truncated normal.

    >>> aj.nn.initializers.LecunNormal(seed=0)((3, 2)).shape
    (3, 2)
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__(1.0, "fan_in", "truncated_normal", seed)


class Orthogonal(Initializer):
    """A matrix with orthonormal rows or columns, whichever are fewer, times `gain`; leading axes are flattened.

    >>> aj.nn.initializers.Orthogonal(seed=0)((3, 2)).shape
    (3, 2)
    """

    def __init__(self, gain: float = 1.0, seed: int | None = None) -> None:
        super().__init__(seed)
        self.gain = gain

    def draw(self, key: Any, shape: tuple[int, ...], dtype: DType) -> Any:
        if len(shape) < 2:
            raise ShapeError(f"Orthogonal: takes a shape of at least two axes, not {list(shape)}")
        rows, columns = math.prod(shape[:-1]), shape[-1]
        gaussian = np.asarray(random.normal(key, (max(rows, columns), min(rows, columns)), np.float64))
        q, r = np.linalg.qr(gaussian)
        q = q * np.where(np.diag(r) < 0, -1.0, 1.0)  # makes the distribution uniform over rotations
        matrix = q if rows >= columns else q.T
        return (self.gain * matrix.reshape(shape)).astype(dtype)


NAMED: dict[str, Callable[[], Initializer]] = {
    "zeros": Zeros, "ones": Ones, "identity": Identity, "random_normal": RandomNormal, "random_uniform": RandomUniform,
    "truncated_normal": TruncatedNormal, "glorot_uniform": GlorotUniform, "glorot_normal": GlorotNormal, "he_uniform": HeUniform,
    "he_normal": HeNormal, "lecun_uniform": LecunUniform, "lecun_normal": LecunNormal, "orthogonal": Orthogonal,
    "variance_scaling": VarianceScaling,
}  # fmt: skip


def get_initializer(what: str | Initializer | Callable[..., Any]) -> Callable[..., Any]:
    """Return an initialiser from its name, its class, or an instance.

    >>> aj.nn.initializers.get_initializer("zeros")((2,))
    array([0., 0.], dtype=float32)
    """
    if isinstance(what, str):
        if what not in NAMED:
            raise ValueError(f"there is no initializer {what!r}; choose one of {', '.join(NAMED)}")
        return NAMED[what]()
    if isinstance(what, type):
        return get_initializer(what())
    if not callable(what):
        raise TypeError(f"an initializer is a name or a function of (shape, dtype), not {what!r}")
    return what
