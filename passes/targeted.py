"""Passes that take the target machine as a second argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from adjit.ir.func import Func

P = TypeVar("P", bound=Callable[..., Func])


def for_target(each: P) -> P:
    """Mark a pass as `(func, target) -> func`: a pipeline passes its own target to it."""
    each.takes_target = True  # type: ignore[attr-defined]
    return each


def takes_target(each: Callable[..., Func]) -> bool:
    return getattr(each, "takes_target", False)
