"""Triangular systems, solved by substitution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..cost import Cost
from ..errors import AdjitError, SingularMatrixError
from ..expr import is_static
from ..types import TensorType, broadcast_shapes
from .base import Array, Loops, Op, Window, Writing, apply, nest, with_attributes
from .create import iota
from .join import concatenate
from .linalg import matmul, swap
from .logic import less_equal
from .maps import where
from .shape import broadcast_to, pad, reshape, slice_
from .solve import SINGULAR, batch_beside, check_system, floats, harmless_matrices, identity
from .triangle import Triangles, cut

__all__ = ["solve_triangular"]

if TYPE_CHECKING:
    from ..operand import Operand

STRIPS, STRIP_ROWS = 8, 32  # strips of a product of triangles, and the least number of rows of each


@with_attributes
class SolveTriangular(Op):
    """x with `t @ x = b` (`transposed`: `t.T @ x = b`), where t is the lower (or upper) triangle of a; the rest of a is not read.

    With `unit`, the diagonal of t is 1, and not read either. Batch dimensions are equal.
    """

    upper: bool = False
    transposed: bool = False
    unit: bool = False

    can_fail = True
    error: ClassVar[type[AdjitError]] = SingularMatrixError

    def infer(self, *types: TensorType) -> TensorType:
        a, b = types
        check_system(a, b, "solve_triangular")
        return b

    def evaluate(self, *arrays: Array) -> Array:
        """By NumPy's general solver, for which a triangle is a matrix like any other."""
        a, b = arrays
        t = np.triu(a, int(self.unit)) if self.upper else np.tril(a, -int(self.unit))
        if self.unit:
            t = t + np.eye(a.shape[-1], dtype=a.dtype)
        elif not np.all(np.diagonal(t, 0, -2, -1)):
            raise SingularMatrixError(SINGULAR)
        return np.asarray(np.linalg.solve(np.swapaxes(t, -1, -2) if self.transposed else t, b)) if b.size else b

    def python(self, write: Writing, *args: Operand) -> Any:
        a, b = args
        if not b.type.size:
            return write.array(b)
        half = "triu" if self.upper else "tril"
        t = write(f"np.{half}({{}})", write.array(a))
        if self.unit:
            strict = write.value(1 if self.upper else -1)
            eye = write("np.eye({}, dtype={})", write.value(a.type.shape[-1]), write.dtype(a.type.dtype))
            t = write(f"np.{half}({{}}, {{}}) + {{}}", write.array(a), strict, eye)
        return write("np.linalg.solve({}, {})", write("np.swapaxes({}, -1, -2)", t) if self.transposed else t, write.array(b))

    def triangle(self, x: Operand) -> Operand:
        """The elements of a matrix that the op reads; zeros elsewhere."""
        x = swap(lower(swap(x))) if self.upper else lower(x)
        return where(identity(x), 0.0, x) if self.unit else x

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        if i == 0:
            moved = self.triangle(d)
            d = -matmul(swap(moved) if self.transposed else moved, y)
        return apply(self, args[0], d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        back = apply(replace(self, transposed=not self.transposed), args[0], d)
        if i == 1:
            return back
        return -self.triangle(matmul(y, swap(back)) if self.transposed else matmul(back, swap(y)))

    def widened(self, size: int) -> SolveTriangular:
        return self

    def batch(self, size: int, args: tuple[Operand, ...], batched: Sequence[bool]) -> Any:
        """Examples that share the matrix become further right-hand sides."""
        if batched[0]:
            return super().batch(size, args, batched)
        return batch_beside(size, args[1], lambda b: apply(self, args[0], b))

    def guarded(
        self, size: int, active: Operand, args: tuple[Operand, ...], batched: Sequence[bool]
    ) -> tuple[tuple[Operand, ...], Sequence[bool]]:
        """Inactive examples solve with the identity."""
        a, b = args
        return (harmless_matrices(size, active, a, batched[0]), b), (True, batched[1])

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, float(types[1].size * types[0].shape[-1]))

    def lower(self, k: Loops, out: Window, a: Window, b: Window) -> None:
        *batch, n, m = b.type.shape
        if not b.type.size:
            return
        triangles = Triangles(k, cut(n).width, m, b.type.dtype)
        with nest(k, batch) as at:
            matrix, sides = a.at(*at), out.at(*at)
            if not self.unit:
                with k.loop(n) as i:
                    pivot = k.load(matrix, i, i)
                    k.fail_if(k.scalar.compare("eq", pivot, k.scalar.like(pivot, 0.0)), SINGULAR)
            k.copy(sides, b.at(*at))
            seen = matrix.transposed(1, 0) if self.transposed else matrix
            triangles.substitute(seen, sides, upper=self.upper != self.transposed, unit=self.unit)


def lower(x: Operand, k: int = 0) -> Operand:
    """The elements on and below the k-th diagonal; zeros elsewhere."""
    return where(less_equal(iota(x.shape, x.ndim - 1), iota(x.shape, x.ndim - 2) + k), x, 0.0)


def lower_product(a: Operand, b: Operand) -> Operand:
    """`a.T @ b` on and below the diagonal, for lower triangles a and b, with zeros above their blocks.

    By blocks of rows: each reads the columns that it has of b and the rows that are not zero, a quarter of the whole product.
    """
    n = a.shape[-1]
    if not is_static(n) or n < STRIPS * STRIP_ROWS:
        return matmul(swap(a), b)
    step, whole, strips = -(-n // STRIPS), [slice(None)] * (a.ndim - 2), []
    for start in range(0, n, step):
        stop = min(start + step, n)
        left, right = (slice_(x, [*whole, slice(start, n), columns]) for x, columns in ((a, slice(start, stop)), (b, slice(0, stop))))
        strips.append(pad(matmul(swap(left), right), [0] * a.ndim, [*[0] * (a.ndim - 1), n - stop]))
    return concatenate(strips, a.ndim - 2)


def solve_triangular(a: Operand, b: Operand, upper: bool = False, transposed: bool = False, unit: bool = False) -> Operand:
    """x with `t @ x = b`, where t is a triangle of a; b is a vector, or (a stack of) matrices."""
    a, b = floats(a, b)
    op = SolveTriangular(upper, transposed, unit)
    if a.ndim < 2:
        return apply(op, a, b)
    if b.ndim == 1:
        return reshape(solve_triangular(a, reshape(b, (*b.shape, 1)), upper, transposed, unit), (*a.shape[:-2], *b.shape))
    batch = broadcast_shapes(f"solve_triangular: {a.type} and {b.type}", a.shape[:-2], b.shape[:-2])
    return apply(op, broadcast_to(a, batch + a.shape[-2:]), broadcast_to(b, batch + b.shape[-2:]))
