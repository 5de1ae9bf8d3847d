"""How rewritten branches and loops are traced: on the user's own variables and objects, which are restored after each attempt."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..branches import emit_if
from ..contents import ArrayContents
from ..frames import is_from_outside, user_location
from ..growing import TracedList
from ..loops import LoopTrace
from ..pytree import flatten
from ..regions import UNDEFINED, Attempt, RegionOutput, Wording
from ..sharing import doubles
from ..trace import LoopRules, Trace, current_trace
from . import expressions
from .heap import MutableObject, Named
from .places import not_followed
from .state import (
    Copies,
    Names,
    Snapshot,
    State,
    Watch,
    assigned_line,
    check_arguments,
    common,
    containers,
    entry,
    held_in,
    keep_identity,
    own,
    paired,
)  # fmt: skip


class TracedBranches:
    """Two branches chosen by a traced value: each is traced on the current variables and objects, which are then restored."""

    def __init__(
        self, branches: Sequence[Callable[[], None]], names: Names, scratch: Names, more: Sequence[Named],
        functions: Sequence[Callable[..., Any]] = (),
    ) -> None:  # fmt: skip
        functions = functions or branches
        self.branches = branches
        self.state = State(functions, names + scratch, more)
        self.before = self.state.read()
        self.watch = Watch(functions, self.state, self.state, in_place=True)
        unread = range(len(names), len(names) + len(scratch))
        self.read = [i for i in range(len(self.before)) if i not in unread]
        self.left: list[Copies] = []

    def emit(
        self, trace: Trace, test: Any, entries: Sequence[RegionOutput], words: Wording, loose: tuple[bool, bool] = (False, False)
    ) -> list[Any]:
        self.doubles = set(doubles())
        self.trace = trace
        try:
            return emit_if(trace, test, [partial(self.branch, f) for f in self.branches], entries, words, loose)
        finally:
            self.state.write(self.before)

    def branch(self, function: Callable[[], None]) -> list[Any]:
        self.state.write(self.before)
        try:
            with expressions.raising():
                function()
        except BaseException:
            self.watch.heap.restore()
            raise
        self.left.append(self.watch.look())
        values = self.left[-1].values
        for i in self.read:
            values[i] = as_value(values[i], self.before[i])
        return [values[i] for i in self.read]

    def finish(self, values: Sequence[Any]) -> None:
        """Set the variables and objects to their values after the statement."""
        out = list(self.before)
        origins = {key: x for copies in self.left for key, x in copies.origins.items()}
        for i, value in zip(self.read, values, strict=True):
            sides = [copies.values[i] for copies in self.left]
            out[i] = keep_identity(self.before[i], sides, lambda x: origins.get(id(x), x), value)
            self.watch.settled(self.before[i], out[i])
        for obj in self.watch.dirty.values():
            if isinstance(obj, MutableObject) and isinstance(obj.before, ArrayContents) and not obj.changed():
                # the changed array is a new one, which only these variables have
                self.trace.overwritten.outdate(obj.value, [x for value in out for x in flatten(value)[0]], user_location())
        held = {id(x) for value in out for x in containers(value)}
        for key in doubles().keys() - self.doubles - held:
            del doubles()[key]  # the arrays themselves are still in their places
        self.state.write(out)


class LoopState:
    """The variables of a loop: `carried` between iterations, `fresh` (assigned in each before use), `scratch` (not read afterwards).

    `inner` are those carried ones that nothing reads after the loop.
    """

    def __init__(
        self, body: Callable[..., None], carried: Names, fresh: Names, scratch: Names, stop: str | None, arguments: Names, optional: Names,
        aliases: Names, inner: Names,
    ) -> None:  # fmt: skip
        self.body = body
        self.arguments = arguments
        self.optional = optional
        self.scratch = scratch
        self.names = carried + fresh
        self.more: list[Named] = []  # objects that the body changes through other references, and other names for them
        self.apart: set[tuple[int, int]] = set()  # variables that hold one object before the loop, but not after each iteration
        self.entries = [entry(name, fresh=name in fresh, optional=name in optional, inner=name in inner) for name in self.names]
        self.flag = State((body,), (stop,)) if stop else None
        self.add(held_in((body,), aliases) if aliases and current_trace() is not None else [])

    def look(self) -> None:
        self.state = State((self.body,), self.names, self.more)
        self.every = State((self.body,), self.names + self.scratch, self.more)

    def add(self, more: Sequence[Named]) -> None:
        self.more += more
        self.entries += [entry(named.path) for named in more]
        self.look()

    def shared(self, values: Sequence[Any]) -> dict[int, int]:
        """Map each variable to an earlier one that holds the same object, such as a list with two names."""
        first: dict[int, int] = {}
        out: dict[int, int] = {}
        for i, value in enumerate(values):
            if isinstance(value, list | dict | deque | TracedList):
                other = first.setdefault(id(value), i)
                if other != i and (other, i) not in self.apart:
                    out[i] = other
        return out

    def stopped(self) -> Any:
        """Return the flag set by `break` and `return`."""
        return self.flag.read()[0] if self.flag else False

    def checked(self, rules: LoopRules, iterable: Any, body: Callable[[], None]) -> None:
        """Run an iteration while tracing, and check what it leaves in the variables."""
        before = self.state.read()
        body()
        kept = [i for i, e in enumerate(self.entries) if not e.optional]
        after = self.state.read()
        trace = current_trace()
        assert trace is not None
        rules.check(trace, [self.entries[i].name for i in kept], [before[i] for i in kept], [after[i] for i in kept], iterable)

    def words(self, what: str) -> Wording:
        return Wording(what, ("before the loop", "after an iteration"), lambda name, side: assigned_line(self.body, name) if side else None)

    def emit(
        self, what: str, certain: bool, checkpoint: str | int, emit: Callable[[LoopTrace], list[Any]], step: Callable[[Any], None]
    ) -> None:
        """Trace the loop; even after an error, no value from inside it remains in a variable."""
        trace = current_trace()
        assert trace is not None
        mark = Attempt(trace)
        while True:
            trips = TracedLoop(self, step)
            try:
                values = emit(LoopTrace(self.entries, trips.start, trips.trip, self.words(what), certain, checkpoint))
            finally:
                self.every.write(trips.before)
            if not (trips.watch.hidden or trips.parted):
                break
            mark.undo()
            self.apart |= trips.parted
            self.add(trips.watch.hidden)
        check_arguments(self.arguments, self.names, trips.values, values)
        trips.finish(values)

    def attempt(self, build: Callable[[], None], mark: Attempt, before: Snapshot) -> bool:
        """Try to build a loop in place of what was traced since `mark`; return whether it succeeded."""
        mark.undo()
        before.restore()
        expressions.tried.loops += 1
        try:
            build()
        except Exception as error:  # a body that fails here may work iteration by iteration; its own errors will be raised again there
            mark.undo()
            before.restore()
            if is_from_outside(error):
                raise
            return False
        finally:
            expressions.tried.loops -= 1
        return True


class TracedLoop:
    """The tracing of one loop. Its body is traced on values that represent those of any iteration."""

    def __init__(self, loop: LoopState, step: Callable[[Any], None]) -> None:
        self.loop = loop
        self.step = step
        self.before = loop.every.read()
        self.values = loop.state.read()
        self.watch = Watch((loop.body,), loop.state, loop.every, in_place=False)
        self.shared = loop.shared(self.values)
        self.shared_ids = shared_containers([None if i in self.shared else value for i, value in enumerate(self.values)])
        self.parted: set[tuple[int, int]] = set()
        read = [value if e.fresh else as_value(value) for e, value in zip(loop.entries, self.values, strict=True)]
        self.start = [own(value) if isinstance(value, list | dict | deque | TracedList) else value for value in read]
        self.given: list[Any] = []
        self.shared_parts: list[SharedContainers | None] = []
        self.left: list[Any] = []
        self.touched: set[int] = set()  # variables whose objects an iteration changed in place

    def trip(self, k: Any, values: list[Any]) -> list[Any]:
        loop = self.loop
        loop.every.write(self.before)
        # at the start of an iteration nothing has returned and no flag is set, or the loop would have ended
        given = [UNDEFINED if e.optional else own(value) for e, value in zip(loop.entries, values, strict=True)]
        for i, other in self.shared.items():
            given[i] = given[other]
        held = [MutableObject("", x) if isinstance(x, list | dict | deque | TracedList) else None for x in given]
        self.shared_parts = [
            None if i in self.shared else SharedContainers(e.name, x, self.values[i], self.shared_ids)
            for i, (e, x) in enumerate(zip(loop.entries, given, strict=True))
        ]
        loop.state.write(given)
        if loop.flag:
            loop.flag.write([False])
        try:
            self.step(k)
        except BaseException:
            self.watch.heap.restore()
            raise
        for i, found in enumerate(self.shared_parts):
            if found is not None and found.changed():
                raise not_followed(loop.entries[i].name, self.values[i])
        self.touched |= {i for i, obj in enumerate(held) if obj is not None and obj.changed()}
        self.given, self.left = given, list(map(as_value, self.watch.look().values, given))
        return self.passed_on(values)

    def passed_on(self, values: list[Any]) -> list[Any]:
        """Return the values after an iteration. A variable that holds the same list as another is not carried: it gets that list again."""
        out = list(self.left)
        for i, other in self.shared.items():
            if self.left[i] is self.left[other]:
                out[i] = values[i]
                continue
            if self.touched & {i, other}:
                raise not_followed(self.loop.entries[i].name, self.values[i])
            self.parted.add((other, i))
        return out

    def finish(self, values: Sequence[Any]) -> None:
        out = list(values)
        for i, value in enumerate(out):
            if i in self.shared:
                out[i] = out[self.shared[i]]
                continue
            before = self.values[i]
            origins = paired(self.given[i], before, {}) if self.given else {}
            origin = lambda x, known=origins: known.get(id(x), x)  # noqa: E731
            found = self.shared_parts[i] if self.shared_parts else None
            if found is not None:
                value = found.put_back(value, before, self.left[i], origin)
            out[i] = keep_identity(before, self.left[i : i + 1], origin, value)
            if i in self.touched:
                self.check_held(i, out[i])
        self.loop.state.write(out)

    def check_held(self, i: int, value: Any) -> None:
        """Check that nothing else refers to the old list: iterations changed a copy, which the variable holds from now on."""
        obj = self.watch.heap.tracked.get(id(self.values[i]))
        known = self.loop.state.keys
        if isinstance(obj, MutableObject) and (obj.fixed or any(h.place.key not in known for h in obj.holders)):
            raise not_followed(self.loop.entries[i].name, self.values[i])


def shared_containers(values: Sequence[Any]) -> set[int]:
    """Return the ids of containers that occur in several places: an iteration gets a separate copy for each."""
    times = Counter(id(x) for value in values for x in containers(value))
    return {key for key, count in times.items() if count > 1}


class SharedContainers:
    """The containers in an iteration's copy of a variable that occur elsewhere too: a change would have to be seen there.

    Replacing one in a list or dict counts as a change: an array that is written to is replaced by a new one.
    """

    def __init__(self, name: str, copy: Any, original: Any, shared_ids: set[int]) -> None:
        self.name = name
        self.shared_ids = shared_ids
        self.tracked: list[MutableObject] = []
        self.places: list[tuple[Any, Any, Any]] = []  # a list or dict, an index or key, and what is there
        if shared_ids:
            self.find(copy, original)

    def find(self, copy: Any, original: Any) -> None:
        if id(original) in self.shared_ids:
            self.tracked += [MutableObject("", x) for x in containers(copy)]
            return
        for key, inner, was in common(copy, original):
            if id(was) in self.shared_ids:
                self.places.append((copy, key, inner))
            self.find(inner, was)

    def put_back(self, value: Any, original: Any, left: Any, origin: Callable[[Any], Any]) -> Any:
        """Return the result of the loop with the original containers, which it has not changed: others refer to them.

        `left` is the value at the end of an iteration; `origin` returns the original of a copy.
        """
        if origin(left) is not original or not any(id(x) in self.shared_ids for x in containers(original) if x is not original):
            return value
        rows = list(common(value, original))
        if len(rows) != len(original):
            raise not_followed(self.name, original)
        parts = {key: was if id(was) in self.shared_ids else self.put_back(inner, was, left[key], origin) for key, inner, was in rows}
        if isinstance(value, tuple):
            return tuple(parts.values()) if type(value) is tuple else value
        for key, part in parts.items():
            value[key] = part
        return value

    def changed(self) -> bool:
        return any(obj.changed() for obj in self.tracked) or any(at(holder, key) is not item for holder, key, item in self.places)


def as_value(x: Any, before: Any = UNDEFINED) -> Any:
    """What a variable holds after a branch or an iteration, as a value that it can leave: a range of another frontend becomes a tensor."""
    return x if x is before or not hasattr(type(x), "made_tensor") else x.made_tensor()


def at(holder: Any, key: Any) -> Any:
    """The item of a list or dict, or UNDEFINED."""
    try:
        return holder[key]
    except LookupError:
        return UNDEFINED
