"""What a branch or a body changes through functions it calls, which the statement itself does not show: `cell.step(x)`, `push(items, x)`.

Found by looking at the objects before and after: lists and objects of users' classes that its variables hold, and those that their
attributes hold. Numbers and arrays only: anything else that a method leaves behind is its own business, such as a layer that is built on
its first call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from ..growing import Items, TracedList
from ..pytree import flatten
from ..regions import kind_of
from .convert import is_library

DEPTH = 3  # attributes of attributes are followed that far


class Held(NamedTuple):
    path: str
    attributes: dict[str, Any]  # of the object itself
    before: dict[str, Any]


class HeldList(NamedTuple):
    path: str
    items: Items  # the list itself
    before: Items

    def restored(self) -> bool:
        """Put back what numbers and arrays were added; whether there were any."""
        if isinstance(self.items, TracedList):
            assert isinstance(self.before, TracedList)
            changed = not self.items.same(self.before)
            self.items.become(self.before)
            return changed
        more = self.items[len(self.before) :]
        if not more or any(kind_of(leaf) is None for leaf in flatten(more)[0]):
            return False
        self.items[:] = self.before
        return True


class Objects:
    """The objects that some functions reach through their cells, as they are now. `known` are the names that are looked after already."""

    def __init__(self, functions: Sequence[Callable[..., Any]], known: Sequence[str]) -> None:
        self.known = set(known)
        self.held: list[Held] = []
        self.lists: list[HeldList] = []
        self.hidden: list[str] = []  # names of what was found to change
        seen: set[int] = set()
        for function in functions:
            assert isinstance(function, FunctionType)
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
                try:
                    self._hold(name, cell.cell_contents, seen, DEPTH)
                except ValueError:  # nothing was assigned to it
                    continue

    def _hold(self, path: str, value: Any, seen: set[int], depth: int) -> None:
        if type(value) in (list, TracedList) and id(value) not in seen:
            seen.add(id(value))
            self.lists.append(HeldList(path, value, value.copy()))
        if not depth or id(value) in seen or is_library(type(value).__module__):
            return
        attributes = getattr(value, "__dict__", None)
        if type(attributes) is not dict:
            return
        seen.add(id(value))
        self.held.append(Held(path, attributes, dict(attributes)))
        for name, inner in attributes.items():
            self._hold(f"{path}.{name}", inner, seen, depth - 1)

    def look(self) -> None:
        """Note what has changed, and put it back."""
        for path, attributes, before in self.held:
            for name, old in before.items():
                full, new = f"{path}.{name}", attributes.get(name, old)
                if new is old or full in self.known:
                    continue
                if kind_of(old) is not None and kind_of(new) is not None:
                    attributes[name] = old
                    self._hide(full)
        for held in self.lists:
            if held.path not in self.known and held.restored():
                self._hide(held.path)

    def _hide(self, name: str) -> None:
        if name not in self.hidden:
            self.hidden.append(name)
