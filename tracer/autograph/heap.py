"""Everything that a branch or a body can reach: variables, and the objects held by them and by functions that it may call.

A `Heap` records all of this before a statement is traced. Changes made by a branch are found by comparison and undone: both branches, and
every attempt to trace a loop, start from the same state. Changes that the statement itself does not show (`cell.step(x)`, `push(items, x)`,
`add(x)` for a bound method, `np.copyto(a, x)`) are identified, so that they can be carried like variables, or rejected.

Libraries are not searched, and at most `LIMIT` objects are visited.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from gc import get_referents
from types import BuiltinMethodType, CodeType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import numpy as np

from adjit.ir.operand import Operand
from adjit.ir.records import NamedTuple

from ..contents import ArrayContents
from ..growing import TracedList
from ..regions import UNDEFINED, kind_of
from .expression_rewriter import AG
from .libraries import in_site_packages, is_library
from .places import Assignable, Attribute, CellVariable, Contents, Global, not_followed, put_back

LIMIT = 2000  # objects: limits the cost of tracing a statement
OPEN = frozenset({"types", "argparse"})  # standard library modules whose objects are plain attribute containers
ATOMS = (bool, int, float, complex, str, bytes, type(None), type(...), range, slice, ModuleType, np.generic, np.dtype, Operand)


class Named(NamedTuple):
    """A place whose value the branch may change, and how the user would write it."""

    path: str
    place: Assignable


class MutableObject:
    """A mutable object. `holders` are the places that refer to it; it is `fixed` if it is also referred to from elsewhere."""

    def __init__(self, path: str, value: Any) -> None:
        self.path = path
        self.value = value
        self.holders: list[Named] = []
        self.fixed = False
        self.before = self.contents()

    def contents(self) -> Any:
        value = self.value
        if isinstance(value, np.ndarray):
            return ArrayContents.of(value)
        if isinstance(value, dict):
            return dict(value)
        if isinstance(value, TracedList):
            value.sealed = len(value.chunks)  # keeps items that a branch appends separate from existing ones
        return value.copy() if isinstance(value, set | TracedList) else list(items_of(value))

    def changed(self) -> bool:
        value, before = self.value, self.before
        if isinstance(before, ArrayContents):
            return before.changed()
        if isinstance(value, TracedList):
            return not value.same(before)
        if len(value) != len(before):
            return True
        if isinstance(value, dict):
            return any(k is not m or v is not w for (k, v), (m, w) in zip(value.items(), before.items(), strict=True))
        if isinstance(value, set):
            return bool(value != before)
        return any(a is not b for a, b in zip(items_of(value), before, strict=True))

    def restore(self) -> None:
        if isinstance(self.before, ArrayContents):
            self.before.restore()
        else:
            put_back(self.value, self.before.copy())

    def places(self) -> list[Named]:
        """Return the places that must be carried in order to track a change of this object."""
        if not self.fixed and not isinstance(self.value, bytearray):
            return self.holders
        if isinstance(self.value, set | np.ndarray | TracedList | bytearray) or self.path == "globals()":
            raise not_followed(self.path, self.value)
        return [Named(self.path, Contents(self.value, self.path))]


class Position:
    """The position of an iterator."""

    fixed = True

    def __init__(self, path: str, value: Any) -> None:
        self.path = path
        self.value = value
        self.before = self.contents()

    def contents(self) -> Any:
        if isinstance(self.value, GeneratorType):
            frame = self.value.gi_frame
            return None if frame is None else (frame.f_lasti, [id(x) for x in frame.f_locals.values()])
        hint = getattr(self.value, "__length_hint__", None)
        return repr(self.value) if hint is None else hint()

    def changed(self) -> bool:
        return bool(self.contents() != self.before)

    def restore(self) -> None:
        """Do nothing: an iterator cannot be rewound, and the code that detects this raises."""

    def places(self) -> list[Named]:
        raise not_followed(self.path, self.value)


class Bindings:
    """Names and their bindings: attributes of an object, variables of functions, globals."""

    def __init__(self, named: Sequence[Named]) -> None:
        self.named = named
        self.before = [n.place.read() for n in named]

    def changes(self) -> Iterator[tuple[Named, Any, Any]]:
        for named, before in zip(self.named, self.before, strict=True):
            now = named.place.read()
            if now is not before:
                yield named, before, now


class Heap:
    """The current state of everything that some functions can reach."""

    def __init__(self, functions: Iterable[Callable[..., Any]], always: Iterable[Any] = ()) -> None:
        self.tracked: dict[int, MutableObject | Position] = {}
        self.objects: list[tuple[str, Any, set[str]]] = []  # instances of users' classes, with their attribute names
        self.bindings: list[Bindings] = []
        self.seen: dict[Any, Any] = {}  # by id; the objects are kept alive, so that ids stay unique
        self.todo: deque[tuple[str, Any, Named | None]] = deque()
        for value in always:
            self.walk_structure(value)
        for function in functions:
            self.function("", function)
        self.walk()

    # ---- search

    def walk_structure(self, value: Any) -> None:
        """Visit the containers nested in a value that is always tracked: all of them, without limit."""
        if isinstance(value, ATOMS) or value is UNDEFINED or id(value) in self.tracked:
            return
        if isinstance(value, np.ndarray | set | TracedList | list | dict | deque):
            self.tracked[id(value)] = MutableObject("", value)
        if isinstance(value, list | tuple | dict | deque):
            for inner in items_of(value):
                self.walk_structure(inner)

    def walk(self) -> None:
        while self.todo and len(self.seen) < LIMIT:
            path, value, holder = self.todo.popleft()
            if isinstance(value, ATOMS) or value is UNDEFINED:
                continue
            if id(value) not in self.seen:
                self.seen[id(value)] = value
                self.visit(path, value)
            self.hold(id(value), path, holder)

    def hold(self, key: int, path: str, holder: Named | None) -> None:
        obj = self.tracked.get(key)
        if isinstance(obj, MutableObject):
            obj.path = obj.path or path
            if holder is None:
                obj.fixed = True
            elif all(holder.place.key != known.place.key for known in obj.holders):
                obj.holders.append(holder)

    def visit(self, path: str, value: Any) -> None:
        match value:
            case FunctionType():
                if not is_library(value.__module__) and not in_site_packages(value.__code__):
                    self.function(path, value)
                    self.attributes(path, value)
            case MethodType():
                self.inside(path, [("__self__", value.__self__), ("", value.__func__)])
            case BuiltinMethodType():
                self.inside(path, [("__self__", value.__self__)])
            case partial():
                self.inside(path, [("", x) for x in (value.func, *value.args, *value.keywords.values())])
            case tuple():
                self.inside(path, ((f"[{i}]", x) for i, x in enumerate(value)))
            case TracedList() | set() | np.ndarray() | list() | deque() | dict() | bytearray():
                if id(value) not in self.tracked:
                    self.tracked[id(value)] = MutableObject(path, value)
                if isinstance(value, dict):
                    self.inside(path, ((f"[{k!r}]" if isinstance(k, str | int) else "[...]", x) for k, x in value.items()))
                elif isinstance(value, list | deque):
                    self.inside(path, ((f"[{i}]", x) for i, x in enumerate(items_of(value))))
            case _ if hasattr(type(value), "__next__") and is_library(type(value).__module__):
                self.tracked[id(value)] = Position(path, value)
                self.inside(path, (("", x) for x in get_referents(value)))  # what `zip`, `map` and generators iterate over
            case _:
                self.instance(path, value)

    def inside(self, path: str, parts: Iterable[tuple[str, Any]]) -> None:
        for step, value in parts:
            if not isinstance(value, ATOMS):
                joint = "." if step and step[0] not in ".[" else ""
                self.todo.append((f"{path}{joint}{step}", value, None))

    def instance(self, path: str, value: Any) -> None:
        """Visit a user's object or class, and its attributes."""
        owner = value if isinstance(value, type) else type(value)
        module = owner.__module__
        if is_library(module) and module not in OPEN:
            return
        self.attributes(path, value)
        for cls in value.__bases__ if isinstance(value, type) else (type(value),):
            self.todo.append((cls.__name__, cls, None))

    def attributes(self, path: str, value: Any) -> None:
        names = attribute_names(value)
        self.objects.append((path, value, set(names)))
        self.bind([Named(f"{path}.{name}" if path else name, Attribute(value, name)) for name in names])

    def function(self, path: str, function: Callable[..., Any]) -> None:
        assert isinstance(function, FunctionType)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        named = [Named(name, CellVariable(cell)) for name, cell in cells if name != AG and id(cell) not in self.seen]
        self.seen.update((id(cell), cell) for cell in function.__closure__ or ())
        namespace = function.__globals__
        names = [name for name in global_names(function.__code__) if (id(namespace), name) not in self.seen]
        for name in names:
            self.seen[id(namespace), name] = None
        self.bind([*named, *(Named(name, Global(namespace, name)) for name in names)])
        if "globals" in names and id(namespace) not in self.tracked:  # may be written to under any name
            self.tracked[id(namespace)] = MutableObject("globals()", namespace)
            self.tracked[id(namespace)].fixed = True
        self.inside(path, (("", x) for x in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())))

    def bind(self, named: Sequence[Named]) -> None:
        bindings = Bindings(named)
        self.bindings.append(bindings)
        for name, value in zip(named, bindings.before, strict=True):
            if not isinstance(value, ATOMS):
                self.todo.append((name.path, value, name))

    # ---- comparison

    def changed(self) -> list[MutableObject | Position]:
        return [obj for obj in self.tracked.values() if obj.changed()]

    def restore(self) -> None:
        """Undo all changes; raise an error if one cannot be undone."""
        for obj in self.changed():
            if isinstance(obj, Position):
                raise not_followed(obj.path, obj.value)
            obj.restore()
        self.rebound(set())

    def rebound(self, known: set[Any]) -> list[Named]:
        """Return the names outside `known` that were rebound, after restoring their previous bindings."""
        out: list[Named] = []
        for path, value, names in self.objects:
            for name in set(attribute_names(value)) - names:
                place = Attribute(value, name)
                if place.key in known or is_made(place.read()):
                    continue
                out.append(Named(f"{path}.{name}", place))
                place.write(UNDEFINED)
        for bindings in self.bindings:
            for named, before, now in bindings.changes():
                if named.place.key in known or ((before is None or before is False) and is_made(now)):
                    continue
                out.append(named)
                named.place.write(before)
        return out


def is_made(value: Any) -> bool:
    """Whether this is an object created once, at the first call, such as a layer: later calls find it, whichever branch created it."""
    if kind_of(value) is not None and not isinstance(value, Operand):
        return False
    return not isinstance(value, str | list | dict | set | tuple | np.ndarray | TracedList) and not is_plain_operand(value)


def is_plain_operand(value: Any) -> bool:
    """Whether this is a number or an array; a variable counts as an object."""
    return isinstance(value, Operand) and not hasattr(value, "store")


def items_of(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return list.__iter__(value) if isinstance(value, list) else iter(value)


def attribute_names(value: Any) -> list[str]:
    """Return the attributes set by users, without those declared by a library class, such as `built` of a layer."""
    if isinstance(value, type):
        return [n for n, x in vars(value).items() if not n.startswith("__") and not callable(x) and not hasattr(type(x), "__get__")]
    names = [*vars(value)] if hasattr(value, "__dict__") else []
    bases = [cls for cls in type(value).__mro__ if cls is not object and is_library(cls.__module__) and cls.__module__ not in OPEN]
    declared = {name for cls in bases for name in getattr(cls, "__annotations__", ())}
    names = [name for name in names if name not in declared] if declared else names
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            mangled = f"_{cls.__name__.lstrip('_')}{slot}" if slot.startswith("__") and not slot.endswith("__") else slot
            if slot not in ("__dict__", "__weakref__") and hasattr(value, mangled):
                names.append(mangled)
    return names


_globals: dict[int, tuple[CodeType, list[str]]] = {}


def global_names(code: CodeType) -> list[str]:
    """Return the names that code, or functions in it, may look up in its module. Attribute names are included, which is harmless."""
    known = _globals.get(id(code))
    if known is None:
        if len(_globals) > LIMIT:
            _globals.clear()
        names = list(code.co_names)
        for inner in code.co_consts:
            if isinstance(inner, CodeType):
                names += global_names(inner)
        known = _globals[id(code)] = (code, list(dict.fromkeys(names)))
    return known[1]
