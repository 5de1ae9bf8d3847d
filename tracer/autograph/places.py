"""The places of the user's program that hold a value: variables, globals, attributes of objects, and the contents of containers.

Variables are accessed through the cells of the functions generated for branches and bodies: an empty cell is an unassigned variable.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable
from types import CellType
from typing import Any, Protocol

from adjit.ir.errors import TraceError
from adjit.ir.records import NamedTuple

from ..frames import user_location
from ..growing import TracedList
from ..regions import UNDEFINED
from ..traced import Traced


class Assignable(Protocol):
    @property
    def key(self) -> Hashable: ...
    def read(self) -> Any: ...
    def write(self, value: Any) -> None: ...


class CellVariable(NamedTuple):
    """A variable of the function, in its cell."""

    cell: CellType

    @property
    def key(self) -> Hashable:
        return id(self.cell)

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

    @property
    def key(self) -> Hashable:
        return id(self.namespace), self.name

    def read(self) -> Any:
        return self.namespace.get(self.name, UNDEFINED)

    def write(self, value: Any) -> None:
        if value is not UNDEFINED:
            self.namespace[self.name] = value
        else:
            self.namespace.pop(self.name, None)


class Attribute(NamedTuple):
    """An attribute of an object that exists before the statement, which must not replace the object itself."""

    object: Any
    name: str

    @property
    def key(self) -> Hashable:
        return id(self.object), self.name

    def read(self) -> Any:
        if self.object is UNDEFINED or self.is_computed():
            return UNDEFINED
        if isinstance(self.object, type):  # return the raw attribute, not bound to the class
            return vars(self.object).get(self.name, UNDEFINED)
        return getattr(self.object, self.name, UNDEFINED)

    def write(self, value: Any) -> None:
        if self.object is UNDEFINED or self.is_computed() or value is self.read():
            return
        if value is UNDEFINED:
            delattr(self.object, self.name)
        else:
            setattr(self.object, self.name, value)

    def is_computed(self) -> bool:
        """Whether it is a read-only property: `v.at` in `v.at[i].add(x)` is a new object at each access."""
        found = getattr(type(self.object), self.name, None)
        return isinstance(found, property) and found.fset is None


class Contents(NamedTuple):
    """The contents of a list, dict or deque whose identity must not change, since unknown places refer to it."""

    object: Any
    path: str

    @property
    def key(self) -> Hashable:
        return id(self.object), None

    def read(self) -> Any:
        return dict(self.object) if isinstance(self.object, dict) else list(self.object)

    def write(self, value: Any) -> None:
        if isinstance(value, TracedList | Traced):
            raise not_followed(self.path, self.object)
        put_back(self.object, value)


def put_back(container: Any, contents: Any) -> None:
    """Replace a container's contents by those of another of its class, or of an earlier copy."""
    if isinstance(container, TracedList):
        container.become(contents)
    elif isinstance(container, list):
        list.__setitem__(container, slice(None), list(list.__iter__(contents)))
    elif isinstance(container, dict):
        kind: Any = OrderedDict if isinstance(container, OrderedDict) else dict
        kind.clear(container)
        kind.update(container, contents)
    elif isinstance(container, set):
        container.clear()
        container.update(contents)
    elif isinstance(container, deque):
        container.clear()
        container.extend(contents)
    elif isinstance(container, bytearray):
        container[:] = bytes(contents)
    elif container.flags.writeable:
        container[...] = contents


def not_followed(path: str, value: Any) -> TraceError:
    """Return the error for a change that the compiled function cannot reproduce."""
    return TraceError(
        f"{described(path)} ({type(value).__name__}) changes in a traced branch or loop, in a way that a compiled function cannot "
        "follow: whether and how often this happens is known only when the function runs; change a variable of the function instead, or "
        "return the new value"
    ).at(user_location())


def described(path: str) -> str:
    return f"`{path}`" if path else "an object"
