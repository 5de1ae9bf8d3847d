"""Factors that are multiplied in every iteration of a loop are packed once before it, in the order in which `gemm` reads them.

These are the right operands of products in a loop that are computed outside the loop. The packed copies are stored after the arena until
the loop ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from adjit.ir.cost import assumed_type
from adjit.ir.func import Block, Stmt, Value
from adjit.ir.operand import Operand
from adjit.ir.plan import Place, Plan
from adjit.ir.sizes import is_symbolic
from adjit.ir.target import Target
from adjit.ir.types import DType, Shape

from . import choice, cutting


class StoredFactor(NamedTuple):
    """A matrix in memory."""

    place: Place
    offset: int  # in bytes
    shape: Shape
    strides: tuple[int, ...]
    dtype: DType


class Packing:
    """The factors that each loop packs: `loops` maps the id of a loop to its factors and their places; `bytes` is their total size."""

    def __init__(self, block: Block, plan: Plan, target: Target) -> None:
        self.plan = plan
        self.vector_bytes, self.near = target.vector_bytes, choice.near_factors(target)
        self.loops: dict[int, dict[StoredFactor, Place]] = {}
        self.bytes = 0
        self._visit(block, {})

    def _visit(self, block: Block, packed: dict[StoredFactor, Place]) -> None:
        for stmt in block.stmts:
            inside = packed
            if stmt.op.is_loop and id(stmt) not in self.plan.registers:
                made = set(_made(stmt))
                factors = {self._factor(b) for a, b in _products(stmt.blocks[-1]) if self._is_packed(a, b) and self._root(b) not in made}
                own = {factor: self._place(factor) for factor in sorted(factors - packed.keys(), key=str)}
                self.loops[id(stmt)] = own
                inside = packed | own
            for inner in stmt.blocks:
                self._visit(inner, inside)

    def _root(self, b: Operand) -> int:
        return id(self.plan.windows[id(b)].root)

    def _is_packed(self, a: Operand, b: Operand) -> bool:
        """Whether a product packs its right factor; a small one is read in place."""
        if not isinstance(b, Value) or any(map(is_symbolic, b.type.shape)):
            return False
        strides = self.plan.windows[id(b)].layout.strides
        packs = choice.packs_factor(assumed_type(a.type), b.type, strides, self.near)
        return packs and not choice.reads_in_place(a.type, b.type, strides)

    def _factor(self, b: Operand) -> StoredFactor:
        root, layout = self.plan.windows[id(b)]
        return StoredFactor(self.plan.places[id(root)], layout.offset * b.type.dtype.itemsize, b.type.shape, layout.strides, b.type.dtype)

    def _place(self, factor: StoredFactor) -> Place:
        place = Place("arena", self.plan.arena_bytes + self.bytes)
        k, n = factor.shape
        self.bytes += -(-cutting.packed_bytes(n, k, factor.dtype, self.vector_bytes) // 64) * 64
        return place


def _products(block: Block) -> Iterator[tuple[Operand, Operand]]:
    """Operands of the products in every iteration: in the block, in fused regions and in nested loops. Branches may never be taken."""
    for stmt in block.stmts:
        factors = stmt.op.factors(stmt.args)
        if factors is not None:
            if all(x.type.rank == 2 for x in factors):
                yield factors
        elif stmt.op.is_loop or stmt.op.is_nest:
            yield from _products(stmt.blocks[-1])


def _made(stmt: Stmt) -> Iterator[int]:
    """The ids of all values that a loop computes, at any depth."""
    for block in stmt.blocks:
        yield from map(id, block.params)
        for inner in block.stmts:
            yield from map(id, inner.results)
            yield from _made(inner)
