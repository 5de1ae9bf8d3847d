"""Reverse mode: computes cotangents of sources from the statements that lead from them to the targets.

`backpropagate` is the entry point, for the eager tape (statements on tensors) and the adjoint pass (statements on IR values) alike: the
rules of the ops are written with operators, which evaluate on tensors and emit statements on IR values. Branches and loops, which occur in
the IR only, are handled in `reverse_regions`; they may replace a forward statement by one with the same results that stores more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

from adjit.ir.active import current_builder
from adjit.ir.builder import Builder
from adjit.ir.errors import AdjitError
from adjit.ir.func import Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.arithmetic import Maximum, Minimum
from adjit.ir.ops.base import Op
from adjit.ir.ops.index import Gather
from adjit.ir.ops.join import Concatenate
from adjit.ir.ops.maps import Map, Where, cast, masking
from adjit.ir.ops.reduce import Sum
from adjit.ir.ops.shape import Flip, Reshape, Slice, Transpose
from adjit.ir.ops.stack import plus

from .activity import reached
from .reverse_regions import pull_back_branches, pull_back_loop

# Ops whose derivatives keep a masked zero. Others add it to something, or multiply it by a whole matrix.
KEEPING: tuple[type[Op], ...] = (Map, Reshape, Transpose, Slice, Flip, Sum, Gather, Concatenate)
MASKS: tuple[type[Op], ...] = (Where, Maximum, Minimum)


def backpropagate(
    stmts: Sequence[Stmt], targets: Sequence[Operand], seeds: Sequence[Operand], sources: Sequence[Operand]
) -> list[Operand | None]:
    """The cotangent of each source; None if no differentiable path leads from it to a target."""
    sweep = Sweep(reached(stmts, sources), list(_open_blocks()))
    for target, seed in zip(targets, seeds, strict=True):
        sweep.accumulate(target, seed)
    sweep.run(stmts)
    return [sweep.cotangents.get(id(s)) for s in sources]


def _open_blocks() -> Iterator[list[Stmt]]:
    """The statement lists that may contain forward statements: those of the active builder and its enclosing builders."""
    builder: Builder | None = current_builder()
    while builder is not None:
        yield builder.stmts
        builder = builder.parent


class Sweep:
    """One backward walk. `active` holds the ids of the values that derivatives pass through, `homes` the lists of forward statements."""

    def __init__(self, active: set[int], homes: list[list[Stmt]], masked: bool = False) -> None:
        self.active = active
        self.homes = homes
        self.cotangents: dict[int, Operand] = {}
        self.masked: set[int] = set()  # ids of values whose cotangents may be zero because a `where` masked them
        self.all_masked = masked

    def inside(self, stmts: list[Stmt]) -> Sweep:
        """A sweep over a region, whose statements are `stmts`. Values masked in one iteration of a loop are also masked in earlier ones."""
        out = Sweep(self.active, [stmts], masking.active or any(map(is_mask, stmts)))
        out.masked = self.masked
        return out

    def run(self, stmts: Sequence[Stmt]) -> None:
        before = masking.active
        try:
            for stmt in reversed(stmts):
                given = tuple([self.cotangents.get(id(r)) for r in stmt.results])
                if any(g is not None for g in given):
                    masking.active = self.all_masked or not self.masked.isdisjoint(map(id, stmt.results))
                    self.pull(stmt, given)
        finally:
            masking.active = before

    def pull(self, stmt: Stmt, given: tuple[Operand | None, ...]) -> None:
        """Propagate a statement's cotangents to its arguments."""
        active = self.active
        if stmt.blocks:
            with adjoint_of(stmt):
                stmt.region.pull_back(self, self.current(stmt))
            if masking.active:
                self.masked.update(map(id, stmt.args))
            return
        needed = [id(a) in active for a in stmt.args]
        if not any(needed):
            return
        masks = (masking.active and isinstance(stmt.op, KEEPING)) or is_mask(stmt)
        builder = current_builder()
        if builder is None:
            self.pass_on(stmt, given, needed, masks)
        else:
            with builder.at(stmt.location, "backward", stmt):  # what is emitted keeps the location, and the statement as its origin
                self.pass_on(stmt, given, needed, masks)

    def pass_on(self, stmt: Stmt, given: tuple[Operand | None, ...], needed: list[bool], masks: bool) -> None:
        found = stmt.op.pullback(stmt.results, stmt.args, given, needed)
        for arg, d, is_needed in zip(stmt.args, found, needed, strict=True):
            if d is not None and is_needed:
                self.accumulate(arg, d)
                if masks:
                    self.masked.add(id(arg))

    # ---- what regions require: `ir.ops.lowering.Reverse`

    def branches(self, stmt: Stmt, may_keep: bool) -> None:
        pull_back_branches(self, stmt, may_keep)

    def loop(self, stmt: Stmt) -> None:
        pull_back_loop(self, stmt)

    # ---- cotangents

    def accumulate(self, value: Operand, d: Operand) -> None:
        before = self.cotangents.get(id(value))
        self.set(value, stored_as(value, d if before is None else plus(before, d)))

    def set(self, value: Operand, total: Operand) -> None:
        self.cotangents[id(value)] = total
        if isinstance(total, Value) and total.name is None and isinstance(value, Value) and value.name:
            total.name = f"{value.name}.bar"

    # ---- forward statements: a statement with regions is identified by its first result, which does not change if it is replaced

    def current(self, stmt: Stmt) -> Stmt:
        """The current version of the statement: an earlier sweep may have made it store more."""
        home, at = self._find(stmt)
        return home[at]

    def replace(self, old: Stmt, new: Stmt) -> None:
        home, at = self._find(old)
        home[at] = new

    def _find(self, stmt: Stmt) -> tuple[list[Stmt], int]:
        for home in self.homes:
            for at in range(len(home) - 1, -1, -1):
                if home[at].results and home[at].results[0] is stmt.results[0]:
                    return home, at
        raise AdjitError(f"{stmt.op.name}: its adjoint must be emitted into a builder that contains the statement itself").at(stmt.location)


def is_mask(stmt: Stmt) -> bool:
    """Whether elements that a statement does not select get cotangent zero. False for a relu, where the comparisons do not pay off."""
    if not isinstance(stmt.op, MASKS):
        return False
    return isinstance(stmt.op, Where) or not any(isinstance(a, Literal) and a.value == 0 for a in stmt.args)


def adjoint_of(stmt: Stmt) -> AbstractContextManager[None]:
    """Emitted statements keep the forward statement's location and record it as their origin."""
    builder = current_builder()
    return nullcontext() if builder is None else builder.at(stmt.location, "backward", stmt)


def stored_as(value: Operand, total: Operand) -> Operand:
    """The cotangent in the dtype of its value, if that dtype is for storage only: sums and most derivatives are computed in float32."""
    return cast(total, value.type.dtype) if value.type.is_stored else total
