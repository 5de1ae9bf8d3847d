"""Substitution in triangular systems, as native code: by blocks of rows, so that most of the work is matrix products.

The blocks are cut at code generation time, so all windows have fixed sizes. Inside a block, rows are processed one by one at run time, and
the rows after each are accessed through a window of the block's size that starts there. Memory after the block absorbs the excess.
"""

from __future__ import annotations

from ..types import I64, DType, TensorType
from .base import Loops, Reg, Window

UNCUT = 48  # rows: up to here, a single block
BLOCK = 24  # rows


def blocks(n: int) -> list[tuple[int, int]]:
    """n rows in blocks: the start of each, and its number of rows."""
    width = n if n <= UNCUT else BLOCK
    return [(start, min(width, n - start)) for start in range(0, n, width)]


class Triangles:
    """Substitution in triangles of at most `size` rows with at most m right-hand sides at once, and the scratch memory for it."""

    def __init__(self, k: Loops, size: int, m: int, dtype: DType) -> None:
        self.k = k
        self.columns = k.scratch(TensorType(dtype, (size, 2 * size)))
        self.work = k.scratch(TensorType(dtype, (2 * size, m)))
        self.product = k.scratch(TensorType(dtype, (size, m)))
        self.inverse = k.scratch(TensorType(dtype, (size, size)))
        self.square = k.scratch(TensorType(dtype, (2 * size, size)))

    def substitute(self, matrix: Window, sides: Window, upper: bool, unit: bool) -> None:
        """sides = T⁻¹ @ sides, where T is one triangle of the matrix; with `unit`, its diagonal is taken as 1."""
        n, m = sides.type.shape
        cut = blocks(n)
        is_few = m < 2 * cut[0][1]
        for start, size in reversed(cut) if upper else cut:
            before, after = (0, start), (start + size, n - start - size)
            known, open_ = (after, before) if upper else (before, after)
            here, square = sides.slice(0, start, size), matrix.slice(0, start, size).slice(1, start, size)
            if is_few:
                self.take_known(matrix.slice(0, start, size).slice(1, *known), sides.slice(0, *known), here)
                self.k.call(substitute_rows, square, here, self.columns, self.work, upper=upper, unit=unit)
            else:
                negative = self.multiply_by_inverse(square, here, upper, unit)
                self.k.matmul(sides.slice(0, *open_), matrix.slice(0, *open_).slice(1, start, size), negative, accumulate=True, brief=True)

    def take_known(self, matrix: Window, known: Window, target: Window) -> None:
        """target -= matrix @ known"""
        product = self.product.slice(0, 0, target.type.shape[0])
        if known.type.shape[0]:
            self.k.matmul(product, matrix, known, brief=True)
            self.k.call(subtract, target, product)

    def multiply_by_inverse(self, square: Window, sides: Window, upper: bool, unit: bool) -> Window:
        """Substitution in one block: with many right-hand sides, a product is faster. Returns the negative of the result."""
        size, m = sides.type.shape
        inverse, product = self.inverse.slice(0, 0, size).slice(1, 0, size), self.product.slice(0, 0, size).slice(1, 0, m)
        self.k.call(invert, square, inverse, self.columns, self.square, upper=upper, unit=unit)
        self.k.matmul(product, inverse, sides, brief=True)
        self.k.call(copy_and_negate, sides, product)
        return product


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
