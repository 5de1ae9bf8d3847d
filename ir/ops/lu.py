"""LU factorisation of square matrices, by elimination with partial pivoting: the basis of linear solves and determinants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import source_helpers
from ..errors import DTypeError, ShapeError
from ..types import I64, DType, TensorType
from .base import Array, Emitter, Loops, Op, Reg, Window, Writing, apply, nest
from .reduce import Max, Min
from .triangle import Triangles, blocks, part, spread, take_product

__all__ = ["lu"]

if TYPE_CHECKING:
    from ..operand import Operand


HEIGHTS = 2  # of panels, for each of which code is generated


class Lu(Op):
    """The factors of (stacks of) matrices with exchanged rows: upper triangles, and below them lower ones, whose diagonals are 1.

    A last row holds the exchanges, in order: row i was exchanged with the row that many below it. The result's shape is [n + 1, n]. A
    singular matrix has a 0 on the diagonal. It has no derivative: ops that use the factors define theirs with respect to the matrix, and
    solve with the same factors.
    """

    differentiable = False

    def infer(self, *types: TensorType) -> TensorType:
        (a,) = types
        check_square("lu", a)
        return a.with_shape((*a.shape[:-2], a.shape[-1] + 1, a.shape[-1]))

    def evaluate(self, *arrays: Array) -> Array:
        return source_helpers.lu_factors(arrays[0])  # type: ignore[no-any-return]

    def python(self, write: Writing, *args: Operand) -> Any:
        return write("lu_factors({})", write.array(args[0]))

    def widened(self, size: int) -> Lu:
        return self

    def operations(self, args: Sequence[TensorType], results: Sequence[TensorType]) -> float:
        return 2.0 * args[0].size * args[0].shape[-1] / 3.0

    def lower(self, k: Loops, out: Window, a: Window) -> None:
        """Blocked by columns: eliminate in one block, then update everything to its right by substitution and one product.

        The rows below a block, and the columns after it, are rounded up to one of a few heights for which code exists: the matrix is padded
        with zeros.
        """
        *batch, n, _ = a.type.shape
        if not a.type.size:
            return
        cut, dtype = blocks(n), a.type.dtype
        width = cut[0][1]
        heights = {start: height(n, n - start) for start, _ in cut}
        around = max(start + size for start, size in heights.items())
        room = k.scratch(TensorType(dtype, (around, around)))
        panel, triangles = Panel(k, n, width, dtype), Triangles(k, width, n, dtype)
        with nest(k, batch) as at:
            factors = out.at(*at)
            exchanges = factors.slice(0, n, 1).at(k.scalar.const(I64, 0))
            work = room if around > n else factors
            matrix = work.slice(0, 0, n).slice(1, 0, n)
            k.copy(matrix, a.at(*at))
            for axis in range(2):
                k.fill(room.slice(axis, n, around - n), 0.0)
            for start, size in cut:
                after, rest = start + size, n - start - size
                rows = work.slice(0, start, heights[start])
                block = rows.slice(1, start, size)
                panel.eliminate(rows.slice(1, 0, n), block, exchanges.slice(0, start, size))
                if rest:
                    right = rows.slice(0, 0, size).slice(1, after, heights[after])
                    negative = triangles.multiply_by_inverse(block.slice(0, 0, size), right, upper=False, unit=True)
                    later = matrix.slice(0, after, rest).slice(1, after, rest)
                    k.matmul(later, block.slice(0, size, rest), negative.slice(1, 0, rest), accumulate=True, brief=True)
            k.copy(factors.slice(0, 0, n), matrix)


def height(n: int, rows: int) -> int:
    """The smallest of the heights, fractions of n, that holds this many rows."""
    return next(n * part // HEIGHTS for part in range(1, HEIGHTS + 1) if n * part // HEIGHTS >= rows)


class Panel:
    """Elimination in a block of columns, in a copy whose columns are contiguous, each padded with zeros to whole vectors and more.

    So the elements after a position known at run time are a window of fixed size, and loops need no remainder code.
    """

    def __init__(self, k: Loops, n: int, width: int, dtype: DType) -> None:
        self.k = k
        length = rounded(k, n, dtype)
        self.columns = k.scratch(TensorType(dtype, (2 * width, length + width)))
        self.places = k.scratch(TensorType(dtype, (length,)))
        self.largest, self.place = (k.scratch(TensorType(dtype, (1,))) for _ in range(2))
        with k.loop(length) as i:
            k.store(self.places, k.scalar.convert(i, dtype), i)

    def eliminate(self, rows: Window, block: Window, exchanges: Window) -> None:
        """Eliminate in a block of columns of these rows, exchanging rows."""
        self.k.call(eliminate, rows, block, exchanges, self.columns, self.places, self.largest, self.place)


def eliminate(
    k: Loops, rows: Window, block: Window, exchanges: Window, columns: Window, places: Window, largest: Window, place: Window
) -> None:
    emit, (below, size) = k.scalar, block.type.shape
    length = rounded(k, below, block.type.dtype)
    inside, across = columns.slice(0, 0, size).slice(1, 0, below), columns.transposed(1, 0)
    k.copy(inside, block.transposed(1, 0))
    k.fill(columns.slice(0, 0, size).slice(1, below, length + size - below), 0.0)
    with k.loop(size) as i:
        after = emit.add(i, emit.like(i, 1))
        column, divided = (part(columns.at(i), at, length) for at in (i, after))
        ahead = find_pivot(k, column, places.slice(0, 0, length), largest, place)
        pivot = emit.add(i, ahead)
        k.store(exchanges, emit.convert(ahead, exchanges.type.dtype), i)
        with k.loop(size) as j:
            exchange(k, columns.at(j).sliding(0, length, 1, 1), i, pivot)
        exchange(k, rows, i, pivot)
        k.map(quotient, [divided], [divided, spread(k, column.slice(0, 0, 1), length)])
        later = part(columns, after, size).transposed(1, 0)
        take_product(k, part(later, after, length), divided, part(across.at(i), after, size))
    k.copy(block, inside.transposed(1, 0))


def rounded(k: Loops, size: int, dtype: DType) -> int:
    """Round up to whole vectors, as many as a loop processes at a time, or to one shorter vector."""
    unit = min(2 * k.tile_width(dtype), 1 << (size - 1).bit_length())
    return -(-size // unit) * unit


def find_pivot(k: Loops, column: Window, places: Window, largest: Window, place: Window) -> Reg:
    """The position of the column's element of largest magnitude; its start, if it contains NaNs."""
    (size,), zero = column.type.shape, k.scalar.const(I64, 0)
    k.reduce(Max((0,)), lambda emit, x: emit.fabs(x), largest, [column])

    def where(emit: Emitter, x: Reg, most: Reg, place: Reg) -> Reg:
        return emit.select(emit.compare("eq", emit.fabs(x), most), place, emit.like(place, size))

    k.reduce(Min((0,)), where, place, [column, spread(k, largest, size), places])
    found = k.scalar.convert(k.load(place, zero), I64)
    return k.scalar.select(k.scalar.compare("lt", found, k.scalar.like(found, size)), found, zero)


def quotient(emit: Emitter, x: Reg, divisor: Reg) -> list[Reg]:
    """x / divisor; x, which is then 0, if the divisor is 0."""
    return [emit.fdiv(x, emit.select(emit.compare("eq", divisor, emit.like(divisor, 0.0)), emit.like(divisor, 1.0), divisor))]


def exchange(k: Loops, work: Window, row: Reg, other: Reg) -> None:
    """Exchange two rows, which may be the same."""
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
