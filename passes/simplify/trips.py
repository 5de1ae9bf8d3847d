"""Trip counts of loops, and the values of their counters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from adjit.ir.builder import Builder
from adjit.ir.func import Block, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.arithmetic import Add, Sub
from adjit.ir.types import I64, TensorType

INDEX = TensorType(I64)
ZERO, ONE = Literal(0, INDEX), Literal(1, INDEX)


class Position(NamedTuple):
    """`sign * k + offset`, where k is the counter of a loop."""

    sign: int
    offset: int

    def covers(self, trips: range, size: int) -> bool:
        """Whether the iterations give each of 0 .. size-1 exactly once."""
        ends = {self.sign * k + self.offset for k in (trips[0], trips[-1])}
        return len(trips) == size and ends == {0, size - 1}


def known_trips(stmt: Stmt) -> range | None:
    """The range that a `for` counts through, if its bounds are literals."""
    if not stmt.op.is_loop or not stmt.region.counters or not all(isinstance(x, Literal) for x in stmt.args[:2]):
        return None
    start, stop = (int(x.value) for x in stmt.args[:2])  # type: ignore[attr-defined]
    return range(start, stop)


def positions(body: Block) -> dict[int, Position]:
    """Values of a `for` loop's body, by id, that follow its counter up or down."""
    out = {id(body.params[0]): Position(1, 0)}
    for stmt in body.stmts:
        if not isinstance(stmt.op, Add | Sub) or stmt.result.type != INDEX:
            continue
        a, b = stmt.args
        minus = isinstance(stmt.op, Sub)
        if isinstance(b, Literal) and id(a) in out:
            sign, offset = out[id(a)]
            out[id(stmt.result)] = Position(sign, offset - int(b.value) if minus else offset + int(b.value))
        elif isinstance(a, Literal) and id(b) in out:
            sign, offset = out[id(b)]
            out[id(stmt.result)] = Position(-sign if minus else sign, int(a.value) - offset if minus else int(a.value) + offset)
    return out


def stepping(body: Block, params: Sequence[Value]) -> dict[int, Literal]:
    """Carries that a literal is added to in every iteration, by their position, with the literal: these need not be saved."""
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
    """A `while` that counts its iterations, and the result that holds the count. One that already counts is left unchanged."""
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
