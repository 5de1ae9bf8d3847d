"""Names outside of a compiled function that it reads: the objects that they are bound to are part of its programs.

A call that finds a name bound to another object discards the programs, and the function is traced again. Numbers and strings are compared
by value, everything else by identity; changes inside lists, arrays and other objects are not detected.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from types import CellType
from typing import TYPE_CHECKING, Any

from adjit.tracer.bindings import MISSING, Binding
from adjit.tracer.frames import user_level

from .retracing import RetraceWarning

if TYPE_CHECKING:
    from adjit.codegen.entry.bindings import Checks

BY_VALUE = (bool, int, float, complex, str, bytes)
MOST_CHANGES = 5  # successive programs that were discarded because of a changed name, before there is a warning


class OutsideNames:
    """The names that the programs of one function have read."""

    __slots__ = ("_known", "_changes")

    def __init__(self) -> None:
        self._known: dict[tuple[int, str | None], Binding] = {}
        self._changes = 0

    def add(self, bindings: Iterable[Binding]) -> None:
        for binding in bindings:
            self._known.setdefault(binding.key, binding)

    def changed(self) -> Binding | None:
        """Return a name that is bound to another object than when the function was traced."""
        for key, binding in self._known.items():
            now = binding.now()
            if now is not binding.value:
                if not equal(now, binding.value):
                    return binding
                self._known[key] = binding._replace(value=now)
        return None

    def forget(self, name: str, what: str, instead: str) -> None:
        """Forget all names, since the function is traced again; warn if that happens often."""
        self._known = {}
        self._changes += 1
        if self._changes == MOST_CHANGES:
            warnings.warn(
                f"{name} has been traced {MOST_CHANGES + 1} times, because {what} each time; {instead}",
                RetraceWarning,
                stacklevel=user_level(),
            )

    def checks(self) -> Checks | None:
        """Return what the native entry compares; None if it cannot."""
        from adjit.codegen.entry.bindings import places  # noqa: PLC0415 - LLVM is loaded by now; `import adjit` does without

        found: list[tuple[int, int]] = []
        for binding in self._known.values():
            here = places(binding.holder, binding.name, binding.value)
            if here is None:
                return None
            found += [check for check in here if check not in found]
        return found

    def kept(self) -> list[Binding]:
        """Return what must live as long as the addresses in `checks` are used."""
        return list(self._known.values())


def equal(a: Any, b: Any) -> bool:
    """Whether two objects are the same constant: numbers are compared as if bit by bit."""
    return type(a) is type(b) and isinstance(a, BY_VALUE) and a is not MISSING and (a == b or a != a) and repr(a) == repr(b)


def described(binding: Binding) -> str:
    name = "a variable of the enclosing function" if isinstance(binding.holder, CellType) else f"`{binding.name}`"
    return f"{name}, which it reads, was bound to another value"
