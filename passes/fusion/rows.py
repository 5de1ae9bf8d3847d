"""Rows: chains of `fuse` regions that pass whole rows to each other run row by row, in one kernel.

Softmax is the typical case: the maximum of a row, then its exponentials and their sum, then the quotients. As three kernels, each reads or
writes the whole matrix; row by row, the matrix is read once and written once, and intermediate values stay in the cache.

A region joins the preceding chain if everything that it reads from the chain is aligned by rows: computed by a member for the same index
of the first axis, or a view that keeps that axis. Statements in between move before the chain if independent of it, otherwise behind it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from adjit.ir.effects import effects
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.operand import Operand
from adjit.ir.ops.control import Rows
from adjit.ir.ops.fused import keeps_rows, loop_domain, runs_by_rows
from adjit.ir.sizes import hint_of, is_symbolic
from adjit.ir.types import Shape

from ..rewrite import Renaming, operands_read
from .fuse import twin

MIN_ROWS = 16  # with fewer rows there is nothing to gain
# elements per row: in shorter rows the loop around them costs more than the traffic saved, longer ones leave the cache
MIN_ROW, MAX_ROW = 16, 8192
MAX_MEMBERS = 12
MAX_DEFERRED = 64  # statements that may be deferred behind a growing chain: keeps the pass linear


def fuse_rows(func: Func) -> Func:
    return func.replace(block=_walked(func.block, func.outputs()))


def _walked(block: Block, outputs: Sequence[Operand]) -> Block:
    uses: dict[int, int] = {}
    for operand in (*block.uses(), *outputs):
        uses[id(operand)] = uses.get(id(operand), 0) + 1
    out: list[Stmt] = []
    pending = list(reversed(block.stmts))
    chain: _Chain | None = None
    while pending or chain is not None:
        stmt = pending.pop() if pending else None
        if chain is None:
            assert stmt is not None
            chain = _Chain.starting(stmt)
            if chain is None:
                out.append(_inside(stmt))
        elif stmt is None or len(chain.behind) >= MAX_DEFERRED or effects(stmt).ordered:
            if stmt is not None:
                pending.append(stmt)
            out += [*chain.before, *chain.finished(uses)]
            pending += reversed(chain.behind)
            chain = None
        else:
            chain.place(_inside(stmt))
    return Block(block.params, out, block.results, block.saving)


def _inside(stmt: Stmt) -> Stmt:
    """The same for the blocks of branches and loops."""
    if not stmt.op.is_control:
        return stmt
    return stmt.replace(blocks=tuple(_walked(b, ()) for b in stmt.blocks))


def region_domain(stmt: Stmt) -> Shape:
    """The domain of a fused region; empty for one that computes nothing or has no single shape (written by hand, not by `fuse`)."""
    inside = stmt.blocks[0].stmts
    shapes = {loop_domain(s).shape for s in inside if (s.op.is_elementwise or s.op.is_reduction)}
    return shapes.pop() if len(shapes) == 1 and all((s.op.is_elementwise or s.op.is_reduction) for s in inside) else ()


def _assumed(n: int, least: int) -> int:
    """A size, or one that is at least `least` if it is known only at run time: the call that is traced may be the smallest of many."""
    return max(hint_of(n), least) if is_symbolic(n) else n


class _Chain:
    def __init__(self, first: Stmt, rows: int) -> None:
        self.rows = rows
        self.stmts: list[Stmt] = []
        self.members = 0
        self.before: list[Stmt] = []
        self.behind: list[Stmt] = []
        self.made: set[int] = set()
        self.aligned: set[int] = set()
        self.late: set[int] = set()  # values computed behind the chain
        self.join(first)

    @staticmethod
    def starting(stmt: Stmt) -> _Chain | None:
        """A chain starts with a region that reduces rows of suitable length."""
        if not stmt.op.is_nest:
            return None
        shape = region_domain(stmt)
        size = math.prod(shape[1:])
        reduces = any(s.op.is_reduction for s in stmt.blocks[0].stmts)
        if (
            len(shape) < 2
            or _assumed(shape[0], MIN_ROWS) < MIN_ROWS
            or not MIN_ROW <= _assumed(size, MIN_ROW) <= MAX_ROW
            or not reduces
            or not runs_by_rows(stmt, shape[:1])
        ):
            return None
        return _Chain(stmt, shape[0])

    def place(self, stmt: Stmt) -> None:
        reads = [id(x) for x in operands_read(stmt)]
        if any(r in self.late for r in reads):
            self.defer(stmt)
        elif not any(r in self.made for r in reads):
            self.before.append(stmt)
        elif stmt.op.is_view and id(stmt.args[0]) in self.aligned and keeps_rows(stmt):
            self.stmts.append(stmt)
            self.made.add(id(stmt.result))
            self.aligned.add(id(stmt.result))
        elif stmt.op.is_nest and self.fits(stmt) and all(r in self.aligned for r in reads if r in self.made):
            self.join(stmt)
        else:
            self.defer(stmt)

    def defer(self, stmt: Stmt) -> None:
        self.behind.append(stmt)
        self.late.update(id(r) for r in stmt.results)

    def fits(self, stmt: Stmt) -> bool:
        shape = region_domain(stmt)
        return bool(shape) and runs_by_rows(stmt, (self.rows,)) and self.members < MAX_MEMBERS

    def join(self, stmt: Stmt) -> None:
        self.stmts.append(stmt)
        self.members += 1
        for result in stmt.results:
            self.made.add(id(result))
            self.aligned.add(id(result))

    def finished(self, uses: dict[int, int]) -> list[Stmt]:
        """The chain as one region; unchanged if it has a single member."""
        if self.members < 2:
            return self.stmts
        inside: dict[int, int] = {}
        for stmt in self.stmts:
            for operand in operands_read_all(stmt):
                inside[id(operand)] = inside.get(id(operand), 0) + 1
        made = [r for s in self.stmts if not s.op.is_view for r in s.results]
        leaving = [r for r in made if uses.get(id(r), 0) > inside.get(id(r), 0)]
        views = [s for s in self.stmts if s.op.is_view and uses.get(id(s.result), 0) > inside.get(id(s.result), 0)]
        needed = {id(s.args[0]) for s in views}
        # a view that is used outside is computed again there, from its operand
        for view in reversed([s for s in self.stmts if s.op.is_view]):
            if id(view.result) in needed and not any(view is v for v in views):
                views.insert(0, view)
                needed.add(id(view.args[0]))
        leaving += [r for r in made if id(r) in needed and not any(r is x for x in leaving)]
        inner = Renaming()
        for r in leaving:
            inner[r] = twin(r)
        for view in views:
            inner[view.result] = twin(view.result)
        block = inner.block(Block((), [s.replace(results=inner.all(s.results)) for s in self.read_inside()], leaving))
        first = self.stmts[0]
        phase = "backward" if all(s.phase == "backward" for s in self.stmts) else "forward"
        values = [r for r in leaving if isinstance(r, Value)]
        region = Stmt(Rows(), (), tuple(values), (block,), first.location, phase, first.origin if phase == "backward" else None)  # type: ignore[arg-type]
        order = {id(s): k for k, s in enumerate(self.stmts)}
        return [region, *sorted(views, key=lambda v: order[id(v)])]

    def read_inside(self) -> list[Stmt]:
        """The statements of the chain, without views that only statements outside of it read."""
        kept, read = [], set[int]()
        for stmt in reversed(self.stmts):
            if not stmt.op.is_view or id(stmt.result) in read:
                kept.append(stmt)
                read.update(id(x) for x in operands_read_all(stmt))
        return kept[::-1]


def operands_read_all(stmt: Stmt) -> list[Operand]:
    """Every operand that a statement reads, including those inside its block, as many times as it occurs."""
    return [*stmt.args, *(x for block in stmt.blocks for x in block.uses())]
