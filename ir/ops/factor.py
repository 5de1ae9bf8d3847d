"""Determinants of (stacks of) floating-point matrices, from their factors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..cost import MATH, Cost
from ..errors import ShapeError
from ..types import I64, TensorType
from .base import Array, Loops, Op, Window, Writing, apply, nest
from .join import concatenate
from .lu import Lu, check_square, lu
from .maps import where
from .reduce import sum as total
from .shape import broadcast_to, reshape, slice_
from .solve import SolveWith, identity

__all__ = ["slogdet"]

if TYPE_CHECKING:
    from ..operand import Operand


class Slogdet(Op):
    """Sign and logarithm of the absolute value of determinants, along a new last axis, from matrices and their factors by `Lu`.

    For a singular matrix they are 0 and -inf. Derivatives are with respect to the matrix.
    """

    made_from: ClassVar[dict[int, tuple[str, int]]] = {1: (Lu.name, 0)}

    def infer(self, *types: TensorType) -> TensorType:
        a, factors = types
        check_square("slogdet", a)
        if factors != Lu().infer(a):
            raise ShapeError(f"slogdet: {factors} are not the factors of the matrices {a}")
        return a.with_shape((*a.shape[:-2], 2))

    def evaluate(self, *arrays: Array) -> Array:
        return np.stack(np.linalg.slogdet(arrays[0]), -1)

    def python(self, write: Writing, *args: Operand) -> Any:
        return write("np.stack(np.linalg.slogdet({}), -1)", write.array(args[0]))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        if i == 1:
            return None
        moved = apply(SolveWith(), *args, d)
        slope = total(where(identity(moved), moved, 0.0), (-2, -1))
        return concatenate([slope.literal(0, slope.type.with_shape((*slope.shape, 1))), reshape(slope, (*slope.shape, 1))], -1)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        if i == 1:
            return None
        weight = reshape(slice_(d, [slice(None)] * (d.ndim - 1) + [slice(1, 2)]), (*d.shape[:-1], 1, 1))
        scaled = where(identity(args[0]), broadcast_to(weight, args[0].shape), 0.0)
        return apply(SolveWith(transposed=True), *args, scaled)

    def widened(self, size: int) -> Slogdet:
        return self

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, float(MATH * math.prod(types[0].shape[:-1])))

    def lower(self, k: Loops, out: Window, a: Window, factors: Window) -> None:
        """The determinant is the product of the diagonal; each exchange of two rows flips its sign."""
        *batch, n, _ = a.type.shape
        emit, dtype = k.scalar, a.type.dtype
        first, second, last = (emit.const(I64, i) for i in (0, 1, n))
        one, zero = emit.const(dtype, 1.0), emit.const(dtype, 0.0)
        with nest(k, batch) as at:
            found, packed = out.at(*at), factors.at(*at)
            k.store(found, one, first)
            k.store(found, zero, second)
            with k.loop(n) as i:
                pivot = k.load(packed, i, i)
                stays = emit.compare("eq", k.load(packed, last, i), zero)
                sign = emit.select(emit.compare("eq", pivot, zero), zero, emit.copysign(one, pivot))
                k.store(found, emit.mul(k.load(found, first), emit.select(stays, sign, emit.neg(sign))), first)
                k.store(found, emit.add(k.load(found, second), emit.call("log", emit.fabs(pivot))), second)


def slogdet(a: Operand) -> tuple[Operand, Operand]:
    """Sign and logarithm of the absolute value of the determinant."""
    check_square("slogdet", a.type)
    both = apply(Slogdet(), a, lu(a))
    head = [slice(None)] * (both.ndim - 1)
    sign, size = (reshape(slice_(both, [*head, slice(i, i + 1)]), both.shape[:-1]) for i in range(2))
    return sign, size
