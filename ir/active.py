"""The builders that are active on this thread: an op is emitted into the innermost one, and evaluated if there is none.

Separate from `builder`, so that values and ops can ask for the builder without importing it: it is built on them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .gate import gate

if TYPE_CHECKING:
    from .builder import Builder

_active = threading.local()


def current_builder() -> Builder | None:
    """The innermost active builder of this thread."""
    stack = getattr(_active, "stack", None)
    return stack[-1] if stack else None


def enter(builder: Builder) -> None:
    if not hasattr(_active, "stack"):
        _active.stack = []
    _active.stack.append(builder)
    gate.close()


def leave() -> None:
    _active.stack.pop()
    gate.open()


@contextmanager
def unwinding() -> Iterator[None]:
    """Deactivate inner builders when an exception passes, even Ctrl-C, which can occur between two lines of `Builder.__exit__`."""
    stack, reasons = getattr(_active, "stack", None), gate.own_reasons()
    depth = len(stack) if stack else 0
    try:
        yield
    except BaseException:
        _active.stack = (stack or [])[:depth]
        gate.restore(reasons)
        raise


@contextmanager
def outside_builders() -> Iterator[None]:
    """Deactivate all builders inside: ops evaluate even while a function is traced. For values that exist before any run of it."""
    before = getattr(_active, "stack", [])
    _active.stack = []
    try:
        yield
    finally:
        _active.stack = before
