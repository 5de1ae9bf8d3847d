"""Nests whose accesses run in different directions, as transposes do: cut into tiles, so that what one direction brings into the cache is
still there when the other comes by. Inside of a tile are squares of at most a vector's width, which the nest loads as vectors and turns
around in registers (`Nest._square`).

A tile is nothing but a domain with more axes: an axis of n elements is one of n/T tiles and one of T elements, with strides to match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from adjit.ir.types import Shape

from ..llvm.memory import Access
from .nest import SQUARE, Nest

TILE = SQUARE  # elements along both directions: two tiles fit into the first-level cache
LINE = 16  # elements: steps as long as this touch a new cache line each
FAR = 1 << 14  # elements that the walk leaves behind before it comes back: less stays in the cache anyway


class Piece(NamedTuple):
    """A part of a domain: strides of its axes for every access, and how far from its first element each begins."""

    domain: Shape
    strides: list[tuple[int, ...]]
    offsets: list[int]


def across(nest: Nest, accesses: Sequence[Access]) -> int | None:
    """Which axis, by its place in the nest's order, some access runs along while the inner loop takes it from line to line."""
    if len(nest.order) < 2 or nest.sizes[-1] < 2 * TILE:
        return None
    inner = nest.order[-1]
    for access in accesses:
        if abs(access.strides[inner]) >= LINE:
            for place, (axis, size) in enumerate(zip(nest.order[:-1], nest.sizes[:-1], strict=True)):
                if abs(access.strides[axis]) == 1 and size >= TILE and size * nest.sizes[-1] >= FAR:
                    return place
    return None


def pieces(nest: Nest, accesses: Sequence[Access], place: int) -> Iterator[Piece]:
    """The tiles, then the two strips that are left over."""
    *sizes, inner = nest.sizes
    strides = [tuple(access.strides[axis] for axis in nest.order) for access in accesses]
    high, wide = sizes[place] // TILE * TILE, inner // TILE * TILE

    def part(rows: int, columns: int, first: tuple[int, int]) -> Piece:
        domain = (*sizes[:place], rows, *sizes[place + 1 :], columns)
        return Piece(domain, strides, [first[0] * s[place] + first[1] * s[-1] for s in strides])

    def split(piece: Piece) -> Piece:
        """Tiles, squares (those along the other direction first: they share cache lines), elements."""
        side = nest.side()

        def cut(outside: tuple[int, ...], down: int, right: int) -> tuple[int, ...]:
            return (*outside, down * TILE, right * TILE, right * side, down * side, down, right)

        def without(items: tuple[int, ...]) -> tuple[int, ...]:
            return (*items[:place], *items[place + 1 : -1])

        squares = TILE // side
        domain = (*without(piece.domain), high // TILE, wide // TILE, squares, squares, side, side)
        return Piece(domain, [cut(without(s), s[place], s[-1]) for s in piece.strides], piece.offsets)

    yield split(part(high, wide, (0, 0)))
    if wide < inner:
        yield part(high, inner - wide, (0, wide))
    if high < sizes[place]:
        yield part(sizes[place] - high, inner, (high, 0))
