"""Triangular factors of square matrices, by elimination with partial pivoting: what systems of equations and determinants are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import DTypeError, ShapeError
from ..types import I64, TensorType
from .base import Array, Emitter, Loops, Op, Reg, Window, apply, nest
from .reduce import Max, Min
from .triangle import blocks, part, spread, substitute, take_product

__all__ = ["lu"]

if TYPE_CHECKING:
    from ..operand import Operand


class Lu(Op):
    """The factors of (stacks of) matrices with exchanged rows: upper triangles, and below them lower ones, whose diagonals are 1.

    A last row holds the exchanges, in their order: row i was exchanged with the row of that number, never one above it. The result's
    shape is [n + 1, n]. A singular matrix has a 0 on the diagonal. There is no derivative: who uses the factors knows it in terms of the
    matrix, and solves with the same factors.
    """

    differentiable = False

    def infer(self, *types: TensorType) -> TensorType:
        (a,) = types
        check_square("lu", a)
        return a.with_shape((*a.shape[:-2], a.shape[-1] + 1, a.shape[-1]))

    def evaluate(self, *arrays: Array) -> Array:
        (a,) = arrays
        n = a.shape[-1]
        out = np.zeros((*a.shape[:-2], n + 1, n), a.dtype)
        out[..., :n, :] = a
        for matrix in out.reshape(-1, n + 1, n) if a.size else ():
            for i in range(n):
                matrix[n, i] = pivot = i + int(np.argmax(np.abs(matrix[i:n, i])))
                matrix[[i, pivot]] = matrix[[pivot, i]]
                matrix[i + 1 : n, i] /= matrix[i, i] or 1
                matrix[i + 1 : n, i + 1 :] -= np.outer(matrix[i + 1 : n, i], matrix[i, i + 1 :])
        return out

    def widened(self, size: int) -> Lu:
        return self

    def lower(self, k: Loops, out: Window, a: Window) -> None:
        """By blocks of columns: eliminate in one, then what lies to the right of it follows by substitution and one product."""
        *batch, n, _ = a.type.shape
        if not a.type.size:
            return
        cut = blocks(n)
        width = cut[0][1]
        columns = k.scratch(TensorType(a.type.dtype, (2 * width, n + width)))
        negated = k.scratch(TensorType(a.type.dtype, (n, width)))
        found = k.scratch(TensorType(I64, (1,))), k.scratch(TensorType(a.type.dtype, (1,)))
        with nest(k, batch) as at:
            matrix, exchanges = out.at(*at).slice(0, 0, n), out.at(*at).slice(0, n, 1).at(k.scalar.const(I64, 0))
            k.copy(matrix, a.at(*at))
            for start, size in cut:
                below, rest = n - start, n - start - size
                rows, panel = matrix.slice(0, start, below), columns.slice(1, 0, below + size)
                self.eliminate(k, rows, exchanges, panel, start, size, found)
                if rest:
                    right, under = rows.slice(1, start + size, rest), negated.slice(0, 0, rest).slice(1, 0, size)
                    substitute(k, rows.slice(0, 0, size).slice(1, start, size), right.slice(0, 0, size), upper=False, unit=True)
                    k.map(lambda emit, x: [emit.neg(x)], [under], [rows.slice(0, size, rest).slice(1, start, size)])
                    k.matmul(right.slice(0, size, rest), under, right.slice(0, 0, size), accumulate=True)

    def eliminate(
        self, k: Loops, rows: Window, exchanges: Window, columns: Window, start: int, size: int, found: tuple[Window, Window]
    ) -> None:
        """Eliminate in `size` columns of all these rows. They are copied so that a column is consecutive, and has zeros after its end."""
        emit, below = k.scalar, rows.type.shape[0]
        block = rows.slice(1, start, size)
        inside = columns.slice(0, 0, size).slice(1, 0, below)
        k.copy(inside, block.transposed(1, 0))
        k.fill(columns.slice(0, 0, size).slice(1, below, size), 0.0)
        across = columns.transposed(1, 0)
        with k.loop(size) as i:
            after = emit.add(i, emit.like(i, 1))
            pivot = emit.add(i, self.find_pivot(k, part(columns.at(i), i, below), *found))
            row = emit.add(pivot, emit.like(pivot, start))
            k.store(exchanges, emit.convert(row, exchanges.type.dtype), emit.add(i, emit.like(i, start)))
            exchange(k, across.slice(1, 0, size), i, pivot)
            exchange(k, rows, i, pivot)
            divided = part(columns.at(i), after, below)
            k.map(quotient, [divided], [divided, spread(k, part(columns.at(i), i, 1), below)])
            later = part(columns, after, size).transposed(1, 0)
            take_product(k, part(later, after, below), divided, part(across.at(i), after, size))
        k.copy(block, inside.transposed(1, 0))

    def find_pivot(self, k: Loops, column: Window, place: Window, largest: Window) -> Reg:
        """Where the column has its largest element; with NaNs in it, anywhere inside."""
        emit, (size,), first = k.scalar, column.type.shape, k.scalar.const(I64, 0)
        k.reduce(Max((0,)), lambda emit, x: emit.fabs(x), largest, [column])

        def position(emit: Emitter, x: Reg, most: Reg) -> Reg:
            return emit.select(emit.compare("eq", emit.fabs(x), most), emit.index(0), emit.const(I64, size))

        k.reduce(Min((0,)), position, place, [column, spread(k, largest, size)])
        found = k.load(place, first)
        return emit.select(emit.compare("lt", found, emit.like(found, size)), found, first)


def quotient(emit: Emitter, x: Reg, divisor: Reg) -> list[Reg]:
    """x / divisor; x, which is 0 then, where the divisor is 0."""
    return [emit.fdiv(x, emit.select(emit.compare("eq", divisor, emit.like(divisor, 0.0)), emit.like(divisor, 1.0), divisor))]


def exchange(k: Loops, work: Window, row: Reg, other: Reg) -> None:
    """Exchange two rows, which may be one."""
    rows = [work.at(row), work.at(other)]
    k.map(lambda emit, x, y: [y, x], rows, rows)


def check_square(what: str, a: TensorType) -> None:
    if not a.is_float:
        raise DTypeError(f"{what}: takes floats, not {a}")
    if a.rank < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{what}: the matrices must be square, not {a}")


def lu(a: Operand) -> Operand:
    """The factors of a square matrix with exchanged rows, and the exchanges; see `Lu`."""
    return apply(Lu(), a)
