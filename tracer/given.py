"""Lists, dicts and dataclasses among the arguments of a traced function: copies of the caller's, so that changes to them would be lost."""

from __future__ import annotations

from collections.abc import Iterator
from operator import is_
from typing import Any

from adjit.ir.errors import TraceError
from adjit.ir.location import Location

from .pytree import flatten


class Given:
    """The structures in (args, kwargs), and their contents before the function ran."""

    def __init__(self, structure: Any) -> None:
        self.parts = [(part, held(part)) for part in parts_of(structure)]

    def changed(self) -> Iterator[Any]:
        for part, before in self.parts:
            now = held(part)
            if len(now) != len(before) or not all(map(is_, now, before)):
                yield part

    def check(self, name: str, result: Any, location: Location | None) -> None:
        """Raise an error if the function has changed a structure that it does not return: its caller would not see it."""
        changed = list(self.changed())
        returned = {id(part) for part in parts_of(result)} if changed else set()
        for part in changed:
            if id(part) not in returned:
                raise TraceError(
                    f"{name} changes a {type(part).__name__} among its arguments, which the caller of a compiled function does not see: "
                    "return it, or change a copy"
                ).at(location)


def parts_of(structure: Any) -> list[Any]:
    found: list[Any] = []

    def visit(x: Any) -> bool:
        if isinstance(x, list | dict) or hasattr(x, "__dataclass_fields__"):
            found.append(x)
        return False

    flatten(structure, visit)
    return found


def held(part: Any) -> list[Any]:
    if isinstance(part, list):
        return list(list.__iter__(part))
    if isinstance(part, dict):
        return [x for pair in part.items() for x in pair]
    return [getattr(part, name, None) for name in part.__dataclass_fields__]
