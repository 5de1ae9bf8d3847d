"""Arithmetic: add, sub, div, neg, absolute value, sign, rounding, maximum and minimum."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..types import BOOL, F64, I64, DType, float_dtype
from .base import Array, Emitter, Reg, apply
from .complex import from_parts, imag, real
from .elementary import hypot
from .maps import Binary, Mul, Unary, binary, cast, common_dtype, float_binary, has_complex, of_one_type, promoted, unary, where

__all__ = [
    "add", "sub", "mul", "div", "neg", "absolute", "sign", "copysign", "floor", "ceil", "round", "trunc",
    "maximum", "minimum", "clip", "relu",
]  # fmt: skip

if TYPE_CHECKING:
    from ..operand import Operand


class Add(Binary):
    """a + b; logical or for bools."""

    numpy = "{} + {}"
    counts = True
    kinds = "fiubc"

    def evaluate(self, *arrays: Array) -> Array:
        return np.add(*arrays)

    def _chain(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return d

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.add(*xs)


class Sub(Binary):
    """a - b."""

    numpy = "{} - {}"
    counts = True
    kinds = "fiuc"

    def evaluate(self, *arrays: Array) -> Array:
        return np.subtract(*arrays)

    def _chain(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return d if i == 0 else -d

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.sub(*xs)


class Div(Binary):
    """a / b, true division of floats."""

    numpy = "{} / {}"
    kinds = "fc"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.divide(*arrays)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return 1.0 / args[1] if i == 0 else -y / args[1]

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.fdiv(*xs)


class Neg(Unary):
    """-x."""

    numpy = "-{}"
    kinds = "fiuc"

    def evaluate(self, *arrays: Array) -> Array:
        return np.negative(arrays[0])

    def _chain(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return -d

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.neg(xs[0])


# ---- magnitude and sign


class Abs(Unary):
    """|x|; its derivative at 0 is 0."""

    numpy = "np.abs({})"
    kinds = "fiu"

    def evaluate(self, *arrays: Array) -> Array:
        return np.absolute(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return sign(args[0])

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        (x,) = xs
        if x.dtype.kind == "i":
            return emit.select(emit.compare("lt", x, emit.like(x, 0)), emit.neg(x), x)
        return emit.fabs(x) if x.dtype.kind == "f" else x


class Sign(Unary):
    """-1, 0 or 1; NaN stays NaN."""

    numpy = "np.sign({})"
    kinds = "fiu"
    differentiable = False

    def evaluate(self, *arrays: Array) -> Array:
        return np.sign(arrays[0])

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        (x,) = xs
        zero, one = emit.like(x, 0), emit.like(x, 1)
        rest = zero
        if x.dtype.kind == "f":
            rest = emit.select(emit.compare("eq", x, zero), zero, x)
        if x.dtype.kind != "u":
            rest = emit.select(emit.compare("lt", x, zero), emit.like(x, -1), rest)
        return emit.select(emit.compare("gt", x, zero), one, rest)


class Copysign(Binary):
    """|a| with the sign of b."""

    numpy = "np.copysign({}, {})"
    kinds = "f"

    def evaluate(self, *arrays: Array) -> Array:
        return np.copysign(*arrays)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand | None:
        one = y.literal(1.0, y.type)
        return apply(self, one, args[0]) * apply(self, one, args[1]) if i == 0 else None

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.copysign(*xs)


# ---- rounding


class Floor(Unary):
    """The largest integer that is at most x."""

    numpy = "np.floor({})"
    kinds = "f"
    differentiable = False

    def evaluate(self, *arrays: Array) -> Array:
        return np.floor(arrays[0])

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.floor(xs[0])


class Ceil(Unary):
    """The smallest integer that is at least x."""

    numpy = "np.ceil({})"
    kinds = "f"
    differentiable = False

    def evaluate(self, *arrays: Array) -> Array:
        return np.ceil(arrays[0])

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.ceil(xs[0])


class Round(Unary):
    """The nearest integer; ties go to the even one."""

    numpy = "np.rint({})"
    kinds = "f"
    differentiable = False

    def evaluate(self, *arrays: Array) -> Array:
        return np.rint(arrays[0])

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.rint(xs[0])


class Trunc(Unary):
    """The nearest integer towards zero."""

    numpy = "np.trunc({})"
    kinds = "f"
    differentiable = False

    def evaluate(self, *arrays: Array) -> Array:
        return np.trunc(arrays[0])

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.trunc(xs[0])


# ---- maximum and minimum


class BinaryExtremum(Binary, abstract=True):
    """One of two operands; NaN propagates. In a tie the first operand is selected, and so is its derivative."""

    predicate: ClassVar[str]  # holds for (b, a) if the second operand wins

    def first(self, a: Operand, b: Operand) -> Operand:
        """Where the first operand is selected."""
        raise NotImplementedError(self.name)

    def _chain(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        taken = self.first(*args)
        return where(taken, d, 0.0) if i == 0 else where(taken, 0.0, d)

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        a, b = xs
        winner = emit.select(emit.compare(self.predicate, b, a), b, a)  # in this order one instruction: a NaN in a is selected
        return emit.select(emit.unordered(b, b), b, winner) if a.dtype.kind == "f" else winner


class Maximum(BinaryExtremum):
    """The larger of a and b."""

    numpy = "np.maximum({}, {})"
    predicate = "gt"

    def evaluate(self, *arrays: Array) -> Array:
        return np.maximum(*arrays)

    def first(self, a: Operand, b: Operand) -> Operand:
        return a >= b


class Minimum(BinaryExtremum):
    """The smaller of a and b."""

    numpy = "np.minimum({}, {})"
    predicate = "lt"

    def evaluate(self, *arrays: Array) -> Array:
        return np.minimum(*arrays)

    def first(self, a: Operand, b: Operand) -> Operand:
        return a <= b


# ---- frontend functions


ADD, SUB, MUL, DIV, NEG = Add(), Sub(), Mul(), Div(), Neg()  # made once: long programs have thousands of them


def add(a: Operand | float, b: Operand | float) -> Operand:
    return binary(ADD, a, b)


def sub(a: Operand | float, b: Operand | float) -> Operand:
    return binary(SUB, a, b)


def mul(a: Operand | float, b: Operand | float) -> Operand:
    return binary(MUL, a, b)


def div(a: Operand | float, b: Operand | float) -> Operand:
    alike = of_one_type((a, b))
    return apply(DIV, *(promoted("div", (a, b), float_dtype(common_dtype(a, b))) if alike is None else alike))


def neg(x: Operand) -> Operand:
    return unary(NEG, x)


def absolute(x: Operand) -> Operand:
    if x.type.is_complex:
        return hypot(real(x), imag(x))
    return x if x.type.dtype.kind in "ub" else unary(Abs(), x)


def sign(x: Operand) -> Operand:
    """-1, 0 or 1; for complex numbers z / |z|, which is differentiable."""
    if x.type.is_complex:
        return complex_sign(x)
    return unary(Sign(), x)


def complex_sign(z: Operand) -> Operand:
    """z / |z|: 0 at 0, the direction of the infinite part where one is, NaN where both are."""
    parts, size = (real(z), imag(z)), absolute(z)
    without = (size == 0.0) | (size == math.inf)  # then p / |z| is undefined
    both = (absolute(parts[0]) == math.inf) & (absolute(parts[1]) == math.inf)
    unit = where(without, 1.0, size)
    directions = [where(absolute(p) == math.inf, where(both, math.nan, copysign(1.0, p)), where(without, 0.0, p / unit)) for p in parts]
    return from_parts(*directions)


def copysign(a: Operand | float, b: Operand | float) -> Operand:
    return float_binary(Copysign(), a, b)


def floor(x: Operand) -> Operand:
    return unary(Floor(), x) if x.type.is_inexact else x


def ceil(x: Operand) -> Operand:
    return unary(Ceil(), x) if x.type.is_inexact else x


def trunc(x: Operand) -> Operand:
    return unary(Trunc(), x) if x.type.is_inexact else x


def round(x: Operand, digits: int = 0) -> Operand:
    """Round half to even at a decimal digit: scaled by a power of ten, rounded and scaled back, as in NumPy."""
    if x.type.is_complex:
        return from_parts(round(real(x), digits), round(imag(x), digits))
    if not x.type.is_float and x.type.dtype != BOOL:
        if digits >= 0:
            return x
        rounded = round(cast(x, F64), digits)
        return cast(rounded if x.type.dtype.itemsize == 8 else cast(rounded, I64), x.type.dtype)  # small integers wrap around
    if digits == 0:
        return unary(Round(), x)
    scale = 10.0 ** abs(digits) if abs(digits) <= sys.float_info.max_10_exp else math.inf
    return unary(Round(), x * scale) / scale if digits > 0 else unary(Round(), x / scale) * scale


def maximum(a: Operand | float, b: Operand | float) -> Operand:
    return complex_extreme(a, b, True) if has_complex(a, b) else binary(Maximum(), a, b)


def minimum(a: Operand | float, b: Operand | float) -> Operand:
    return complex_extreme(a, b, False) if has_complex(a, b) else binary(Minimum(), a, b)


def complex_extreme(a: Operand | complex, b: Operand | complex, largest: bool) -> Operand:
    from . import order  # noqa: PLC0415 - few programs need it

    return order.extreme(a, b, largest)


def clip(x: Operand, low: Operand | float | None = None, high: Operand | float | None = None) -> Operand:
    """x clamped to [low, high]; the derivative at either bound is that of x. Python integers beyond the range of x's dtype do nothing."""
    low_end, high_end = integer_range(x.type.dtype)
    raised = x if low is None or is_integer_within(low, -math.inf, low_end) else maximum(x, low)
    return raised if high is None or is_integer_within(high, high_end, math.inf) else minimum(raised, high)


def integer_range(dtype: DType) -> tuple[float, float]:
    """The least and the greatest integer of a dtype; infinities if it is not an integer dtype."""
    return (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) if dtype.kind in "iu" else (-math.inf, math.inf)


def is_integer_within(x: Any, low: float, high: float) -> bool:
    return isinstance(x, int) and low <= x <= high


def relu(x: Operand) -> Operand:
    """max(0, x), with derivative 0 at 0: in a tie the literal is selected."""
    return maximum(0, x)
