"""Matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..cost import Cost
from ..errors import DTypeError, ShapeError
from ..types import BOOL, I64, TensorType, broadcast_shapes, matmul_shape
from .base import Array, Loops, Op, Window, Writing, apply
from .maps import cast, common_dtype
from .shape import broadcast_to, lead, reshape, transpose

if TYPE_CHECKING:
    from ..operand import Operand

__all__ = ["matmul"]


class Matmul(Op):
    """`a @ b` for vectors and (stacks of) matrices with equal batch dimensions; broadcasting is explicit."""

    is_product = True
    joins_region = True
    writes_strided = True

    def factors(self, args: tuple[Operand, ...]) -> tuple[Operand, Operand]:
        a, b = args
        return a, b

    def infer(self, *types: TensorType) -> TensorType:
        a, b = types
        if a.dtype != b.dtype:
            raise DTypeError(f"matmul: dtypes differ: {a} @ {b}")
        if a.dtype == BOOL:
            raise DTypeError(f"matmul: {a} @ {b}: cast bools to integers first")
        check_inner(a, b)
        return a.with_shape(matmul_shape(a.shape, b.shape))

    def evaluate(self, *arrays: Array) -> Array:
        return np.asarray(np.matmul(*arrays))

    def python(self, write: Writing, *args: Operand) -> Any:
        return write("{} @ {}", *map(write.array, args))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, d, args[1]) if i == 0 else apply(self, args[0], d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        a, b = args
        left = reshape(a, (1, *a.shape)) if a.ndim == 1 else a
        right = reshape(b, (*b.shape, 1)) if b.ndim == 1 else b
        d = reshape(d, (*left.shape[:-1], right.shape[-1]))
        product = apply(self, d, swap(right)) if i == 0 else apply(self, swap(left), d)
        return reshape(product, args[i].shape)

    def batch(self, size: int, args: tuple[Operand, ...], batched: Sequence[bool]) -> Operand:
        """One product of larger matrices if one operand is shared by all examples, else a stack of products."""
        (a, b), (left, right) = args, batched
        out = matmul_shape(a.shape[left:], b.shape[right:])
        if right and not left and a.ndim == 2 and b.ndim == 2:
            return apply(self, b, swap(a))
        if right and not left and a.ndim == 2 and b.ndim == 3:
            columns = reshape(transpose(b, (1, 0, 2)), (b.shape[1], size * b.shape[2]))
            return transpose(reshape(apply(self, a, columns), (a.shape[0], size, b.shape[2])), (1, 0, 2))
        if right and not left and a.ndim == 1 and b.ndim == 2:
            return apply(self, b, a)
        if left and not right and b.ndim <= 2:
            return reshape(matmul(a, b), (size, *out))
        a, b = a if left else lead(a, size), b if right else lead(b, size)
        rows = reshape(a, (size, 1, a.shape[1])) if a.ndim == 2 else a
        columns = reshape(b, (size, b.shape[1], 1)) if b.ndim == 2 else b
        return reshape(apply(self, rows, columns), (size, *out))

    def stores_once(self, *types: TensorType) -> bool:
        a, b = types
        return a.is_float and a.rank == b.rank >= 2 and 1 not in (a.shape[-2], b.shape[-1])

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, 2.0 * types[0].size * types[1].shape[-1])

    def lower(self, k: Loops, out: Window, a: Window, b: Window) -> None:
        k.matmul(out, a, b)


class MatmulAdd(Op):
    """`c + a @ b`, computed in place of c: inserted by passes where a product is added to an accumulator."""

    in_place: ClassVar[int | None] = 0
    is_product = True

    def factors(self, args: tuple[Operand, ...]) -> tuple[Operand, Operand]:
        _, a, b = args
        return a, b

    def infer(self, *types: TensorType) -> TensorType:
        c, a, b = types
        product = Matmul().infer(a, b)
        if c != product:
            raise ShapeError(f"matmul_add: {c} does not fit the product {product} of {a} @ {b}")
        return c

    def evaluate(self, *arrays: Array) -> Array:
        c, a, b = arrays
        return np.asarray(c + np.matmul(a, b))

    def python(self, write: Writing, *args: Operand) -> Any:
        return write("{} + {} @ {}", *map(write.array, args))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return d if i == 0 else Matmul().jvp(i - 1, y, args[1:], d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return d if i == 0 else Matmul().vjp(i - 1, y, args[1:], d)

    def batch(self, size: int, args: tuple[Operand, ...], batched: Sequence[bool]) -> Operand:
        c, a, b = args
        total = c if batched[0] else lead(c, size)
        product = Matmul().batch(size, (a, b), batched[1:]) if any(batched[1:]) else lead(apply(Matmul(), a, b), size)
        return total + product

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, 2.0 * types[0].size * types[-2].shape[-1])

    def lower(self, k: Loops, out: Window, c: Window, a: Window, b: Window) -> None:
        k.copy(out, c)
        k.matmul(out, a, b, accumulate=True)


def swap(x: Operand) -> Operand:
    """Exchange the last two axes."""
    axes = list(range(x.ndim))
    axes[-1], axes[-2] = axes[-2], axes[-1]
    return transpose(x, axes)


def check_inner(a: TensorType, b: TensorType) -> None:
    if not a.shape or not b.shape:
        raise ShapeError(f"matmul: a scalar operand: {a} @ {b}; use * instead")
    inner = b.shape[-2] if b.rank > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise ShapeError(f"matmul: inner sizes differ: {a} @ {b} ({a.shape[-1]} != {inner})")


def matmul(a: Operand, b: Operand) -> Operand:
    """`a @ b` for every pair of ranks that NumPy multiplies, with its promotion; batch dimensions broadcast."""
    check_inner(a.type, b.type)
    dtype = common_dtype(a, b)
    if dtype == BOOL:
        counts: Operand = matmul(cast(a, I64), cast(b, I64)) != 0
        return counts
    a, b = cast(a, dtype), cast(b, dtype)
    if a.ndim <= 2 and b.ndim <= 2:
        return apply(Matmul(), a, b)
    if b.ndim <= 2:  # one product of a tall matrix is faster than many small ones
        rows = reshape(a, (math.prod(a.shape[:-1]), a.shape[-1]))
        return reshape(apply(Matmul(), rows, b), a.shape[:-1] + b.shape[1:])
    if a.ndim == 1:
        out = matmul(reshape(a, (1, *a.shape)), b)
        return reshape(out, b.shape[:-2] + b.shape[-1:])
    batch = broadcast_shapes(f"matmul: {a.type} @ {b.type}", a.shape[:-2], b.shape[:-2])
    return apply(Matmul(), broadcast_to(a, batch + a.shape[-2:]), broadcast_to(b, batch + b.shape[-2:]))
