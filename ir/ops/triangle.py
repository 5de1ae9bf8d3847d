"""Substitution in triangular systems, as native code: by blocks of rows, so that most of the work is matrix products.

Blocks are processed by a loop at run time, so that the code does not grow with the matrix: all have the same size, except the last one,
for which there is code of its own. Inside a block, rows are processed one by one, and the rows after each are accessed through a window of
the block's size that starts there. Memory after the block absorbs the excess.
"""

from __future__ import annotations

from ..records import NamedTuple
from ..types import I64, DType, TensorType
from .base import Loops, Reg, Window

UNCUT = 48  # rows: up to here, a single block
BLOCKS = ((160, 24), (1500, 32), (1 << 62, 64))  # rows of a triangle, up to which blocks have this many rows


class RowBlocks(NamedTuple):
    """Rows of a triangle: `full` blocks of `width` rows, then `last` rows, at least one."""

    width: int
    full: int
    last: int


def cut(n: int) -> RowBlocks:
    """n rows in blocks of about equal sizes, in which vectors fit."""
    if n <= UNCUT:
        return RowBlocks(n, 0, n)
    even = -(-n // -(-n // next(rows for most, rows in BLOCKS if n <= most)))
    width = -(-even // 8) * 8
    count = -(-n // width) - 1
    return RowBlocks(width, count, n - width * count)


class Triangles:
    """Substitution in triangles of at most `size` rows with at most m right-hand sides at once, and the scratch memory for it."""

    def __init__(self, k: Loops, size: int, m: int, dtype: DType) -> None:
        self.k = k
        self.columns = k.scratch(TensorType(dtype, (size, 2 * size)))
        self.work = k.scratch(TensorType(dtype, (2 * size, m)))
        self.rows = k.scratch(TensorType(dtype, (size, m)))
        self.inverse = k.scratch(TensorType(dtype, (size, size)))
        self.square = k.scratch(TensorType(dtype, (2 * size, size)))

    def substitute(self, matrix: Window, sides: Window, upper: bool, unit: bool) -> None:
        """sides = T⁻¹ @ sides, where T is one triangle of the matrix; with `unit`, its diagonal is taken as 1."""
        (n, m), emit = sides.type.shape, self.k.scalar
        width, count, last = cut(n)
        step = self.take_known_vector if m == 1 else self.take_known if m < 2 * width else self.take_from_open
        if upper:
            step(matrix, sides, emit.const(I64, count), last, upper, unit)
        if count:
            with self.k.loop(count) as i:
                step(matrix, sides, emit.sub(emit.like(i, count - 1), i) if upper else i, width, upper, unit)
        if not upper:
            step(matrix, sides, emit.const(I64, count), last, upper, unit)

    def take_known_vector(self, matrix: Window, sides: Window, index: Reg, size: int, upper: bool, unit: bool) -> None:
        """Substitution in one block, after the product of its rows with what is known, for a single right-hand side."""
        k, emit, (width, count, last) = self.k, self.k.scalar, cut(sides.type.shape[0])
        start = emit.mul(index, emit.like(index, width))
        here, rows, product = part(sides, start, size), part(matrix, start, size).transposed(1, 0), self.rows.slice(0, 0, size)
        first, stop = (emit.add(index, emit.like(index, 1)), emit.like(index, count)) if upper else (emit.like(index, 0), index)
        if count:
            with k.loop(emit.sub(stop, first)) as i:
                known = emit.mul(emit.add(first, i), emit.like(i, width))
                k.call(take_square, here, part(rows, known, width), part(sides, known, width), product)
        if upper:
            with k.loop(smaller(k, emit.sub(stop, index), 1)):  # 0 in the last block
                k.call(take_square, here, part(rows, emit.const(I64, width * count), last), sides.slice(0, width * count, last), product)
        k.call(substitute_rows, part(rows, start, size).transposed(1, 0), here, self.columns, self.work, upper=upper, unit=unit)

    def take_known(self, matrix: Window, sides: Window, index: Reg, size: int, upper: bool, unit: bool) -> None:
        """The same for a few right-hand sides."""
        n, k, emit = sides.type.shape[0], self.k, self.k.scalar
        start = emit.mul(index, emit.like(index, cut(n).width))
        after = emit.add(start, emit.like(start, size))
        known, length = (after, emit.sub(emit.like(after, n), after)) if upper else (emit.like(start, 0), start)
        here, rows, product = part(sides, start, size), part(matrix, start, size).transposed(1, 0), self.rows.slice(0, 0, size)
        with k.loop(smaller(k, length, 1)):
            k.product(product, part(rows, known, n).transposed(1, 0), part(sides, known, n), k=length)
            k.call(subtract, here, product)
        k.call(substitute_rows, part(rows, start, size).transposed(1, 0), here, self.columns, self.work, upper=upper, unit=unit)

    def take_from_open(self, matrix: Window, sides: Window, index: Reg, size: int, upper: bool, unit: bool) -> None:
        """Substitution in one block, whose product is then subtracted from the rows that are left; for many right-hand sides."""
        n, k = sides.type.shape[0], self.k
        start = k.scalar.mul(index, k.scalar.like(index, cut(n).width))
        after = k.scalar.add(start, k.scalar.like(start, size))
        columns = part(matrix.transposed(1, 0), start, size).transposed(1, 0)
        negative = self.multiply_by_inverse(part(columns, start, size), part(sides, start, size), upper, unit)
        open_ = k.scalar.like(start, 0) if upper else after
        left = start if upper else k.scalar.sub(k.scalar.like(after, n), after)
        k.product(part(sides, open_, n), part(columns, open_, n), negative, m=left, accumulate=True)

    def multiply_by_inverse(self, square: Window, sides: Window, upper: bool, unit: bool) -> Window:
        """Substitution in one block: with many right-hand sides, a product is faster. Returns the negative of the result."""
        size, m = sides.type.shape
        inverse, product = self.inverse.slice(0, 0, size).slice(1, 0, size), self.rows.slice(0, 0, size).slice(1, 0, m)
        self.k.call(invert, square, inverse, self.columns, self.square, upper=upper, unit=unit)
        self.k.matmul(product, inverse, sides, brief=True)
        self.k.call(copy_and_negate, sides, product)
        return product


def smaller(k: Loops, x: Reg, limit: int) -> Reg:
    most = k.scalar.like(x, limit)
    return k.scalar.select(k.scalar.compare("lt", x, most), x, most)


def take_square(k: Loops, target: Window, columns: Window, known: Window, product: Window) -> None:
    """target -= columns.T @ known"""
    k.matmul(product, columns.transposed(1, 0), known)
    subtract(k, target, product)


def subtract(k: Loops, target: Window, source: Window) -> None:
    """target -= source"""
    k.map(lambda emit, x, y: [emit.sub(x, y)], [target], [target, source])


def copy_and_negate(k: Loops, target: Window, source: Window) -> None:
    """target = source, then source = -source"""
    k.map(lambda emit, x: [x, emit.neg(x)], [target, source], [source])


def invert(k: Loops, square: Window, inverse: Window, columns: Window, work: Window, upper: bool, unit: bool) -> None:
    """The inverse of a triangle, by substitution in the identity."""
    k.fill(inverse, 0.0)
    with k.loop(square.type.shape[0]) as i:
        k.store(inverse, k.scalar.const(inverse.type.dtype, 1.0), i, i)
    substitute_rows(k, square, inverse, columns, work, upper, unit)


def substitute_rows(k: Loops, square: Window, sides: Window, columns: Window, work: Window, upper: bool, unit: bool) -> None:
    """Row by row: divide it by its diagonal, then subtract it from later rows. An upper triangle is processed as a reversed lower one."""
    size, m = sides.type.shape
    if upper:
        square, sides = backwards(backwards(square, 0), 1), backwards(sides, 0)
    columns, work = columns.slice(0, 0, size).slice(1, 0, 2 * size), work.slice(0, 0, 2 * size).slice(1, 0, m)
    k.copy(columns.slice(1, 0, size), square.transposed(1, 0))
    k.copy(work.slice(0, 0, size), sides)
    with k.loop(size) as i:
        row, after = work.at(i), k.scalar.add(i, k.scalar.like(i, 1))
        if not unit:
            k.map(lambda emit, x, d: [emit.fdiv(x, d)], [row], [row, spread(k, part(columns.at(i), i, 1), m)])
        take_product(k, part(work, after, size), part(columns.at(i), after, size), row)
    k.copy(sides, work.slice(0, 0, size))


def take_product(k: Loops, target: Window, column: Window, row: Window) -> None:
    """target -= column ⊗ row"""
    (m,), (n,) = column.type.shape, row.type.shape
    across, down = column.sliding(0, m, 1, n, dilation=0), row.sliding(0, m, 0, n)
    k.map(lambda emit, x, a, b: [emit.sub(x, emit.mul(a, b))], [target], [target, across, down])


def part(window: Window, start: Reg, size: int) -> Window:
    """`size` positions of the first axis, starting at a run-time index."""
    return window.sliding(0, window.type.shape[0], 1, size).at(start)


def spread(k: Loops, one: Window, size: int) -> Window:
    """One element broadcast to a vector."""
    return one.sliding(0, size, 0, 1).transposed(1, 0).at(k.scalar.const(I64, 0))


def backwards(window: Window, axis: int) -> Window:
    size = window.type.shape[axis]
    return window.slice(axis, size - 1, size, -1)
