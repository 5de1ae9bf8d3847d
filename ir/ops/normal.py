"""The quantile function of the normal distribution on random bits, built from correctly rounded operations only.

It calls no library, so that the same bits give the same normal number eagerly, compiled, and on every machine: even the logarithm is
implemented here. Coefficients were fitted with mpmath (benchmarks/fit_normal.py); results are within 5 ULP of the exact quantile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..records import NamedTuple
from ..types import F32, F64, I32, I64, U32, U64, DType
from .base import Emitter, Reg


class QuantileFormat(NamedTuple):
    """A floating-point format, the integers of its width, and the approximations that suffice for it."""

    unsigned: DType
    signed: DType
    fraction: int  # stored bits of the mantissa
    root_half: int  # the bits of sqrt(1/2)
    logarithm: Sequence[float]  # (2 atanh(s) / s - 2) / s**2, in s**2 up to 0.0295
    centre: tuple[Sequence[float], Sequence[float]]  # z / c in SPLIT**2 - c**2, for c up to SPLIT
    tail: tuple[Sequence[float], Sequence[float]]  # z in sqrt(-log(p)) - TAIL, for p from 2**-(bits + 1) to 1/2 - SPLIT


SPLIT = 0.375
TAIL = 1.4375

FORMATS = {
    F32: QuantileFormat(
        U32, I32, 23, 0x3F3504F3,
        (0.6666666655409388, 0.4000012208751283, 0.28550798323807497, 0.23330977317355864),
        (
            (3.0675983407135576, 31.571135977948348, 72.91363762653633, 21.572438364445865),
            (1.0, 12.366798835784063, 39.52060733194186, 26.43904487134701),
        ),
        (
            (1.1424183797888579, 3.0781079730887324, 2.3273847866857498, 0.6268237162706786, 0.05016813431871179),
            (1.0, 1.1601968125286806, 0.3931082041658356, 0.035458917511980416),
        ),
    ),
    F64: QuantileFormat(
        U64, I64, 52, 0x3FE6A09E667F3BCD,
        (0.6666666666666666, 0.4000000000000088, 0.2857142857080198, 0.22222222392046365,
         0.18181795607830878, 0.1538624131364559, 0.13268733312181769, 0.13087012941228565),
        (
            (3.067598347669355, 69.4880557707516, 570.8184556847001, 2069.4979681516197,
             3205.8767377527547, 1692.9808955265753, 137.9451647325759),
            (1.0, 24.727258965799745, 227.4790236071618, 961.5868964734566,
             1863.3754427022118, 1426.8845073859466, 277.026905263516),
        ),
        (
            (1.1424183788985203, 4.248085080630765, 5.843726159391171, 4.035748260926061,
             1.5540717974217477, 0.3427804076481838, 0.04171898262617976, 0.0024483757876667066,
             4.8384236149343965e-05),
            (1.0, 2.184319904073563, 1.899898016113494, 0.8468141656712082,
             0.2069789464747574, 0.027183611222904643, 0.0016822841106167005, 3.421184249828385e-05),
        ),
    ),
}  # fmt: skip


def normal_quantile(emit: Emitter, bits: Reg, dtype: DType) -> Reg:
    """A standard normal number from uniform bits: the top bit is its sign, the others give its magnitude.

    With `m` the other bits of a word of `n`, the probability beyond the result is p = (m + 1/2) / 2**n. The distance to the centre,
    c = 1/2 - p, is also computed from the bits, so that both ends keep full precision.
    """
    form = FORMATS[dtype]
    emit = emit.strict()
    width = form.unsigned.itemsize * 8
    largest = (1 << (width - 1)) - 1
    unit, half = emit.const(dtype, 2.0**-width), emit.const(dtype, 0.5)
    magnitude = emit.and_(bits, emit.like(bits, largest))
    p, c = (
        emit.mul(emit.add(emit.convert(emit.convert(m, form.signed), dtype), half), unit)  # hardware converts signed integers faster
        for m in (magnitude, emit.sub(emit.like(bits, largest), magnitude))
    )
    near = emit.sub(emit.const(dtype, SPLIT**2), emit.mul(c, c))
    centre = emit.mul(c, rational(emit, form.centre, near))
    far = emit.sub(emit.sqrt(emit.neg(logarithm(emit, p, form))), emit.const(dtype, TAIL))
    z = emit.select(emit.compare("lt", c, emit.const(dtype, SPLIT)), centre, rational(emit, form.tail, far))
    sign = emit.and_(bits, emit.like(bits, largest + 1))
    return emit.bitcast(emit.or_(emit.bitcast(z, form.unsigned), sign), dtype)


def normal_table(dtype: DType) -> tuple[Any, ...]:
    """The arguments of `source_helpers.normal` besides dtypes."""
    form = FORMATS[dtype]
    return form.fraction, form.root_half, SPLIT, TAIL, tuple(form.logarithm), form.centre, form.tail


def logarithm(emit: Emitter, x: Reg, form: QuantileFormat) -> Reg:
    """log(x) for normal x well away from 1: x = 2**k * f with f between sqrt(1/2) and sqrt(2), and log(f) = 2 atanh(s)."""
    bits = emit.bitcast(x, form.signed)
    shift = emit.const(form.signed, form.fraction)
    k = emit.shr(emit.sub(bits, emit.const(form.signed, form.root_half)), shift)
    f = emit.bitcast(emit.sub(bits, emit.shl(k, shift)), x.dtype)
    one = emit.like(x, 1.0)
    s = emit.fdiv(emit.sub(f, one), emit.add(f, one))
    square = emit.mul(s, s)
    correction = emit.mul(s, emit.mul(square, polynomial(emit, form.logarithm, square)))
    small = emit.add(emit.add(s, s), correction)
    return emit.add(emit.mul(emit.convert(k, x.dtype), emit.like(x, float(np.log(2.0)))), small)


def rational(emit: Emitter, coefficients: tuple[Sequence[float], Sequence[float]], x: Reg) -> Reg:
    above, below = coefficients
    return emit.fdiv(polynomial(emit, above, x), polynomial(emit, below, x))


def polynomial(emit: Emitter, coefficients: Sequence[float], x: Reg) -> Reg:
    """Horner's rule; the constant coefficient comes first."""
    total = emit.like(x, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = emit.add(emit.mul(total, x), emit.like(x, c))
    return total
