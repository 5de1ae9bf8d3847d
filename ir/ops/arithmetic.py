"""Arithmetic: add, sub, div, neg, powers, absolute value, rounding, integer division, maximum and minimum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .base import Array, Emitter, Reg
from .maps import Binary, Mul, Unary, binary, float_binary, unary

__all__ = ["add", "div", "mul", "neg", "sub"]

if TYPE_CHECKING:
    from ..operand import Operand


class Add(Binary):
    """a + b; logical or for bools."""

    def evaluate(self, *arrays: Array) -> Array:
        return np.add(*arrays)

    def _chain(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return d

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.add(*xs)


class Sub(Binary):
    """a - b."""

    kinds = "fiu"

    def evaluate(self, *arrays: Array) -> Array:
        return np.subtract(*arrays)

    def _chain(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return d if i == 0 else -d

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.sub(*xs)


class Div(Binary):
    """a / b, true division of floats."""

    kinds = "f"
    singular = True

    def evaluate(self, *arrays: Array) -> Array:
        return np.divide(*arrays)

    def derivative(self, i: int, y: Operand, *args: Operand) -> Operand:
        return 1.0 / args[1] if i == 0 else -y / args[1]

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.fdiv(*xs)


class Neg(Unary):
    """-x."""

    kinds = "fiu"

    def evaluate(self, *arrays: Array) -> Array:
        return np.negative(arrays[0])

    def _chain(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return -d

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.neg(xs[0])


def add(a: Operand | float, b: Operand | float) -> Operand:
    return binary(Add(), a, b)


def sub(a: Operand | float, b: Operand | float) -> Operand:
    return binary(Sub(), a, b)


def mul(a: Operand | float, b: Operand | float) -> Operand:
    return binary(Mul(), a, b)


def div(a: Operand | float, b: Operand | float) -> Operand:
    return float_binary(Div(), a, b)


def neg(x: Operand) -> Operand:
    return unary(Neg(), x)
