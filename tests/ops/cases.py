"""The table of ops: one row per function, with sample arguments and its NumPy equivalent. The tests in this folder check every row.

A row's arguments are drawn from `Domain`s (elementwise functions, at any shape and dtype) or made by `arrays` (everything else, in float64
and integers; the tests cast the floats to the row's dtypes).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.ops.base import Array, apply
from adjit.ir.ops.maps import StrongMul, promoted
from adjit.ir.types import DTYPES, DType

FLOATS = ("f64", "f32")
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTS = SIGNED + UNSIGNED
WIDE_INTS = ("i32", "i64", "u32", "u64")  # NumPy computes narrower integers in float16 and float32, we in float64
ALL = (*FLOATS, *INTS, "bool")
WIDE = ("f64", "c128")  # the dtypes of finite differences


@dataclass(frozen=True)
class Domain:
    """Where an argument is drawn from: floats and integers within bounds, bools freely."""

    low: float = -3.0
    high: float = 3.0
    ints: tuple[int, int] = (-9, 9)

    def draw(self, rng: np.random.Generator, shape: Sequence[int], dtype: DType) -> Array:
        if dtype.kind == "b":
            return rng.integers(0, 2, shape).astype(dtype)
        if dtype.kind == "c":
            return (rng.uniform(self.low, self.high, shape) + 1j * rng.uniform(self.low, self.high, shape)).astype(dtype)
        if dtype.kind == "f":
            return np.asarray(rng.uniform(self.low, self.high, shape)).astype(dtype)
        low, high = self.ints
        return rng.integers(0 if dtype.kind == "u" else low, high, shape, endpoint=True).astype(dtype)


@dataclass(frozen=True)
class Case:
    """A row. `call` takes operands and returns one or a tuple of them; `numpy` does the same on arrays."""

    name: str
    call: Callable[..., Any]
    numpy: Callable[..., Any] | None = None
    domains: tuple[Domain, ...] = ()
    arrays: Callable[[np.random.Generator], Sequence[Array]] | None = None
    dtypes: tuple[str, ...] = FLOATS
    wrt: tuple[int, ...] | None = None  # arguments that a derivative reaches; None: all that are floats
    smooth: bool = True  # whether finite differences of it mean anything
    second: bool = True  # whether those of its gradient do
    edges: bool = True  # elementwise: whether infinities, NaNs and extreme integers are tried
    exact: bool = False  # whether compiled results must be the same bits

    def draw(self, dtype: DType, shape: Sequence[int] = (3, 5), seed: int = 0) -> list[Array]:
        rng = np.random.default_rng([seed, *self.name.encode()])
        if self.arrays is not None and dtype.kind == "c":
            return [complex_of(a, b, dtype) for a, b in zip(self.arrays(rng), self.arrays(rng), strict=True)]
        if self.arrays is not None:
            return [np.asarray(a, dtype) if np.asarray(a).dtype.kind == "f" else np.asarray(a) for a in self.arrays(rng)]
        return [d.draw(rng, shape, dtype) for d in self.domains]

    def differentiable(self, arrays: Sequence[Array]) -> list[int]:
        floats = [i for i, a in enumerate(arrays) if a.dtype.kind in "fc"]
        return floats if self.wrt is None else [i for i in self.wrt if i in floats]

    @property
    def widest(self) -> DType:
        """The dtype in which derivatives are compared with differences."""
        return DTYPES["f64" if "f64" in self.dtypes else "c128"]

    def __repr__(self) -> str:
        return self.name


def complex_of(a: Array, b: Array, dtype: DType) -> Array:
    """Complex numbers of two draws of real ones; integers stay."""
    return np.asarray(a + 1j * b, dtype) if np.asarray(a).dtype.kind == "f" else np.asarray(a)


ANY = Domain()
POSITIVE = Domain(0.2, 4.0, (1, 9))
NATURAL = Domain(0.2, 3.0, (0, 5))
NEAR = Domain(-1.5, 1.5, (-2, 2))
SHIFT = Domain(ints=(0, 12))


def unary(name: str, call: Callable[..., Any], numpy: Callable[..., Any], low: float = -3, high: float = 3, **more: Any) -> Case:
    return Case(name, call, numpy, (Domain(low, high, more.pop("ints", ANY.ints)),), **more)


def binary(name: str, call: Callable[..., Any], numpy: Callable[..., Any], a: Domain = ANY, b: Domain = ANY, **more: Any) -> Case:
    return Case(name, call, numpy, (a, b), **more)


# ---- oracles that NumPy does not have


def erf(x: Array) -> Array:
    wide = x.astype(np.float64) if x.dtype.kind != "f" else x
    return np.vectorize(math.erf, otypes=[wide.dtype])(wide)


def sigmoid(x: Array) -> Array:
    wide = x.astype(np.float64) if x.dtype.kind != "f" else x
    return np.where(wide < 0, np.exp(wide) / (1 + np.exp(wide)), 1 / (1 + np.exp(-wide))).astype(wide.dtype)


def softplus(x: Array) -> Array:
    return np.logaddexp(x, x.dtype.type(0))


def strong_mul(d: Array, p: Array) -> Array:
    return np.where(d == 0, d, d * p)


def threefry(key: Array, low: int, high: int) -> tuple[int, int]:
    """Straight from the paper, on Python integers."""
    mask = 2**32 - 1
    k = [int(key[0]), int(key[1]), 0x1BD11BDA ^ int(key[0]) ^ int(key[1])]
    x0, x1 = low + k[0] & mask, high + k[1] & mask
    for r in range(20):
        turn = (13, 15, 26, 6, 17, 29, 16, 24)[r % 8]
        x0 = x0 + x1 & mask
        x1 = ((x1 << turn | x1 >> (32 - turn)) & mask) ^ x0
        if r % 4 == 3:
            s = r // 4 + 1
            x0, x1 = x0 + k[s % 3] & mask, x1 + k[(s + 1) % 3] + s & mask
    return x0, x1


def random_words(key: Array, shape: tuple[int, ...], dtype: Any, tag: int = 0) -> Array:
    words = [threefry(key, i, tag) for i in range(math.prod(shape))]
    return np.array([w[0] if dtype == np.uint32 else w[0] | w[1] << 32 for w in words], dtype).reshape(shape)


def split(key: Array) -> Array:
    return np.array([threefry(key, i, 1 << 31) for i in range(3)], np.uint32)


def fold_in(key: Array, data: int = 7) -> Array:
    return np.array(threefry(key, int(data), 1 << 30), np.uint32)


def uniform(key: Array, low: Array, high: Array) -> Array:
    if low.dtype == np.float32:
        return low + (random_words(key, low.shape, np.uint32) >> 8).astype(np.float32) * np.float32(2**-24) * (high - low)
    return low + (random_words(key, low.shape, np.uint64) >> 11).astype(np.float64) * 2**-53 * (high - low)


def integers(key: Array) -> Array:
    return np.array([-3 + (int(w) * 10 >> 64) for w in random_words(key, (4, 5), np.uint64).flat]).reshape(4, 5)


def wide_integers(key: Array) -> Array:
    low, high = -(2**62), 2**63
    return np.array([low + (int(w) * (high - low) >> 64) for w in random_words(key, (4, 5), np.uint64).flat]).reshape(4, 5)


# ---- the rows

ARITHMETIC = [
    binary("add", ops.add, np.add, dtypes=ALL),
    binary("sub", ops.sub, np.subtract, dtypes=FLOATS + INTS),
    binary("mul", ops.mul, np.multiply, dtypes=ALL),
    binary("div", ops.div, np.divide, b=POSITIVE, dtypes=FLOATS + INTS),
    binary("strong_mul", lambda d, p: apply(StrongMul(), *promoted("strong_mul", (d, p))), strong_mul),
    unary("neg", ops.neg, np.negative, dtypes=FLOATS + INTS),
    binary("floor_divide", ops.floor_divide, np.floor_divide, dtypes=ALL, wrt=()),
    binary("remainder", ops.remainder, np.remainder, Domain(-5.8, -5.2), Domain(2.1, 2.5), dtypes=ALL),
    binary("fmod", ops.fmod, np.fmod, Domain(-5.8, -5.2), Domain(2.1, 2.5), dtypes=ALL),
    binary("power", ops.power, np.power, POSITIVE, NATURAL, dtypes=(*FLOATS, "i8", "i32", "i64", "u16", "bool")),
    binary("power_negative", ops.power, np.power, POSITIVE, Domain(-3, -0.3)),
    *(unary(f"power_{n}", lambda x, n=n: x**n, lambda x, n=n: x**n, 0.3, 2, dtypes=FLOATS + INTS) for n in (0, 1, 2, 3, 7)),
    *(unary(f"power_{n}", lambda x, n=n: x**n, lambda x, n=n: x**n, 0.3, 2) for n in (-1, -3, 0.5, -0.5, 1.5, 2.0)),
    unary("power_65", lambda x: x**65, lambda x: x**65, 20, 30, dtypes=("f64",)),
    unary("power_of_2", lambda x: 2.0**x, lambda x: np.power(x.dtype.type(2), x)),
    unary("square", ops.square, np.square, dtypes=ALL),
    unary("absolute", ops.absolute, np.absolute, dtypes=ALL),
    unary("sign", ops.sign, np.sign, dtypes=FLOATS + INTS, wrt=()),
    binary("copysign", ops.copysign, np.copysign, wrt=(0,)),
    unary("floor", ops.floor, np.floor, dtypes=ALL, wrt=()),
    unary("ceil", ops.ceil, np.ceil, dtypes=ALL, wrt=()),
    unary("trunc", ops.trunc, np.trunc, dtypes=ALL, wrt=()),
    unary("round", ops.round, np.round, dtypes=FLOATS + INTS, wrt=()),
    unary("round_2", lambda x: ops.round(x, 2), lambda x: np.round(x, 2), wrt=()),
    unary(
        "round_tens", lambda x: ops.round(x, -1), lambda x: np.round(x, -1), -50, 50, ints=(-90, 90),
        dtypes=FLOATS + SIGNED, wrt=(), edges=False,
    ),
    binary("maximum", ops.maximum, np.maximum, dtypes=ALL),
    binary("minimum", ops.minimum, np.minimum, dtypes=ALL),
    unary("clip", lambda x: ops.clip(x, 1, 2), lambda x: np.clip(x, 1, 2), dtypes=FLOATS + INTS),
    unary("clip_high", lambda x: ops.clip(x, high=2), lambda x: np.minimum(x, 2), dtypes=FLOATS + INTS),
    unary("relu", ops.relu, lambda x: np.maximum(0, x), dtypes=FLOATS + INTS),
]  # fmt: skip

ELEMENTARY = [
    unary("exp", ops.exp, np.exp, dtypes=FLOATS + WIDE_INTS),
    unary("exp2", ops.exp2, np.exp2, dtypes=FLOATS + WIDE_INTS),
    unary("expm1", ops.expm1, np.expm1, dtypes=FLOATS + WIDE_INTS),
    unary("log", ops.log, np.log, 0.1, 5, dtypes=FLOATS + WIDE_INTS),
    unary("log1p", ops.log1p, np.log1p, -0.8, 4),
    unary("log2", ops.log2, np.log2, 0.1, 5, dtypes=FLOATS + WIDE_INTS),
    unary("log10", ops.log10, np.log10, 0.1, 5, dtypes=FLOATS + WIDE_INTS),
    unary("cbrt", ops.cbrt, np.cbrt, 0.2, 5, dtypes=FLOATS + WIDE_INTS),
    binary("logaddexp", ops.logaddexp, np.logaddexp, dtypes=FLOATS + WIDE_INTS),
    binary("logaddexp2", ops.logaddexp2, np.logaddexp2, dtypes=FLOATS + WIDE_INTS),
    unary("sqrt", ops.sqrt, np.sqrt, 0.1, 5, dtypes=FLOATS + WIDE_INTS),
    unary("rsqrt", ops.rsqrt, lambda x: 1 / np.sqrt(x), 0.1, 5),
    binary("hypot", ops.hypot, np.hypot, dtypes=FLOATS + WIDE_INTS),
    unary("sin", ops.sin, np.sin, -4, 4, dtypes=FLOATS + WIDE_INTS),
    unary("cos", ops.cos, np.cos, -4, 4),
    unary("tan", ops.tan, np.tan, -1.3, 1.3),
    unary("asin", ops.asin, np.arcsin, -0.9, 0.9),
    unary("acos", ops.acos, np.arccos, -0.9, 0.9),
    unary("atan", ops.atan, np.arctan, -4, 4),
    binary("atan2", ops.atan2, np.arctan2, dtypes=FLOATS + WIDE_INTS),
    unary("sinh", ops.sinh, np.sinh),
    unary("cosh", ops.cosh, np.cosh),
    unary("tanh", ops.tanh, np.tanh, dtypes=FLOATS + WIDE_INTS),
    unary("asinh", ops.asinh, np.arcsinh, -4, 4),
    unary("acosh", ops.acosh, np.arccosh, 1.2, 5),
    unary("atanh", ops.atanh, np.arctanh, -0.9, 0.9),
    unary("erf", ops.erf, erf, dtypes=FLOATS + WIDE_INTS),
    unary("sigmoid", ops.sigmoid, sigmoid, -6, 6, dtypes=FLOATS + WIDE_INTS),
    unary("softplus", ops.softplus, softplus, -6, 6),
]

LOGIC = [
    *(
        binary(name, getattr(ops, name), getattr(np, name), NEAR, NEAR, dtypes=ALL, wrt=())
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor")
    ),
    *(
        binary(name, getattr(ops, name), getattr(np, name), dtypes=(*INTS, "bool"), wrt=())
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
    ),
    unary("bitwise_not", ops.bitwise_not, np.invert, dtypes=(*INTS, "bool"), wrt=()),
    unary("logical_not", ops.logical_not, np.logical_not, ints=(-1, 1), dtypes=ALL, wrt=()),
    binary("left_shift", ops.left_shift, np.left_shift, b=SHIFT, dtypes=(*INTS, "bool"), wrt=()),
    binary("right_shift", ops.right_shift, np.right_shift, b=SHIFT, dtypes=(*INTS, "bool"), wrt=()),
    unary("isnan", ops.isnan, np.isnan, dtypes=ALL, wrt=()),
    unary("isinf", ops.isinf, np.isinf, dtypes=ALL, wrt=()),
    unary("isfinite", ops.isfinite, np.isfinite, dtypes=ALL, wrt=()),
    binary("isclose", ops.isclose, np.isclose, NEAR, NEAR, dtypes=FLOATS + INTS, wrt=(), edges=False),
    unary("stop_gradient", ops.stop_gradient, lambda x: x, dtypes=ALL, wrt=()),
    unary("assigned", lambda x: ops.assigned(x, ops.stop_gradient(x)), lambda x: x, dtypes=ALL, wrt=()),
]

MAPS = [
    Case(
        "where", lambda c, a, b: ops.where(c > 0, a, b), lambda c, a, b: np.where(c > 0, a, b), (ANY, ANY, ANY),
        dtypes=ALL, wrt=(1, 2), edges=False,
    ),
    *(
        unary(f"cast_{name}", lambda x, d=d: ops.cast(x, d), lambda x, d=d: x.astype(d), dtypes=ALL, smooth=name in WIDE, edges=False)
        for name, d in DTYPES.items()
        if d.kind in "fc"
    ),
    *(
        unary(f"cast_{name}", lambda x, d=d: ops.cast(x, d), lambda x, d=d: x.astype(d), 0, 9, ints=(0, 9), dtypes=ALL, wrt=(), edges=False)
        for name, d in DTYPES.items()
        if d.kind not in "fc"
    ),
]  # fmt: skip


def keys(rng: np.random.Generator) -> list[Array]:
    return [rng.integers(0, 2**32, 2, np.uint32)]


def uniform_bounds(rng: np.random.Generator) -> list[Array]:
    return [*keys(rng), rng.normal(size=(3, 7)), rng.normal(size=(3, 7))]


RANDOM = [
    Case("random_bits", lambda k: ops.random_bits(k, (3, 7)), lambda k: random_words(k, (3, 7), np.uint32), arrays=keys, exact=True),
    Case("random_bits_64", lambda k: ops.random_bits(k, (9,), "u64"), lambda k: random_words(k, (9,), np.uint64), arrays=keys, exact=True),
    Case("random_bits_scalar", lambda k: ops.random_bits(k, ()), lambda k: random_words(k, (), np.uint32), arrays=keys, exact=True),
    Case("random_uniform", lambda k, a, b: ops.random_uniform(k, a.shape, a.dtype, a, b), uniform, arrays=uniform_bounds, exact=True),
    Case("random_normal_f32", lambda k: ops.random_normal(k, (61, 67), "f32"), arrays=keys, exact=True),
    Case("random_normal_f64", lambda k: ops.random_normal(k, (61, 67), "f64"), arrays=keys, exact=True),
    Case("random_integers", lambda k: ops.random_integers(k, (4, 5), -3, 7), integers, arrays=keys, exact=True),
    Case("random_integers_wide", lambda k: ops.random_integers(k, (4, 5), -(2**62), 2**63), wide_integers, arrays=keys, exact=True),
    Case("random_split", lambda k: ops.random_split(k, 3), split, arrays=keys, exact=True),
    Case("random_fold_in", lambda k: ops.random_fold_in(k, 7), fold_in, arrays=keys, exact=True),
    Case(
        "random_fold_in_traced", ops.random_fold_in, fold_in,
        arrays=lambda rng: [*keys(rng), np.array(12345)], exact=True,
    ),
]  # fmt: skip

CASES: list[Case] = [*ARITHMETIC, *ELEMENTARY, *LOGIC, *MAPS, *RANDOM]
