"""`checkpoint`: a function whose intermediate values are recomputed in reverse mode instead of being stored.

In a trace, the call becomes a region of its own. Eagerly, tapes record the call as one op; its derivative runs the function again with the
arguments, closed-over tensors and variable values of the first run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np

from adjit.ir.active import outside_builders
from adjit.ir.errors import GradientError
from adjit.ir.location import Location
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array, Op, with_attributes
from adjit.ir.ops.effects import repeating
from adjit.ir.tracebacks import boundary
from adjit.tracer.checkpoint import emit_checkpoint
from adjit.tracer.frames import definition
from adjit.tracer.pytree import flatten
from adjit.tracer.trace import current_trace

from .conversion import converted
from .internal import push_forward
from .leaving import Taken
from .record import EagerRecord
from .recording import Recorder, join, leave, listening
from .stores import rewound
from .tape import differentiate
from .tensor import Tensor
from .variable import Store, Variable


def checkpoint(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fn` with its intermediate values recomputed in the backward pass instead of stored: this trades time for memory.

    Only the arguments are stored. `fn` must return the same results when it runs again. A call that assigns variables is recorded like any
    other function, since it must not assign them twice.

    >>> checkpoint(lambda x: x * x)(3.0)
    9.0
    """

    @boundary
    @functools.wraps(fn)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        if trace is not None:
            return emit_checkpoint(trace, fn, args, kwargs)
        return RepeatableCall(fn, args, kwargs).run() if listening.recorders else fn(*args, **kwargs)

    return checkpointed


class RepeatableCall:
    """One eager call and everything needed to repeat it."""

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.fn, self.args, self.kwargs = fn, args, kwargs
        self.then = with_own_cells(fn, {})
        self.reads: dict[Store, Operand] = {}

    def run(self) -> Any:
        before = listening.recorders
        heard = Segment(before)
        listening.recorders = (heard,)
        try:
            out = self.fn(*self.args, **self.kwargs)
        finally:
            listening.recorders = before
        self.reads = heard.reads
        if heard.assigns:
            heard.tell_all()
        else:
            heard.report_once(EagerCheckpoint(self), [x for x in flatten(out)[0] if isinstance(x, Operand)])
        return out

    def again(self, inputs: Sequence[Operand], results: Sequence[Operand]) -> tuple[EagerRecord, list[Operand]]:
        """Run the function again; return the statements recorded and the results, in the order of the first run's."""
        record = EagerRecord(watch_accessed=False, strict=True)
        for x in inputs:
            record.watch(x)
        reader = Reader(self.reads)
        # evaluate on tensors, as in the first run: the caller may be tracing, or batching over many directions
        with rewound(self.values_then()), outside_builders(), repeating():
            join(reader)
            join(record)
            try:
                leaves = flatten(converted(self.then)(*self.args, **self.kwargs))[0]  # the converted function does not print again
            finally:
                leave(record)
                leave(reader)
        made = record.watched.keys() - {id(x) for x in inputs}
        found = list({id(x): x for x in leaves if id(x) in made}.values())
        if len(found) != len(results) or not all(map(same, found, results)):
            name = getattr(self.fn, "__name__", "the function")
            raise GradientError(
                f"checkpoint: {name} returned a different result when it was recomputed; it must depend only on its arguments and variables"
            ).at(definition(self.fn))
        return record, found

    def values_then(self) -> dict[Store, Array]:
        """Return the variable values that the first run read."""
        return {store: value.buffer for store, value in self.reads.items() if isinstance(value, Tensor)}


def with_own_cells(fn: Any, copies: dict[int, Any]) -> Any:
    """Return a function with its own copy of the variables of enclosing functions, which may be assigned before it runs again.

    The functions in these variables are copied as well, and share them as before; `copies` has the cells and functions copied so far.
    """
    if isinstance(fn, MethodType):
        return MethodType(with_own_cells(fn.__func__, copies), fn.__self__)
    if not isinstance(fn, FunctionType) or not fn.__closure__:
        return fn
    if id(fn) not in copies:
        cells = tuple(copies.setdefault(id(cell), CellType()) for cell in fn.__closure__)
        copy = copies[id(fn)] = FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, cells)
        copy.__kwdefaults__, copy.__qualname__ = fn.__kwdefaults__, fn.__qualname__
        copy.__dict__.update(fn.__dict__)
        for cell, original in zip(cells, fn.__closure__, strict=True):
            with suppress(ValueError):  # nothing has been assigned yet
                cell.cell_contents = with_own_cells(original.cell_contents, copies)
    return copies[id(fn)]


def same(a: Operand, b: Operand) -> bool:
    assert isinstance(a, Tensor)
    assert isinstance(b, Tensor)
    return a.type == b.type and np.array_equal(a.buffer, b.buffer, equal_nan=True)


class Segment(Recorder):
    """Records one run in place of the tapes, then reports to them what they need."""

    def __init__(self, tapes: tuple[Recorder, ...]) -> None:
        self.tapes = tapes
        self.events: list[Callable[[Recorder], None]] = []
        self.stmts: list[tuple[tuple[Operand, ...], tuple[Operand, ...]]] = []  # those that derivatives pass through
        self.reads: dict[Store, Operand] = {}
        self.reached: dict[int, Operand] = {}  # values so far that depend on something a tape watches
        self.assigns = False

    def applied(self, op: Op, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> None:
        if op.differentiable:
            self.stmts.append((args, results))
            if any(self.watches(x) for x in args):
                self.reached.update((id(r), r) for r in results if r.type.is_inexact)
        self.events.append(lambda tape: tape.applied(op, args, results))

    def stand_ins(self, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        for tape in self.tapes:
            args = tape.stand_ins(args)
        return args

    def read(self, variable: Variable, value: Operand) -> None:
        self.reads.setdefault(variable.store, value)
        if self.assigns:
            self.events.append(lambda tape: tape.read(variable, value))
        else:
            for tape in self.tapes:  # they watch it from now on
                tape.read(variable, value)

    def last_read(self, store: Store) -> Operand | None:
        known = (self.reads.get(store), *(tape.last_read(store) for tape in self.tapes))
        return next((value for value in known if value is not None), None)

    def assigned(self, variable: Variable, value: Operand) -> None:
        self.assigns = True
        self.events.append(lambda tape: tape.assigned(variable, value))

    def watches(self, x: Operand) -> bool:
        return id(x) in self.reached or any(tape.watches(x) for tape in self.tapes)

    @property
    def strict(self) -> bool:  # type: ignore[override]
        return any(tape.strict for tape in self.tapes)

    def left(self, tensor: Operand, location: Location | None, out: object) -> None:
        for tape in self.tapes:
            tape.left(tensor, location, out)

    def taken(self, x: object) -> Taken | None:
        return next((taken for tape in self.tapes if (taken := tape.taken(x)) is not None), None)

    def tell_all(self) -> None:
        for tape in self.tapes:
            for event in self.events:
                event(tape)

    def report_once(self, op: Op, leaves: Sequence[Operand]) -> None:
        """Report the whole run to the tapes as one op: its inputs are the watched operands, its results those that depend on them."""
        for tape in self.tapes:
            if not isinstance(tape, EagerRecord | Segment):
                for event in self.events:
                    event(tape)
                continue
            reached = dict(tape.watched) if isinstance(tape, EagerRecord) else None
            inputs: dict[int, Operand] = {}
            own: set[int] = set()
            for args, results in self.stmts:
                live = [x for x in args if x.type.is_inexact and (reached is None or id(x) in reached)]
                inputs.update((id(x), x) for x in live if id(x) not in own)
                if live:
                    own.update(map(id, results))
                    if reached is not None:
                        reached.update((id(r), r) for r in results if r.type.is_inexact)
            given = {id(x): x for x in leaves if id(x) in own and x.type.is_inexact}
            if given:
                tape.applied(op, tuple(inputs.values()), tuple(given.values()))


class Reader(Recorder):
    """Makes variables return the same tensors as in the first run."""

    def __init__(self, reads: dict[Store, Operand]) -> None:
        self.reads = reads

    def applied(self, op: Op, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> None:
        pass

    def stand_ins(self, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return args

    def read(self, variable: Variable, value: Operand) -> None:
        pass

    def last_read(self, store: Store) -> Operand | None:
        return self.reads.get(store)


@with_attributes
class EagerCheckpoint(Op, abstract=True):
    """A finished call as a single op, as eager tapes see it."""

    takes_stored = True
    call: RepeatableCall

    name = "checkpoint"  # has no textual form: it never appears in the IR

    def pushforward(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], tangents: tuple[Operand | None, ...]
    ) -> list[Operand | None]:
        record, found = self.call.again(args, results)
        known = [(x, d) for x, d in zip(args, tangents, strict=True) if d is not None]
        pushed = push_forward(record.statements(), [x for x, _ in known], [d for _, d in known])
        return [pushed.get(id(x)) for x in found]

    def pullback(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], cotangents: tuple[Operand | None, ...], needed: Sequence[bool]
    ) -> list[Operand | None]:
        record, found = self.call.again(args, results)
        seeded = [(x, c) for x, c in zip(found, cotangents, strict=True) if c is not None]
        return differentiate(record, [x for x, _ in seeded], [c for _, c in seeded], list(args))
