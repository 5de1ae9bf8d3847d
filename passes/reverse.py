"""Reverse mode: cotangents of sources, from the statements that lead from them to the targets.

`backpropagate` is the whole of it, and serves the eager tape (statements on tensors) and the adjoint pass (statements on IR values) alike:
the rules of the ops are written with operators, which evaluate on the former and emit on the latter.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from adjit.ir.builder import current_builder
from adjit.ir.func import Stmt, Value
from adjit.ir.operand import Operand


def backpropagate(
    stmts: Sequence[Stmt], targets: Sequence[Operand], seeds: Sequence[Operand], sources: Sequence[Operand]
) -> list[Operand | None]:
    """The cotangent of each source, None where no differentiable path leads from it to a target."""
    active = reached(stmts, sources)
    cotangents: dict[int, Operand] = {}
    for target, seed in zip(targets, seeds, strict=True):
        accumulate(cotangents, target, seed)
    for stmt in reversed(stmts):
        given = tuple(cotangents.get(id(r)) for r in stmt.results)
        needed = [id(a) in active for a in stmt.args]
        if all(g is None for g in given) or not any(needed):
            continue
        with adjoint_of(stmt):
            for arg, d in zip(stmt.args, stmt.op.pullback(stmt.results, stmt.args, given, needed), strict=True):
                if d is not None and id(arg) in active:
                    accumulate(cotangents, arg, d)
    return [cotangents.get(id(s)) for s in sources]


def reached(stmts: Sequence[Stmt], sources: Sequence[Operand]) -> set[int]:
    """Ids of the floating values that depend on a source."""
    active = {id(s) for s in sources if s.type.is_float}
    for stmt in stmts:
        if stmt.op.differentiable and any(id(a) in active for a in stmt.args):
            active.update(id(r) for r in stmt.results if r.type.is_float)
    return active


def accumulate(cotangents: dict[int, Operand], value: Operand, d: Operand) -> None:
    before = cotangents.get(id(value))
    total = d if before is None else before + d
    cotangents[id(value)] = total
    if isinstance(total, Value) and total.name is None and isinstance(value, Value) and value.name:
        total.name = f"{value.name}.bar"


def adjoint_of(stmt: Stmt) -> nullcontext[None]:
    """Emitted statements keep the forward statement's location and name it as their origin."""
    builder = current_builder()
    if builder is None:
        return nullcontext()
    return builder.at(stmt.location, "backward", stmt)  # type: ignore[return-value]
