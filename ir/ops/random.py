"""Stateless random numbers: a counter-based generator, with the same bits eager and compiled.

A key is a uint32[2]. Element number i of an array drawn with a key is a function of the key and i alone (Threefry-2x32 with 20 rounds:
Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011), so drawing vectorises, fuses and needs no state.
Each key should be used once: `random_split` and `random_fold_in` create new keys, from counters that no draw uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..errors import DTypeError, ShapeError
from ..types import DTYPE_NAMES, F32, F64, I64, U32, U64, DType, Shape, TensorType, as_dtype, as_shape, checked_type, row_major
from .base import Array, Emitter, Reg, Writing, apply, evaluated, perform, with_attributes
from .create import Constant, Iota
from .host import HostEmitter, by_pieces
from .maps import SCALAR, Map, Unary, cast
from .normal import FORMATS, normal_quantile, normal_table
from .shape import broadcast_to, reshape, slice_

__all__ = [
    "random_key", "random_split", "random_fold_in", "random_bits", "random_uniform", "random_normal", "random_integers",
]  # fmt: skip

if TYPE_CHECKING:
    from ..operand import Operand

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA  # keeps the third key word from being 0 for a key of zeros

DRAW, SPLIT, FOLD = 0, 1 << 31, 1 << 30  # high counter words: draws, splits and folds never share a counter


def threefry(emit: Emitter, k0: Reg, k1: Reg, x0: Reg, x1: Reg) -> tuple[Reg, Reg]:
    """The two random words for a key (k0, k1) and a counter (x0, x1), all uint32."""
    keys = (k0, k1, emit.xor(emit.xor(k0, k1), emit.const(U32, PARITY)))
    x0, x1 = emit.add(x0, k0), emit.add(x1, k1)
    for group in range(5):
        for r in ROTATIONS[group % 2]:
            x0 = emit.add(x0, x1)
            rotated = emit.or_(emit.shl(x1, emit.const(U32, r)), emit.shr(x1, emit.const(U32, 32 - r)))
            x1 = emit.xor(rotated, x0)
        x0 = emit.add(x0, keys[(group + 1) % 3])
        x1 = emit.add(x1, emit.add(keys[(group + 2) % 3], emit.const(U32, group + 1)))
    return x0, x1


@with_attributes
class RandomBits(Map):
    """Random uint32 or uint64 for (key word 0, key word 1, low counter word, high counter word), each uint32."""

    dtype: DType
    kinds: ClassVar[str] = "u"
    differentiable: ClassVar[bool] = False

    def infer(self, *types: TensorType) -> TensorType:
        if len(types) != 4 or any(t.dtype != U32 for t in types) or self.dtype not in (U32, U64):
            raise DTypeError(f"random_bits: four uint32 words make uint32 or uint64, not {types} {DTYPE_NAMES[self.dtype]}")
        return super().infer(*types)

    def result(self, operand: TensorType) -> TensorType:
        return operand.with_dtype(self.dtype)

    def evaluate(self, *arrays: Array) -> Array:
        return by_pieces(lambda *words: self.scalar(HostEmitter(), *words), self.dtype, *arrays)

    def python(self, write: Writing, *args: Operand) -> Any:
        return write.elementwise(f"random_bits({{}}, {{}}, {{}}, {{}}, np.{self.dtype.name})", *args)

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        low, high = threefry(emit, *xs)
        if self.dtype == U32:
            return low
        return emit.or_(emit.convert(low, U64), emit.shl(emit.convert(high, U64), emit.const(U64, 32)))


class Uniform(Map):
    """low + (high - low) * u for random bits (uint32 for float32, uint64 for float64), with u in [0, 1) of full precision."""

    def infer(self, *types: TensorType) -> TensorType:
        bits, low, high = types
        if low != high or low.shape != bits.shape:
            raise ShapeError(f"uniform: types differ: {bits}, {low} and {high}")
        if not low.is_float or bits.dtype != FORMATS[low.dtype].unsigned:
            raise DTypeError(f"uniform: bits and bounds of one width are needed, not {bits} and {low}")
        return low

    def evaluate(self, *arrays: Array) -> Array:
        return by_pieces(lambda *xs: self.scalar(HostEmitter(), *xs), arrays[1].dtype, *arrays)

    def python(self, write: Writing, *args: Operand) -> Any:
        return write.elementwise("uniform({}, {}, {})", *args)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand | None:
        if i == 0:
            return None
        u = apply(self, args[0], y.literal(0.0, y.type), y.literal(1.0, y.type))
        return u if i == 2 else 1.0 - u

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        bits, low, high = xs
        emit = emit.strict()
        form = FORMATS[low.dtype]
        unused = form.unsigned.itemsize * 8 - form.fraction - 1
        whole = emit.convert(emit.convert(emit.shr(bits, emit.like(bits, unused)), form.signed), low.dtype)
        u = emit.mul(whole, emit.like(low, 2.0 ** -(form.fraction + 1)))
        return emit.add(low, emit.mul(u, emit.sub(high, low)))


@with_attributes
class Normal(Unary):
    """Standard normals from random bits: the quantile function at a uniform probability."""

    dtype: DType
    kinds: ClassVar[str] = "u"
    differentiable: ClassVar[bool] = False

    def result(self, operand: TensorType) -> TensorType:
        if self.dtype not in FORMATS or operand.dtype != FORMATS[self.dtype].unsigned:
            raise DTypeError(f"normal: {DTYPE_NAMES[self.dtype]} values need unsigned integers of the same width, not {operand}")
        return operand.with_dtype(self.dtype)

    def evaluate(self, *arrays: Array) -> Array:
        return by_pieces(lambda bits: self.scalar(HostEmitter(), bits), self.dtype, *arrays)

    def python(self, write: Writing, *args: Operand) -> Any:
        types, rest = (self.dtype, FORMATS[self.dtype].signed), normal_table(self.dtype)
        table = write(f"({', '.join(['{}'] * (2 + len(rest)))})", *map(write.dtype, types), *map(write.value, rest))
        return write("normal({}, {})", write.array(args[0]), write.hoist("normal_table", table))

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return normal_quantile(emit, xs[0], self.dtype)


# ---- keys


def random_key(seed: int) -> Operand:
    """The key for a seed, an integer of at most 64 bits."""
    if not -(2**63) <= seed < 2**64:
        raise DTypeError(f"random_key: the seed {seed} does not fit 64 bits")
    return evaluated(Constant.of(np.array([seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF], U32)))


def random_split(key: Operand, n: int = 2) -> Operand:
    """n new keys, as a uint32[n, 2]."""
    rows, words = TensorType(U32, (n, 2)), TensorType(U64, (n, 2))
    both = blocks("random_split", key, perform(Iota(U32, rows.shape, 0)), key.literal(SPLIT, rows), U64)
    return cast(both >> (perform(Iota(U64, words.shape, 1)) * 32), U32)


def random_fold_in(key: Operand, data: Operand | int) -> Operand:
    """A new key for an integer, such as the number of a step; only the low 32 bits of `data` are used."""
    pair = TensorType(U32, (2,))
    if isinstance(data, int):
        low = key.literal(data & 0xFFFFFFFF, pair)
    else:
        if data.type.shape or data.type.dtype.kind not in "iu":
            raise DTypeError(f"random_fold_in: the data must be one integer, not {data.type}")
        low = broadcast_to(cast(data, U32), (2,))
    both = blocks("random_fold_in", key, low, key.literal(FOLD, pair), U64)
    return cast(both >> (perform(Iota(U64, (2,), 0)) * 32), U32)


def blocks(what: str, key: Operand, low: Operand, high: Operand, dtype: DType) -> Operand:
    """Random bits for counters (low, high)."""
    if key.type != TensorType(U32, (2,)):
        raise DTypeError(f"{what}: a key is u32[2] (random_key, random_split or random_fold_in make one), not {key.type}")
    words = (broadcast_to(reshape(slice_(key, [slice(i, i + 1)]), ()), low.type.shape) for i in range(2))
    return apply(RandomBits(dtype), *words, low, high)


# ---- draws


def random_bits(key: Operand, shape: Any, dtype: Any = U32) -> Operand:
    """Uniform uint32 or uint64."""
    kind = as_dtype(dtype)
    if kind not in (U32, U64):
        raise DTypeError(f"random_bits: the dtype must be uint32 or uint64, not {DTYPE_NAMES[kind]}")
    out = checked_type(kind, as_shape(shape, "random_bits"), "random_bits")
    low, high = counters(key, out.shape)
    return blocks("random_bits", key, low, high, kind)


def counters(key: Operand, shape: Shape) -> tuple[Operand, Operand]:
    """The words of each element's number in row-major order, built from one counter per axis so that everything fuses."""
    wide = TensorType(U32, shape).size > 2**32
    counter = TensorType(U64 if wide else U32, shape)
    total = key.literal(0, counter)
    for axis, stride in enumerate(row_major(shape)):
        if shape[axis] > 1:
            total = total + perform(Iota(counter.dtype, shape, axis)) * stride
    if wide:
        return cast(total, U32), cast(total >> 32, U32)
    return total, key.literal(DRAW, counter)


def random_uniform(key: Operand, shape: Any = (), dtype: Any = F32, low: Operand | float = 0.0, high: Operand | float = 1.0) -> Operand:
    """Uniform floats in [low, high); rounding may give `high` if the two are a few ULP apart."""
    kind = float_kind("random_uniform", dtype)
    bits = random_bits(key, shape, FORMATS[kind].unsigned)
    bound = bits.type.with_dtype(kind)
    bounds = (key.literal(x, bound) if isinstance(x, SCALAR) else broadcast_to(cast(x, kind), bound.shape) for x in (low, high))
    return apply(Uniform(), bits, *bounds)


def random_normal(key: Operand, shape: Any = (), dtype: Any = F32) -> Operand:
    """Standard normals, up to 6.3 (float32) and 9.1 (float64) standard deviations."""
    kind = float_kind("random_normal", dtype)
    return apply(Normal(kind), random_bits(key, shape, FORMATS[kind].unsigned))


def float_kind(what: str, dtype: Any) -> DType:
    kind = as_dtype(dtype)
    if kind not in (F32, F64):
        raise DTypeError(f"{what}: the dtype must be float32 or float64, not {DTYPE_NAMES[kind]}")
    return kind


def random_integers(key: Operand, shape: Any, low: int, high: int, dtype: Any = I64) -> Operand:
    """Uniform integers in [low, high), static bounds: low + floor(u * (high - low)) for 64-bit u; probabilities are off by below 2**-64."""
    kind = as_dtype(dtype)
    if kind.kind not in "iu":
        raise DTypeError(f"random_integers: the dtype must be an integer dtype, not {DTYPE_NAMES[kind]}")
    info = np.iinfo(kind)
    if not info.min <= low < high <= int(info.max) + 1:
        raise DTypeError(f"random_integers: [{low}, {high}) is empty, or exceeds the range of {DTYPE_NAMES[kind]}")
    bits = random_bits(key, shape, U64)
    span = high - low
    offset = cast(bits if span == 2**64 else high_product(bits, span), kind)
    return offset + low if low else offset  # wraps around if the span exceeds the largest integer, which gives the correct result


def high_product(a: Operand, b: int) -> Operand:
    """The high 64 bits of a product of uint64, computed from halves."""
    a0, a1 = a & 0xFFFFFFFF, a >> 32
    b0, b1 = b & 0xFFFFFFFF, b >> 32
    middle = a1 * b0 + (a0 * b0 >> 32)
    if not b1:
        return middle >> 32
    return a1 * b1 + (middle >> 32) + (a0 * b1 + (middle & 0xFFFFFFFF) >> 32)
