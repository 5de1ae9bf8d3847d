"""Cuts nests whose accesses run in different directions, as in transposes, into tiles that stay in the cache.

A cache line loaded along one direction is then still cached when the other direction reaches it. Tiles consist of squares with sides of at
most one vector, which the nest loads as vectors and transposes in registers (`Nest._square`).

A tile is only a domain with more axes: an axis of n elements becomes one of n/T tiles and one of T elements, with matching strides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from adjit.ir.types import Shape

from ..llvm.memory import Access
from .nest import SQUARE, Nest

TILE = SQUARE  # tile size in both directions, in elements: two tiles fit in the first-level cache
LINE = 16  # elements: strides of at least this length touch a new cache line each
FAR = 1 << 14  # elements traversed before the walk returns to a line: fewer than this stay in the cache anyway


class Piece(NamedTuple):
    """A part of a domain: the strides of every access along its axes, and the offset at which each access starts."""

    domain: Shape
    strides: list[tuple[int, ...]]
    offsets: list[int]


def across(nest: Nest, accesses: Sequence[Access]) -> int | None:
    """Position in the nest's order of an axis along which some access is contiguous while the inner loop moves it from line to line."""
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
    """The tiles, then the two remaining strips."""
    *sizes, inner = nest.sizes
    strides = [tuple(access.strides[axis] for axis in nest.order) for access in accesses]
    high, wide = sizes[place] // TILE * TILE, inner // TILE * TILE

    def part(rows: int, columns: int, first: tuple[int, int]) -> Piece:
        domain = (*sizes[:place], rows, *sizes[place + 1 :], columns)
        return Piece(domain, strides, [first[0] * s[place] + first[1] * s[-1] for s in strides])

    def split(piece: Piece) -> Piece:
        """Split into tiles, squares (those along the other direction first, since they share cache lines) and elements."""
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
