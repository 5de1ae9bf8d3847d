"""Dead code elimination: removes statements whose results are not needed, inside regions too, and carries that feed only themselves.

The function's outputs, every effect and every failure are needed: an index out of bounds raises, as in eager mode, even if its result is
not read. Of such a statement only the guard remains (`Op.guard`), which reads the indices alone; if they are known to be within bounds,
nothing remains. Backward statements and copies of forward ones need no guards: the forward part has checked the same indices.
"""

from __future__ import annotations

from collections.abc import Iterator

from adjit.ir.effects import effects_of
from adjit.ir.func import Block, Func, Stmt
from adjit.ir.operand import Operand

from ..rewrite import narrowed, walk
from .bounds import Bounds


def eliminate_dead_code(func: Func) -> Func:
    return func.replace(block=_swept(func.block, _Liveness(func, list(_failing(func)))))


def eliminate_repeated_checks(func: Func) -> Func:
    """Dead code elimination for a function that repeats one that ran without an error: statements that may fail can be dead too."""
    return func.replace(block=_swept(func.block, _Liveness(func, [])))


def _failing(func: Func) -> Iterator[Stmt]:
    """The statements whose failures must be raised, whether or not their results are needed."""
    found = [s for s in walk(func.block) if s.phase == "forward" and not s.blocks and effects_of(s.op).fails]
    if not found:
        return
    bounds = Bounds(func)
    yield from (s for s in found if not bounds.cannot_fail(s))


class _Liveness:
    """Marks the statements and values that are needed, backwards from the outputs, effects and failures."""

    def __init__(self, func: Func, failing: list[Stmt]) -> None:
        self.values: set[int] = set()
        self.stmts: set[int] = set()
        self.guards: dict[int, Stmt] = {}  # of statements that may fail and are not needed otherwise
        self.definition: dict[int, tuple[Stmt, int]] = {}  # value -> the statement that defines (or carries) it, and its index
        self.holder: dict[int, Stmt] = {}  # statement -> the enclosing region statement
        self.pending: list[Operand] = list(func.outputs())
        for stmt in self._scan(func.block):
            self._need(stmt)
        self._mark()
        for stmt in failing:
            if id(stmt) not in self.stmts:
                self._guard(stmt)
        self._mark()

    def _scan(self, block: Block) -> list[Stmt]:
        """Fill the tables and return the statements with an effect."""
        effects = []
        for stmt in block.stmts:
            if effects_of(stmt.op).ordered:
                effects.append(stmt)
            for i, result in enumerate(stmt.results):
                self.definition[id(result)] = stmt, i
            if stmt.blocks and stmt.region.can_narrow:
                for i in range(len(stmt.results)):
                    for param in stmt.region.carried(stmt, i).params:
                        self.definition[id(param)] = stmt, i
            for inner in stmt.blocks:
                found = self._scan(inner)
                for s in inner.stmts:
                    self.holder[id(s)] = stmt
                effects.extend(found)
        return effects

    def _guard(self, stmt: Stmt) -> None:
        op, which = stmt.op.guard(*(a.type for a in stmt.args))
        if op is stmt.op:
            self._need(stmt)
            return
        guard = self.guards[id(stmt)] = stmt.replace(op=op, args=stmt.args[which], results=())
        self.pending.extend(guard.args)
        if id(stmt) in self.holder:
            self._need(self.holder[id(stmt)])

    def _need(self, stmt: Stmt) -> None:
        """Mark the statement, and everything that decides whether it runs."""
        holder: Stmt | None = stmt
        while holder is not None and id(holder) not in self.stmts:
            self.stmts.add(id(holder))
            if not holder.blocks:
                self.pending.extend(holder.args)
            elif holder.region.can_narrow:
                self.pending.extend(holder.region.controls(holder))
            else:
                self.pending.extend((*holder.args, *holder.results))
                for block in holder.blocks:
                    self.pending.extend((*block.results, *block.saving))
            holder = self.holder.get(id(holder))

    def _mark(self) -> None:
        while self.pending:
            value = self.pending.pop()
            if id(value) in self.values:
                continue
            self.values.add(id(value))
            if id(value) not in self.definition:
                continue
            stmt, i = self.definition[id(value)]
            self._need(stmt)
            if stmt.blocks and stmt.region.can_narrow:
                flow = stmt.region.carried(stmt, i)
                self.pending.extend((stmt.results[i], *flow.initial, *flow.params, *flow.yields))


def _swept(block: Block, live: _Liveness) -> Block:
    stmts = []
    for stmt in block.stmts:
        if id(stmt) not in live.stmts:
            if id(stmt) in live.guards:
                stmts.append(live.guards[id(stmt)])
            continue
        if stmt.blocks:
            blocks = [_swept(b, live) for b in stmt.blocks]
            if stmt.region.can_narrow:
                stmt = narrowed(stmt, [i for i, r in enumerate(stmt.results) if id(r) in live.values], blocks)
            else:
                stmt = stmt.replace(blocks=tuple(blocks))
        stmts.append(stmt)
    return Block(block.params, stmts, block.results, block.saving)
