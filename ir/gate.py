"""Whether anybody watches: a counter in native memory that the entry points of compiled functions read.

Zero means that no thread is tracing or recording and nothing asks for eager runs, so that a call on plain arrays may go straight to native
code. Everything else goes through Python, which finds out what there is to do.
"""

from __future__ import annotations

import ctypes

from .locks import new_lock


class Gate:
    """Counts the reasons to go the long way."""

    def __init__(self) -> None:
        self._count = ctypes.c_int64(0)
        self._lock = new_lock()
        self.address = ctypes.addressof(self._count)

    def close(self) -> None:
        with self._lock:
            self._count.value += 1

    def open(self) -> None:
        with self._lock:
            self._count.value -= 1

    @property
    def reasons(self) -> int:
        return self._count.value


gate = Gate()
