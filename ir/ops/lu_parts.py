"""The triangles of an LU factorisation as results with derivatives, and the exchange of rows as a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import source_helpers
from ..cost import Cost
from ..errors import ShapeError
from ..types import I64, TensorType
from .base import Array, Loops, Op, Window, Writing, apply, nest
from .linalg import matmul, swap
from .lu import Lu, exchanged, lu
from .triangular import lower, solve_triangular

__all__ = ["lu_parts"]

if TYPE_CHECKING:
    from ..operand import Operand


class RowExchanges(Op):
    """The permutation matrix q with `q @ a = l @ u`, from the factors of a by `Lu`."""

    differentiable = False

    def infer(self, *types: TensorType) -> TensorType:
        (factors,) = types
        if factors.rank < 2 or factors.shape[-2] != factors.shape[-1] + 1:
            raise ShapeError(f"row_exchanges: {factors} are not the factors of matrices")
        return factors.with_shape((*factors.shape[:-2], factors.shape[-1], factors.shape[-1]))

    def evaluate(self, *arrays: Array) -> Array:
        return source_helpers.row_exchanges(arrays[0])  # type: ignore[no-any-return]

    def python(self, write: Writing, *args: Operand) -> Any:
        return write("row_exchanges({})", write.array(args[0]))

    def widened(self, size: int) -> RowExchanges:
        return self

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, float(self.infer(*types).size))

    def lower(self, k: Loops, out: Window, factors: Window) -> None:
        *batch, n, _ = out.type.shape
        if not out.type.size:
            return
        emit, dtype = k.scalar, out.type.dtype
        order = k.scratch(TensorType(I64, (n,)))
        with nest(k, batch) as at:
            exchanges = factors.at(*at).slice(0, n, 1).at(emit.const(I64, 0))
            with k.loop(n) as i:
                k.store(order, i, i)
            with k.loop(n) as i:
                other = exchanged(k, exchanges, i)
                here, there = k.load(order, i), k.load(order, other)
                k.store(order, there, i)
                k.store(order, here, other)
            with nest(k, (n, n)) as (i, j):
                one = emit.compare("eq", k.load(order, i), j)
                k.store(out.at(*at), emit.select(one, emit.const(dtype, 1.0), emit.const(dtype, 0.0)), i, j)


class LuParts(Op):
    """The triangles l (below the diagonal) and u of matrices a in one matrix, given their factors by `Lu` and `RowExchanges`.

    Derivatives are with respect to a, for invertible matrices; the exchange of rows counts as a constant.
    """

    def infer(self, *types: TensorType) -> TensorType:
        a, factors, exchanges = types
        if factors != Lu().infer(a) or exchanges != a:
            raise ShapeError(f"lu_parts: {factors} and {exchanges} are not the factors of the matrices {a}")
        return a

    def evaluate(self, *arrays: Array) -> Array:
        a, factors, _ = arrays
        return np.ascontiguousarray(factors[..., : a.shape[-1], :])

    def python(self, write: Writing, *args: Operand) -> Any:
        return write(f"{{}}[..., :{args[0].type.shape[-1]}, :]", write.array(args[1]))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        if i:
            return None
        half = solve_triangular(y, matmul(args[2], d), unit=True)
        inner = swap(solve_triangular(y, swap(half), upper=True, transposed=True))
        below = lower(inner, -1)
        return below + matmul(lower(y, -1), below) + matmul(inner - below, y - lower(y, -1))

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        if i:
            return None
        left = lower(d + matmul(swap(lower(y, -1)), d), -1)
        right = matmul(d - lower(d, -1), swap(y - lower(y, -1)))
        inner = left + right - lower(right, -1)
        half = solve_triangular(y, inner, unit=True, transposed=True)
        return matmul(swap(args[2]), swap(solve_triangular(y, swap(half), upper=True)))

    def widened(self, size: int) -> LuParts:
        return self

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, float(self.infer(*types).size))

    def lower(self, k: Loops, out: Window, a: Window, factors: Window, exchanges: Window) -> None:
        rank, n = len(a.type.shape), a.type.shape[-1]
        k.copy(out, factors.slice(rank - 2, 0, n))


def lu_parts(a: Operand) -> tuple[Operand, Operand]:
    """The permutation q and the triangles of a in one matrix: `q @ a = l @ u`, where the diagonal of l is 1."""
    factors = lu(a)
    exchanges = apply(RowExchanges(), factors)
    return exchanges, apply(LuParts(), a, factors, exchanges)
