"""tf.name_scope: paths of names. Variables are named after the scopes around them; modules have a scope of their own."""

from __future__ import annotations

import contextlib
import re
import threading

IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
WORDS = re.compile(r"((?<=[a-z0-9])[A-Z]|(?!^)(?<!_)[A-Z](?=[a-z]))")


class _Current(threading.local):
    path = ""  # of the scopes around: "outer/inner/"


_current = _Current()


class name_scope(contextlib.AbstractContextManager[str]):
    """A context manager that returns the path of names around it; variables that are created inside get it as a prefix.

    >>> with name_scope("outer"), name_scope("inner") as path:
    ...     print(path)
    outer/inner/
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError("name for name_scope must be a string.")
        self._name = name
        self._around: list[str] = []

    @property
    def name(self) -> str:
        return self._name

    def __enter__(self) -> str:
        """The new path. A name that ends with a slash is a whole path; the empty one is the root."""
        self._around.append(_current.path)
        _current.path = self._name if not self._name or self._name.endswith("/") else f"{_current.path}{self._name}/"
        return _current.path

    def __exit__(self, *error: object) -> None:
        _current.path = self._around.pop()


def scoped(name: str | None, default: str) -> str | None:
    """The name of an object that is created in this scope; None if neither a name nor a scope was given."""
    return f"{_current.path}{name or default}" if _current.path else name


def scope_of_module(name: str) -> name_scope:
    """The scope of a module that is made here."""
    return name_scope(f"{_current.path}{name}/")


def snake_case(name: str) -> str:
    return WORDS.sub(r"_\1", name).lower()
