"""Powers: with any exponent, and with static integer exponents by repeated multiplication."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np

from ..errors import DTypeError
from ..operand import Concrete, Literal, Operand
from ..types import BOOL, F32, F64, I8, TensorType
from .base import Array, Emitter, Reg, Writing, apply, with_attributes
from .effects import check
from .elementary import log, sqrt
from .maps import SCALAR, Binary, Unary, cast, common_dtype, masking, promoted, strong_mul, where
from .reduce import all as all_true

__all__ = ["power", "square"]


T = TypeVar("T")

MULTIPLIED = 64  # the largest exponent of a float that is expanded into multiplications
ROUNDED = range(-2, 5)  # exponents whose products may round at every step and stay within 2 ULP


NEGATIVE = "power: an integer to a negative integer power; cast the base to a float"


class NegativePowerError(DTypeError, ValueError):
    """An integer to a negative power, which is not an integer: a ValueError in NumPy."""


class Power(Binary):
    """a to the power of b. An integer to a negative power raises: here, or by the check that `power` emits before it; native code itself
    truncates it to 0, 1 or -1.

    The derivative with respect to the exponent is 0 where a real base is not positive or a complex base is 0, and that with respect to
    the base where the exponent is 0.
    """

    numpy = "np.power({}, {})"
    kinds = "fiuc"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        a, b = arrays
        if b.dtype.kind == "i" and (b < 0).any():
            raise NegativePowerError(NEGATIVE)
        return np.power(a, b)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        a, b = args
        return where(b == 0.0, 0.0, b * power(a, b - 1.0)) if i == 0 else where(a != 0.0 if a.type.is_complex else a > 0.0, y * log(a), 0.0)

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.call("pow", *xs) if xs[0].dtype.kind == "f" else integer_power(emit, *xs)

    def splat(self, *values: Any) -> Any:
        return None if values[1].dtype.kind == "i" and values[1] < 0 else super().splat(*values)


def integer_power(emit: Emitter, a: Reg, b: Reg) -> Reg:
    """Square and multiply over all bits of the exponent; wraps around as in NumPy."""
    zero, one = emit.like(a, 0), emit.like(a, 1)
    signed = a.dtype.kind == "i"
    total, square, bits = one, a, b
    for k in range(a.dtype.itemsize * 8 - signed):
        if k:
            square, bits = emit.mul(square, square), emit.shr(bits, one)
        total = emit.select(emit.compare("ne", emit.and_(bits, one), zero), emit.mul(total, square), total)
    if not signed:
        return total
    minus = emit.like(a, -1)
    alternating = emit.select(emit.compare("ne", emit.and_(b, one), zero), minus, one)
    truncated = emit.select(emit.compare("eq", a, one), one, emit.select(emit.compare("eq", a, minus), alternating, zero))
    return emit.select(emit.compare("lt", b, zero), truncated, total)


@with_attributes
class IntegerPow(Unary):
    """x to the power of a static integer."""

    n: int
    kinds: ClassVar[str] = "fiuc"

    def infer(self, *types: TensorType) -> TensorType:
        if self.n < 0 and not types[0].is_inexact:
            raise NegativePowerError(f"integer_pow: {types[0]} to the power of {self.n} is not an integer; cast the base to a float")
        return super().infer(*types)

    def evaluate(self, *arrays: Array) -> Array:
        (x,) = arrays
        if x.dtype.kind in "fc" and self.n not in ROUNDED:
            return np.asarray(np.power(x, x.dtype.type(self.n)))
        return multiplied(x if self.n > 0 else np.divide(x.dtype.type(1), x), abs(self.n), np.multiply) if self.n else np.ones_like(x)

    def python(self, write: Writing, *args: Operand) -> Any:
        (x,) = args
        if x.type.is_float and self.n not in ROUNDED:
            return write("np.power({}, {})", write.array(x), write.value(self.n))
        if self.n == 0:
            return write("np.ones_like({})", write.array(x))
        if self.n == 3:
            base = write.atom(x)
            return write("{} * np.square({})", base, base)
        if not x.type.is_float and self.n not in ROUNDED:
            return write("np.power({}, {})", write.array(x), write.value(self.n))
        base = write.array(x) if self.n > 0 else write("1 / {}", write.array(x))
        return write({1: "{}", 2: "np.square({})", 4: "np.square(np.square({}))"}[abs(self.n)], base)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand | float:
        return float(self.n) if self.n in (0, 1) else float(self.n) * apply(IntegerPow(self.n - 1), args[0])

    def _chain(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        partial = self.derivative(i, y, *args)
        return strong_mul(d, partial) if self.n < 0 or masking.active else d * partial

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        (x,) = xs
        one = emit.like(x, 1)
        if self.n == 0:
            return one
        if x.dtype == F64 and self.n not in ROUNDED:
            return compensated(emit.strict(), x, self.n)
        wide = x.dtype == F32 and self.n not in ROUNDED
        base = emit.convert(x, F64) if wide else x
        product = multiplied(base if self.n > 0 else emit.fdiv(emit.like(base, 1), base), abs(self.n), emit.mul)
        return emit.convert(product, F32) if wide else product


def compensated(emit: Emitter, x: Reg, n: int) -> Reg:
    """x to the power of n, with compensation for the rounding errors of all products: an error of little more than one rounding in total.

    A negative exponent takes the reciprocal first: a power that overflows would lose subnormal results.
    """

    def mul(a: tuple[Reg, Reg | None], b: tuple[Reg, Reg | None]) -> tuple[Reg, Reg | None]:
        (x, x_low), (y, y_low) = a, b
        product = emit.mul(x, y)
        error = emit.fma(x, y, emit.neg(product))
        if a is b:
            return product, error if x_low is None else emit.mad(emit.add(x, x), x_low, error)
        for factor, low in ((x, y_low), (y, x_low)):
            error = error if low is None else emit.mad(factor, low, error)
        return product, error

    first: tuple[Reg, Reg | None] = (x, None)
    if n < 0:
        one = emit.like(x, 1.0)
        reciprocal = emit.fdiv(one, x)
        first = reciprocal, emit.mul(emit.fma(emit.neg(reciprocal), x, one), reciprocal)
    value, error = multiplied(first, abs(n), mul)
    total = emit.add(value, error)
    # next to infinity the error is infinite or NaN; and adding the error to a zero would lose the zero's sign
    return emit.select(emit.unordered(total, total), value, emit.copysign(total, value))


def multiplied(x: T, n: int, mul: Callable[[T, T], T]) -> T:
    """x to the power of n > 0, by squaring."""
    square, total = x, None
    while True:
        if n & 1:
            total = square if total is None else mul(total, square)
        n >>= 1
        if not n:
            assert total is not None
            return total
        square = mul(square, square)


def power(a: Operand | float, b: Operand | float) -> Operand:
    """a to the power of b; a Python scalar exponent is expanded into multiplications, or a square root, as in NumPy."""
    dtype = common_dtype(a, b)
    if isinstance(b, bool | int | float) and not isinstance(a, SCALAR):
        dtype = I8 if dtype == BOOL else dtype
        if dtype.kind in "iu" or (abs(b) <= MULTIPLIED and b == int(b)):
            return apply(IntegerPow(int(b)), cast(a, dtype))
        if b == 0.5:
            return sqrt(cast(a, dtype))
    base, exponent = promoted("power", (a, b), I8 if dtype == BOOL else dtype)
    if exponent.type.dtype.kind == "i" and not isinstance(exponent, Concrete | Literal):
        check(all_true(exponent >= 0), NEGATIVE, "ValueError")
    return apply(Power(), base, exponent)


def square(x: Operand) -> Operand:
    wide = cast(x, I8) if x.type.dtype == BOOL else x
    return wide * wide
