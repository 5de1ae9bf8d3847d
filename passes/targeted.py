"""Passes that ask for the machine that code is made for, as a second argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from adjit.ir.func import Func

P = TypeVar("P", bound=Callable[..., Func])


def for_target(each: P) -> P:
    """Mark a pass `(func, target) -> func`: a pipeline gives it the target that it was given itself."""
    each.takes_target = True  # type: ignore[attr-defined]
    return each


def takes_target(each: Callable[..., Func]) -> bool:
    return getattr(each, "takes_target", False)
