"""Records of tapes: eager statements, or a range of a trace.

Both kinds provide the same information: the statements, the watched values, the values read from a variable. An eager record is notified of
each op and keeps those that depend on something watched, so its memory is proportional to the computation differentiated. A trace record
needs no notification: the trace keeps all statements anyway, and the record stores where its range starts and ends.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from adjit.ir.active import current_builder
from adjit.ir.builder import Builder
from adjit.ir.errors import TraceError
from adjit.ir.func import Stmt, Value
from adjit.ir.location import Location
from adjit.ir.operand import Concrete, Literal, Operand
from adjit.ir.ops.base import Op, with_attributes
from adjit.ir.ops.logic import Assigned
from adjit.ir.ops.shape import Reshape
from adjit.passes.rewrite import operands_read
from adjit.tracer.convert import present
from adjit.tracer.frames import user_location
from adjit.tracer.trace import Traced, current_trace

from .leaving import Taken, memory_of
from .log import TapeLog
from .tensor import materialize
from .variable import Store, Variable


@with_attributes
class Assign(Op, abstract=True):
    """Marks a value passing through a variable, as a dead end of a record."""

    takes_stored = True
    variable: str | None

    name = "assign"
    differentiable: ClassVar[bool] = False


Mark: TypeAlias = list[tuple[Builder, int]]  # the trace of a tape, the regions open inside it, and the statement count of each
Place: TypeAlias = tuple[float, ...]  # in a trace: the statement's number, then that of the one in its region, and so on; later is greater


class Record:
    """The common part: what is watched, and the values that variables returned when read."""

    excuses = False

    def __init__(self, watch_accessed: bool, strict: bool = False) -> None:
        self.watch_accessed = watch_accessed
        self.strict = strict
        self.watched: dict[int, Any] = {}  # by id; the value keeps the operand alive, and so its id unique
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
        """Return the values read from the variable while this record was active."""
        return self.reads.get(variable.store, [])

    # ---- what the two kinds implement differently

    def resolve(self, x: Operand) -> Operand:
        """Return the operand that represents a user's tensor in the recorded statements: usually the tensor itself."""
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
        """Return all statements, including those that stop derivatives: for `explain`."""
        raise NotImplementedError

    def statements(self) -> Sequence[Stmt]:
        raise NotImplementedError

    def connected(self, stmts: Sequence[Stmt]) -> Container[int]:
        """Return the ids of values that are watched or depend on watched values."""
        raise NotImplementedError

    def give(self, gradient: Operand) -> Operand:
        """Return a gradient in the form that users hold."""
        raise NotImplementedError


class EagerRecord(Record):
    """Statements on tensors, in a log. Values that depend on something watched are watched themselves.

    Values that depend on it non-differentiably are `lost`: of their statements, only those that `explain` needs are kept, with the user's
    lines.
    """

    def __init__(self, watch_accessed: bool, strict: bool = False) -> None:
        super().__init__(watch_accessed, strict)
        self.log = log = TapeLog()
        self.watched = log.numbers
        self.lost = log.lost
        self.numbers = log.taken  # explicitly extracted numbers, by id; for arrays, the id of their memory
        self.dead_ends: list[Stmt] = []  # statements on lost values, and those where they were lost
        self.exits: dict[int, Location | None] = {}  # id of a watched tensor -> where it left for NumPy
        self.assignments: dict[Store, Stmt] = {}

    def watch(self, x: Operand) -> None:
        self.log.watch(x)

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
        self.log.add(op, args, results)
        for result in results:
            if id(result) not in watched:  # integers
                self.log.places[len(self.log.entries) - 1] = user_location()
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
        return [*self.statements(), *self.dead_ends]

    def statements(self) -> Sequence[Stmt]:
        return self.log.statements()

    def connected(self, stmts: Sequence[Stmt]) -> Container[int]:
        return self.watched

    def give(self, gradient: Operand) -> Operand:
        return (gradient if isinstance(gradient, Value) else materialize(gradient)).strong()


class TraceRecord(Record):
    """Ranges of the statements of one trace: that of a function, or of a region in it, with the regions open inside it."""

    def __init__(self, watch_accessed: bool, strict: bool = False) -> None:
        super().__init__(watch_accessed, strict)
        trace = current_trace()
        assert trace is not None
        self.trace = trace
        self.stretches: list[tuple[Mark, Mark | None]] = []
        self.since: dict[int, Place] = {}  # id of a watched value -> the first statement that can use it

    def watch(self, x: Operand) -> None:
        if isinstance(x, Concrete | Literal):  # a constant: its ops would be evaluated immediately and not recorded
            table = self.trace.root().stand_ins
            if id(x) not in table:
                table[id(x)] = (x, self.trace.emit(Reshape(x.type.shape), (x,))[0])
        value = self.resolve(x)
        super().watch(value)
        self.since.setdefault(id(value), tuple(count for _, count in self.mark("used to watch a value")))

    def watches(self, x: Operand) -> bool:
        return id(x) in self.trace.root().stand_ins or super().watches(x)

    def read(self, variable: Variable, value: Operand) -> None:
        """Note a read. In a branch or a loop, derivatives reach the tape at the value that the variable had before it."""
        super().read(variable, value)
        if current_trace() is not self.trace:
            super().read(variable, self.trace.read(variable.store))

    def values(self, variable: Variable) -> list[Operand]:
        """Return the values read from the variable, without those whose derivatives pass on to an earlier one."""
        passing = {id(stmt.result) for stmt in self.statements() if isinstance(stmt.op, Assigned)}
        return [value for value in super().values(variable) if id(value) not in passing]

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
        """Return what an eager tape would have kept: the statements that used a value already watched at that point."""
        since = dict(self.since)
        kept: list[Stmt] = []
        for place, stmt in self.recorded():
            read = operands_read(stmt) if stmt.blocks else stmt.op.followed(stmt.args)
            if stmt.op.differentiable and any(id(x) in since and since[id(x)] <= place for x in read):
                kept.append(stmt)
                since.update((id(r), place) for r in stmt.results if r.type.is_inexact)
        return kept

    def everything(self) -> Sequence[Stmt]:
        return [stmt for _, stmt in self.recorded()]

    def recorded(self) -> Iterator[tuple[Place, Stmt]]:
        """Yield the statements of all ranges in the order of creation. A region that has ended is one statement."""
        around: Place = ()
        for builder, end in self.mark("asked for gradients"):
            for first, last in self.stretches:
                stop = end if last is None else length_in(last, builder)
                for n in range(length_in(first, builder), stop):
                    yield (*around, n, math.inf), builder.stmts[n]
            around = (*around, end)

    def connected(self, stmts: Sequence[Stmt]) -> Container[int]:
        return self.watched.keys() | {id(r) for stmt in stmts for r in stmt.results if r.type.is_inexact}

    def give(self, gradient: Operand) -> Operand:
        return present(gradient).strong()

    def mark(self, what: str) -> Mark:
        """Return the current position in the trace."""
        out: list[tuple[Builder, int]] = []
        builder = current_builder()
        while builder is not None:
            out.append((builder, len(builder.stmts)))
            if builder is self.trace:
                return out[::-1]
            builder = builder.parent
        raise TraceError(f"a tape of a traced function was {what} outside of it; call tape.gradient in the function that recorded")


def length_in(mark: Mark, builder: Builder) -> int:
    """Return how many statements a builder had at a mark; 0 if it did not exist yet."""
    return next((count for found, count in mark if found is builder), 0)


def new_record(watch_accessed: bool, strict: bool = False) -> Record:
    """Create a record for the running trace, or for eager ops. `strict`: watched values may not leave for NumPy."""
    return EagerRecord(watch_accessed, strict) if current_trace() is None else TraceRecord(watch_accessed, strict)
