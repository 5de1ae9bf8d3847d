"""Matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DTypeError
from ..types import TensorType, matmul_shape
from .base import Array, Loops, Op, Window, apply

if TYPE_CHECKING:
    from ..operand import Operand

__all__: list[str] = []


class Matmul(Op):
    """`a @ b` for vectors and (stacks of) matrices with equal batch dimensions; broadcasting them is explicit."""

    def infer(self, *types: TensorType) -> TensorType:
        a, b = types
        if a.dtype != b.dtype:
            raise DTypeError(f"matmul: dtypes differ: {a} @ {b}")
        return a.with_shape(matmul_shape(a.shape, b.shape))

    def evaluate(self, *arrays: Array) -> Array:
        return np.asarray(np.matmul(*arrays))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, d, args[1]) if i == 0 else apply(self, args[0], d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        a, b = args
        left = a.reshape(1, -1) if a.ndim == 1 else a
        right = b.reshape(-1, 1) if b.ndim == 1 else b
        d = d.reshape(*left.shape[:-1], right.shape[-1])
        product = apply(self, d, swap(right)) if i == 0 else apply(self, swap(left), d)
        return product.reshape(args[i].shape)  # type: ignore[no-any-return]

    def lower(self, k: Loops, out: Window, a: Window, b: Window) -> None:
        k.matmul(out, a, b)


def swap(x: Operand) -> Operand:
    """Exchange the last two axes."""
    axes = list(range(x.ndim))
    axes[-1], axes[-2] = axes[-2], axes[-1]
    return x.transpose(*axes)
