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


class _Active(threading.local):
    stack: list[Builder] | None = None


_active = _Active()


def current_builder() -> Builder | None:
    """The innermost active builder of this thread."""
    stack = _active.stack
    return stack[-1] if stack else None


def enter(builder: Builder) -> None:
    if _active.stack is None:
        _active.stack = []
    _active.stack.append(builder)
    gate.close()


def leave() -> None:
    assert _active.stack is not None
    _active.stack.pop()
    gate.open()


@contextmanager
def unwinding() -> Iterator[None]:
    """Deactivate inner builders when an exception passes, even Ctrl-C, which can occur between two lines of `Builder.__exit__`."""
    stack, reasons = _active.stack, gate.own_reasons()
    depth = len(stack) if stack else 0
    try:
        yield
    except BaseException:
        _active.stack = (stack or [])[:depth]
        gate.restore(reasons)
        raise


@contextmanager
def outside_builders() -> Iterator[None]:
    """Deactivate all builders inside: ops evaluate even while a function is traced. For values that are computed once, before any call."""
    before = _active.stack
    _active.stack = []
    try:
        yield
    finally:
        _active.stack = before
