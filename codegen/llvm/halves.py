"""Conversions between float32 and the 16-bit floats of storage, by integer arithmetic.

LLVM's own conversions call functions of a run-time library on CPUs that have no instructions for them. Both directions are those of IEEE
754: exact to float32, and rounded to nearest, ties to even, from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adjit.ir.types import F32, U16, U32, DType

if TYPE_CHECKING:
    from .lanes import Lanes, Reg

SIGN, MAGNITUDE = 0x80000000, 0x7FFFFFFF
INFINITE, QUIET = 0x7F800000, 0x00400000


def widened(emit: Lanes, x: Reg) -> Reg:
    """A 16-bit float as float32."""
    bits = emit.convert(x._replace(dtype=U16), U32)
    if x.dtype.kind == "V":  # bfloat16: the upper half of a float32
        return emit.bitcast(emit.shl(bits, emit.const(U32, 16)), F32)
    whole = emit.shl(bits, emit.const(U32, 16))
    sign, rest = emit.and_(whole, emit.const(U32, SIGN)), emit.add(whole, whole)
    # the exponent's bias grows by 112: by an addition and a product, which keeps infinities and NaN
    shifted = emit.add(emit.shr(rest, emit.const(U32, 4)), emit.const(U32, 0xE0 << 23))
    normal = emit.mul(emit.bitcast(shifted, F32), emit.const(F32, 2.0**-112))
    tiny = emit.or_(emit.shr(rest, emit.const(U32, 17)), emit.const(U32, 126 << 23))
    subnormal = emit.sub(emit.bitcast(tiny, F32), emit.const(F32, 0.5))
    size = emit.select(emit.compare("lt", rest, emit.const(U32, 1 << 27)), subnormal, normal)
    return emit.bitcast(emit.or_(sign, emit.bitcast(size, U32)), F32)


def narrowed(emit: Lanes, x: Reg, dtype: DType) -> Reg:
    """A float32 as a 16-bit float of the dtype."""
    bits = emit.bitcast(x, U32)
    short = to_bfloat16(emit, bits) if dtype.kind == "V" else to_float16(emit, x, bits)
    return emit.convert(short, U16)._replace(dtype=dtype)


def to_bfloat16(emit: Lanes, bits: Reg) -> Reg:
    odd = emit.and_(emit.shr(bits, emit.const(U32, 16)), emit.const(U32, 1))
    rounded = emit.add(emit.add(bits, emit.const(U32, 0x7FFF)), odd)
    is_nan = emit.compare("gt", emit.and_(bits, emit.const(U32, MAGNITUDE)), emit.const(U32, INFINITE))
    return emit.shr(emit.select(is_nan, emit.or_(bits, emit.const(U32, QUIET)), rounded), emit.const(U32, 16))


def to_float16(emit: Lanes, x: Reg, bits: Reg) -> Reg:
    """The sum with a power of two that depends on the exponent rounds to the bits that remain; products before it overflow to infinity."""
    base = emit.mul(emit.mul(emit.fabs(x), emit.const(F32, 2.0**112)), emit.const(F32, 2.0**-110))
    twice = emit.add(bits, bits)
    bias = emit.and_(twice, emit.const(U32, 0xFF000000))
    least = emit.const(U32, 0x71000000)
    bias = emit.select(emit.compare("lt", bias, least), least, bias)
    unit = emit.bitcast(emit.add(emit.shr(bias, emit.const(U32, 1)), emit.const(U32, 0x07800000)), F32)
    total = emit.bitcast(emit.add(unit, base), U32)
    exponent = emit.and_(emit.shr(total, emit.const(U32, 13)), emit.const(U32, 0x7C00))
    size = emit.add(exponent, emit.and_(total, emit.const(U32, 0x0FFF)))
    size = emit.select(emit.compare("gt", twice, emit.const(U32, 0xFF000000)), emit.const(U32, 0x7E00), size)
    return emit.or_(emit.shr(emit.and_(bits, emit.const(U32, SIGN)), emit.const(U32, 16)), size)
