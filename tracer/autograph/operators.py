"""What rewritten code calls: statements. Everything that such code reaches as `ag__` is here or in `expressions`.

A value decides, when the statement runs, whether it is traced or plain Python.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import Any

from adjit.ir import ops
from adjit.ir.operand import Literal, as_operand
from adjit.ir.types import I64, TensorType

from ..branches import emit_if
from ..growing import TracedList
from ..loops import Loop, emit_for, emit_while
from ..regions import UNDEFINED, Attempt, Entry, Wording, is_traced
from ..trace import Trace, current_trace
from . import expressions
from .expressions import *  # noqa: F403 - `ag__` is one name
from .items import Items, as_items
from .objects import Objects
from .state import Names, Snapshot, State, assigned_line, check_arguments, entry, keep_identity, own

UNROLL = 64  # trips: more are tried as a loop first
STATEMENTS = 4096  # of all trips of an unrolled loop: with more, it is tried as a loop as well

slice = builtins.slice


# ---- if


def if_stmt(
    test: Any, then: Callable[[], None], other: Callable[[], None], names: Names = (), scratch: Names = (), *, returns: str = "",
    arguments: Names = (), optional: Names = (),
) -> None:  # fmt: skip
    """`names` are read after the statement, `scratch` are not; `returns` is the branch that leaves the function, if one does.

    `arguments` are lists of the caller's that the statement appends to. `optional` are names that are read only where they were assigned.
    """
    trace, test = current_trace(), expressions.truth(test)
    if trace is None or not is_traced(test):
        then() if test else other()
        return
    state = State((then, other), names + scratch)
    objects = Objects((then, other), names + scratch)
    before = state.read()
    start = Attempt(trace)
    count = len(names)
    given: list[list[Any]] = []
    left: list[list[Any]] = []

    def branch(function: Callable[[], None]) -> list[Any]:
        given.append([own(value) for value in before])
        state.write(given[-1])
        try:
            with expressions.raising():
                function()
            left.append(state.read())
        finally:
            objects.look()
        return left[-1][:count]

    words = Wording("`if`", ("in the `if` branch", "in the `else` branch"), lambda name, side: assigned_line((then, other)[side], name))
    try:
        loose = (returns == "then", returns == "else")
        entries = [entry(name, optional=name in optional) for name in names]
        values = emit_if(trace, test, [lambda: branch(then), lambda: branch(other)], entries, words, loose)
    finally:
        state.write(before)
    if objects.hidden:
        start.undo()
        if_stmt(test, then, other, (*names, *objects.hidden), scratch, returns=returns, arguments=arguments, optional=optional)
        return
    check_arguments(arguments, names, before, values)
    kept = [keep_identity(b, [g[i] for g in given], [x[i] for x in left], v) for i, (b, v) in enumerate(zip(before, values))]
    state.write([*kept, *before[count:]])


# ---- loops


class LoopState:
    """The variables of a loop: `carried` from trip to trip, `fresh` assigned by every trip before it is read, `scratch` not read after."""

    def __init__(
        self, body: Callable[..., None], carried: Names, fresh: Names, scratch: Names, stop: str | None, arguments: Names, optional: Names
    ) -> None:
        self.body = body
        self.arguments = arguments
        self.optional = optional
        self.scratch = scratch
        self.names: Names = ()
        self.entries: list[Entry] = []
        self.add(carried)
        self.add(fresh, fresh=True)
        self.flag = State((body,), (stop,)) if stop else None

    def add(self, names: Names, fresh: bool = False) -> None:
        self.names += names
        self.entries += [entry(name, fresh=fresh, optional=name in self.optional) for name in names]
        self.state = State((self.body,), self.names)
        self.every = State((self.body,), self.names + self.scratch)

    def stopped(self) -> Any:
        """The flag of `break` and `return`."""
        return self.flag.read()[0] if self.flag else False

    def words(self, what: str) -> Wording:
        return Wording(what, ("before the loop", "after a trip"), lambda name, side: assigned_line(self.body, name) if side else None)

    def emit(
        self, what: str, certain: bool, checkpoint: str | int, emit: Callable[[Loop], list[Any]], step: Callable[[Any], None]
    ) -> None:
        """Trace the loop; whatever happens, no value of its inside stays behind in a variable."""
        before = self.every.read()
        objects = Objects((self.body,), self.names + self.scratch)
        trace = current_trace()
        assert trace is not None
        mark = Attempt(trace)
        given: list[list[Any]] = []
        left: list[list[Any]] = []

        def trip(k: Any, values: list[Any]) -> list[Any]:
            self.every.write(before)
            # at the start of a trip nothing has returned yet, and no flag is set: the loop would not be here
            given[:] = [[UNDEFINED if e.optional else own(value) for e, value in zip(self.entries, values, strict=True)]]
            self.state.write(given[0])
            if self.flag:
                self.flag.write([False])
            try:
                step(k)
                left[:] = [self.state.read()]
            finally:
                objects.look()
            return left[0]

        start = [own(value) if type(value) in (list, dict, TracedList) else value for value in before[: len(self.names)]]
        try:
            values = emit(Loop(self.entries, start, trip, self.words(what), certain, checkpoint))
        finally:
            self.every.write(before)
        if objects.hidden:
            mark.undo()
            self.add(tuple(objects.hidden))
            self.emit(what, certain, checkpoint, emit, step)
            return
        check_arguments(self.arguments, self.names, before, values)
        kept = [keep_identity(b, [given[0][i]], [left[0][i]], v) for i, (b, v) in enumerate(zip(before, values))]
        self.state.write(kept)

    def attempt(self, build: Callable[[], None], mark: Attempt, before: Snapshot) -> bool:
        """Try to build a loop in place of what was traced since `mark`; whether that worked."""
        mark.undo()
        before.restore()
        try:
            build()
        except Exception:  # whatever a body cannot do on traced values, it can do trip by trip; what is wrong will raise there again
            mark.undo()
            before.restore()
            return False
        return True


def while_stmt(
    test: Callable[[], Any], body: Callable[[], None], carried: Names = (), fresh: Names = (), scratch: Names = (), *,
    stop: str | None = None, roll: bool = True, arguments: Names = (), optional: Names = (),
) -> None:  # fmt: skip
    loop = LoopState(body, carried, fresh, scratch, stop, arguments, optional)

    def go_on() -> Any:
        stopped = loop.stopped()
        return expressions.truth(test() if stopped is False else expressions.and_(expressions.not_(stopped), test))

    trace = current_trace()
    if trace is None:
        while go_on():
            body()
        return

    def build(certain: bool) -> None:
        def holds(values: list[Any]) -> Any:
            loop.state.write(values)
            return go_on()

        loop.emit("`while`", certain, "none", lambda whole: emit_while(trace, whole, holds), lambda _: body())

    start, first = Attempt(trace), Snapshot(loop.every)
    trips = 0
    while True:
        tested, before = Attempt(trace), loop.every.read()
        holds = go_on()
        if is_traced(holds):
            tested.undo()
            loop.every.write(before)
            # the trip before this test was certain, for the test was decided while tracing: the loop may start there
            if trips == 1 and roll:
                if loop.attempt(lambda: build(True), start, first):
                    return
                go_on()
                body()
            build(False)
            return
        if not holds:
            return
        if trips == UNROLL and roll:
            if loop.attempt(lambda: build(True), start, first):
                return
            trips, roll = 0, False  # all over again, trip by trip
            continue
        body()
        trips += 1


def for_stmt(
    iterable: Any, body: Callable[[Any], None], carried: Names = (), fresh: Names = (), scratch: Names = (), *,
    stop: str | None = None, roll: bool = True, arguments: Names = (), optional: Names = (),
) -> None:  # fmt: skip
    trace = current_trace()
    loop = LoopState(body, carried, fresh, scratch, stop, arguments, optional)
    items = as_items(iterable, trace is not None)
    if items is None or trace is None:
        _for_each(loop, iterable, body)
        return
    if not isinstance(items.length, int):
        _rolled(trace, loop, items, body)
        return
    if items.length == 0:
        return
    if items.rolled:
        _rolled(trace, loop, items, body)
        return
    start, before = Attempt(trace), Snapshot(loop.every)
    build = lambda: _rolled(trace, loop, items, body)  # noqa: E731 - one name for what is tried twice
    if not roll or items.length == 1:
        _for_each(loop, items, body)
        return
    if items.length > UNROLL:
        if not loop.attempt(build, start, before):
            _for_each(loop, items, body)
        return
    body(items.item(0))
    worth = is_traced(loop.stopped()) or start.statements * items.length > STATEMENTS
    if worth and loop.attempt(build, start, before):
        return
    if worth:
        _for_each(loop, items, body)
    else:
        _for_each(loop, (items.item(k) for k in builtins.range(1, items.length)), body)


def _for_each(loop: LoopState, iterable: Iterable[Any], body: Callable[[Any], None]) -> None:
    """Trip by trip. Once a traced value has decided whether the loop goes on, each further trip is a branch."""
    for item in iterable:
        stopped = loop.stopped()
        if is_traced(stopped):
            _trip(expressions.not_(stopped), item, loop, body)
        elif stopped:
            return
        else:
            body(item)


def _trip(test: Any, item: Any, loop: LoopState, body: Callable[[Any], None]) -> None:
    trace = current_trace()
    assert trace is not None
    before = loop.every.read()
    objects = Objects((body,), loop.names + loop.scratch)
    start = Attempt(trace)
    count = len(loop.names)

    def branch(run: bool) -> list[Any]:
        loop.every.write([own(value) for value in before])
        try:
            if run:
                with expressions.raising():
                    body(item)
            return loop.every.read()[:count]
        finally:
            objects.look()

    words = Wording("`for`", ("after this trip", "after the loop was left"), lambda name, side: assigned_line(body, name))
    try:
        entries = [e._replace(optional=True) for e in loop.entries]
        values = emit_if(trace, test, [lambda: branch(True), lambda: branch(False)], entries, words)
    finally:
        loop.every.write(before)
    if objects.hidden:
        start.undo()
        loop.add(tuple(objects.hidden))
        _trip(test, item, loop, body)
        return
    loop.state.write(values)


def _rolled(trace: Trace, loop: LoopState, items: Items, body: Callable[[Any], None]) -> None:
    length = items.length
    certain = isinstance(length, int) and length > 0
    if loop.flag is None:
        build = lambda whole: emit_for(trace, whole._replace(most=items.most), 0, length)  # noqa: E731
        loop.emit("`for`", certain, items.checkpoint, build, lambda k: body(items.item(k)))
        return
    # a loop that may be left early is a `while` with a counter
    counter: list[Any] = []
    limit = Literal(length, TensorType(I64)) if isinstance(length, int) else length

    def emit(whole: Loop) -> list[Any]:
        def step(_: Any, values: list[Any]) -> list[Any]:
            counter[:] = values[:1]
            return [values[0] + 1, *whole.step(None, values[1:])]

        def holds(values: list[Any]) -> Any:
            loop.state.write(values[1:])
            inside = ops.less(as_operand(values[0]), limit)
            stopped = loop.stopped()
            return ops.logical_and(expressions.not_(stopped), inside) if is_traced(stopped) else inside

        counted = whole._replace(entries=[Entry("k"), *whole.entries], init=[0, *whole.init], step=step, most=items.most)
        return emit_while(trace, counted, holds)[1:]

    loop.emit("`for`", certain, items.checkpoint, emit, lambda _: body(items.item(counter[0])))
