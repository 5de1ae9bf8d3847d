"""The places of the user's program that rewritten statements read and write: variables, globals, attributes of objects.

Variables are reached through the cells of the functions that stand for branches and bodies: an empty cell is a variable that nothing was
assigned to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from adjit.ir.errors import TraceError
from adjit.ir.location import Location

from ..frames import location_in, user_location
from ..growing import GrowingList, TracedList
from ..pytree import flatten
from ..regions import UNDEFINED, Entry
from ..sharing import double
from .rewrite import RESULT

Names: TypeAlias = tuple[str, ...]


class State:
    """Places of the user's program that a statement may leave with another value: variables, globals, attributes of objects."""

    def __init__(self, functions: Sequence[Callable[..., Any]], names: Names) -> None:
        cells: dict[str, CellType] = {}
        for function in functions:
            assert isinstance(function, FunctionType)
            cells.update(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        self.places: list[Place] = []
        for name in names:
            root, *path = name.split(".")
            place: Place = Variable(cells[root]) if root in cells else Global(function.__globals__, root)
            self.places.append(Attribute(place.read(), path) if path else place)

    def read(self) -> list[Any]:
        return [place.read() for place in self.places]

    def write(self, values: Iterable[Any]) -> None:
        for place, value in zip(self.places, values, strict=True):
            place.write(value)


class Snapshot:
    """A state as it is now, with what its containers and arrays hold."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.values = state.read()
        self.held = [own(value) for value in self.values]

    def restore(self) -> None:
        for value, held in zip(self.values, self.held, strict=True):
            if value is not held:
                put_back(value, own(held))
        self.state.write(self.values)


class Place(Protocol):
    def read(self) -> Any: ...
    def write(self, value: Any) -> None: ...


class Variable(NamedTuple):
    """A variable of the function, in its cell."""

    cell: CellType

    def read(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return UNDEFINED

    def write(self, value: Any) -> None:
        if value is not UNDEFINED:
            self.cell.cell_contents = value
        elif self.read() is not UNDEFINED:
            del self.cell.cell_contents


class Global(NamedTuple):
    namespace: dict[str, Any]
    name: str

    def read(self) -> Any:
        return self.namespace.get(self.name, UNDEFINED)

    def write(self, value: Any) -> None:
        if value is not UNDEFINED:
            self.namespace[self.name] = value
        else:
            self.namespace.pop(self.name, None)


class Attribute:
    """An attribute of an object that is there before the statement. The object itself must not be another one after it."""

    def __init__(self, root: Any, path: Sequence[str]) -> None:
        for name in path[:-1]:
            root = getattr(root, name, UNDEFINED)
        self.object = root
        self.name = path[-1]

    def read(self) -> Any:
        return UNDEFINED if self.object is UNDEFINED or self.is_computed() else getattr(self.object, self.name, UNDEFINED)

    def write(self, value: Any) -> None:
        if self.object is UNDEFINED or self.is_computed() or value is self.read():
            return
        if value is UNDEFINED:
            delattr(self.object, self.name)
        else:
            setattr(self.object, self.name, value)

    def is_computed(self) -> bool:
        """Whether it is a property that nobody can assign: `v.at` in `v.at[i].add(x)` is another object at each reading."""
        found = getattr(type(self.object), self.name, None)
        return isinstance(found, property) and found.fset is None


def own(value: Any) -> Any:
    """A value that a branch or a body may change in place without anybody else seeing it."""
    if isinstance(value, np.ndarray):
        return double(value)
    if type(value) is set:
        return value.copy()
    if isinstance(value, TracedList):
        return value.copy()
    if type(value) not in (list, dict, GrowingList):
        return value
    leaves, tree = flatten(value, is_leaf=lambda x: isinstance(x, TracedList))
    return tree.unflatten([own(leaf) for leaf in leaves])


def put_back(container: Any, contents: Any) -> None:
    """Make a container or an array hold what another of its class holds."""
    if isinstance(container, TracedList):
        container.become(contents)
    elif isinstance(container, list):
        list.clear(container)
        list.extend(container, list.__iter__(contents))
    elif isinstance(container, dict | set):
        container.clear()
        container.update(contents)
    elif container.flags.writeable:
        container[...] = contents


def keep_identity(before: Any, given: Sequence[Any], left: Sequence[Any], value: Any) -> Any:
    """A list or dict that was changed, not replaced, stays the object that it was: others may hold it."""
    if type(before) in (list, dict, TracedList) and type(value) is type(before) and all(a is b for a, b in zip(given, left, strict=True)):
        put_back(before, value)
        return before
    return value


def check_arguments(arguments: Names, names: Names, before: Sequence[Any], after: Sequence[Any]) -> None:
    """A list that a traced statement made grow is another object, which a caller that holds the old one does not see."""
    for name, old, new in zip(names, before, after):
        if name in arguments and isinstance(old, list) and isinstance(new, TracedList):
            raise TraceError(
                f"`{name}.append(...)` in a traced statement would change an argument, which the caller does not see; copy it first, "
                f"{name} = list({name}), and return it"
            ).at(user_location())


def entry(name: str, fresh: bool = False, optional: bool = False) -> Entry:
    if name.startswith(f"{RESULT}__"):
        return Entry("what the function returns", name, optional=True, fresh=fresh)
    return Entry(name, name, optional, fresh)


def assigned_line(function: Callable[..., Any], name: str) -> Location | None:
    """The last line of a branch or a body that assigns a variable; of one that is only changed in place, the last that reads it."""
    assert isinstance(function, FunctionType)
    last = name.rpartition(".")[2]
    return _last_line(function.__code__, "STORE_", last) or _last_line(function.__code__, "LOAD_", last)


def _last_line(code: CodeType, operation: str, name: str) -> Location | None:
    from dis import get_instructions  # noqa: PLC0415 - only errors ask

    kinds = [operation + kind for kind in ("DEREF", "FAST", "GLOBAL", "ATTR")]
    found: Location | None = None
    for instruction in get_instructions(code):
        if instruction.opname in kinds and instruction.argval == name:
            found = location_in(code, instruction.offset)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found = _last_line(inner, operation, name) or found
    return found
