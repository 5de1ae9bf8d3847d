"""Elementary functions: exponentials, logarithms, roots, trigonometric and hyperbolic functions.

Integers are computed in float64, as in NumPy; float32 stays float32.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .. import source_helpers
from ..types import F32, F64
from .base import Array, Emitter, Reg
from .maps import Binary, ComplexUnary, FloatUnary, float_binary, float_unary, where

__all__ = [
    "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "hypot",
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "erf", "sigmoid", "softplus",
]  # fmt: skip

if TYPE_CHECKING:
    from ..operand import Operand

# ---- exponentials and logarithms


class Exp(ComplexUnary):
    """e to the power of x."""

    numpy = "np.exp({})"

    def evaluate(self, *arrays: Array) -> Array:
        return np.exp(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return y


class Expm1(ComplexUnary):
    """exp(x) - 1, accurate near 0."""

    numpy = "np.expm1({})"

    def evaluate(self, *arrays: Array) -> Array:
        return np.expm1(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return y + 1.0


class Log(ComplexUnary):
    """Natural logarithm."""

    numpy = "np.log({})"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.log(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return 1.0 / args[0]


class Log1p(ComplexUnary):
    """log(1 + x), accurate near 0."""

    numpy = "np.log1p({})"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.log1p(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return 1.0 / (1.0 + args[0])


class Sigmoid(FloatUnary):
    """1 / (1 + exp(-x))."""

    numpy = "sigmoid({})"

    def evaluate(self, *arrays: Array) -> Array:
        return np.asarray(source_helpers.sigmoid(arrays[0]))

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return y * (1.0 - y)


class Softplus(FloatUnary):
    """log(1 + exp(x)) without overflow."""

    numpy = "np.logaddexp({}, 0)"

    def evaluate(self, *arrays: Array) -> Array:
        return np.asarray(np.logaddexp(arrays[0], arrays[0].dtype.type(0)))

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return sigmoid(args[0])


# ---- roots


class Sqrt(ComplexUnary):
    """Square root; its derivative at 0 is infinite."""

    numpy = "np.sqrt({})"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.sqrt(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return 0.5 / y

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.sqrt(xs[0])


class Rsqrt(ComplexUnary):
    """1 / sqrt(x)."""

    numpy = "1 / np.sqrt({})"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.asarray(arrays[0].dtype.type(1) / np.sqrt(arrays[0]))

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return -0.5 * y / args[0]

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.fdiv(emit.like(xs[0], 1.0), emit.sqrt(xs[0]))


class Hypot(Binary):
    """sqrt(a*a + b*b) without overflow; its derivative at the origin is 0, like that of `norm`."""

    numpy = "np.hypot({}, {})"
    kinds = "f"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.hypot(*arrays)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return where(y == 0.0, 0.0, args[i] / y)

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        a, b = map(emit.fabs, xs)
        larger = emit.select(emit.compare("lt", a, b), b, a)
        # scale by a power of two that keeps the squares in range; an operand that is negligible beside the other does not matter
        high, low, down, up = SCALES[a.dtype]
        huge, tiny = emit.compare("gt", larger, emit.like(a, high)), emit.compare("lt", larger, emit.like(a, low))
        scale, back = (
            emit.select(huge, emit.like(a, x), emit.select(tiny, emit.like(a, y), emit.like(a, 1.0)))
            for x, y in ((down, up), (1 / down, 1 / up))
        )
        a, b = emit.mul(a, scale), emit.mul(b, scale)
        length = emit.mul(emit.sqrt(emit.add(emit.mul(a, a), emit.mul(b, b))), back)
        inf = emit.like(a, math.inf)
        infinite = emit.or_(emit.compare("eq", a, inf), emit.compare("eq", b, inf))
        return emit.select(infinite, inf, length)


# magnitudes above and below which `hypot` scales its arguments, and the factors
SCALES = {F32: (2.0**60, 2.0**-40, 2.0**-70, 2.0**100), F64: (2.0**500, 2.0**-400, 2.0**-600, 2.0**700)}


# ---- trigonometry


class Sin(ComplexUnary):
    """Sine."""

    numpy = "np.sin({})"

    def evaluate(self, *arrays: Array) -> Array:
        return np.sin(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return cos(args[0])


class Cos(ComplexUnary):
    """Cosine."""

    numpy = "np.cos({})"

    def evaluate(self, *arrays: Array) -> Array:
        return np.cos(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return -sin(args[0])


class Tan(ComplexUnary):
    """Tangent."""

    numpy = "np.tan({})"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.tan(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return 1.0 + y * y


class Asin(ComplexUnary):
    """Inverse sine."""

    numpy = "np.arcsin({})"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.arcsin(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return rsqrt((1.0 - args[0]) * (1.0 + args[0]))


class Acos(ComplexUnary):
    """Inverse cosine."""

    numpy = "np.arccos({})"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.arccos(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return -rsqrt((1.0 - args[0]) * (1.0 + args[0]))


class Atan(ComplexUnary):
    """Inverse tangent."""

    numpy = "np.arctan({})"

    def evaluate(self, *arrays: Array) -> Array:
        return np.arctan(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return 1.0 / (1.0 + args[0] * args[0])


class Atan2(Binary):
    """The angle of the point (b, a)."""

    numpy = "np.arctan2({}, {})"
    kinds = "f"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.arctan2(*arrays)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        a, b = args
        square = a * a + b * b
        return b / square if i == 0 else -a / square

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.call("atan2", *xs)


# ---- hyperbolic functions


class Sinh(ComplexUnary):
    """Hyperbolic sine."""

    numpy = "np.sinh({})"

    def evaluate(self, *arrays: Array) -> Array:
        return np.sinh(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return cosh(args[0])


class Cosh(ComplexUnary):
    """Hyperbolic cosine."""

    numpy = "np.cosh({})"

    def evaluate(self, *arrays: Array) -> Array:
        return np.cosh(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return sinh(args[0])


class Tanh(ComplexUnary):
    """Hyperbolic tangent."""

    numpy = "np.tanh({})"

    def evaluate(self, *arrays: Array) -> Array:
        return np.tanh(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return 1.0 - y * y


class Asinh(ComplexUnary):
    """Inverse hyperbolic sine."""

    numpy = "np.arcsinh({})"

    def evaluate(self, *arrays: Array) -> Array:
        return np.arcsinh(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return rsqrt(1.0 + args[0] * args[0])


class Acosh(ComplexUnary):
    """Inverse hyperbolic cosine, for x >= 1."""

    numpy = "np.arccosh({})"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.arccosh(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        # the product under one root would lie on the wrong branch for complex numbers
        return rsqrt(args[0] - 1.0) * rsqrt(args[0] + 1.0) if args[0].type.is_complex else rsqrt((args[0] - 1.0) * (args[0] + 1.0))


class Atanh(ComplexUnary):
    """Inverse hyperbolic tangent, for x between -1 and 1."""

    numpy = "np.arctanh({})"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.arctanh(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return 1.0 / ((1.0 - args[0]) * (1.0 + args[0]))


# ---- error function


class Erf(FloatUnary):
    """The error function, 2 / sqrt(pi) times the integral of exp(-t*t) from 0 to x."""

    numpy = "erf({})"

    def evaluate(self, *arrays: Array) -> Array:
        return np.asarray(source_helpers.erf(arrays[0]))

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return 2.0 / math.sqrt(math.pi) * exp(-args[0] * args[0])


# ---- frontend functions


def exp(x: Operand) -> Operand:
    return float_unary(Exp(), x)


def expm1(x: Operand) -> Operand:
    return float_unary(Expm1(), x)


def log(x: Operand) -> Operand:
    return float_unary(Log(), x)


def log1p(x: Operand) -> Operand:
    return float_unary(Log1p(), x)


def sqrt(x: Operand) -> Operand:
    return float_unary(Sqrt(), x)


def rsqrt(x: Operand) -> Operand:
    return float_unary(Rsqrt(), x)


def hypot(a: Operand | float, b: Operand | float) -> Operand:
    return float_binary(Hypot(), a, b)


def sin(x: Operand) -> Operand:
    return float_unary(Sin(), x)


def cos(x: Operand) -> Operand:
    return float_unary(Cos(), x)


def tan(x: Operand) -> Operand:
    return float_unary(Tan(), x)


def asin(x: Operand) -> Operand:
    return float_unary(Asin(), x)


def acos(x: Operand) -> Operand:
    return float_unary(Acos(), x)


def atan(x: Operand) -> Operand:
    return float_unary(Atan(), x)


def atan2(a: Operand | float, b: Operand | float) -> Operand:
    return float_binary(Atan2(), a, b)


def sinh(x: Operand) -> Operand:
    return float_unary(Sinh(), x)


def cosh(x: Operand) -> Operand:
    return float_unary(Cosh(), x)


def tanh(x: Operand) -> Operand:
    return float_unary(Tanh(), x)


def asinh(x: Operand) -> Operand:
    return float_unary(Asinh(), x)


def acosh(x: Operand) -> Operand:
    return float_unary(Acosh(), x)


def atanh(x: Operand) -> Operand:
    return float_unary(Atanh(), x)


def erf(x: Operand) -> Operand:
    return float_unary(Erf(), x)


def sigmoid(x: Operand) -> Operand:
    return float_unary(Sigmoid(), x)


def softplus(x: Operand) -> Operand:
    return float_unary(Softplus(), x)
