"""Decides what a backward block recomputes, and what its forward counterpart stores for it.

The adjoint of a block needs some of the values that the block computed. Each is either stored (on a loop's stack, or as a further result of
an `if`) or recomputed from stored values. `choose` finds the cheapest set to store: a minimum cut, in bytes, between what cannot be
recomputed cheaply (carries, and results of ops that cost more than a round trip through memory) and what is needed.

Stacks are never stored on stacks: a loop inside a block whose stacks are needed runs again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import pairwise

from adjit.ir.cost import MATH
from adjit.ir.effects import effects
from adjit.ir.errors import UnsupportedError
from adjit.ir.func import Block, Phase, Stmt, Value
from adjit.ir.operand import Operand
from adjit.ir.ops.maps import element_cost
from adjit.ir.records import NamedTuple
from adjit.ir.sizes import hint_of
from adjit.ir.types import StackType

from ..rewrite import Renaming, happens_once, operands_read


class RecomputeChoice(NamedTuple):
    keep: list[Value]
    again: list[Stmt]  # in order; their operands are stored, recomputed, or available anyway


def is_cheap(stmt: Stmt) -> bool:
    """Whether recomputing the statement costs about as little as reading its result from memory."""
    op = stmt.op
    if op.is_elementwise:
        return element_cost(stmt).latency < MATH
    if op.is_reduction:
        return stmt.args[0].type.size == 1
    return op.is_constant or op.reads_rows or (op.only_moves and op.in_place is None)


def choose(
    needs: Iterable[Value], block: Block, stmts: Sequence[Stmt], at_hand: Sequence[Value] = (), may_keep: bool = True
) -> RecomputeChoice:
    """Choose what to store of `block`, whose statements are now `stmts`, and what to recompute, in order to have `needs`.

    Values `at_hand`, and those from outside, cost nothing; the block's other parameters have to be stored. If `may_keep` is false,
    everything is recomputed.
    """
    there = {id(v) for v in at_hand}
    params = {id(p) for p in block.params} - there
    maker = {id(r): stmt for stmt in stmts for r in stmt.results if id(r) not in there}
    needed, forced = _forced(needs, maker, params, may_keep)
    if not may_keep:
        return RecomputeChoice([], [s for s in stmts if id(s) in forced])
    invariant = _independent(stmts, {id(p) for p in block.params}) if block.params else set()  # loop-invariant statements
    cut = _MinimumCut()
    seen: set[int] = set()
    pending = [v for v in needed if id(v) in params or id(v) in maker]
    for value in pending:
        cut.sink(value)
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        stmt = maker.get(id(value))
        if stmt is not None and id(stmt) in forced:
            continue  # it is available anyway
        cut.node(value, max(1, hint_of(value.type.nbytes)))
        if stmt is None or not (is_cheap(stmt) or (id(stmt) in invariant and not stmt.blocks)):
            cut.source(value)
            continue
        for operand in operands_read(stmt):
            if isinstance(operand, Value) and (id(operand) in params or id(operand) in maker):
                cut.edge(operand, value)
                pending.append(operand)
    keep = cut.minimum()
    kept = {id(v) for v in keep}
    return RecomputeChoice(keep, _closure(needed, stmts, maker, kept, forced))


def _forced(needs: Iterable[Value], maker: dict[int, Stmt], params: set[int], may_keep: bool) -> tuple[list[Value], set[int]]:
    """The needed values, including those of loops that must run again because their stacks are needed; and the ids of those statements."""
    needed = list(needs)
    forced: set[int] = set()
    seen: set[int] = set()
    for value in needed:  # the list grows during the iteration
        if id(value) in seen:
            continue
        seen.add(id(value))
        stmt = maker.get(id(value))
        if stmt is None:
            if id(value) in params and (isinstance(value.type, StackType) or not may_keep):
                where = next((s.location for s in maker.values() if s.location is not None), None)
                raise UnsupportedError(
                    f"this derivative needs {value!r}, a stack that the loop carries, at each iteration; use forward mode: aj.jvp"
                ).at(where)
            continue
        if (isinstance(value.type, StackType) or not may_keep) and id(stmt) not in forced:
            forced.add(id(stmt))
            needed.extend(v for v in operands_read(stmt) if isinstance(v, Value))
    return needed, forced


def _independent(stmts: Sequence[Stmt], varying: set[int]) -> set[int]:
    """Ids of the statements that do not depend on the parameters: they will be hoisted out of the backward loop again."""
    varies, out = set(varying), set()
    for stmt in stmts:
        if effects(stmt).ordered or any(id(x) in varies for x in operands_read(stmt)):
            varies.update(id(r) for r in stmt.results)
        else:
            out.add(id(stmt))
    return out


def _closure(needed: Iterable[Value], stmts: Sequence[Stmt], maker: dict[int, Stmt], kept: set[int], forced: set[int]) -> list[Stmt]:
    """The statements that compute the needed values from the stored ones."""
    again: set[int] = set(forced)
    pending = [v for v in needed if id(v) not in kept]
    while pending:
        stmt = maker.get(id(pending.pop()))
        if stmt is None or id(stmt) in again:
            continue
        again.add(id(stmt))
        pending.extend(v for v in operands_read(stmt) if isinstance(v, Value) and id(v) not in kept)
    return [s for s in stmts if id(s) in again]


class _MinimumCut:
    """A minimum cut of values, by augmenting paths. A value is a pair of nodes joined by an edge with the value's weight."""

    SOURCE, SINK = 0, 1

    def __init__(self) -> None:
        self.values: dict[int, tuple[int, Value]] = {}  # id -> the first of its two nodes
        self.links: list[dict[int, float]] = [{}, {}]  # node -> residual capacity to each neighbour

    def _entry(self, value: Value) -> int:
        if id(value) not in self.values:
            self.values[id(value)] = len(self.links), value
            self.links += [{}, {}]
        return self.values[id(value)][0]

    def _connect(self, a: int, b: int, capacity: float) -> None:
        self.links[a][b] = capacity
        self.links[b].setdefault(a, 0)

    def node(self, value: Value, weight: int) -> None:
        entry = self._entry(value)
        self._connect(entry, entry + 1, weight)

    def source(self, value: Value) -> None:
        self._connect(self.SOURCE, self._entry(value), float("inf"))

    def sink(self, value: Value) -> None:
        self._connect(self._entry(value) + 1, self.SINK, float("inf"))

    def edge(self, operand: Value, result: Value) -> None:
        self._connect(self._entry(operand) + 1, self._entry(result), float("inf"))

    def minimum(self) -> list[Value]:
        while self.SINK in (parents := self._reachable()):
            path = [self.SINK]
            while path[-1] != self.SOURCE:
                path.append(parents[path[-1]])
            steps = [(a, b) for b, a in pairwise(path)]
            flow = min(self.links[a][b] for a, b in steps)
            for a, b in steps:
                self.links[a][b] -= flow
                self.links[b][a] += flow
        beyond = self._leading_to_sink()
        crossing = ((entry, value) for entry, value in self.values.values() if entry + 1 in beyond and entry not in beyond)
        return [value for entry, value in crossing if entry + 1 in self.links[entry]]

    def _reachable(self) -> dict[int, int]:
        """The nodes reachable in the residual graph, each with its predecessor."""
        parents = {self.SOURCE: self.SOURCE}
        pending = deque([self.SOURCE])
        while pending:
            node = pending.popleft()
            for following, capacity in self.links[node].items():
                if capacity > 0 and following not in parents:
                    parents[following] = node
                    if following == self.SINK:
                        return parents
                    pending.append(following)
        return parents

    def _leading_to_sink(self) -> set[int]:
        """The nodes on the sink's side of the cut. Of several minimum cuts this finds the one with the least to recompute."""
        out = {self.SINK}
        pending = [self.SINK]
        while pending:
            node = pending.pop()
            for before in self.links[node]:
                if before not in out and self.links[before][node] > 0:
                    out.add(before)
                    pending.append(before)
        return out


# ---- copies of statements


def copied(stmt: Stmt, renaming: Renaming, phase: Phase | None = None, origin: Stmt | None = None) -> Stmt:
    """A copy with renamed operands and new values for its results and in its blocks. Effects are dropped: they have already happened."""
    happens_once(stmt)  # an error, for a statement with an effect and results
    stmt = stmt.replace(args=renaming.all(stmt.args), blocks=tuple(copied_block(b, renaming, phase, origin) for b in stmt.blocks))
    results = fresh(stmt.results, renaming)
    return stmt.replace(results=results) if phase is None else stmt.replace(results=results, phase=phase, origin=origin)


def copied_block(block: Block, renaming: Renaming, phase: Phase | None = None, origin: Stmt | None = None) -> Block:
    params = fresh(block.params, renaming)
    stmts = [copied(s, renaming, phase, origin) for s in block.stmts if not happens_once(s)]
    return Block(params, stmts, renaming.all(block.results), renaming.all(block.saving))


def fresh(values: Sequence[Operand], renaming: Renaming) -> tuple[Value, ...]:
    out = tuple(Value(v.type, getattr(v, "name", None)) for v in values)
    for old, new in zip(values, out, strict=True):
        renaming[old] = new
    return out
