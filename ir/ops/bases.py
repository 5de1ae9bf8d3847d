"""Exponentials and logarithms to other bases than e, logarithms of sums of exponentials, and the cube root."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .base import Array, Emitter, Reg
from .elementary import sigmoid
from .maps import Binary, ComplexUnary, FloatUnary, float_binary, float_unary, where

__all__ = ["exp2", "log2", "log10", "logaddexp", "logaddexp2", "cbrt"]

if TYPE_CHECKING:
    from ..operand import Operand

LN2 = math.log(2.0)


class Exp2(ComplexUnary):
    """2 to the power of x."""

    numpy = "np.exp2({})"

    def evaluate(self, *arrays: Array) -> Array:
        return np.exp2(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return y * LN2


class Log2(ComplexUnary):
    """Logarithm to base 2."""

    numpy = "np.log2({})"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.log2(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return (1.0 / LN2) / args[0]


class Log10(ComplexUnary):
    """Logarithm to base 10."""

    numpy = "np.log10({})"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.log10(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return (1.0 / math.log(10.0)) / args[0]


class Cbrt(FloatUnary):
    """Cube root, of negative numbers too; its derivative at 0 is infinite."""

    numpy = "np.cbrt({})"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.cbrt(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return (1.0 / 3.0) / (y * y)


class LogSum(Binary, abstract=True):
    """log(base**a + base**b) without overflow. If both are -inf, the gradients are zero."""

    kinds = "f"
    singular = True
    log_base: ClassVar[float]
    exponential: ClassVar[str]

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        distance = args[i] - args[1 - i]
        return where(y == -math.inf, 0.0, sigmoid(distance if self.log_base == 1.0 else distance * self.log_base))

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        a, b = xs
        larger = emit.select(emit.compare("gt", a, b), a, b)
        excess = emit.call("log1p", emit.call(self.exponential, emit.neg(emit.fabs(emit.sub(a, b)))))
        if self.log_base != 1.0:
            excess = emit.mul(excess, emit.like(a, 1.0 / self.log_base))
        # the difference of equal infinities is NaN
        return emit.select(emit.compare("eq", a, b), emit.add(a, emit.like(a, LN2 / self.log_base)), emit.add(larger, excess))


class Logaddexp(LogSum):
    """log(exp(a) + exp(b)) without overflow. If both are -inf, the gradients are zero."""

    numpy = "np.logaddexp({}, {})"
    log_base, exponential = 1.0, "exp"

    def evaluate(self, *arrays: Array) -> Array:
        return np.logaddexp(*arrays)


class Logaddexp2(LogSum):
    """log2(2**a + 2**b) without overflow. If both are -inf, the gradients are zero."""

    numpy = "np.logaddexp2({}, {})"
    log_base, exponential = LN2, "exp2"

    def evaluate(self, *arrays: Array) -> Array:
        return np.logaddexp2(*arrays)


# ---- frontend functions


def exp2(x: Operand) -> Operand:
    return float_unary(Exp2(), x)


def log2(x: Operand) -> Operand:
    return float_unary(Log2(), x)


def log10(x: Operand) -> Operand:
    return float_unary(Log10(), x)


def logaddexp(a: Operand | float, b: Operand | float) -> Operand:
    return float_binary(Logaddexp(), a, b)


def logaddexp2(a: Operand | float, b: Operand | float) -> Operand:
    return float_binary(Logaddexp2(), a, b)


def cbrt(x: Operand) -> Operand:
    return float_unary(Cbrt(), x)
