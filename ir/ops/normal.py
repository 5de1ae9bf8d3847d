"""The normal distribution's quantile function on random bits, made of correctly rounded operations alone.

So that the same bits give the same normal eagerly, compiled, and on every machine, it calls no library: the logarithm is written out too.
Coefficients were fitted with mpmath (benchmarks/fit_normal.py); a result is within 5 ULP of the exact quantile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..types import F32, F64, I32, I64, U32, U64, DType
from .base import Emitter, Reg


class Format(NamedTuple):
    """A floating format, the integers of its width, and the approximations that suffice for it."""

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
    F32: Format(
        U32, I32, 23, 0x3F3504F3,
        (0.666666665541064, 0.4000012207983946, 0.28550799019687034, 0.23330961547350948),
        (
            (3.0675983407135576, 31.571135977948348, 72.91363762653633, 21.572438364445865),
            (1.0, 12.366798835784063, 39.52060733194186, 26.43904487134701),
        ),
        (
            (1.1424183797888579, 3.0781079730887324, 2.3273847866857498, 0.6268237162706786, 0.05016813431871179),
            (1.0, 1.1601968125286806, 0.3931082041658356, 0.035458917511980416),
        ),
    ),
    F64: Format(
        U64, I64, 52, 0x3FE6A09E667F3BCD,
        (
            0.6666666666666666, 0.4000000000000088, 0.2857142857080205, 0.2222222239203303,
            0.1818179560912836, 0.15386241248871813, 0.1326873491513199, 0.1308699736132197,
        ),
        (
            (3.067598347669355, 69.48805577073851, 570.8184556844606, 2069.497968150157,
             3205.8767377493386, 1692.980895524014, 137.94516473229106),
            (1.0, 24.727258965795478, 227.47902360707485, 961.5868964728417,
             1863.375442700428, 1426.884507384021, 277.02690526300967),
        ),
        (
            (1.1424183788985203, 4.248085080630843, 5.843726159391442, 4.035748260926377, 1.5540717974219043,
             0.34278040764821344, 0.04171898262617986, 0.002448375787666281, 4.838423614932292e-05),
            (1.0, 2.184319904073632, 1.899898016113625, 0.8468141656712929, 0.20697894647477735,
             0.027183611222905076, 0.0016822841106164206, 3.421184249826897e-05),
        ),
    ),
}  # fmt: skip


def normal_quantile(emit: Emitter, bits: Reg, dtype: DType) -> Reg:
    """A standard normal from uniform bits: the top bit is its sign, the others how far out it lies.

    With `m` the other bits of a word of `n`, the probability beyond the result is p = (m + 1/2) / 2**n. The distance to the centre,
    c = 1/2 - p, is computed from the bits as well, so that both ends keep all their digits.
    """
    form = FORMATS[dtype]
    emit = emit.strict()
    width = form.unsigned.itemsize * 8
    largest = (1 << (width - 1)) - 1
    unit, half = emit.const(dtype, 2.0**-width), emit.const(dtype, 0.5)
    magnitude = emit.and_(bits, emit.like(bits, largest))
    p, c = (
        emit.mul(emit.add(emit.convert(emit.convert(m, form.signed), dtype), half), unit)  # machines convert signed integers faster
        for m in (magnitude, emit.sub(emit.like(bits, largest), magnitude))
    )
    near = emit.sub(emit.const(dtype, SPLIT**2), emit.mul(c, c))
    centre = emit.mul(c, rational(emit, form.centre, near))
    far = emit.sub(emit.sqrt(emit.neg(logarithm(emit, p, form))), emit.const(dtype, TAIL))
    z = emit.select(emit.compare("lt", c, emit.const(dtype, SPLIT)), centre, rational(emit, form.tail, far))
    sign = emit.and_(bits, emit.like(bits, largest + 1))
    return emit.bitcast(emit.or_(emit.bitcast(z, form.unsigned), sign), dtype)


def logarithm(emit: Emitter, x: Reg, form: Format) -> Reg:
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
