"""The names that a traced function reads from outside: globals, variables of enclosing functions, attributes, items of dicts.

A trace contains their values as constants. `read_by` lists the names that the traced functions read, with the objects that they were bound
to, so that a later call can detect that one of them is bound to another object. Contents of lists and arrays are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from adjit.ir.operand import Operand
from adjit.ir.records import NamedTuple

from .autograph.libraries import is_library

DEPTH = 3  # of attributes: `self.config.model.width`
LEAVES = (FunctionType, BuiltinFunctionType, type, Operand, int, float, complex, str, bytes, tuple, list, set, frozenset)


class Binding(NamedTuple):
    """A name in a namespace (a dict; None for a cell), and the object that it was bound to when the function was traced."""

    holder: dict[str, Any] | CellType
    name: str | None
    value: Any

    def now(self) -> Any:
        """Return what the name is bound to now; `MISSING` if it is no longer there."""
        if isinstance(self.holder, CellType):
            try:
                return self.holder.cell_contents
            except ValueError:
                return MISSING
        return self.holder.get(self.name, MISSING)  # type: ignore[arg-type]

    @property
    def key(self) -> tuple[int, str | None]:
        return id(self.holder), self.name


MISSING = object()


class NamesUsed(NamedTuple):
    """The names that a code object and the functions in it use."""

    globals: frozenset[str]
    cells: frozenset[str]
    attributes: frozenset[str]
    keys: frozenset[str]  # constant strings, which may be keys of dicts
    stored: frozenset[str]  # names and attributes that it assigns itself


@lru_cache(4096)
def names_in(code: CodeType) -> NamesUsed:
    import dis  # noqa: PLC0415 - only tracing needs it

    read: dict[str, set[str]] = {"GLOBAL": set(), "DEREF": set(), "ATTR": set(), "STORE": set()}
    for at in dis.get_instructions(code):
        kind, _, what = at.opname.partition("_")
        what = {"METHOD": "ATTR", "CLASSDEREF": "DEREF", "SUPER_ATTR": "ATTR"}.get(what, what)
        if kind == "LOAD" and what in read:
            read[what].add(at.argval)
        elif kind in ("STORE", "DELETE") and what in ("GLOBAL", "ATTR", "DEREF"):
            read["STORE"].add(at.argval)
    inner = [names_in(const) for const in code.co_consts if isinstance(const, CodeType)]
    keys = frozenset(const for const in code.co_consts if isinstance(const, str))
    if "attribute" in read["ATTR"]:  # of converted code: attributes are read by name
        read["ATTR"].update(key for key in keys if key.isidentifier())
    own = NamesUsed(frozenset(read["GLOBAL"]), frozenset(read["DEREF"]), frozenset(read["ATTR"]), keys, frozenset(read["STORE"]))
    return NamesUsed(*(frozenset().union(*sets) for sets in zip(own, *inner, strict=True)))


def read_by(functions: Iterable[FunctionType], objects: Sequence[Any]) -> list[Binding]:
    """Return the names that the functions read from outside; `objects` are their arguments, such as `self`."""
    functions = [function for function in functions if (function.__module__ or "").partition(".")[0] != "adjit"]
    used = [names_in(function.__code__) for function in functions]
    stored = frozenset().union(*(names.stored for names in used))
    attributes = frozenset().union(*(names.attributes for names in used)) - stored
    keys = frozenset().union(*(names.keys for names in used))
    found: dict[tuple[int, str | None], Binding] = {}
    modules: list[ModuleType] = []
    for function, names in zip(functions, used, strict=True):
        for name in names.globals - stored:
            value = function.__globals__.get(name, MISSING)
            add(found, Binding(function.__globals__, name, value), modules)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if name in names.cells and name not in stored and not name.endswith("__"):
                add(found, Binding(cell, None, Binding(cell, None, None).now()), modules)
    todo = [(x, 0) for x in (*(binding.value for binding in found.values()), *objects, *modules)]
    seen: set[int] = set()
    while todo:
        x, depth = todo.pop()
        if depth < DEPTH and id(x) not in seen:
            seen.add(id(x))
            for binding in parts(x, attributes, keys):
                add(found, binding, modules)
                todo.append((binding.value, depth + 1))
    given = set(map(id, objects))  # not stored: each call passes these objects, and a reference to `self` would keep it alive
    return [binding for binding in found.values() if id(binding.value) not in given]


def add(found: dict[tuple[int, str | None], Binding], binding: Binding, modules: list[ModuleType]) -> None:
    if isinstance(binding.value, ModuleType):  # importing it again gives the same module
        modules.append(binding.value)
    elif binding.value is not MISSING:
        found.setdefault(binding.key, binding)


def parts(x: Any, attributes: frozenset[str], keys: frozenset[str]) -> Iterator[Binding]:
    """Yield the attributes, or the items of a dict, that the functions may read from an object."""
    if isinstance(x, LEAVES) or x is None:
        return
    held, names = (x, keys) if type(x) is dict else (getattr(x, "__dict__", None), attributes)
    module = x.__name__ if isinstance(x, ModuleType) else type(x).__module__.partition(".")[0]
    if type(held) is not dict or isinstance(x, MethodType) or (is_library(module) if isinstance(x, ModuleType) else module == "adjit"):
        return
    for name in names.intersection(name for name in held if type(name) is str):
        yield Binding(held, name, held[name])
