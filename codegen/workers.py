"""Threads that compile: LLVM lets go of the GIL, so that the next module is written, or compiled, meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


def cores() -> int:
    """How many this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_running = threading.BoundedSemaphore(cores())  # so many at a time
_threads: list[threading.Thread] = []  # that were started and may still run


def are_busy() -> bool:
    """Whether a thread compiles, or is going to."""
    _threads[:] = [thread for thread in _threads if thread.is_alive()]
    return bool(_threads)


def _forget() -> None:
    """The child of a fork has none of its parent's threads."""
    global _running
    _running = threading.BoundedSemaphore(cores())
    _threads.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


class Later(Generic[T]):
    """What a function gives, from a thread of its own; on a single core, and in the child of a process that forked meanwhile, from
    whoever asks for it.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._values: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="adjit compiler", daemon=True) if cores() > 1 else None
        if self._thread is not None:
            _threads.append(self._thread)
            self._thread.start()

    def _run(self) -> None:
        with _running:
            try:
                self._values.append(self._function())
            except BaseException as error:
                self._error = error  # for whoever asks for the result

    def result(self) -> T:
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error
        return self._values[0] if self._values else self._function()
