"""Functions of the representation of numbers: bits and divisors of integers, exponents and adjacent values of floats."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError, UnsupportedError
from adjit.ir.operand import Concrete, Operand
from adjit.ir.ops.maps import common_dtype, common_math_dtype
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import BOOL, I32, I64, U8, DType, normalize_axis

from ..control import while_loop
from ..convert import along, numbers, pick, to_operand, to_operands, with_axes
from .elementwise import as_ufuncs, real_numbers
from .shapes import as_sizes

U64 = np.dtype("u8")

# ---- integers


def gcd(a: Any, b: Any, /) -> Operand:
    """Return the greatest common divisor, elementwise.

    >>> aj.gcd([12, 7], 18)
    Tensor([6, 1], i64[2])
    """
    first, second, dtype = magnitudes("gcd", a, b)
    return ops.cast(common_divisor(first, second), dtype)


def common_divisor(first: Operand, second: Operand) -> Operand:
    def step(state: Any) -> Any:
        a, b = state
        left = ops.not_equal(b, 0)
        rest = ops.remainder(a, ops.where(left, b, 1))
        return ops.where(left, b, a), ops.where(left, rest, ops.cast(to_operand(0), a.dtype))

    out: tuple[Operand, Operand] = while_loop(lambda state: ops.any(ops.not_equal(state[1], 0)), step, (first, second))
    return out[0]


def lcm(a: Any, b: Any, /) -> Operand:
    """Return the least common multiple, elementwise.

    >>> aj.lcm([4, 7], 6)
    Tensor([12, 42], i64[2])
    """
    first, second, dtype = magnitudes("lcm", a, b)
    return ops.cast(first // ops.maximum(common_divisor(first, second), 1) * second, dtype)


def magnitudes(what: str, *xs: Any) -> tuple[Operand, Operand, DType]:
    """Return the absolute values of integers as unsigned ones (that of the smallest integer does not fit its dtype), and their dtype."""
    operands = numbers(*xs)
    dtype = common_dtype(*operands)
    if dtype.kind not in "iu":
        raise DTypeError(f"{what}: takes integers, not {', '.join(str(getattr(x, 'type', type(x).__name__)) for x in operands)}")
    sizes = [ops.cast(ops.absolute(ops.cast(to_operand(x), dtype)), np.dtype(f"u{dtype.itemsize}")) for x in operands]
    shape = np.broadcast_shapes(*(x.shape for x in sizes))
    first, second = (ops.broadcast_to(x, shape) for x in sizes)
    return first, second, dtype


def bitwise_count(x: Any, /) -> Operand:
    """Return the number of bits set in the absolute value of each integer.

    >>> aj.bitwise_count([7, -8])
    Tensor([3, 1], u8[2])
    """
    x = to_operand(x)
    if x.dtype.kind not in "iub":
        raise DTypeError(f"bitwise_count: takes integers, not {x.type}")
    if x.dtype == BOOL:
        return ops.cast(x, U8)
    v = ops.cast(ops.absolute(x), np.dtype(f"u{x.dtype.itemsize}")) if x.dtype.kind == "i" else x
    v = ops.cast(v, U64)
    v = v - (v >> 1 & 0x5555555555555555)
    v = (v & 0x3333333333333333) + (v >> 2 & 0x3333333333333333)
    v = v + (v >> 4) & 0x0F0F0F0F0F0F0F0F
    return ops.cast(v * 0x0101010101010101 >> 56, U8)


def packbits(x: Any, /, axis: int | None = None, bitorder: str = "big") -> Operand:
    """Return flags packed into bytes, eight at a time, along an axis.

    >>> aj.packbits([1, 0, 0, 0, 0, 0, 1, 1])
    Tensor([131], u8[1])
    """
    x, axis = along(with_axes(to_operand(x)), axis, "packbits")
    if x.dtype.kind not in "iub":
        raise DTypeError(f"packbits: takes integers or bools, not {x.type}")
    flags = moved(ops.cast(ops.not_equal(x, 0), U8), axis, -1)
    n = flags.shape[-1]
    flags = ops.pad(flags, [0] * x.ndim, [*[0] * (x.ndim - 1), -n % 8])
    groups = ops.reshape(flags, (*flags.shape[:-1], (n + 7) // 8, 8))
    return moved(ops.cast(ops.sum(groups << shifts(bitorder), -1), U8), -1, axis)


def unpackbits(x: Any, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Operand:
    """Return the eight bits of each byte along an axis; only the first `count` of them, or, if it is negative, all but the last -count.

    >>> aj.unpackbits(np.array([131], dtype="uint8"))
    Tensor([1, 0, 0, 0, 0, 0, 1, 1], u8[8])
    """
    x, axis = along(with_axes(to_operand(x)), axis, "unpackbits")
    if x.dtype != U8:
        raise DTypeError(f"unpackbits: takes bytes (u8), not {x.type}")
    bits = ops.reshape(moved(x, axis, -1), (*moved(x, axis, -1).shape, 1)) >> shifts(bitorder) & 1
    flat = ops.reshape(bits, (*bits.shape[:-2], bits.shape[-2] * 8))
    n = flat.shape[-1]
    wanted = n if count is None else operator.index(count)
    wanted = n + wanted if wanted < 0 else wanted
    if wanted < 0:
        raise ShapeError(f"unpackbits: count={count} drops more bits than there are: {n}")
    flat = ops.slice_(flat, [*[slice(None)] * (flat.ndim - 1), slice(wanted)])
    return moved(ops.pad(flat, [0] * flat.ndim, [*[0] * (flat.ndim - 1), max(wanted - n, 0)]), -1, axis)


def shifts(bitorder: str) -> Operand:
    if bitorder not in ("big", "little"):
        raise UnsupportedError(f"packbits, unpackbits: bitorder {bitorder!r}; it is 'big' or 'little'")
    places = np.arange(8, dtype=U8)
    return Concrete(places[::-1].copy() if bitorder == "big" else places)


def moved(x: Operand, source: int, target: int) -> Operand:
    order = [a for a in range(x.ndim) if a != normalize_axis(source, x.ndim, "bits")]
    order.insert(normalize_axis(target, x.ndim, "bits"), normalize_axis(source, x.ndim, "bits"))
    return ops.transpose(x, order)


def ravel_multi_index(multi_index: Any, dims: Any, /, mode: Any = "raise", order: str = "C") -> Operand:
    """Return the indices into the flattened array for indices along each axis.

    >>> aj.ravel_multi_index(([0, 1], [2, 0]), (2, 3))
    Tensor([2, 3], i64[2])
    """
    sizes = as_sizes(dims)
    modes = (mode,) * len(sizes) if isinstance(mode, str) else tuple(mode)
    places = to_operands(*multi_index)
    strides = [math.prod(sizes[a + 1 :]) if order == "C" else math.prod(sizes[:a]) for a in range(len(sizes))]
    out: Operand | None = None
    for place, size, stride, how in zip(places, sizes, strides, modes, strict=True):
        inside = ops.clip(place, 0, size - 1) if how == "clip" else place % size if how == "wrap" else checked(place, size)
        out = inside * stride if out is None else out + inside * stride
    return ops.cast(out if out is not None else to_operand(0), I64)


def checked(place: Operand, size: int) -> Operand:
    """Return the indices; those out of bounds raise at run time."""
    beyond = ops.where(ops.less(place, 0), size, place)  # NumPy does not accept negative indices here
    return pick(Concrete(np.arange(size)), ops.cast(beyond, I64))


# ---- floats


def frexp(x: Any, /) -> tuple[Operand, Operand]:
    """Return the mantissas, in [0.5, 1), and the exponents of 2 that floats consist of.

    >>> aj.frexp([8.0, 0.75])
    (Tensor([0.5 , 0.75], f64[2]), Tensor([4, 0], i32[2]))
    """
    x = real_numbers("frexp", as_ufuncs(x))
    info = np.finfo(x.dtype)
    bits = info.nmant + 1
    small = ops.less(ops.absolute(x), float(info.smallest_normal))
    scaled = ops.where(small, x * 2.0**bits, x)
    regular = ops.logical_and(ops.isfinite(x), ops.not_equal(x, 0))
    size = ops.where(regular, ops.absolute(ops.stop_gradient(scaled)), 1.0)
    exponent = ops.cast(ops.floor(ops.log2(size)), I32) + 1
    mantissa = ldexp(scaled, -exponent)
    over, under = ops.greater_equal(ops.absolute(mantissa), 1.0), ops.less(ops.absolute(mantissa), 0.5)
    mantissa = ops.where(over, mantissa * 0.5, ops.where(under, mantissa * 2.0, mantissa))
    exponent = exponent + ops.cast(over, I32) - ops.cast(under, I32) - ops.where(small, bits, 0)
    return ops.where(regular, mantissa, x), ops.cast(ops.where(regular, exponent, 0), I32)


def ldexp(x: Any, n: Any, /) -> Operand:
    """Return x * 2**n for integer n, rounded once.

    >>> aj.ldexp([1.5, 1.0], [1, -2])
    Tensor([3.  , 0.25], f64[2])
    """
    n, x = to_operand(n), real_numbers("ldexp", as_ufuncs(x))
    if not np.can_cast(n.dtype, I64):
        raise DTypeError(f"ldexp: the exponent must be an integer that int64 holds, not {n.type}")
    low, high, bits = limits(x.dtype)
    n = ops.clip(ops.cast(n, I64), 3 * low, 3 * high)
    for _ in range(2):  # factors that keep intermediate values normal, so that only the last one rounds
        large, small = ops.greater(n, high), ops.less(n, low)
        x = ops.where(large, x * 2.0**high, ops.where(small, x * 2.0 ** (low + bits), x))
        n = n - ops.where(large, high, ops.where(small, low + bits, 0))
    factor = pick(Concrete(powers(x.dtype)), ops.clip(n, low, high) - low)
    return ops.mul(x, factor)


def spacing(x: Any, /) -> Operand:
    """Return the distance to the next float away from zero.

    >>> aj.spacing(1.0)
    Tensor(2.22044605e-16, f64[])
    """
    x = ops.stop_gradient(real_numbers("spacing", as_ufuncs(x)))
    step = ops.where(ops.equal(ops.absolute(x), float(np.finfo(x.dtype).max)), math.inf, ulp(x))
    return ops.where(ops.less(x, 0), -step, step)


def ulp(x: Operand) -> Operand:
    """Return the value of the last bit of the mantissa; NaN where x is not finite."""
    low, _, bits = limits(x.dtype)
    one = ops.cast(ops.where(ops.isfinite(x), 1.0, math.nan), x.dtype)
    least = ops.cast(to_operand(float(np.finfo(x.dtype).smallest_subnormal)), x.dtype)
    return ops.where(ops.less(ops.absolute(x), 2.0 ** (low + 1)), least, ldexp(one, frexp(x)[1] - bits))


def nextafter(x: Any, y: Any, /) -> Operand:
    """Return the next float after x in the direction of y.

    >>> aj.nextafter(1.0, 2.0) - 1.0
    Tensor(2.22044605e-16, f64[])
    """
    x, y = numbers(x, y)
    dtype = common_math_dtype(x, y)
    if dtype.kind == "c":
        raise DTypeError("nextafter: complex numbers have no order of their own; take .real and .imag")
    x, y = (ops.cast(to_operand(v), dtype) for v in (x, y))
    low, _, _ = limits(x.dtype)
    here = ops.stop_gradient(x)
    step = ulp(here)
    mantissa, exponent = frexp(here)
    up = ops.greater(y, here)
    outwards = ops.logical_or(ops.equal(here, 0), ops.equal(up, ops.greater(here, 0)))
    halved = ops.logical_and(ops.equal(ops.absolute(mantissa), 0.5), ops.greater(exponent, low + 1))
    step = ops.where(ops.logical_and(halved, ops.logical_not(outwards)), step * 0.5, step)
    moved = x + ops.where(up, step, -step)
    moved = ops.where(ops.equal(here, 0), moved, ops.copysign(ops.absolute(moved), here))
    moved = ops.where(ops.isinf(here), ops.copysign(to_operand(np.finfo(x.dtype).max), here), moved)
    unordered = ops.logical_or(ops.isnan(here), ops.isnan(y))
    return ops.where(unordered, here + y, ops.where(ops.equal(here, y), y, moved))


def limits(dtype: DType) -> tuple[int, int, int]:
    """Return the smallest and largest exponent of normal floats, and the number of mantissa bits."""
    info = np.finfo(dtype)
    return int(info.minexp), int(info.maxexp) - 1, int(info.nmant) + 1


def powers(dtype: DType) -> Any:
    low, high, _ = limits(dtype)
    return np.ldexp(np.ones(high - low + 1, dtype), np.arange(low, high + 1))


end_at_callers(globals())
