"""tf.Module: an object that finds the variables in its attributes, at any depth."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from adjit.runtime.conversion import as_called

from .naming import IDENTIFIER, name_scope, scope_of_module, snake_case
from .variable import Variable


class Module:
    """Base of layers and models: `variables`, `trainable_variables` and `submodules` are found in the attributes, sorted by name."""

    _name: str

    def __init__(self, name: str | None = None) -> None:
        self._name = snake_case(type(self).__name__) if name is None else name
        if not IDENTIFIER.fullmatch(self._name):
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python identifiers (e.g. a valid class name)."
            )
        self._name_scope = scope_of_module(self._name)

    @property
    def name(self) -> str:
        return getattr(self, "_name", snake_case(type(self).__name__))

    @property
    def name_scope(self) -> name_scope:
        """The scope of the module's own names: variables that its methods create inside are named after it."""
        return self.__dict__.get("_name_scope") or name_scope(f"{self.name}/")

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(self._flatten(predicate=lambda x: isinstance(x, Variable)))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def submodules(self) -> tuple[Module, ...]:
        return tuple(self._flatten(predicate=lambda x: isinstance(x, Module)))

    def _flatten(self, predicate: Callable[[Any], bool], seen: set[int] | None = None) -> Iterator[Any]:
        """The matches in this module, then those in its submodules; each object once."""
        seen = {id(self)} if seen is None else seen
        below: list[Module] = []
        for _, value in sorted(vars(self).items()):
            for leaf in _leaves(value):
                if id(leaf) in seen:
                    continue
                if isinstance(leaf, Module):
                    below.append(leaf)
                if isinstance(leaf, Module | Variable):
                    seen.add(id(leaf))
                    if predicate(leaf):
                        yield leaf
        for module in below:
            yield from module._flatten(predicate, seen)

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """A decorator of methods, which then run in the scope of their module."""

        @functools.wraps(method)
        def in_scope(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return as_called(method)(self, *args, **kwargs)

        return in_scope

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _leaves(value[key])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value
