"""LU factorisation of square matrices, by elimination with partial pivoting: the basis of linear solves and determinants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import source_helpers
from ..cost import Cost
from ..errors import DTypeError, ShapeError
from ..types import I64, DType, TensorType
from .base import Array, Emitter, Loops, Op, Reg, Window, Writing, apply, nest
from .reduce import Max, Min
from .triangle import RowBlocks, Triangles, part, spread, take_product

__all__ = ["lu"]

if TYPE_CHECKING:
    from ..operand import Operand


UNCUT = 24  # columns: up to here, a single block
WIDTHS = ((256, 8), (1 << 62, 16))  # columns of a matrix, up to which blocks have this many: inside of a block, nothing is a product
HEIGHTS = 2  # of panels, for each of which code is generated
GROUP, GROUPED = 8, 1536  # blocks of a group, and rows from which on there are groups


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

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, 2.0 * types[0].size * types[0].shape[-1] / 3.0)

    def lower(self, k: Loops, out: Window, a: Window) -> None:
        *batch, n, _ = a.type.shape
        if not a.type.size:
            return
        elimination = Elimination(k, n, a.type.dtype)
        with nest(k, batch) as at:
            factors = out.at(*at)
            elimination.run(a.at(*at), factors.slice(0, 0, n), factors.slice(0, n, 1).at(k.scalar.const(I64, 0)))


class Elimination:
    """Elimination by blocks of columns: in one block, then everything to its right is updated by substitution and one product.

    In large matrices, the rest is updated only after a group of blocks: a product that reads and writes the whole rest is worth it if it
    adds many columns. Until then, the next block, and the rows beside it, are updated alone.

    Blocks are processed by loops at run time, so that the code does not grow with the matrix. The rows below a block, and the columns after
    it, are rounded up to one of a few heights for which there is code: the matrix is padded with zeros.
    """

    def __init__(self, k: Loops, n: int, dtype: DType) -> None:
        self.k, self.n = k, n
        self.width, self.count, self.last = eliminated(n)
        self.group = GROUP * self.width
        in_groups = self.group * (n // self.group - 1) if n >= GROUPED else 0
        rest = [n - in_groups] if in_groups else heights(n)
        self.groups = by_height(heights(n), n, range(0, in_groups, self.group))
        self.heights = by_height(rest, n, range(in_groups, self.width * self.count, self.width))
        ends = [
            starts[-1] + size + height for size, cut in ((self.group, self.groups), (self.width, self.heights)) for height, starts in cut
        ]
        self.around = max([n, *ends])
        self.room = k.scratch(TensorType(dtype, (self.around, self.around)))
        self.negative = k.scratch(TensorType(dtype, (self.group if in_groups else 0, self.around)))
        self.panel, self.triangles = EliminationPanel(k, n, self.width, dtype), Triangles(k, self.width, n, dtype)

    def run(self, matrix: Window, factors: Window, exchanges: Window) -> None:
        k, n = self.k, self.n
        work = self.room if self.count else factors
        k.copy(work.slice(0, 0, n).slice(1, 0, n), matrix)
        for axis in range(2):
            k.fill(self.room.slice(axis, n, self.around - n), 0.0)
        for step, cut, eliminate in ((self.group, self.groups, self.eliminate_group), (self.width, self.heights, self.eliminate_block)):
            for height, starts in cut:
                with k.loop(len(starts)) as j:
                    start = k.scalar.add(k.scalar.mul(j, k.scalar.like(j, step)), k.scalar.like(j, starts[0]))
                    eliminate(work, exchanges, start, height)
        rows = work.slice(0, n - self.last, self.last).slice(1, 0, n)
        self.panel.eliminate(rows, rows.slice(1, n - self.last, self.last), exchanges.slice(0, n - self.last, self.last))
        if self.count:
            k.copy(factors, work.slice(0, 0, n).slice(1, 0, n))

    def eliminate_block(self, work: Window, exchanges: Window, start: Reg, height: int) -> None:
        k, n, width = self.k, self.n, self.width
        after = k.scalar.add(start, k.scalar.like(start, width))
        rest = k.scalar.sub(k.scalar.like(after, n), after)
        rows = part(work, start, height)
        block, right = part_of_columns(rows, start, width), part_of_columns(rows, after, height)
        self.panel.eliminate(rows.slice(1, 0, n), block, part(exchanges, start, width))
        negative = self.triangles.multiply_by_inverse(block.slice(0, 0, width), right.slice(0, 0, width), upper=False, unit=True)
        below = k.scalar.const(I64, width)
        k.product(part(right, below, height), part(block, below, height), negative, m=rest, n=rest, accumulate=True)

    def eliminate_group(self, work: Window, exchanges: Window, first: Reg, height: int) -> None:
        """A group of blocks, of which each is updated by those before it; then everything to their right by one product.

        The rows of the upper triangle that are complete, with the other sign, are kept in `negative`, for these products.
        """
        k, n, width, emit = self.k, self.n, self.width, self.k.scalar
        with k.loop(GROUP) as i:
            known = emit.mul(i, emit.like(i, width))
            start = emit.add(first, known)
            after = emit.add(start, emit.like(start, width))
            rows, left, rest = part(work, start, height), emit.sub(emit.like(start, n), start), emit.sub(emit.like(after, n), after)
            below = part_of_columns(rows, first, self.group)
            block, above = (part_of_columns(x, start, width) for x in (rows, self.negative))
            right, beside = (part_of_columns(x, after, height) for x in (rows, self.negative))
            top = right.slice(0, 0, width)
            k.product(block, below, above, m=left, k=known, accumulate=True)
            self.panel.eliminate(rows.slice(1, 0, n), block, part(exchanges, start, width))
            k.product(top, below.slice(0, 0, width), beside, n=rest, k=known, accumulate=True)
            negative = self.triangles.multiply_by_inverse(block.slice(0, 0, width), top, upper=False, unit=True)
            k.copy(part(beside, known, width), negative)
        after = emit.add(first, emit.like(first, self.group))
        rest = emit.sub(emit.like(after, n), after)
        rows = part(work, after, height)
        right, above = (part_of_columns(x, after, height) for x in (rows, self.negative))
        k.product(right, part_of_columns(rows, first, self.group), above, m=rest, n=rest, accumulate=True)


def part_of_columns(window: Window, start: Reg, size: int) -> Window:
    return part(window.transposed(1, 0), start, size).transposed(1, 0)


def by_height(sizes: Sequence[int], n: int, starts: Sequence[int]) -> list[tuple[int, list[int]]]:
    """The starts of blocks that each of the heights is used for, the smallest that holds the rows from there on; the highest first."""
    heights: dict[int, list[int]] = {}
    for start in starts:
        heights.setdefault(min(size for size in sizes if size >= n - start), []).append(start)
    return list(heights.items())


def eliminated(n: int) -> RowBlocks:
    """n columns in blocks for elimination."""
    width = n if n <= UNCUT else next(width for most, width in WIDTHS if n <= most)
    count = -(-n // width) - 1
    return RowBlocks(width, count, n - width * count)


def heights(n: int) -> list[int]:
    return [n * part // HEIGHTS for part in range(1, HEIGHTS + 1)]


class EliminationPanel:
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


def exchanged(k: Loops, exchanges: Window, i: Reg) -> Reg:
    """The row that elimination exchanged with row i, by the last row of the factors; or row i if it exchanged none below it.

    Factors by `Lu` always name one; a text of the IR may have any numbers in their place, and rows outside of a matrix are never touched.
    """
    emit, (n,) = k.scalar, exchanges.type.shape
    ahead = k.load(exchanges, i)
    rest = emit.convert(emit.sub(emit.like(i, n), i), exchanges.type.dtype)
    inside = emit.and_(emit.compare("gt", ahead, emit.like(ahead, 0.0)), emit.compare("lt", ahead, rest))
    return emit.add(i, emit.convert(emit.select(inside, ahead, emit.like(ahead, 0.0)), I64))


def check_square(what: str, a: TensorType) -> None:
    if not a.is_float:
        raise DTypeError(f"{what}: takes floats, not {a}")
    if a.rank < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{what}: the matrices must be square, not {a}")


def lu(a: Operand) -> Operand:
    """The factors of a square matrix with exchanged rows, and the exchanges; see `Lu`."""
    return apply(Lu(), a)
