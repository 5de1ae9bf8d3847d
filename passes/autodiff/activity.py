"""Activity analysis: which values a derivative can pass through, forwards from the sources and backwards from the wanted values.

Both walks enter regions, and iterate over loops until they reach a fixed point: a carry is reached if its initial value or the value that
the body yields for it is; it is wanted if its final value is, or if a wanted value of the body depends on it. Sets hold the ids of values
at every depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adjit.ir.func import Block, Stmt, Value
from adjit.ir.operand import Operand


def carried_params(stmt: Stmt, block: Block) -> tuple[Value, ...]:
    """The parameters of a loop's block that are carried: all except the counter of a `for`."""
    return block.params[stmt.region.counters :]


def initial_carries(stmt: Stmt) -> tuple[Operand, ...]:
    return stmt.args[stmt.region.bounds :]


def mark(into: set[int], values: Iterable[Operand]) -> None:
    into.update(id(v) for v in values if v.type.is_inexact)


def reached(stmts: Sequence[Stmt], sources: Sequence[Operand]) -> set[int]:
    """Ids of the floating-point values that depend on a source."""
    active: set[int] = set()
    mark(active, sources)
    extend_reached(stmts, active)
    return active


def extend_reached(stmts: Sequence[Stmt], active: set[int]) -> None:
    for stmt in stmts:
        if stmt.blocks:
            _reach_region(stmt, active)
        elif stmt.op.differentiable and any(id(a) in active for a in stmt.op.followed(stmt.args)):
            mark(active, stmt.results)


def _reach_region(stmt: Stmt, active: set[int]) -> None:
    if not stmt.op.is_loop:
        for block in stmt.blocks:
            extend_reached(block.stmts, active)
            mark(active, (r for r, y in zip(stmt.results, block.results, strict=True) if id(y) in active))
        return
    body = stmt.blocks[-1]
    params = carried_params(stmt, body)
    flows = [*zip(params, initial_carries(stmt), strict=True), *zip(params, body.results, strict=True)]
    while True:
        before = len(active)
        mark(active, (p for p, x in flows if id(x) in active))
        extend_reached(body.stmts, active)
        if len(active) == before:
            break
    carries = len(body.results)
    mark(active, (r for r, p in zip(stmt.results, params) if id(p) in active))
    mark(active, (r for r, s in zip(stmt.results[carries:], body.saving, strict=True) if id(s) in active))


def extend_wanted(stmts: Sequence[Stmt], wanted: set[int]) -> None:
    """Add the ids of the floating-point values that those in `wanted` depend on."""
    for stmt in reversed(stmts):
        if not any(id(r) in wanted for r in stmt.results):
            continue
        if stmt.blocks:
            _want_region(stmt, wanted)
        elif stmt.op.differentiable:
            mark(wanted, stmt.op.followed(stmt.args))


def _want_region(stmt: Stmt, wanted: set[int]) -> None:
    if not stmt.op.is_loop:
        for block in stmt.blocks:
            mark(wanted, (y for r, y in zip(stmt.results, block.results, strict=True) if id(r) in wanted))
            extend_wanted(block.stmts, wanted)
        return
    body = stmt.blocks[-1]
    carries = len(body.results)
    params = carried_params(stmt, body)
    mark(wanted, (s for r, s in zip(stmt.results[carries:], body.saving, strict=True) if id(r) in wanted))
    slots = {i for i in range(carries) if id(stmt.results[i]) in wanted}
    want_carries(body, params, slots, wanted)
    mark(wanted, (initial_carries(stmt)[i] for i in slots))


def want_carries(body: Block, params: Sequence[Operand], slots: set[int], wanted: set[int]) -> None:
    """Extend `slots` by the carries that others depend on across iterations, and `wanted` by everything that these depend on."""
    while True:
        before = len(slots)
        mark(wanted, (body.results[i] for i in slots))
        extend_wanted(body.stmts, wanted)
        slots.update(i for i, p in enumerate(params) if id(p) in wanted)
        if len(slots) == before:
            return
