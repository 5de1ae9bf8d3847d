"""Trigonometric functions on lanes, and the reduction of their arguments modulo π/2.

This module has sin, cos, tan and their inverses. Arguments up to 2**17 (float32) or 2**30 (float64) are reduced inline; larger ones by an
out-of-line function that multiplies by 1,216 bits of 2/π, called only if some lane needs it. The call is a branch: after sin, cos or tan,
the text continues in another basic block.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from adjit.ir.target import Target
from adjit.ir.types import F32, F64, I32, I64

from ..llvm.lanes import Lanes, Reg, Text
from . import coefficients as C
from .numbers import Vec, divide, fast_two_sum, horner, on_numbers, polynomial, rarely, two_sum

INF = math.inf

# beyond these the quadrant computed by one product with 2/π is no longer accurate enough
HUGE = {F32: 2.0**17, F64: 2.0**30}


class _Reduced(NamedTuple):
    """x = q π/2 + r + low with |r| slightly above π/4 at most; only the lowest two bits of `quadrant`, the bits of q, are significant."""

    r: Vec
    quadrant: Vec
    low: Vec | None = None  # only on demand

    def sign(self, offset: int) -> Vec:
        """The sign bit that the quadrant contributes to sin(x) (offset 0) or cos(x) (offset 1)."""
        width = self.r.reg.dtype.itemsize * 8
        return ((self.quadrant + offset) & 2) << (width - 2)

    def odd(self, offset: int) -> Vec:
        return ((self.quadrant + offset) & 1).ne(0)


def _reduce(x: Vec, with_low: bool = False) -> _Reduced:
    """Reduce x >= 0; NaN if x is infinite or NaN."""
    dtype, magic = x.reg.dtype, x.format.magic
    first, second, third = C.HALF_PI[dtype]
    shifted = x.mad(C.TWO_OVER_PI[dtype][0], magic)
    q = shifted - magic
    exact = q.fma(-first, x)  # exact: both terms are multiples of one ULP of π/2 and nearly cancel
    if not with_low:
        return _unless_huge(x, _Reduced(q.mad(-third, q.fma(-second, exact)), shifted.bits()))
    product = q * -second
    r, error = two_sum(exact, product)
    r, low = fast_two_sum(r, q.mad(-third, error + q.fma(-second, -product)))
    return _unless_huge(x, _Reduced(r, shifted.bits(), low))


def _unless_huge(x: Vec, fast: _Reduced) -> _Reduced:
    """`fast`, replaced in the lanes where x is huge."""
    limit = HUGE[x.reg.dtype]
    huge = x.gt(limit)  # or infinite, which is not worth a comparison here

    def reduced() -> list[Vec]:
        finite = x.lt(INF)  # the fast path already turns infinities into NaN
        # lanes that are not huge, and infinities, would read outside the table
        parts = _call_reduction((huge & finite).choose(x, limit))
        return [finite.choose(theirs, ours) for ours, theirs in zip(fast, parts, strict=True) if ours is not None and theirs is not None]

    return _Reduced(*rarely(huge, [part for part in fast if part is not None], reduced))


def _call_reduction(x: Vec) -> _Reduced:
    """Reduce huge x by the out-of-line function, passing lanes through the stack: one function serves every width."""
    lanes, text = x.lanes, x.lanes.text
    text.declares.add(_two_over_pi())
    text.declares |= _reduction(text.target)
    kinds = (F64, I64, F64)
    slots = [text.reserve(lanes.type(kind)) for kind in kinds]
    text.put(f"store {lanes.type(F64)} {x.convert(F64).reg.name}, ptr {slots[0]}")
    text.put(f"call void @adjit.reduce_half_pi({', '.join(f'ptr {slot}' for slot in slots)}, i64 {lanes.width})")
    loads = [Reg(text.define(f"load {lanes.type(kind)}, ptr {slot}"), kind) for slot, kind in zip(slots, kinds, strict=True)]
    r, quadrant, low = (Vec(lanes, reg) for reg in loads)
    if x.reg.dtype == F64:
        return _Reduced(r, quadrant, low)
    short = r.convert(F32)
    return _Reduced(short, quadrant.convert(I32), (r - short.convert(F64) + low).convert(F32))


@lru_cache(maxsize=1)
def _two_over_pi() -> str:
    words = C.TWO_OVER_PI_WORDS
    return f"@adjit.two_over_pi = internal constant [{len(words)} x i64] [{', '.join(f'i64 {word}' for word in words)}]"


@lru_cache(maxsize=4)
def _reduction(target: Target) -> frozenset[str]:
    """A function that reduces `count` finite doubles >= 2**17, given in `r`, and replaces them by r, quadrant and low.

    x = m 2**e with a 53-bit integer m. Only a window of 192 bits of 2/π matters: the bits above contribute multiples of 4, those below less
    than 2**-137. The low 192 bits of m times the window are x 2/π modulo 4, in units of 2**-190, and the top 128 of them are kept.
    """
    text = Text(target)
    put, define = text.put, text.define
    text.declares.add("declare i64 @llvm.fshl.i64(i64, i64, i64)")
    address = [define(f"getelementptr i64, ptr %{name}, i64 %i") for name in ("r", "quadrant", "low")]
    x = define(f"load double, ptr {address[0]}")
    bits = define(f"bitcast double {x} to i64")
    exponent = define(f"lshr i64 {bits}, 52")
    m = define(f"or i64 {define(f'and i64 {bits}, {(1 << 52) - 1}')}, {1 << 52}")
    # the window starts 2 bits above the units: at bit e - 2 of 2/π, after the 64 leading zeros; e = exponent - 1075
    position = define(f"sub i64 {exponent}, {1075 + 2 - 64}")
    word, shift = define(f"lshr i64 {position}, 6"), define(f"and i64 {position}, 63")
    loaded = []
    for i in range(4):
        where = define(f"getelementptr i64, ptr @adjit.two_over_pi, i64 {define(f'add i64 {word}, {i}')}")
        loaded.append(define(f"load i64, ptr {where}"))
    window = [define(f"call i64 @llvm.fshl.i64(i64 {a}, i64 {b}, i64 {shift})") for a, b in pairwise(loaded)]
    wide = define(f"zext i64 {m} to i128")
    bottom = define(f"mul i128 {wide}, {define(f'zext i64 {window[2]} to i128')}")
    middle = define(f"mul i128 {wide}, {define(f'zext i64 {window[1]} to i128')}")
    middle = define(f"add i128 {middle}, {define(f'lshr i128 {bottom}, 64')}")
    top = define(f"mul i64 {m}, {window[0]}")
    top = define(f"shl i128 {define(f'zext i64 {top} to i128')}, 64")
    turns = define(f"add i128 {top}, {middle}")  # units of 2**-126, modulo 4
    quadrant = define(f"lshr i128 {define(f'add i128 {turns}, {1 << 125}')}, 126")
    fraction = define(f"sub i128 {turns}, {define(f'shl i128 {quadrant}, 126')}")  # signed, within half a unit
    # four exact doubles, the first signed; a conversion from i128 would call the compiler's runtime library
    pieces = []
    e = Lanes(text, strict=True)
    for i in range(4):
        piece = define(f"trunc i128 {define(f'lshr i128 {fraction}, {96 - 32 * i}')} to i32")
        pieces.append(Vec(e, Reg(define(f"{'uitofp' if i else 'sitofp'} i32 {piece} to double"), F64)) * 2.0 ** (-30 - 32 * i))
    high, error = fast_two_sum(pieces[0], pieces[1])
    high, rest = fast_two_sum(high, pieces[2] + pieces[3])
    error = error + rest
    half_pi, half_pi_low, _ = C.HALF_PI[F64]
    r = high * half_pi
    low = error.mad(half_pi, high.mad(half_pi_low, high.fma(half_pi, -r)))
    r, low = fast_two_sum(r, low)
    q = define(f"trunc i128 {quadrant} to i64")
    for (kind, value), where in zip((("double", r.reg.name), ("i64", q), ("double", low.reg.name)), address, strict=True):
        put(f"store {kind} {value}, ptr {where}")
    definition = "\n".join([
        "define internal void @adjit.reduce_half_pi(ptr %r, ptr %quadrant, ptr %low, i64 %count) noinline cold nounwind {",
        "entry:",
        "br label %loop",
        "loop:",
        "%i = phi i64 [0, %entry], [%next, %loop]",
        *text.lines,
        "%next = add i64 %i, 1",
        "%more = icmp ult i64 %next, %count",
        "br i1 %more, label %loop, label %exit",
        "exit:",
        "ret void",
        "}",
    ])  # fmt: skip
    return frozenset({definition, *text.declares})


# ---- sin, cos, tan


def _sin_or_cos(reduced: _Reduced, offset: int) -> Vec:
    r = reduced.r
    dtype = r.reg.dtype
    z = r * r
    sine = (z * r).mad(horner(z, C.SIN[dtype]), r)
    cosine = (z * z).mad(horner(z, C.COS[dtype]), z.mad(-0.5, 1.0))
    return reduced.odd(offset).choose(cosine, sine).negated_if(reduced.sign(offset))


@on_numbers
def sin(x: Vec) -> Vec:
    return _sin_or_cos(_reduce(abs(x)), 0).negated_if(x.sign_bit())


@on_numbers
def cos(x: Vec) -> Vec:
    return _sin_or_cos(_reduce(abs(x)), 1)


@on_numbers
def tan(x: Vec) -> Vec:
    """sin / cos or -cos / sin, depending on the quadrant, each as an unevaluated sum."""
    reduced = _reduce(abs(x), with_low=True)
    r, quadrant, low = reduced
    assert low is not None
    dtype = r.reg.dtype
    z = r * r
    sine, sine_low = fast_two_sum(r, (z * r).mad(horner(z, C.SIN[dtype]), low))
    half = z * 0.5
    near_one = 1.0 - half
    tail = (z * z).mad(horner(z, C.COS[dtype]), r.mad(-low, (1.0 - near_one) - half))
    cosine, cosine_low = fast_two_sum(near_one, tail)
    odd = reduced.odd(0)
    ratio = divide(odd.choose(cosine, sine), odd.choose(cosine_low, sine_low), odd.choose(sine, cosine), odd.choose(sine_low, cosine_low))
    flip = (quadrant & 1) << (dtype.itemsize * 8 - 1)
    return ratio.negated_if(flip).negated_if(x.sign_bit())


# ---- inverses


def _asin_core(size: Vec) -> tuple[Vec, Vec, Vec]:
    """Whether size < 1/2, and s with the remainder of asin(s), where s is `size`, or sqrt((1 - size) / 2) for larger sizes."""
    direct = size.lt(0.5)
    z = direct.choose(size * size, (1.0 - size) * 0.5)
    s = direct.choose(size, z.sqrt())
    return direct, s, s * z * polynomial(z, C.ASIN[size.reg.dtype])


@on_numbers
def asin(x: Vec) -> Vec:
    direct, s, rest = _asin_core(abs(x))
    high, low, _ = C.HALF_PI[x.reg.dtype]
    total, error = fast_two_sum(s.like(high), s * -2.0)
    near_one = total + (error - (rest * 2.0 - low))
    return direct.choose(s + rest, near_one).copysign(x)


@on_numbers
def acos(x: Vec) -> Vec:
    direct, s, rest = _asin_core(abs(x))
    high, low, _ = C.HALF_PI[x.reg.dtype]
    middle = high - (s.copysign(x) + (rest.copysign(x) - low))
    double = (s + rest) * 2.0
    far = 2.0 * high - (s * 2.0 + (rest * 2.0 - 2.0 * low))
    return direct.choose(middle, x.lt(0.0).choose(far, double))


def _atan_ratio(y: Vec, x: Vec, negative: Vec | None) -> Vec:
    """The angle of (x, y) for finite x, y >= 0 that are not both 0, or of (-x, y) where `negative`."""
    dtype = x.reg.dtype
    steep = y.gt(x)
    longer, shorter = steep.choose(y, x), steep.choose(x, y)
    # near the diagonal, rotate by π/4 to keep |t| <= 1/2
    diagonal = shorter.gt(longer * 0.5)
    t = diagonal.choose(shorter - longer, shorter) / diagonal.choose(shorter + longer, longer)
    # the angle is eighths * π/4 +- atan(t)
    eighths = diagonal.choose(1.0, 0.0, like=x)
    eighths = steep.choose(2.0 - eighths, eighths)
    t = steep.choose(-t, t)
    if negative is not None:
        eighths = negative.choose(4.0 - eighths, eighths)
        t = negative.choose(-t, t)
    z = t * t
    high, low = C.QUARTER_PI[dtype]
    rest = (t * z).mad(polynomial(z, C.ATAN[dtype]), eighths * low)
    return eighths.mad(high, t + rest)


@on_numbers
def atan(x: Vec) -> Vec:
    # 2**60 serves as infinity, and keeps the quotient from becoming 0 / 0 or inf / inf
    return _atan_ratio(abs(x).clamp(None, 2.0**60), x.like(1.0), None).copysign(x)


@on_numbers
def atan2(y: Vec, x: Vec) -> Vec:
    form = x.format
    rise, run = abs(y), abs(x)
    # their sum must not overflow; what underflows here is negligible compared with the other
    large = 2.0 ** (form.bias - 2)
    scale = (rise.gt(large) | run.gt(large)).choose(2.0**-4, 1.0, like=x)
    rise, run = rise * scale, run * scale
    # (inf, inf) is on the diagonal, and (0, 0) on the axis
    both = rise.eq(INF) & run.eq(INF)
    rise = both.choose(1.0, rise)
    run = both.choose(1.0, (rise.eq(0.0) & run.eq(0.0)).choose(1.0, run))
    negative = x.bits().lt(0)
    angle = _atan_ratio(rise, run, negative).copysign(y)
    return x.unordered(y).choose(x + y, angle)
