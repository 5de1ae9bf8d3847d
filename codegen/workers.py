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


def _wait() -> None:
    """Before a fork: the child would have no thread that lets go of the locks which LLVM's compilation holds."""
    for thread in _threads:
        thread.join()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait)


class Later(Generic[T]):
    """What a function gives, from a thread of its own; on a single core, or where no thread is to be had, from whoever asks for it."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._values: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="adjit compiler", daemon=True) if cores() > 1 else None
        if self._thread is not None:
            try:
                self._thread.start()
                _threads.append(self._thread)
            except RuntimeError:  # a limit of the system, or the interpreter is leaving
                self._thread = None

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
        if not self._values:
            self._values.append(self._function())
        return self._values[0]
