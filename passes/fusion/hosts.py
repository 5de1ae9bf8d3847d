"""Products become hosts of the `fuse` region that first reads them: bias, activation, masks and updates are computed tile by tile.

The groups are those that `fuse` chose without products; a product then moves down to the region and into it. So nothing is computed twice
and no group is split. Its result is stored only if another statement reads it.

Sums of values that the region stores anyway are moved into a new region after it: they read once more what the product would have written
and the region read. Any other reduction prevents hosting, since it would have to store its operand.

A product that moves far, such as to the update of a weight at the end of a step, keeps its operands alive until there. This is done only if
its result, which then need not be stored, is larger, and no operand is changed in place in the meantime, as carries and updated parameters
are.
"""

from __future__ import annotations

from collections.abc import Sequence

from adjit.ir.func import Block, Func, Stmt
from adjit.ir.operand import Operand
from adjit.ir.ops.control import hosted_by
from adjit.ir.sizes import hint_of

from ..rewrite import Renaming, is_pure, operands_read
from .fuse import twin

MAX_TENSORS = 24  # that a region reads and writes: every tile needs the address of each


def host_products(func: Func) -> Func:
    return func.replace(block=_hosted(func.block, func.outputs(), {id(param) for param, _ in func.updates}))


def _hosted(block: Block, outputs: Sequence[Operand], overwritten: set[int] | None) -> Block:
    """`overwritten`: buffers that may be changed in place while nothing reads them; None if all may be."""
    stmts: list[list[Stmt]] = [[_inside(stmt)] for stmt in block.stmts]
    uses = Uses(block, outputs, overwritten)
    for at, product in reversed(list(enumerate(block.stmts))):
        if not (product.op.joins_region and product.op.stores_once(*(a.type for a in product.args))):
            continue
        first, *others = sorted(uses.readers.get(id(product.result), ())) or [len(stmts)]
        if first < len(stmts) and len(stmts[first]) == 1 and uses.may_move(at, first):
            parts = joined(product, stmts[first][0], is_read_later=bool(others))
            if parts:
                stmts[at], stmts[first] = [], parts
                uses.move(at, first)
    return Block(block.params, [s for part in stmts for s in part], block.results, block.saving)


def _inside(stmt: Stmt) -> Stmt:
    """The same for the blocks of branches and loops."""
    if not stmt.op.is_control:
        return stmt
    return stmt.replace(blocks=tuple(_hosted(b, (*b.results, *b.saving), None) for b in stmt.blocks))


class Uses:
    """The readers of each value. Outputs of the block are read at its end; values from outside are available until then."""

    def __init__(self, block: Block, outputs: Sequence[Operand], overwritten: set[int] | None) -> None:
        self.overwritten = overwritten
        self.stmts, self.end = block.stmts, len(block.stmts)
        self.viewed = {id(s.result): s.args[0] for s in block.stmts if s.op.is_view}
        self.readers: dict[int, set[int]] = {}
        self.last: dict[int, int] = {}  # the last read of a buffer defined in this block, directly or through views
        for at, stmt in enumerate(block.stmts):
            if not stmt.op.is_view:
                self.last |= dict.fromkeys(map(id, stmt.results), at)
            for operand in operands_read(stmt):
                self.read(operand, at)
        for operand in outputs:
            self.read(operand, self.end)

    def root(self, value: Operand) -> int:
        while id(value) in self.viewed:
            value = self.viewed[id(value)]
        return id(value)

    def read(self, operand: Operand, at: int) -> None:
        self.readers.setdefault(id(operand), set()).add(at)
        root = self.root(operand)
        if root in self.last:
            self.last[root] = max(self.last[root], at)

    def may_move(self, at: int, to: int) -> bool:
        """Whether a product may be computed that much later: it is adjacent, or moving it frees more memory than it keeps alive."""
        if all(s.op.is_view for s in self.stmts[at + 1 : to]):
            return True
        product = self.stmts[at]
        if self.overwritten is None or not self.overwritten.isdisjoint(map(self.root, product.args)):
            return False
        kept = sum(hint_of(a.type.nbytes) for a in product.args if self.last.get(self.root(a), self.end) < to)
        return kept <= hint_of(product.result.type.nbytes)

    def move(self, at: int, to: int) -> None:
        for operand in self.stmts[at].args:
            self.readers[id(operand)].discard(at)
            self.read(operand, to)


def joined(product: Stmt, region: Stmt, is_read_later: bool) -> list[Stmt]:
    """The region with the product as its host, and a region of its former sums; empty if they do not fit."""
    if not region.op.is_nest or hosted_by(region) is not None:
        return []
    (body,) = region.blocks
    sums, rest = ([s for s in body.stmts if s.op.is_reduction is reduces] for reduces in (True, False))
    if not all(_can_follow(s, product) for s in rest) or len(body.free()) + len(region.results) > MAX_TENSORS:
        return []
    outer = {id(inner): result for inner, result in zip(body.results, region.results, strict=True)}
    if any(id(s.args[0]) not in outer and any(s.args[0] is t.result for t in rest) for s in sums):
        return []
    if not any(a is product.result for s in rest for a in s.args):
        return []
    reduced = {id(s.result) for s in sums}
    kept = [(i, r) for i, r in zip(body.results, region.results, strict=True) if id(i) not in reduced]
    is_yielded = is_read_later or any(s.args[0] is product.result for s in sums)
    inside = Renaming()
    inside[product.result] = made = twin(product.result)
    stmts = [product.replace(results=(made,)), *map(inside.stmt, rest)]
    yielded = [*([(made, product.result)] if is_yielded else []), *kept]
    block = Block((), stmts, tuple(i for i, _ in yielded))
    # most of its time is spent in the product: the region counts as backward if the product does
    out = [region.replace(results=tuple(r for _, r in yielded), blocks=(block,), phase=product.phase, origin=product.origin)]
    if sums:
        outside = Renaming()
        for inner, result in kept:
            outside[inner] = result
        totals = [(s.result, outer[id(s.result)]) for s in sums if id(s.result) in outer]
        behind = Block((), [outside.stmt(s) for s in sums], tuple(i for i, _ in totals))
        out.append(region.replace(results=tuple(r for _, r in totals), blocks=(behind,)))
    return out


def _can_follow(stmt: Stmt, product: Stmt) -> bool:
    """Whether it can be computed on a tile: elementwise, of the product's shape, without using positions."""
    return (
        stmt.op.is_elementwise and stmt.op.position_axis is None and is_pure(stmt) and stmt.result.type.shape == product.result.type.shape
    )
