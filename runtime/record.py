"""What a tape has recorded: eager statements, or a stretch of a trace.

Both kinds answer the same questions: which statements, which values are watched, which values a variable gave. An eager record is told of
each op and keeps those that depend on something watched, so that its memory is that of the computation differentiated. A trace record is
told nothing: the trace keeps all statements anyway, and the record remembers from where to where.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from adjit.ir.builder import current_builder
from adjit.ir.errors import TraceError
from adjit.ir.func import Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.base import Op
from adjit.passes.reverse import reached
from adjit.tracer.trace import Splat

from .tensor import materialize
from .variable import Store, Variable


class Record:
    """The common part: what is watched, and what variables gave when they were read."""

    def __init__(self, watch_accessed: bool) -> None:
        self.watch_accessed = watch_accessed
        self.watched: dict[int, Operand] = {}  # by id; holding the operand keeps the id its own
        self.asked: set[Store] = set()
        self.variables: dict[Store, Variable] = {}
        self.reads: dict[Store, list[Operand]] = {}

    def watch(self, x: Operand) -> None:
        self.watched[id(x)] = x

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

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def applied(self, op: Op, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> None: ...

    def statements(self) -> Sequence[Stmt]:
        raise NotImplementedError

    def connected(self, stmts: Sequence[Stmt]) -> Container[int]:
        """Ids of the values that are watched or depend on what is."""
        raise NotImplementedError

    def give(self, gradient: Operand) -> Operand:
        """A gradient as the user is to hold it."""
        raise NotImplementedError


class EagerRecord(Record):
    """Statements on tensors. What depends on something watched is watched itself."""

    def __init__(self, watch_accessed: bool) -> None:
        super().__init__(watch_accessed)
        self.stmts: list[Stmt] = []

    def applied(self, op: Op, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> None:
        if not op.differentiable:
            return
        watched = self.watched
        for arg in args:
            if id(arg) in watched:
                break
        else:
            return
        self.stmts.append(Stmt(op, args, results))
        for result in results:
            if result.type.is_float:
                watched[id(result)] = result

    def statements(self) -> Sequence[Stmt]:
        return list(self.stmts)  # a copy: the sweep itself may be recorded here

    def connected(self, stmts: Sequence[Stmt]) -> Container[int]:
        return self.watched

    def give(self, gradient: Operand) -> Operand:
        return gradient if isinstance(gradient, Value) else materialize(gradient)


class TraceRecord(Record):
    """Stretches of the statements of one builder: the trace of a function, or of a region in it."""

    def __init__(self, watch_accessed: bool) -> None:
        super().__init__(watch_accessed)
        builder = current_builder()
        assert builder is not None
        self.builder = builder
        self.stretches: list[tuple[int, int | None]] = []

    def start(self) -> None:
        self.check_reachable("entered")
        self.stretches.append((len(self.builder.stmts), None))

    def stop(self) -> None:
        first, _ = self.stretches.pop()
        self.stretches.append((first, len(self.builder.stmts)))

    def statements(self) -> Sequence[Stmt]:
        self.check_reachable("asked for gradients")
        return [stmt for first, last in self.stretches for stmt in self.builder.stmts[first:last]]

    def connected(self, stmts: Sequence[Stmt]) -> Container[int]:
        return reached(stmts, list(self.watched.values()))

    def give(self, gradient: Operand) -> Operand:
        return Splat(gradient.value, gradient.type) if type(gradient) is Literal else gradient

    def check_reachable(self, what: str) -> None:
        builder = current_builder()
        while builder is not None and builder is not self.builder:
            builder = builder.parent
        if builder is None:
            raise TraceError(f"a tape of a traced function was {what} outside of it; call tape.gradient in the function that recorded")


def new_record(watch_accessed: bool) -> Record:
    """A record of what happens here: of the trace that is running, or of eager ops."""
    return EagerRecord(watch_accessed) if current_builder() is None else TraceRecord(watch_accessed)
