"""Systems of linear equations, by elimination with partial pivoting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..errors import AdjitError, DTypeError, ShapeError, SingularMatrixError
from ..types import F64, I64, TensorType, broadcast_shapes
from .base import Array, Loops, Op, Reg, Window, apply, nest
from .create import iota
from .linalg import matmul, swap
from .logic import equal
from .maps import cast, common_dtype, where
from .shape import broadcast_to, lead, reshape, trail

__all__ = ["solve"]

if TYPE_CHECKING:
    from ..operand import Operand

SINGULAR = "solve: the matrix is singular: a pivot is 0"


class Elimination(Op, abstract=True):
    """Steps of Gauss's algorithm, in native code."""

    def find_pivot(self, k: Loops, matrix: Window, column: Reg, best: Window, size: Window) -> Reg:
        """Puts the row, from the diagonal on, with the largest element of the column into `best`; gives the size of that element."""
        emit, zero = k.scalar, k.scalar.const(I64, 0)
        k.store(best, column, zero)
        k.store(size, emit.fabs(k.load(matrix, column, column)), zero)
        with k.loop(matrix.type.shape[0]) as r:
            found, known = emit.fabs(k.load(matrix, r, column)), k.load(size, zero)
            larger = emit.and_(emit.compare("gt", r, column), emit.compare("gt", found, known))
            k.store(best, emit.select(larger, r, k.load(best, zero)), zero)
            k.store(size, emit.select(larger, found, known), zero)
        return k.load(size, zero)

    def exchange(self, k: Loops, work: Window, row: Reg, other: Reg) -> None:
        with k.loop(work.type.shape[1]) as j:
            x, y = k.load(work, row, j), k.load(work, other, j)
            k.store(work, y, row, j)
            k.store(work, x, other, j)

    def factor(self, k: Loops, matrix: Window, factors: Window, column: Reg, side: str, pivot: Reg) -> None:
        """By how much each row on one side of the diagonal (`gt`: below) has too much of the pivot's row; 0 for the others."""
        emit, zero = k.scalar, k.scalar.const(I64, 0)
        with k.loop(matrix.type.shape[0]) as r:
            share = emit.neg(emit.fdiv(k.load(matrix, r, column), pivot))
            k.store(factors, emit.select(emit.compare(side, r, column), share, emit.like(share, 0.0)), r, zero)


class Solve(Elimination):
    """x with `a @ x = b`, for (stacks of) square matrices a and matrices b with equal batch dimensions."""

    can_fail = True
    error: ClassVar[type[AdjitError]] = SingularMatrixError

    def infer(self, *types: TensorType) -> TensorType:
        a, b = types
        if a.dtype != b.dtype or not a.is_float:
            raise DTypeError(f"solve: both operands are floats of one dtype, not {a} and {b}")
        if a.rank < 2 or a.shape[-1] != a.shape[-2]:
            raise ShapeError(f"solve: the matrices must be square, not {a}")
        if b.rank < 2 or a.shape[:-1] != b.shape[:-1]:
            raise ShapeError(f"solve: the right-hand sides {b} do not fit the matrices {a}")
        return b

    def evaluate(self, *arrays: Array) -> Array:
        try:
            return np.asarray(np.linalg.solve(*arrays))
        except np.linalg.LinAlgError:
            raise SingularMatrixError(SINGULAR) from None

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, args[0], d if i == 1 else -matmul(d, y))

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        back = apply(self, swap(args[0]), d)
        return back if i == 1 else -matmul(back, swap(y))

    def widened(self, size: int) -> Solve:
        return self

    def guarded(
        self, size: int, active: Operand, args: tuple[Operand, ...], batched: Sequence[bool]
    ) -> tuple[tuple[Operand, ...], Sequence[bool]]:
        """Examples that are not active solve with the identity."""
        return (harmless_matrices(size, active, args[0], batched[0]), args[1]), (True, batched[1])

    def lower(self, k: Loops, out: Window, a: Window, b: Window) -> None:
        """The matrix and its right-hand sides lie beside each other; each column is eliminated by one product of rank 1."""
        *batch, n, m = b.type.shape
        work = k.scratch(TensorType(a.type.dtype, (n, n + m)))
        factors, row = k.scratch(TensorType(a.type.dtype, (n, 1))), k.scratch(TensorType(a.type.dtype, (1, n + m)))
        best, size = k.scratch(TensorType(I64, (1,))), k.scratch(TensorType(a.type.dtype, (1,)))
        if not n:
            return
        matrix, sides = work.slice(1, 0, n), work.slice(1, n, m)
        with nest(k, batch) as at:
            k.copy(matrix, a.at(*at))
            k.copy(sides, b.at(*at))
            with k.loop(n) as column:
                pivot = self.find_pivot(k, matrix, column, best, size)
                k.fail_if(k.scalar.compare("eq", pivot, k.scalar.like(pivot, 0.0)), SINGULAR)
                self.exchange(k, work, column, k.load(best, k.scalar.const(I64, 0)))
                self.factor(k, matrix, factors, column, "gt", k.load(matrix, column, column))
                k.copy(row.at(k.scalar.const(I64, 0)), work.at(column))
                k.matmul(work, factors, row, accumulate=True)
            self.substitute(k, matrix, sides, factors, row.slice(1, n, m))
            k.copy(out.at(*at), sides)

    def substitute(self, k: Loops, matrix: Window, sides: Window, factors: Window, row: Window) -> None:
        """Back from the last row: take each from those above, then divide it by its diagonal."""
        emit, n = k.scalar, matrix.type.shape[0]
        with k.loop(n) as step:
            r = emit.sub(emit.like(step, n - 1), step)
            pivot = k.load(matrix, r, r)
            k.copy(row.at(emit.const(I64, 0)), sides.at(r))
            self.factor(k, matrix, factors, r, "lt", pivot)
            k.matmul(sides, factors, row, accumulate=True)
            with k.loop(sides.type.shape[1]) as j:
                k.store(sides, emit.fdiv(k.load(sides, r, j), pivot), r, j)


def harmless_matrices(size: int, active: Operand, a: Operand, batched: bool) -> Operand:
    """The matrices of a batch, with the identity for examples that are not active."""
    a = a if batched else lead(a, size)
    return where(trail(active, a.shape), a, cast(identity(a), a.dtype))


def check_square(what: str, a: TensorType) -> None:
    if not a.is_float:
        raise DTypeError(f"{what}: takes floats, not {a}")
    if a.rank < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{what}: the matrices must be square, not {a}")


def identity(a: Operand) -> Operand:
    """Where the diagonals of matrices are."""
    return equal(iota(a.shape, a.ndim - 2), iota(a.shape, a.ndim - 1))


def apply_solve(a: Operand, b: Operand) -> Operand:
    """x with `a @ x = b`, of operands that are as the op wants them."""
    return apply(Solve(), a, b)


def solve(a: Operand, b: Operand) -> Operand:
    """x with `a @ x = b`; b is a vector, or (a stack of) matrices. Integers are solved as float64, as NumPy does."""
    dtype = common_dtype(a, b)
    dtype = dtype if dtype.kind == "f" else F64
    a, b = cast(a, dtype), cast(b, dtype)
    if b.ndim == 1:
        return reshape(solve(a, reshape(b, (*b.shape, 1))), (*a.shape[:-2], *b.shape)) if a.ndim > 1 else apply(Solve(), a, b)
    if a.ndim < 2:
        return apply(Solve(), a, b)
    batch = broadcast_shapes(f"solve: {a.type} and {b.type}", a.shape[:-2], b.shape[:-2])
    return apply(Solve(), broadcast_to(a, batch + a.shape[-2:]), broadcast_to(b, batch + b.shape[-2:]))
