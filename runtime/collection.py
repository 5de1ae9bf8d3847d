"""Garbage collection, put off."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from adjit.ir.locks import new_lock


class _Own(threading.local):
    depth = 0  # how often this thread is inside


_lock = new_lock()
_own = _Own()
_inside = 0  # all threads
_was_enabled = False  # before the first came in


@contextmanager
def collection_paused() -> Iterator[None]:
    """While a program is traced and compiled: it makes very many objects that all stay, and looking through them time and again would be
    a tenth of the work.
    """
    _enter(1)
    try:
        yield
    finally:
        _enter(-1)


def _enter(change: int) -> None:
    global _inside, _was_enabled
    with _lock:
        if not _inside:
            _was_enabled = gc.isenabled()
            gc.disable()
        _own.depth += change
        _inside += change
        if not _inside and _was_enabled:
            gc.enable()


def _after_fork() -> None:
    """The threads that were inside are not in this process."""
    global _inside
    if _inside and not _own.depth and _was_enabled:
        gc.enable()
    _inside = _own.depth


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
