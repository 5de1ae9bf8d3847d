"""Functions called by rewritten code, for statements. Everything that such code accesses as `ag__` is here or in `expressions`.

Whether a statement is traced or runs as plain Python depends on the value when it runs.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import TraceError
from adjit.ir.operand import Operand, as_index, as_operand
from adjit.ir.sizes import is_symbolic

from ..frames import user_location
from ..loops import LoopTrace, emit_for, emit_while
from ..regions import Attempt, RegionOutput, Wording, is_traced
from ..trace import Trace, current_trace
from . import expressions
from .array_writes import write_array, write_out  # noqa: F401 - part of `ag__`
from .expressions import *  # noqa: F403 - `ag__` is one name
from .items import Items, Stream, as_items
from .managers import not_suppressing  # noqa: F401 - part of `ag__`
from .special import attribute, binary, compared, entered, iterated, unary  # noqa: F401 - part of `ag__`
from .state import Names, Snapshot, assigned_line, check_arguments, entry, held_in
from .statements import LoopState, TracedBranches
from .updates import *  # noqa: F403 - `ag__` is one name

UNROLL = 64  # iterations: with more, a loop is tried first
STATEMENTS = 2048  # in all iterations of an unrolled loop: with more, a loop is tried as well

slice = builtins.slice


# ---- if


def if_stmt(
    test: Any, then: Callable[[], None], other: Callable[[], None], names: Names = (), scratch: Names = (), *, returns: str = "",
    arguments: Names = (), optional: Names = (), aliases: Names = (),
) -> None:  # fmt: skip
    """`names` are read after the statement, `scratch` are not; `returns` is the branch that leaves the function, if one does.

    `arguments` are lists passed by the caller that the statement appends to. `optional` are names that are read only where they were
    assigned. `aliases` are names that may hold an object that the statement changes in place.
    """
    if test is not True and test is not False:
        test = expressions.truth(test)
    trace = current_trace() if is_traced(test) else None
    if trace is None:
        then() if test else other()
        return
    more = held_in((then,), aliases)
    start = Attempt(trace)
    loose = (returns == "then", returns == "else")
    while True:
        choice = TracedBranches((then, other), names, scratch, more)
        words = Wording("`if`", ("in the `if` branch", "in the `else` branch"), lambda name, side: assigned_line((then, other)[side], name))
        entries = [entry(name, optional=name in optional) for name in names] + [entry(named.path) for named in more]
        values = choice.emit(trace, test, entries, words, loose)
        if not choice.watch.hidden:
            break
        start.undo()
        more += choice.watch.hidden
    check_arguments(arguments, names, choice.before, values)
    choice.finish(values)


# ---- loops


def while_stmt(
    test: Callable[[], Any], body: Callable[[], None], carried: Names = (), fresh: Names = (), scratch: Names = (), *,
    stop: str | None = None, roll: bool = True, arguments: Names = (), optional: Names = (), aliases: Names = (), inner: Names = (),
) -> None:  # fmt: skip
    loop = LoopState(body, carried, fresh, scratch, stop, arguments, optional, aliases, inner)

    by_tensor = False  # whether the condition is an array, known or not, rather than a Python value

    def go_on() -> Any:
        nonlocal by_tensor
        stopped = loop.stopped()
        if stopped is not False:
            return expressions.truth(expressions.and_(expressions.not_(stopped), test))
        holds = test()
        by_tensor = isinstance(holds, Operand)
        return expressions.truth(holds)

    trace = current_trace()
    if trace is None:
        while go_on():
            body()
        return
    plain, rules = body, trace.root().loop_rules
    if rules is not None:
        body = lambda: loop.checked(rules, None, plain) if by_tensor else plain()  # noqa: E731

    def build(certain: bool) -> None:
        def holds(values: list[Any]) -> Any:
            loop.state.write(values)
            with expressions.pure((test,)):
                return go_on()

        loop.emit("`while`", certain, "none", lambda whole: emit_while(trace, whole, holds), lambda _: plain())

    start, first = Attempt(trace), Snapshot(loop.every, (body, test))
    roll = roll and first.reversible
    trips = 0
    while True:
        tested, before = Attempt(trace), loop.every.read()
        holds = go_on()
        if is_traced(holds):
            tested.undo()
            loop.every.write(before)
            # the previous iteration certainly runs, since its condition was known while tracing: the loop may start there
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
            trips, roll = 0, False  # start again, iteration by iteration
            continue
        body()
        trips += 1


def for_stmt(
    iterable: Any, body: Callable[[Any], None], carried: Names = (), fresh: Names = (), scratch: Names = (), *,
    stop: str | None = None, roll: bool = True, arguments: Names = (), optional: Names = (), aliases: Names = (), inner: Names = (),
    held: bool = False,
) -> None:  # fmt: skip
    trace, iterable = current_trace(), iterated(iterable)
    loop = LoopState(body, carried, fresh, scratch, stop, arguments, optional, aliases, inner)
    plain, rules = body, None if trace is None else trace.root().loop_rules
    if rules is not None and rules.controls(iterable):
        body = lambda item: loop.checked(rules, iterable, partial(plain, item))  # noqa: E731
    shared = held and isinstance(iterable, Stream)  # others may continue with it, after a `break`
    items = None if shared else as_items(iterable, trace is not None)
    if items is None or trace is None:
        _for_each(loop, iterable, body, held and isinstance(iterable, Iterator))
        return
    if not isinstance(items.length, int) or is_symbolic(items.length):
        _rolled(trace, loop, items, plain)
        return
    if items.length == 0:
        return
    if items.rolled:
        _rolled(trace, loop, items, plain)
        return
    if not roll or items.length == 1:
        _for_each(loop, items, body)
        return
    start, before = Attempt(trace), Snapshot(loop.every, (body,))
    if not before.reversible:
        _for_each(loop, items, body)
        return
    build = lambda: _rolled(trace, loop, items, plain)  # noqa: E731 - one name for what is tried twice
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


def _for_each(loop: LoopState, iterable: Iterable[Any], body: Callable[[Any], None], held: bool = False) -> None:
    """Run the loop iteration by iteration. Once a traced value has decided whether the loop continues, each further iteration is a branch.

    `held` marks an iterator that others may continue with.
    """
    if loop.stopped() is True:
        return
    for item in iterable:
        stopped = loop.stopped()
        if is_traced(stopped):
            _trip(expressions.not_(stopped), item, loop, body)
        else:
            body(item)
        if held and is_traced(loop.stopped()):
            raise TraceError(
                "a traced value ends this loop over an iterator, so that the iterator's position is only known when the function runs; "
                "loop over a list instead"
            ).at(user_location())
        if loop.stopped() is True:
            return  # before the next item is taken: an iterator keeps its position


def _trip(test: Any, item: Any, loop: LoopState, body: Callable[[Any], None]) -> None:
    trace = current_trace()
    assert trace is not None
    start = Attempt(trace)
    words = Wording("`for`", ("after this iteration", "after the loop was left"), lambda name, side: assigned_line(body, name))
    while True:
        choice = TracedBranches((partial(body, item), nothing), loop.names, loop.scratch, loop.more, (body,))
        values = choice.emit(trace, test, [e._replace(optional=True) for e in loop.entries], words)
        if not choice.watch.hidden:
            break
        start.undo()
        loop.add(choice.watch.hidden)
    choice.finish(values)


def nothing() -> None:
    """A branch without statements."""


def _rolled(trace: Trace, loop: LoopState, items: Items, body: Callable[[Any], None]) -> None:
    length = items.length
    certain = isinstance(length, int) and length > 0
    if loop.flag is None:
        build = lambda whole: emit_for(trace, whole._replace(most=items.most), 0, length)  # noqa: E731
        loop.emit("`for`", certain, items.checkpoint, build, lambda k: body(items.item(k)))
        return
    # a loop that may be left early is a `while` with a counter
    counter: list[Any] = []
    limit = as_index(length)

    def emit(whole: LoopTrace) -> list[Any]:
        def step(_: Any, values: list[Any]) -> list[Any]:
            counter[:] = values[:1]
            return [values[0] + 1, *whole.step(None, values[1:])]

        def holds(values: list[Any]) -> Any:
            loop.state.write(values[1:])
            inside = ops.less(as_operand(values[0]), limit)
            stopped = loop.stopped()
            return ops.logical_and(expressions.not_(stopped), inside) if is_traced(stopped) else inside

        counted = whole._replace(entries=[RegionOutput("k"), *whole.entries], init=[0, *whole.init], step=step, most=items.most)
        return emit_while(trace, counted, holds)[1:]

    loop.emit("`for`", certain, items.checkpoint, emit, lambda _: body(items.item(counter[0])))
