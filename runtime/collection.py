"""Garbage collection, put off."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

_inside: set[tuple[int, int]] = set()  # the thread, and a number, of each that is inside
_numbers = count()
_was_enabled = [False]  # before the first came in


@contextmanager
def collection_paused() -> Iterator[None]:
    """While a program is traced and compiled: it makes very many objects that all stay, and looking through them time and again would be
    a tenth of the work.
    """
    ticket = threading.get_ident(), next(_numbers)
    try:
        if not _inside:
            _was_enabled[0] = gc.isenabled()
        _inside.add(ticket)
        gc.disable()
        yield
    finally:
        try:
            _inside.discard(ticket)
        finally:  # Ctrl-C may come between the two
            if not _inside and _was_enabled[0]:
                gc.enable()


def _after_fork() -> None:
    """The threads that were inside are not in this process."""
    me = threading.get_ident()
    others = [ticket for ticket in _inside if ticket[0] != me]
    _inside.difference_update(others)
    if others and not _inside and _was_enabled[0]:
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
