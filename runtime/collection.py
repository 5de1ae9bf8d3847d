"""Pausing garbage collection."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

_inside: set[tuple[int, int]] = set()  # (thread id, ticket number) of each active pause
_numbers = count()
_was_enabled = [False]  # whether collection was enabled before the first pause
MANY = 30  # modules


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause garbage collection while a program is traced and compiled.

    Tracing allocates very many long-lived objects; scanning them repeatedly would take a tenth of the time. If many modules are imported
    meanwhile, not even the first collection after it scans what is there.
    """
    ticket, modules = (threading.get_ident(), next(_numbers)), len(sys.modules)
    try:
        if not _inside:
            _was_enabled[0] = gc.isenabled()
        _inside.add(ticket)
        gc.disable()
        yield
    finally:
        try:
            _inside.discard(ticket)
            if len(sys.modules) - modules > MANY and not gc.get_freeze_count():  # what others have frozen would be unfrozen
                make_old()
        finally:  # Ctrl-C may arrive between the two statements
            if not _inside and _was_enabled[0]:
                gc.enable()


def make_old() -> None:
    """Put all objects into the oldest generation, without looking at them."""
    try:
        gc.freeze()
    finally:
        gc.unfreeze()


def _after_fork() -> None:
    """Forget the parent's pauses: its other threads do not exist in the child process."""
    me = threading.get_ident()
    others = [ticket for ticket in _inside if ticket[0] != me]
    _inside.difference_update(others)
    if others and not _inside and _was_enabled[0]:
        gc.enable()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
