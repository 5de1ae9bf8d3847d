"""Cholesky factorisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..cost import Cost
from ..errors import AdjitError, SingularMatrixError
from ..types import I64, DType, TensorType
from .base import Array, Emitter, Loops, Op, Reg, Window, Writing, apply, nest
from .linalg import matmul, swap
from .lu import check_square
from .maps import where
from .solve import harmless_matrices, identity
from .triangle import cut, invert, part, spread, take_product
from .triangular import SolveTriangular, lower, lower_product

__all__ = ["cholesky"]

if TYPE_CHECKING:
    from ..operand import Operand

NOT_POSITIVE = "cholesky: the matrix is not positive definite"


class Cholesky(Op):
    """The lower triangular `l` with `l @ l.T = a`. As in NumPy, only the lower triangle of `a` is read."""

    arity: ClassVar[int | None] = 1

    can_fail = True
    error: ClassVar[type[AdjitError]] = SingularMatrixError

    def infer(self, *types: TensorType) -> TensorType:
        check_square("cholesky", types[0])
        return types[0]

    def evaluate(self, *arrays: Array) -> Array:
        try:
            return np.asarray(np.linalg.cholesky(arrays[0]))
        except np.linalg.LinAlgError:
            raise SingularMatrixError(NOT_POSITIVE) from None

    def python(self, write: Writing, *args: Operand) -> Any:
        return write("np.linalg.cholesky({})", write.array(args[0]))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        symmetric = lower(d) + swap(lower(d, -1))
        return matmul(y, halved(swap(apply(SolveTriangular(), y, swap(apply(SolveTriangular(), y, symmetric))))))

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        inner, back = halved(lower_product(y, lower(d))), SolveTriangular(transposed=True)
        outer = swap(apply(back, y, swap(apply(back, y, inner))))
        return lower(outer) + lower(swap(outer), -1)

    def widened(self, size: int) -> Cholesky:
        return self

    def guarded(
        self, size: int, active: Operand, args: tuple[Operand, ...], batched: Sequence[bool]
    ) -> tuple[tuple[Operand, ...], Sequence[bool]]:
        return (harmless_matrices(size, active, args[0], batched[0]),), (True,)

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, types[0].size * types[0].shape[-1] / 3)

    def lower(self, k: Loops, out: Window, a: Window) -> None:
        *batch, n, _ = a.type.shape
        if not a.type.size:
            return
        columns, (width, count, last) = Columns(k, n, a.type.dtype), cut(n)
        with nest(k, batch) as at:
            matrix, factor = a.at(*at), out.at(*at)
            if count:
                with k.loop(count) as j:
                    columns.complete(matrix, factor, j, width, is_last=False)
            columns.complete(matrix, factor, k.scalar.const(I64, count), last, is_last=True)


class Columns:
    """The factor by blocks of columns: one product subtracts what all earlier columns contribute, then the square at the diagonal is
    factorised, and another product with its inverse gives the rows below.
    """

    def __init__(self, k: Loops, n: int, dtype: DType) -> None:
        self.k, self.n = k, n
        self.width, self.count, self.last = cut(n)
        width = self.width
        self.panel = k.scratch(TensorType(dtype, (n, width)))
        self.negative = k.scratch(TensorType(dtype, (width, n)))
        self.square, self.inverse = (k.scratch(TensorType(dtype, (2 * width, width))) for _ in range(2))
        self.work, self.columns = (k.scratch(TensorType(dtype, (2 * width, 2 * width))) for _ in range(2))
        self.root = k.scratch(TensorType(dtype, (1,)))
        self.mask = k.scratch(TensorType(dtype, (2 * width,)))  # zeros, then ones
        k.fill(self.mask.slice(0, 0, width), 0.0)
        k.fill(self.mask.slice(0, width, width), 1.0)

    def complete(self, matrix: Window, factor: Window, j: Reg, size: int, is_last: bool) -> None:
        """Compute block j of the columns; the last one has no rows below it, and may have another size."""
        k, emit, n = self.k, self.k.scalar, self.n
        start = emit.mul(j, emit.like(j, self.width))
        after = emit.add(start, emit.like(start, size))
        panel = self.panel.slice(1, 0, size)
        rows = emit.sub(emit.like(start, n), start)
        with k.loop(rows) as i:
            k.copy(panel.at(i), part(matrix.at(emit.add(start, i)), start, size))
        self.take_earlier(factor, panel, start, j, rows, size)
        square = self.square.slice(0, 0, size).slice(1, 0, size)
        k.copy(square, panel.slice(0, 0, size).transposed(1, 0))
        self.factorise(square, size)
        k.copy(self.block(factor, start, start, size), square.transposed(1, 0))
        if not is_last:
            inverse = self.inverse.slice(0, 0, size)
            k.call(invert, square, inverse, self.columns, self.work, upper=True, unit=False)
            below = part(part(factor, after, n).transposed(1, 0), start, size).transposed(1, 0)
            k.product(below, part(panel, emit.const(I64, size), n), inverse, m=emit.sub(emit.like(after, n), after))
            self.clear_above(factor, start, j)

    def take_earlier(self, factor: Window, panel: Window, start: Reg, j: Reg, rows: Reg, size: int) -> None:
        """panel -= the rows of all earlier columns @ those of the first `size` rows"""
        k, emit = self.k, self.k.scalar
        if not self.count:
            return
        negative = self.negative.slice(0, 0, size)
        with k.loop(j) as c:
            column = emit.mul(c, emit.like(c, self.width))
            source = self.block(factor, start, column, size, self.width)
            k.map(lambda emit, x: [emit.neg(x)], [self.block(negative, emit.const(I64, 0), column, size, self.width)], [source])
        k.product(panel, part(factor, start, self.n), negative.transposed(1, 0), m=rows, k=start, accumulate=True)

    def factorise(self, square: Window, size: int) -> None:
        """The upper triangular u with `u.T @ u = square`, of which the upper triangle is read, in its place; zeros below it."""
        k, emit, zero = self.k, self.k.scalar, self.k.scalar.const(I64, 0)

        def quotient(emit: Emitter, x: Reg, root: Reg, inside: Reg) -> list[Reg]:
            none = emit.like(x, 0.0)
            return [emit.select(emit.compare("eq", inside, none), none, emit.fdiv(x, root))]

        with k.loop(size) as i:
            pivot = k.load(square, i, i)
            k.fail_if(emit.or_(emit.compare("le", pivot, emit.like(pivot, 0.0)), emit.unordered(pivot, pivot)), NOT_POSITIVE)
            k.store(self.root, emit.sqrt(pivot), zero)
            row, after = square.at(i), emit.add(i, emit.like(i, 1))
            inside = part(self.mask, emit.sub(emit.like(i, self.width), i), size)
            k.map(quotient, [row], [row, spread(k, self.root, size), inside])
            with k.loop(emit.sub(emit.like(i, size - 1), i)) as t:
                r = emit.add(after, t)
                take_product(k, part(square, r, 1), part(row, r, 1), row)

    def clear_above(self, factor: Window, start: Reg, j: Reg) -> None:
        """Zeros to the right of a square at the diagonal."""
        k, emit = self.k, self.k.scalar
        left = emit.sub(emit.like(j, self.count - 1), j)
        with k.loop(left) as c:
            column = emit.mul(emit.add(emit.add(j, emit.like(j, 1)), c), emit.like(j, self.width))
            k.fill(self.block(factor, start, column, self.width), 0.0)
        k.fill(self.block(factor, start, emit.const(I64, self.n - self.last), self.width, self.last), 0.0)

    def block(self, matrix: Window, row: Reg, column: Reg, height: int, width: int | None = None) -> Window:
        """A block of a matrix that starts at run-time positions; a square without a `width`."""
        return part(part(matrix, row, height).transposed(1, 0), column, height if width is None else width).transposed(1, 0)


def halved(x: Operand) -> Operand:
    """The lower triangle, with half of the diagonal."""
    return where(identity(x), 0.5 * x, lower(x))


def cholesky(a: Operand) -> Operand:
    """The lower triangular l with `l @ l.T = a`."""
    return apply(Cholesky(), a)
