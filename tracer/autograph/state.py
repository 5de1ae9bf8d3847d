"""The state of a rewritten statement: the places whose values it may change, and copies of those values."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any, TypeAlias

import numpy as np

from adjit.ir.errors import TraceError
from adjit.ir.location import Location

from ..contents import same_bits
from ..frames import location_in, user_location
from ..growing import GrowingList, TracedList
from ..pytree import find_node_type
from ..regions import UNDEFINED, RegionOutput
from ..sharing import double
from ..trace import current_trace
from .heap import Heap, MutableObject, Named, Position, items_of
from .places import Assignable, Attribute, CellVariable, Global, not_followed, put_back
from .rewrite import RESULT

Names: TypeAlias = tuple[str, ...]


class State:
    """Places of the user's program whose values a statement may change: variables, globals, attributes of objects.

    `more` are places that do not appear in the statement, found by tracing it once.
    """

    def __init__(self, functions: Sequence[Callable[..., Any]], names: Names, more: Sequence[Named] = ()) -> None:
        cells: dict[str, CellType] = {}
        for function in functions:
            assert isinstance(function, FunctionType)
            cells.update(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        self.places: list[Assignable] = []
        for name in names:
            root, *path = name.split(".")
            place: Assignable = CellVariable(cells[root]) if root in cells else Global(function.__globals__, root)
            self.places.append(attribute(place.read(), path) if path else place)
        self.places += [named.place for named in more]

    def read(self) -> list[Any]:
        return [place.read() for place in self.places]

    def write(self, values: Iterable[Any]) -> None:
        for place, value in zip(self.places, values, strict=True):
            place.write(value)

    @property
    def keys(self) -> set[Any]:
        return {place.key for place in self.places}


def held_in(functions: Sequence[Callable[..., Any]], names: Names) -> list[Named]:
    """Return those of some variables that hold a mutable object."""
    places = State(functions, names).places
    return [Named(name, place) for name, place in zip(names, places, strict=True) if containers(place.read())]


def attribute(root: Any, path: Sequence[str]) -> Attribute:
    for name in path[:-1]:
        root = getattr(root, name, UNDEFINED)
    return Attribute(root, path[-1])


class Snapshot:
    """A copy of the current state and of everything that a statement's functions reach, which can be restored."""

    def __init__(self, state: State, functions: Sequence[Callable[..., Any]]) -> None:
        self.state = state
        self.values = state.read()
        self.heap = Heap(functions, self.values)

    def restore(self) -> None:
        self.heap.restore()
        self.state.write(self.values)

    @property
    def reversible(self) -> bool:
        """Whether everything that the functions reach can be restored: iterators cannot."""
        return not any(isinstance(obj, Position) for obj in self.heap.tracked.values())


class Watch:
    """Detects, records and undoes the changes that a branch or an iteration makes to existing objects.

    Changes of `state` are visible in the statement; the others are `hidden`. The changed objects, `dirty`, are copied into the result of
    the branch before they are restored.
    """

    def __init__(self, functions: Sequence[Callable[..., Any]], state: State, every: State, in_place: bool) -> None:
        """`every` are the places whose values the statement may change, `state` those whose values are read later."""
        self.state = state
        self.values = state.read()
        self.heap = Heap(functions, self.values)
        self.known = every.keys
        # in a loop the variables hold other objects than before: a change of the old ones must come from another reference
        self.covered = {id(x) for value in self.values for x in containers(value)} if in_place else set()
        self.hidden: list[Named] = []
        self.dirty: dict[int, MutableObject | Position] = {}

    def look(self) -> Copies:
        """Record the changes since the last call and undo them; return copies with the changed contents."""
        changed = self.heap.changed()
        copies = Copies({id(obj.value) for obj in changed})
        copies.take(self.state.read())
        for obj in changed:
            self.dirty[id(obj.value)] = obj
        found = [named for obj in changed for named in self.uncovered(obj)]
        for obj in changed:
            obj.restore()
        self.note(found + self.heap.rebound(self.known))
        return copies

    def uncovered(self, obj: MutableObject | Position) -> list[Named]:
        if id(obj.value) in self.covered and isinstance(obj, MutableObject):
            return [holder for holder in obj.holders if holder.place.key not in self.known]
        return [named for named in obj.places() if named.place.key not in self.known]

    def note(self, found: Iterable[Named]) -> None:
        keys = {named.place.key for named in self.hidden}
        for named in found:
            if named.place.key not in keys:
                keys.add(named.place.key)
                self.hidden.append(named)

    def settled(self, before: Any, value: Any) -> None:
        """Raise an error if a new object replaces one that others refer to, since they would not see it."""
        obj = self.heap.tracked.get(id(before))
        if value is not before and isinstance(obj, MutableObject) and obj.fixed and id(before) in self.dirty:
            raise not_followed(obj.path, before)


class Copies:
    """Copies of structures that contain one of the objects with these ids; each object is copied once, so that sharing is preserved."""

    def __init__(self, dirty: set[int]) -> None:
        self.dirty = dirty
        self.made: dict[int, tuple[Any, Any]] = {}  # id of an object -> the object and its copy
        self.origins: dict[int, Any] = {}  # id of a copy -> its original
        self.values: list[Any] = []

    def take(self, values: Iterable[Any]) -> None:
        self.values = [self.copy(value) for value in values] if self.dirty else list(values)

    def copy(self, value: Any) -> Any:
        return self.copied(value) if any(id(x) in self.dirty for x in containers(value)) else value

    def copied(self, value: Any) -> Any:
        known = self.made.get(id(value))
        if known is not None:
            return known[1]
        out = own(value, self.copied)
        if out is not value:
            self.made[id(value)] = (value, out)
            self.origins[id(out)] = value
        return out

    def origin(self, value: Any) -> Any:
        return self.origins.get(id(value), value)


def containers(value: Any) -> list[Any]:
    """Return the mutable objects in a structure."""
    out: list[Any] = []
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, np.ndarray | set | TracedList):
            out.append(item)
        elif isinstance(item, list | dict | deque):
            out.append(item)
            todo += item.values() if isinstance(item, dict) else list.__iter__(item) if isinstance(item, list) else item
        elif isinstance(item, tuple):
            todo += item
    return out


def own(value: Any, inner: Callable[[Any], Any] | None = None) -> Any:
    """Return a copy that a branch or a body may change in place without side effects; `inner` copies its parts."""
    inner = inner or own
    if isinstance(value, np.ndarray):
        return double(value)
    if isinstance(value, set | TracedList):
        return value.copy()
    if isinstance(value, GrowingList):
        return GrowingList(map(inner, list.__iter__(value)))
    if isinstance(value, deque):
        return deque(map(inner, value), value.maxlen)
    if not isinstance(value, list | dict | tuple):
        return value
    kind = find_node_type(type(value))
    if kind is None:
        return value
    parts, kept = kind.flatten(value)
    return kind.unflatten(type(value), kept, [inner(part) for part in parts])


def keep_identity(before: Any, left: Sequence[Any], origin: Callable[[Any], Any], value: Any) -> Any:
    """Keep the identity of a list, dict or array that was changed, not replaced, and of those nested in it: others may refer to them."""
    kinds = (list, dict, TracedList, np.ndarray)
    if type(before) not in kinds or type(value) is not type(before) or any(origin(x) is not before for x in left) or value is before:
        return value
    if isinstance(before, np.ndarray):
        if not same_bits(before, value):
            before[...] = value
            if (trace := current_trace()) is not None:
                trace.overwritten.wrote(before)
        return before
    if isinstance(before, TracedList):
        before.become(value)
        return before
    keys = range(len(before)) if isinstance(before, list) else list(before)
    for key in keys:
        if all(key in x if isinstance(x, dict) else key < len(x) for x in (value, *left)):
            value[key] = keep_identity(before[key], [x[key] for x in left], origin, value[key])
    put_back(before, value)
    return before


def paired(copy: Any, original: Any, out: dict[int, Any]) -> dict[int, Any]:
    """Map the id of each container in a copy of a structure to its original, where their structures match."""
    kinds = (list, dict, tuple, TracedList, np.ndarray)
    if isinstance(original, kinds) and isinstance(copy, kinds):
        out[id(copy)] = original
        for _, inner, was in common(copy, original):
            paired(inner, was, out)
    return out


def common(copy: Any, original: Any) -> Iterable[tuple[Any, Any, Any]]:
    """The indices or keys of two structures, with the items of both."""
    if isinstance(copy, dict) and isinstance(original, dict):
        return [(key, copy[key], original[key]) for key in copy.keys() & original.keys()]
    sequences = (list, tuple, deque)
    if isinstance(copy, sequences) and isinstance(original, sequences):
        return list(zip(range(len(copy)), items_of(copy), items_of(original), strict=False))
    return []


def check_arguments(arguments: Names, names: Names, before: Sequence[Any], after: Sequence[Any]) -> None:
    """Raise an error if an argument list grew: the new list is another object, and the caller still has the old one."""
    for name, old, new in zip(names, before, after):
        if name in arguments and isinstance(old, list) and isinstance(new, TracedList):
            raise TraceError(
                f"`{name}.append(...)` in a traced statement would change an argument, which the caller does not see; copy it first, "
                f"{name} = list({name}), and return it"
            ).at(user_location())


def entry(name: str, fresh: bool = False, optional: bool = False, inner: bool = False) -> RegionOutput:
    if name.startswith(f"{RESULT}__"):
        return RegionOutput("what the function returns", name, optional=True, fresh=fresh)
    return RegionOutput(name, name, optional, fresh, inner)


def assigned_line(function: Callable[..., Any], name: str) -> Location | None:
    """Return the last line of a branch or a body that assigns a variable; if it is only changed in place, the last that reads it."""
    assert isinstance(function, FunctionType)
    last = name.rpartition(".")[2]
    return _last_line(function.__code__, "STORE_", last) or _last_line(function.__code__, "LOAD_", last)


def _last_line(code: CodeType, operation: str, name: str) -> Location | None:
    from dis import get_instructions  # noqa: PLC0415 - only errors need it

    kinds = [operation + kind for kind in ("DEREF", "FAST", "GLOBAL", "ATTR")]
    found: Location | None = None
    for instruction in get_instructions(code):
        if instruction.opname in kinds and instruction.argval == name:
            found = location_in(code, instruction.offset)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found = _last_line(inner, operation, name) or found
    return found
