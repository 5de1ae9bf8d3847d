"""The rules of contractions (see `checker.py`): tiles cover the result once, and stay within all buffers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from adjit.ir.expr import Expr
from adjit.ir.records import replace

from . import cuts
from .ir import Access, Contraction, Cuts, Loop, Node, Tile, index_of, static

if TYPE_CHECKING:
    from .checker import Checker


class TileChecker:
    def __init__(self, around: Checker, node: Contraction) -> None:
        self.around = around
        self.node = node
        self.active: dict[int, Loop] = {}  # by axis

    def check(self) -> None:
        node, axes = self.node, range(len(self.node.sizes))
        self.require(all(len(a.strides) == len(axes) for a in node.accesses), f"accesses of other domains than {node.sizes}")
        self.require(set(node.summed) <= set(axes), f"sums over the axes {node.summed} of {len(axes)}")
        self.require(node.vector not in node.summed, f"vectors along axis {node.vector}, which is summed over")
        self.require(0 < node.written <= len(node.members), f"{node.written} of {len(node.members)} members are written")
        still = all(member.strides[axis] == 0 for member in node.members for axis in node.summed)
        self.require(still, "the target moves along an axis that is summed over")
        with ExitStack() as stack:
            for axis in node.summed:
                stack.enter_context(self.around.inside(Loop(index_of(axis), 0, node.sizes[axis], 1, [], axis)))
            self.level(node.nodes)

    def require(self, condition: bool, message: str) -> None:
        self.around.require(condition, f"a contraction: {message}")

    def level(self, nodes: Sequence[Node]) -> None:
        """The nodes at one depth: loops one after the other along all of an axis, or tiles that share the rows between them."""
        if len(nodes) == 1 and isinstance(nodes[0], Cuts):
            self.cuts(nodes[0])
            return
        loops, tiles = [n for n in nodes if isinstance(n, Loop)], [n for n in nodes if isinstance(n, Tile)]
        self.require(len(nodes) in (len(loops), len(tiles)) and bool(nodes), "loops beside tiles, or nothing")
        if tiles:
            self.tiles(tiles)
            return
        axis = loops[0].axis
        covered: Expr = 0
        self.require(axis is not None and axis not in (*self.active, *self.node.summed), f"a second loop along axis {axis}")
        assert axis is not None
        for loop in loops:
            self.require(loop.axis == axis, f"loops along the axes {axis} and {loop.axis} side by side")
            self.require(loop.start == covered, f"axis {axis} is covered up to {covered}, and the next loop begins at {loop.start}")
            self.active[axis] = loop
            with self.around.inside(loop):
                whole = self.around.ranges.multiple(loop.stop - loop.start) % loop.step == 0
                self.require(whole, f"{loop.start}..{loop.stop} is not a whole number of steps of {loop.step}")
                self.level(loop.body)
            del self.active[axis]
            covered = loop.stop
        self.require(covered == self.node.sizes[axis], f"axis {axis} is covered up to {covered}, not to {self.node.sizes[axis]}")

    def cuts(self, node: Cuts) -> None:
        """Parts of sizes that are decided at run time: each of them has code, which stays within the axis at its last position."""
        axis, sizes = node.axis, list(node.bodies)
        self.require(axis not in (*self.active, *self.node.summed), f"a second loop along axis {axis}")
        self.require(node.size == self.node.sizes[axis], f"axis {axis} is cut up to {node.size}, not to {self.node.sizes[axis]}")
        self.require(sizes == cuts.heights(max(sizes, default=0)), f"parts of {sizes} rows")
        for rows, body in node.bodies.items():
            positions = Loop(node.variable, 0, node.size - (rows - 1), 1, [], axis, may_be_empty=True)
            self.active[axis] = replace(positions, step=rows)
            with self.around.inside(positions):
                self.level(body)
            del self.active[axis]

    def tiles(self, tiles: Sequence[Tile]) -> None:
        node = self.node
        kept = [a for a in range(len(node.sizes)) if a not in (*node.summed, node.vector)]
        extents = [self.active[a].step if a in self.active else static(node.sizes[a]) for a in kept]
        rows = [tuple(dict(row).get(a, 0) for a in kept) for tile in tiles for row in tile.rows]
        wanted = set(itertools.product(*map(range, extents)))
        self.require(set(rows) == wanted and len(rows) == len(wanted), f"tiles of {len(rows)} rows for {len(wanted)} positions")
        width = 1 if node.vector is None else self.active[node.vector].step if node.vector in self.active else None
        for tile in tiles:
            self.require(min(tile.widths, default=0) >= 1 and sum(tile.widths) == width, f"vectors of {tile.widths} for {width} columns")
            for row in tile.rows:
                for access in node.accesses:
                    self.within(access, row, sum(tile.widths))

    def within(self, access: Access, row: Sequence[tuple[int, int]], width: int) -> None:
        """A row of a tile is in the buffer at all positions of the loops."""
        at: Expr = access.offset
        for axis, distance in row:
            at = at + access.strides[axis] * distance
        position = {axis: index_of(axis) for axis in (*self.active, *self.node.summed)}
        self.around.require_within(access._replace(offset=at), dict[int, Expr](position), self.node.vector, width)
