"""What a tape has recorded: eager statements, or a stretch of a trace.

Both kinds answer the same questions: which statements, which values are watched, which values a variable gave. An eager record is told of
each op and keeps those that depend on something watched, so that its memory is that of the computation differentiated. A trace record is
told nothing: the trace keeps all statements anyway, and the record remembers from where to where.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np

from adjit.ir.builder import Builder, current_builder
from adjit.ir.errors import TraceError
from adjit.ir.func import Stmt, Value
from adjit.ir.location import Location
from adjit.ir.operand import Concrete, Literal, Operand
from adjit.ir.ops.base import Op
from adjit.ir.ops.shape import Reshape
from adjit.passes.rewrite import operands_read
from adjit.tracer.frames import user_location
from adjit.tracer.trace import Splat, Traced, current_trace

from .leaving import Taken, memory_of
from .tensor import materialize
from .variable import Store, Variable


@dataclass(eq=False, repr=False)
class Assign(Op, abstract=True):
    """A value on its way through a variable, as a dead end of a record."""

    variable: str | None

    name = "assign"
    differentiable: ClassVar[bool] = False


Mark: TypeAlias = list[tuple[Builder, int]]  # the trace of a tape, the regions open inside of it, and how many statements each has
Place: TypeAlias = tuple[float, ...]  # in a trace: the number of the statement, of the one in its region, and so on. Later ones are greater


class Record:
    """The common part: what is watched, and what variables gave when they were read."""

    def __init__(self, watch_accessed: bool, strict: bool = False) -> None:
        self.watch_accessed = watch_accessed
        self.strict = strict
        self.watched: dict[int, Operand] = {}  # by id; holding the operand keeps the id its own
        self.asked: set[Store] = set()
        self.variables: dict[Store, Variable] = {}
        self.reads: dict[Store, list[Operand]] = {}

    def watch(self, x: Operand) -> None:
        self.watched[id(x)] = x

    def watches(self, x: Operand) -> bool:
        return id(x) in self.watched

    def watch_variable(self, variable: Variable) -> None:
        self.asked.add(variable.store)
        self.variables.setdefault(variable.store, variable)

    def read(self, variable: Variable, value: Operand) -> None:
        store = variable.store
        if store in self.asked or (self.watch_accessed and store.trainable):
            self.variables.setdefault(store, variable)
            values = self.reads.setdefault(store, [])
            if not any(v is value for v in values):
                values.append(value)
                self.watch(value)

    def last_read(self, store: Store) -> Operand | None:
        values = self.reads.get(store)
        return values[-1] if values else None

    def values(self, variable: Variable) -> list[Operand]:
        """What the variable gave while this record was listening."""
        return self.reads.get(variable.store, [])

    # ---- what the two kinds do in their own ways

    def resolve(self, x: Operand) -> Operand:
        """What stands for a user's tensor in the statements recorded: mostly itself."""
        return x

    def stand_ins(self, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return args

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def applied(self, op: Op, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> None: ...

    def assigned(self, variable: Variable, value: Operand) -> None: ...

    def left(self, tensor: Operand, location: Location | None, out: object) -> None: ...

    def taken(self, x: object) -> Taken | None:
        return None

    def everything(self) -> Sequence[Stmt]:
        """The statements, and those through which no derivative passes: for `explain`."""
        raise NotImplementedError

    def statements(self) -> Sequence[Stmt]:
        raise NotImplementedError

    def connected(self, stmts: Sequence[Stmt]) -> Container[int]:
        """Ids of the values that are watched or depend on what is."""
        raise NotImplementedError

    def give(self, gradient: Operand) -> Operand:
        """A gradient as the user is to hold it."""
        raise NotImplementedError


class EagerRecord(Record):
    """Statements on tensors. What depends on something watched is watched itself.

    What depends on it, but not differentiably, is `lost`: of that, only what `explain` has to know is kept, with the user's lines.
    """

    def __init__(self, watch_accessed: bool, strict: bool = False) -> None:
        super().__init__(watch_accessed, strict)
        self.stmts: list[Stmt] = []
        self.dead_ends: list[Stmt] = []  # statements on what is lost, and those where it was
        self.lost: dict[int, Operand] = {}
        self.exits: dict[int, Location | None] = {}  # id of a watched tensor -> where it left for NumPy
        self.numbers: dict[int, Taken] = {}  # those taken out by name, by identity; of arrays, that of their memory
        self.assignments: dict[Store, Stmt] = {}

    def applied(self, op: Op, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> None:
        watched = self.watched
        for arg in args:
            if id(arg) in watched:
                break
        else:
            if self.lost and any(id(a) in self.lost for a in args):
                self.lose(Stmt(op, args, results))
            return
        if not op.differentiable:
            self.lose(Stmt(op, args, results, (), user_location()))
            return
        stmt = Stmt(op, args, results)
        self.stmts.append(stmt)
        for result in results:
            if result.type.is_float:
                watched[id(result)] = result
            else:
                stmt.location = user_location()
                self.lost[id(result)] = result

    def lose(self, stmt: Stmt) -> None:
        self.dead_ends.append(stmt)
        self.lost.update((id(r), r) for r in stmt.results)

    def assigned(self, variable: Variable, value: Operand) -> None:
        if id(value) in self.watched or id(value) in self.lost:
            self.assignments[variable.store] = Stmt(Assign(variable.name), (value,), (), (), user_location())
        else:
            self.assignments.pop(variable.store, None)

    def read(self, variable: Variable, value: Operand) -> None:
        assignment = self.assignments.get(variable.store)
        if assignment is not None and id(value) not in self.lost:
            self.lose(assignment.replace(results=(value,)))
        super().read(variable, value)

    def left(self, tensor: Operand, location: Location | None, out: object) -> None:
        self.exits.setdefault(id(tensor), location)
        if isinstance(out, np.ndarray):
            self.numbers[memory_of(out)] = (out, location)
        elif isinstance(out, float):
            self.numbers[id(out)] = (out, location)

    def taken(self, x: object) -> Taken | None:
        return self.numbers.get(memory_of(x) if isinstance(x, np.ndarray) else id(x)) if self.numbers else None

    def everything(self) -> Sequence[Stmt]:
        return [*self.stmts, *self.dead_ends]

    def statements(self) -> Sequence[Stmt]:
        return list(self.stmts)  # a copy: the sweep itself may be recorded here

    def connected(self, stmts: Sequence[Stmt]) -> Container[int]:
        return self.watched

    def give(self, gradient: Operand) -> Operand:
        return gradient if isinstance(gradient, Value) else materialize(gradient)


class TraceRecord(Record):
    """Stretches of the statements of one trace: that of a function, or of a region in it, with the regions that are open inside of it."""

    def __init__(self, watch_accessed: bool, strict: bool = False) -> None:
        super().__init__(watch_accessed, strict)
        trace = current_trace()
        assert trace is not None
        self.trace = trace
        self.stretches: list[tuple[Mark, Mark | None]] = []
        self.since: dict[int, Place] = {}  # id of a watched value -> the first statement that may know

    def watch(self, x: Operand) -> None:
        if isinstance(x, Concrete | Literal):  # a constant: its ops would be computed on the spot, and nothing recorded
            table = self.trace.root().stand_ins
            if id(x) not in table:
                table[id(x)] = (x, self.trace.emit(Reshape(x.type.shape), (x,))[0])
        value = self.resolve(x)
        super().watch(value)
        self.since.setdefault(id(value), tuple(count for _, count in self.mark("told to watch something")))

    def watches(self, x: Operand) -> bool:
        return id(x) in self.trace.root().stand_ins or super().watches(x)

    def resolve(self, x: Operand) -> Operand:
        trace = current_trace()
        if isinstance(x, Traced) and trace is not None:
            trace.check_reachable(x, "tape")
        known = self.trace.root().stand_ins.get(id(x))
        return x if known is None else known[1]

    def stand_ins(self, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        table = self.trace.root().stand_ins
        return tuple(map(self.resolve, args)) if table and any(id(a) in table for a in args) else args

    def start(self) -> None:
        self.stretches.append((self.mark("entered"), None))

    def stop(self) -> None:
        first, _ = self.stretches.pop()
        self.stretches.append((first, self.mark("left")))

    def statements(self) -> Sequence[Stmt]:
        """What an eager tape would have kept: the statements that used something watched by then."""
        since = dict(self.since)
        kept: list[Stmt] = []
        for place, stmt in self.recorded():
            if stmt.op.differentiable and any(id(x) in since and since[id(x)] <= place for x in operands_read(stmt)):
                kept.append(stmt)
                since.update((id(r), place) for r in stmt.results if r.type.is_float)
        return kept

    def everything(self) -> Sequence[Stmt]:
        return [stmt for _, stmt in self.recorded()]

    def recorded(self) -> Iterator[tuple[Place, Stmt]]:
        """The statements of all stretches in the order in which they were made. A region that has ended is one of them."""
        around: Place = ()
        for builder, end in self.mark("asked for gradients"):
            for first, last in self.stretches:
                stop = end if last is None else length_in(last, builder)
                for n in range(length_in(first, builder), stop):
                    yield (*around, n, math.inf), builder.stmts[n]
            around = (*around, end)

    def connected(self, stmts: Sequence[Stmt]) -> Container[int]:
        return self.watched.keys() | {id(r) for stmt in stmts for r in stmt.results if r.type.is_float}

    def give(self, gradient: Operand) -> Operand:
        return Splat(gradient.value, gradient.type) if type(gradient) is Literal else gradient

    def mark(self, what: str) -> Mark:
        """Where the trace is by now."""
        out: list[tuple[Builder, int]] = []
        builder = current_builder()
        while builder is not None:
            out.append((builder, len(builder.stmts)))
            if builder is self.trace:
                return out[::-1]
            builder = builder.parent
        raise TraceError(f"a tape of a traced function was {what} outside of it; call tape.gradient in the function that recorded")


def length_in(mark: Mark, builder: Builder) -> int:
    """How many statements a builder had at that time; none before it began."""
    return next((count for found, count in mark if found is builder), 0)


def new_record(watch_accessed: bool, strict: bool = False) -> Record:
    """A record of what happens here: of the trace that is running, or of eager ops. `strict`: what it watches may not leave for NumPy."""
    return EagerRecord(watch_accessed, strict) if current_trace() is None else TraceRecord(watch_accessed, strict)
