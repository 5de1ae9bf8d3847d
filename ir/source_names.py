"""Names of Python variables for the values of a Func."""

from __future__ import annotations

import builtins
import keyword
import re

from . import source_helpers
from .operand import Operand

HELPERS = frozenset(name for name, value in vars(source_helpers).items() if getattr(value, "__module__", "") == source_helpers.__name__)
RESERVED = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "np", "math", "sys", "reduce", "constants"})


class SourceNames:
    """Unique names: the user's, with `dW` for `W.bar`; `t0`, `t1`, ... for values that have none. Values may share a variable."""

    def __init__(self, outer: SourceNames | None = None) -> None:
        self._names: dict[int, str] = {}
        self._kept: list[Operand] = []  # ids are those of living objects
        self._hints: dict[int, str] = {}
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}
        self._outer = outer

    def has(self, value: Operand) -> bool:
        return id(value) in self._names

    def of(self, value: Operand) -> str:
        if id(value) not in self._names:
            hint = self._hints.get(id(value)) or identifier(getattr(value, "name", None))
            self.bind(value, self.fresh(hint or "t0"))
        return self._names[id(value)]

    def bind(self, value: Operand, name: str) -> None:
        self._names[id(value)] = name
        self._kept.append(value)

    def claim(self, value: Operand, name: str) -> None:
        """Give a value this very name, which no other value has yet."""
        self._taken.add(name)
        self.bind(value, name)

    def prefer(self, value: Operand, hint: str) -> None:
        self._hints.setdefault(id(value), hint)
        self._kept.append(value)

    def share(self, value: Operand, other: Operand) -> None:
        """Store `value` in the variable of `other`."""
        self.bind(value, self.of(other))

    def fresh(self, hint: str) -> str:
        """A name that nothing has: the hint itself, or with a number."""
        name = hint
        stem, number = hint.rstrip("0123456789"), self._next.get(hint, 1)
        while self.is_taken(name):
            name = f"{stem}{number}" if stem != hint else f"{hint}{number}"
            number += 1
        self._next[hint] = number
        self._taken.add(name)
        return name

    def is_taken(self, name: str) -> bool:
        return name in self._taken or name in RESERVED or name in HELPERS or (self._outer is not None and self._outer.is_taken(name))


def identifier(hint: str | None) -> str:
    """`W.bar` as `dW`, `params.w` as `params_w`; empty if nothing is left."""
    text = hint or ""
    bars = 0
    while text.endswith(".bar"):
        text, bars = text[:-4], bars + 1
    text = "d" * bars + re.sub(r"\W", "_", text) if text else ""
    return text if text.isidentifier() else f"v{text}" if text and f"v{text}".isidentifier() else ""
