"""Cuts nests whose accesses run in different directions, as in transposes, into tiles that stay in the cache.

A cache line loaded along one direction is then still cached when the other direction reaches it. Tiles consist of squares with sides of at
most one vector, which the nest loads as vectors and transposes in registers (`Square` in `ir.py`).

A tile is only a domain with more axes: an axis of n elements becomes one of n/T tiles and one of T elements, with matching strides.
"""

from __future__ import annotations

from collections.abc import Iterator

from adjit.ir.expr import Expr
from adjit.ir.records import replace

from .ir import Access
from .nest import SQUARE, NestPlan, NestSpec

TILE = SQUARE  # tile size in both directions, in elements: two tiles fit in the first-level cache
LINE = 16  # elements: strides of at least this length touch a new cache line each
FAR = 1 << 14  # elements traversed before the walk returns to a line: fewer than this stay in the cache anyway


def pieces(plan: NestPlan) -> Iterator[NestSpec]:
    """The nest in tiles, then the two remaining strips; nothing if tiles would not help."""
    spec = plan.spec
    if plan.empty or spec.reductions or spec.indexed or spec.aliased:
        return
    place = _across(plan)
    sizes = [n for n in plan.sizes if isinstance(n, int)]
    if place is not None and len(sizes) == len(plan.sizes):
        yield from _pieces(plan, sizes, place)


def _across(plan: NestPlan) -> int | None:
    """Position in the nest's order of an axis along which some access is contiguous while the inner loop moves it from line to line."""
    sizes = [n if isinstance(n, int) else 0 for n in plan.sizes]
    if len(sizes) < 2 or sizes[-1] < 2 * TILE:
        return None
    for access in plan.accesses:
        if _length(access.strides[plan.order[-1]]) >= LINE:
            for place, (axis, size) in enumerate(zip(plan.order[:-1], sizes[:-1], strict=True)):
                if _length(access.strides[axis]) == 1 and size >= TILE and size * sizes[-1] >= FAR:
                    return place
    return None


def _length(stride: Expr) -> int:
    return abs(stride) if isinstance(stride, int) else 0


def _pieces(plan: NestPlan, sizes: list[int], place: int) -> Iterator[NestSpec]:
    *outside, inner = sizes
    high, wide = outside[place] // TILE * TILE, inner // TILE * TILE

    def part(rows: int, columns: int, first: tuple[int, int]) -> NestSpec:
        """A strip, or all tiles: `rows` rows and `columns` columns, from the position `first` on."""
        domain = (*outside[:place], rows, *outside[place + 1 :], columns)

        def moved(access: Access) -> Access:
            strides = tuple(access.strides[axis] for axis in plan.order)
            offset = first[0] * strides[place] + first[1] * strides[-1]
            return Access(access.pointer, strides, access.dtype, access.offset + offset)

        spec = plan.spec
        return replace(spec, domain=domain, inputs=[moved(a) for a in spec.inputs], outputs=[moved(a) for a in spec.outputs])

    yield _split(part(high, wide, (0, 0)), place, plan.side())
    if wide < inner:
        yield part(high, inner - wide, (0, wide))
    if high < outside[place]:
        yield part(outside[place] - high, inner, (high, 0))


def _split(spec: NestSpec, place: int, side: int) -> NestSpec:
    """Split into tiles, squares (those along the other direction first, since they share cache lines) and elements."""

    def cut(access: Access) -> Access:
        down, right = access.strides[place], access.strides[-1]
        strides = (*without(access.strides), down * TILE, right * TILE, right * side, down * side, down, right)
        return access._replace(strides=strides)

    def without(items: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return (*items[:place], *items[place + 1 : -1])

    squares = TILE // side
    high, wide = spec.domain[place], spec.domain[-1]
    domain = (*without(spec.domain), high // TILE, wide // TILE, squares, squares, side, side)
    return replace(spec, domain=domain, inputs=[cut(a) for a in spec.inputs], outputs=[cut(a) for a in spec.outputs])
