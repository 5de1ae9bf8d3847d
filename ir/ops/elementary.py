"""Elementary functions: exponentials, logarithms, roots, trigonometry and their friends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .base import Array
from .maps import FloatUnary, float_unary

__all__ = ["exp", "log", "tanh"]

if TYPE_CHECKING:
    from ..operand import Operand


class Exp(FloatUnary):
    """e to the power of x."""

    def evaluate(self, *arrays: Array) -> Array:
        return np.exp(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return y


class Log(FloatUnary):
    """Natural logarithm."""

    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.log(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return 1.0 / args[0]


class Tanh(FloatUnary):
    """Hyperbolic tangent."""

    def evaluate(self, *arrays: Array) -> Array:
        return np.tanh(arrays[0])

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return 1.0 - y * y


def exp(x: Operand) -> Operand:
    return float_unary(Exp(), x)


def log(x: Operand) -> Operand:
    return float_unary(Log(), x)


def tanh(x: Operand) -> Operand:
    return float_unary(Tanh(), x)
