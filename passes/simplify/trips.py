"""Trip counts of loops, and the values of their counters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adjit.ir.builder import Builder
from adjit.ir.func import Block, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.arithmetic import Add, Maximum, Sub
from adjit.ir.ops.base import Op
from adjit.ir.ops.create import SizeValue
from adjit.ir.records import NamedTuple
from adjit.ir.sizes import at_least
from adjit.ir.types import I64, TensorType

INDEX = TensorType(I64)
ZERO, ONE = Literal(0, INDEX), Literal(1, INDEX)


class AffinePosition(NamedTuple):
    """`sign * k + offset`, where k is the counter of a loop."""

    sign: int
    offset: int

    def covers(self, trips: CounterRange, size: int) -> bool:
        """Whether the iterations give each of 0 .. size-1 exactly once."""
        ends = [self.sign * k + self.offset for k in (trips.first, trips.last)]
        return trips.length == size and (ends == [0, size - 1] or ends == [size - 1, 0])


class CounterRange(NamedTuple):
    """The values of a loop's counter: `length` consecutive integers."""

    first: int
    length: int

    @property
    def last(self) -> int:
        return self.first + self.length - 1


class Sizes:
    """Values of a program, by id, that are sizes or computed from sizes. They may be known only when the program runs."""

    def __init__(self) -> None:
        self.known: dict[int, int] = {}

    def of(self, x: Operand) -> int | None:
        if isinstance(x, Literal):
            return int(x.value) if x.type == INDEX else None
        return self.known.get(id(x))

    def note(self, stmt: Stmt) -> None:
        if isinstance(stmt.op, SizeValue):
            self.known[id(stmt.result)] = stmt.op.value
        elif type(stmt.op) in COMPUTED and stmt.result.type == INDEX:
            a, b = map(self.of, stmt.args)
            found = None if a is None or b is None else COMPUTED[type(stmt.op)](a, b)
            if found is not None:
                self.known[id(stmt.result)] = found


COMPUTED: dict[type[Op], Callable[[int, int], int | None]] = {
    Add: lambda a, b: a + b,
    Sub: lambda a, b: a - b,
    Maximum: lambda a, b: a if at_least(a, b) else b if at_least(b, a) else None,
}


def known_trips(stmt: Stmt, sizes: Sizes | None = None) -> CounterRange | None:
    """The values that a `for` counts through, if its bounds are literals, or sizes."""
    if not stmt.op.is_loop or not stmt.region.counters:
        return None
    start, stop = map((sizes or Sizes()).of, stmt.args[:2])
    if start is None or stop is None:
        return None
    return CounterRange(start, stop - start if at_least(stop, start) else 0)


def positions(body: Block, sizes: Sizes) -> dict[int, AffinePosition]:
    """Values of a `for` loop's body, by id, that follow its counter up or down."""
    out = {id(body.params[0]): AffinePosition(1, 0)}
    for stmt in body.stmts:
        sizes.note(stmt)
        if not isinstance(stmt.op, Add | Sub) or stmt.result.type != INDEX:
            continue
        minus = isinstance(stmt.op, Sub)
        (a, b), (first, second) = stmt.args, map(sizes.of, stmt.args)
        if second is not None and id(a) in out:
            sign, offset = out[id(a)]
            out[id(stmt.result)] = AffinePosition(sign, offset - second if minus else offset + second)
        elif first is not None and id(b) in out:
            sign, offset = out[id(b)]
            out[id(stmt.result)] = AffinePosition(-sign if minus else sign, first - offset if minus else first + offset)
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
