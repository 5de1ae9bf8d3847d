"""Writes contractions as LLVM text: loops, and tiles of sums in registers. `renderer.py` writes everything else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from adjit.ir.expr import Expr

from ..interrupts.stopping import Budget, brief
from ..kernels.emitter import VectorEmitter
from ..llvm import counted, memory
from ..llvm.lanes import Reg
from ..llvm.words import Word, spelled
from . import cuts
from .ir import Access, Contraction, Cuts, Factor, Loop, Node, Tile, static

if TYPE_CHECKING:
    from .renderer import Renderer

Sums = list[list[Reg]]  # of a tile: rows of vectors
TARGET = len(Factor)  # index of the first member among the accesses
PARTS = 2  # approximate number of parts of an axis
INSTRUCTIONS = 5  # lines of text for a vector of products


class TileRenderer:
    """The nodes of one contraction. A position in all buffers is a list of pointers; a row of a tile, a list of offsets from it."""

    def __init__(self, around: Renderer, node: Contraction) -> None:
        self.around = around
        self.text = around.text
        self.node = node
        self.accesses = [around.address(access) for access in node.accesses]
        self.budget: Budget | None = None
        self.across = [1 if node.vector is None else static(access.strides[node.vector]) for access in self.accesses]

    def render(self) -> None:
        """Loops over sizes that are known at run time do not say how often they check for signals: their tiles count instructions."""
        at, text = [access.pointer for access in self.accesses], self.text
        if not text.may_look or all(isinstance(size, int) for size in self.node.sizes):
            self.all(self.node.nodes, at)
            return
        self.budget = Budget(text)
        with brief(text):
            self.all(self.node.nodes, at)

    def all(self, nodes: Sequence[Node], at: list[str]) -> None:
        for node in nodes:
            if isinstance(node, Tile):
                self.tile(node, at)
            elif isinstance(node, Cuts):
                self.cuts(node, at)
            else:
                assert isinstance(node, Loop)
                with self.looped(node) as index:
                    assert node.axis is not None
                    self.all(node.body, self.moved(at, self.accesses, node.axis, index))

    @contextmanager
    def looped(self, loop: Loop) -> Iterator[str]:
        """The position of a loop, in its body."""
        start, stop, text = self.around.spell(loop.start), self.around.spell(loop.stop), self.text
        if isinstance(loop.start, int) and isinstance(loop.stop, int) and loop.stop - loop.start <= loop.step:
            yield start
            return
        with ExitStack() as around:
            if loop.may_be_empty:
                around.enter_context(counted.only_if(text, text.define(f"icmp slt i64 {start}, {stop}")))
            yield around.enter_context(counted.CountedLoop(text, start, stop, loop.step)).index

    def cuts(self, node: Cuts, at: list[str]) -> None:
        """For each part of an axis, a jump to the code of its size."""
        text = self.text
        parts, short, longer = map(spelled, cuts.counts(Word(text, self.around.spell(node.size)), max(node.bodies)))

        def part(size: int, index: str) -> None:
            self.all(node.bodies[size], self.moved(at, self.accesses, node.axis, index))

        are_some = text.define(f"icmp sgt i64 {parts}, 0")
        with counted.only_if(text, are_some), counted.CountedLoop(text, "0", parts, trips=PARTS) as loop:
            position = loop.carry("i64", "0")
            more = text.define(f"icmp slt i64 {loop.index}, {longer}")
            size = text.define(f"add i64 {short}, {text.define(f'zext i1 {more} to i64')}")
            counted.switch(text, size, {n: partial(part, n, position) for n in node.bodies})
            loop.feed(position, text.define(f"add i64 {position}, {size}"))

    def moved(self, at: Sequence[str], accesses: Sequence[Access], axis: int, index: str) -> list[str]:
        """The position after a move along an axis; what does not move keeps its pointer."""
        out = []
        for pointer, access in zip(at, accesses, strict=True):
            step = access.strides[axis]
            if isinstance(step, int) and step == 0:
                out.append(pointer)
            else:
                out.append(memory.element(self.text, pointer, access.dtype, index if index == "0" else self.around.scaled(index, step)))
        return out

    # ---- one tile

    def tile(self, tile: Tile, at: list[str]) -> None:
        emitters = [VectorEmitter(self.text, width) for width in tile.widths]
        zeros = [emit.const(self.node.dtype, 0.0) for emit in emitters]
        offsets = [[_offset(access, row) for access in self.accesses] for row in tile.rows]
        sums = self.sum(self.node.summed, at, [list(zeros) for _ in tile.rows], offsets, emitters)
        loaded: dict[tuple[int, Expr, int], Reg] = {}
        for line, row in zip(sums, offsets, strict=True):
            column = 0
            for emit, value in zip(emitters, line, strict=True):
                self.store(at, row, column, emit, value, loaded)
                column += emit.width
        if self.budget is not None:
            each = INSTRUCTIONS * len(tile.rows) * len(tile.widths)
            self.budget.spend(self.around.spell(math.prod((self.node.sizes[axis] for axis in self.node.summed), start=each)))

    def store(
        self, at: list[str], row: list[Expr], column: int, emit: VectorEmitter, value: Reg, loaded: dict[tuple[int, Expr, int], Reg]
    ) -> None:
        """Store some elements of a tile. `loaded` caches what was read from the target for it: a bias is the same for every row."""

        def place(k: int) -> str:
            return memory.element(self.text, at[k], self.accesses[k].dtype, self.around.spell(row[k] + column * self.across[k]))

        def load(member: int) -> Reg:
            k = TARGET + member
            key = k, row[k] + column * self.across[k], emit.width
            if key in loaded:
                return loaded[key]
            found = memory.load(self.text, place(k), self.accesses[k].dtype, "0", self.across[k], emit.width)
            if member >= self.node.written:  # written members may have changed since
                loaded[key] = found
            return found

        def store(member: int, result: Reg) -> None:
            k = TARGET + member
            memory.store(self.text, place(k), result, "0", self.across[k], emit.width)

        if self.node.adding:
            value = emit.add(load(0), value)
        self.node.store(emit, value, load, store)

    def sum(self, axes: Sequence[int], at: list[str], sums: Sums, offsets: list[list[Expr]], emitters: list[VectorEmitter]) -> Sums:
        """Emit the loops over the summed axes, outermost first; they carry the tile."""
        if not axes:
            return self.products(at, sums, offsets, emitters)
        dtype, (axis, *rest) = self.node.dtype, axes
        with counted.CountedLoop(self.text, "0", self.around.spell(self.node.sizes[axis])) as loop:
            kinds = [emit.type(dtype) for emit in emitters]
            carried = [[Reg(loop.carry(kind, s.name), dtype) for kind, s in zip(kinds, line, strict=True)] for line in sums]
            here = [*self.moved(at[:TARGET], self.accesses[:TARGET], axis, loop.index), *at[TARGET:]]
            after = self.sum(rest, here, carried, offsets, emitters)
            for before, following in zip(carried, after, strict=True):
                for x, y in zip(before, following, strict=True):
                    loop.feed(x.name, y.name)
        return after

    def products(self, at: list[str], sums: Sums, offsets: list[list[Expr]], emitters: list[VectorEmitter]) -> Sums:
        """Add a product to every sum of the tile. (Twelve of them take longer than the loop overhead, so unrolling gains nothing.)"""
        across = [0 if self.node.vector is None else step for step in self.across]
        load = self.loader(at, across)
        out = []
        for line, row in zip(sums, offsets, strict=True):
            following, column = [], 0
            for emit, total in zip(emitters, line, strict=True):
                x, y = (load(k, row[k] + column * across[k], emit.width) for k in Factor)
                following.append(emit.multiply_add(x, y, total))
                column += emit.width
            out.append(following)
        return out

    def loader(self, at: list[str], across: list[int]) -> Callable[[int, Expr, int], Reg]:
        """A function that loads `width` elements of a factor at an offset, emitting each load once."""
        text, dtype, loaded = self.text, self.node.dtype, dict[tuple[int, Expr, int], Reg]()

        def load(factor: int, offset: Expr, width: int) -> Reg:
            key = (factor, offset, width)
            if key not in loaded:
                place = memory.element(text, at[factor], dtype, self.around.spell(offset))
                if across[factor] == 0:
                    one = memory.load(text, place, dtype, "0", 1, 1) if width == 1 else load(factor, offset, 1)
                    loaded[key] = memory.splat(text, one, width)
                else:
                    loaded[key] = memory.load(text, place, dtype, "0", across[factor], width)
            return loaded[key]

        return load


def _offset(access: Access, row: Sequence[tuple[int, int]]) -> Expr:
    total: Expr = 0
    for axis, distance in row:
        total = total + access.strides[axis] * distance
    return total
