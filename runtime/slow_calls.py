"""A warning, given once, that calls of a function take the slow path because of the type of an argument."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from adjit.ir.types import NUMBERS
from adjit.tracer.frames import user_level

from .signature import SCALARS
from .tensor import Tensor
from .variable import Variable

PATIENCE = 1000  # calls that take the slow path before the warning
PLAIN = (np.ndarray, Tensor, *NUMBERS, *SCALARS, str, bool, type(None))


class SlowCallWarning(UserWarning):
    """Calls of a compiled function are slow, because an argument is neither an array nor a number, nor a list, tuple or dict of them."""


class SlowCalls:
    """Counts the calls of one function that the native entry and the fast path through Python did not take."""

    __slots__ = ("count", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0

    def note(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.count += 1
        if self.count != PATIENCE:
            return
        given = [(f"argument {k}", x) for k, x in enumerate(args)] + [(f"argument {name!r}", x) for name, x in kwargs.items()]
        found = next((culprit for where, x in given if (culprit := unusual(where, x)) is not None), None)
        if found is not None:
            where, kind, instead = found
            warnings.warn(
                f"{self.name} has taken the slow path {PATIENCE} times, which costs tens of microseconds a call: {where} is a {kind}; "
                f"{instead}. Arrays, numbers, strings, None, and lists, tuples and dicts of them take the fast path.",
                SlowCallWarning,
                stacklevel=user_level(),
            )


def unusual(where: str, x: Any) -> tuple[str, str, str] | None:
    """Return the first part of an argument that the fast path does not take: where it is, its type, and what to write instead."""
    kind = type(x)
    if kind in (list, tuple):
        return next((found for k, item in enumerate(x) if (found := unusual(f"{where}[{k}]", item)) is not None), None)
    if kind is dict:
        return next((found for key, item in x.items() if (found := unusual(f"{where}[{key!r}]", item)) is not None), None)
    if kind in PLAIN:
        return None
    if isinstance(x, Variable):
        return where, "Variable", "let the function use the variable by its name"
    if isinstance(x, dict):
        return where, kind.__name__, "pass dict(...) of it"
    if isinstance(x, list | tuple):
        return where, kind.__name__, f"pass {'list' if isinstance(x, list) else 'tuple'}(...) of it"
    if isinstance(x, Tensor):
        return None  # of another frontend, which converts it
    return where, kind.__name__, "pass a dict of its arrays, or let the function use it by its name"
