"""The gate: a counter in native memory that the entry points of compiled functions read.

Zero means that no thread is tracing or recording and no setting requests eager execution, so that a call on plain arrays may go straight to
native code. All other calls go through Python, which finds out what to do.
"""

from __future__ import annotations

import ctypes
import os
import threading

from .locks import new_lock


class _Own(threading.local):
    reasons = 0  # of this thread


class Gate:
    """Counts the reasons to take the slow path: those of threads, which do not exist in a forked child, and lasting ones (settings)."""

    def __init__(self) -> None:
        self._count = ctypes.c_int64(0)
        self._lasting = 0
        self._own = _Own()
        self._lock = new_lock()
        self.address = ctypes.addressof(self._count)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def close(self, lasting: bool = False) -> None:
        with self._lock:
            self._count.value += 1
            if lasting:
                self._lasting += 1
            else:
                self._own.reasons += 1

    def open(self, lasting: bool = False) -> None:
        with self._lock:
            self._count.value -= 1
            if lasting:
                self._lasting -= 1
            else:
                self._own.reasons -= 1

    def own_reasons(self) -> int:
        """The number of reasons of this thread."""
        return self._own.reasons

    def restore(self, reasons: int) -> None:
        """Reset this thread's reasons to an earlier number: Ctrl-C may have occurred between a `close` and its `open`."""
        with self._lock:
            self._count.value += reasons - self._own.reasons
            self._own.reasons = reasons

    def _after_fork(self) -> None:
        self._count.value = self._lasting + self._own.reasons

    @property
    def reasons(self) -> int:
        return self._count.value


gate = Gate()
