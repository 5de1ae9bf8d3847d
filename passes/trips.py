"""How often a loop runs."""

from __future__ import annotations

from collections.abc import Sequence

from adjit.ir.builder import Builder
from adjit.ir.func import Block, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.arithmetic import Add
from adjit.ir.types import I64, TensorType

INDEX = TensorType(I64)
ZERO, ONE = Literal(0, INDEX), Literal(1, INDEX)


def stepping(body: Block, params: Sequence[Value]) -> dict[int, Literal]:
    """Carries that a literal is added to at every trip, by their position, with the literal: nobody needs to save those."""
    makers = {id(s.results[0]): s for s in body.stmts if len(s.results) == 1}
    out: dict[int, Literal] = {}
    for slot, (param, following) in enumerate(zip(params, body.results, strict=True)):
        maker = makers.get(id(following))
        if param.type == INDEX and maker is not None and isinstance(maker.op, Add):
            before, step = maker.args
            if before is param and isinstance(step, Literal):
                out[slot] = step
    return out


def counted(stmt: Stmt) -> tuple[Stmt, Operand]:
    """A `while` that counts its trips, and the result that holds their number. One that counts already is left as it is."""
    condition, body = stmt.blocks
    for slot, step in stepping(body, body.params).items():
        if ZERO.same(stmt.args[slot]) and ONE.same(step):
            return stmt, stmt.results[slot]
    carries = len(body.results)
    twin, count, trips = (Value(INDEX, "trips") for _ in range(3))
    with Builder((*body.params, count)) as builder:
        builder.location, builder.phase, builder.origin = stmt.location, stmt.phase, stmt.origin
        builder.stmts.extend(body.stmts)
        following = count + 1
        counting = builder.finish([*body.results, following], body.saving)
    return (
        stmt.replace(
            args=(*stmt.args, ZERO),
            blocks=(Block((*condition.params, twin), condition.stmts, condition.results), counting),
            results=(*stmt.results[:carries], trips, *stmt.results[carries:]),
        ),
        trips,
    )
