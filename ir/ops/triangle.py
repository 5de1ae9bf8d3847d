"""Substitution in triangular systems, as native code: by blocks of rows, so that most of the work is matrix products.

The blocks are cut when code is generated: all windows are of fixed sizes. Inside a block, rows come one by one at run time, and what
follows them is seen through a window of the block's size that starts there. Memory after the block takes what goes beyond its end.
"""

from __future__ import annotations

from ..types import I64, TensorType
from .base import Loops, Reg, Window

UNCUT = 48  # rows: up to here, one block
NARROW, WIDE = 32, 64  # rows of a block
LONG = 320  # rows: from here on, wide blocks, which are fewer: each is code of its own


def blocks(n: int) -> list[tuple[int, int]]:
    """n rows in blocks: where each starts, and how many rows it has."""
    width = n if n <= UNCUT else NARROW if n < LONG else WIDE
    return [(start, min(width, n - start)) for start in range(0, n, width)]


def substitute(k: Loops, matrix: Window, sides: Window, upper: bool, unit: bool) -> None:
    """sides = T⁻¹ @ sides, T being one triangle of the matrix; with `unit`, its diagonal counts as 1."""
    n, m = sides.type.shape
    cut = blocks(n)
    room = k.scratch(TensorType(sides.type.dtype, (cut[0][1], m)))
    for start, size in reversed(cut) if upper else cut:
        rows, here, product = matrix.slice(0, start, size), sides.slice(0, start, size), room.slice(0, 0, size)
        known, count = (start + size, n - start - size) if upper else (0, start)
        if count:
            k.matmul(product, rows.slice(1, known, count), sides.slice(0, known, count))
            k.map(lambda emit, x, y: [emit.sub(x, y)], [here], [here, product])
        square = rows.slice(1, start, size)
        if m < 2 * size:
            substitute_rows(k, square, here, upper, unit)
        else:
            multiply_by_inverse(k, square, here, product, upper, unit)


def multiply_by_inverse(k: Loops, square: Window, sides: Window, product: Window, upper: bool, unit: bool) -> None:
    """With many right-hand sides, substitution in the identity and a product are faster than substitution in all of them."""
    size = square.type.shape[0]
    inverse = k.scratch(TensorType(sides.type.dtype, (size, size)))
    k.fill(inverse, 0.0)
    with k.loop(size) as i:
        k.store(inverse, k.scalar.const(inverse.type.dtype, 1.0), i, i)
    substitute_rows(k, square, inverse, upper, unit)
    k.matmul(product, inverse, sides)
    k.copy(sides, product)


def substitute_rows(k: Loops, square: Window, sides: Window, upper: bool, unit: bool) -> None:
    """Row by row: divide it by its diagonal, then take it from those after it. An upper triangle is a lower one backwards."""
    size, m = sides.type.shape
    if upper:
        square, sides = backwards(backwards(square, 0), 1), backwards(sides, 0)
    columns = k.scratch(TensorType(sides.type.dtype, (size, 2 * size)))
    work = k.scratch(TensorType(sides.type.dtype, (2 * size, m)))
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
    k.map(lambda emit, x, a, b: [emit.fma(emit.neg(a), b, x)], [target], [target, across, down])


def part(window: Window, start: Reg, size: int) -> Window:
    """`size` places of the first axis, from one that is known at run time."""
    return window.sliding(0, window.type.shape[0], 1, size).at(start)


def spread(k: Loops, one: Window, size: int) -> Window:
    """One element as a vector of equal ones."""
    return one.sliding(0, size, 0, 1).transposed(1, 0).at(k.scalar.const(I64, 0))


def backwards(window: Window, axis: int) -> Window:
    size = window.type.shape[axis]
    return window.slice(axis, size - 1, size, -1)
