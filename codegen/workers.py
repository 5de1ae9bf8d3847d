"""Threads that compile: LLVM lets go of the GIL, so that the next module is written, or compiled, meanwhile.

Also what a fork has to wait for: LLVM has locks of its own, and a child that was forked while another thread was inside of it would wait
for them for ever.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from adjit.ir.locks import new_lock

T = TypeVar("T")
PATIENCE = 60.0  # seconds that a fork waits for threads that compile


def cores() -> int:
    """How many this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_running = threading.BoundedSemaphore(cores())  # so many at a time


class _Own(threading.local):
    depth = 0  # how often this thread has entered


class Busy:
    """Counts who is inside of LLVM, or is going to be. A context manager for the calls themselves; a fork waits until all have left."""

    def __init__(self) -> None:
        self._changed = threading.Condition(new_lock())
        self._own = _Own()
        self._llvm: Any = None
        self.count = 0

    def begin(self) -> None:
        with self._changed:
            self.count += 1

    def end(self) -> None:
        with self._changed:
            self.count -= 1
            self._changed.notify_all()

    def __enter__(self) -> None:
        self.begin()
        self._own.depth += 1

    def __exit__(self, *exception: object) -> None:
        self._own.depth -= 1
        self.end()

    def before_fork(self) -> None:
        self._changed.acquire()  # nobody enters until the fork is over
        self._changed.wait_for(lambda: self.count == self._own.depth, PATIENCE)
        binding = sys.modules.get("llvmlite.binding.ffi")
        self._llvm = getattr(getattr(binding, "lib", None), "_lock", None)  # libraries that are freed take it
        if self._llvm is not None:
            self._llvm.__enter__()

    def after_fork(self) -> None:
        if self._llvm is not None:
            self._llvm.__exit__(None, None, None)
        self._changed.release()

    def after_fork_in_child(self) -> None:
        self.after_fork()
        self._changed = threading.Condition(new_lock())
        self.count = self._own.depth


busy = Busy()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=busy.before_fork, after_in_parent=busy.after_fork, after_in_child=busy.after_fork_in_child)


class Later(Generic[T]):
    """What a function gives, from a thread of its own; on a single core, or where no thread is to be had, from whoever asks for it."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._values: list[T] = []
        self._error: BaseException | None = None
        self._lock = new_lock()
        self._thread = self._started() if cores() > 1 else None

    def _started(self) -> threading.Thread | None:
        thread = threading.Thread(target=self._run, name="adjit compiler", daemon=True)
        busy.begin()
        try:
            thread.start()
        except RuntimeError:  # a limit of the system, or the interpreter is leaving
            busy.end()
            return None
        return thread

    def _run(self) -> None:
        try:
            with _running:
                self._values.append(self._function())
        except BaseException as error:
            self._error = error  # for whoever asks for the result
        finally:
            busy.end()

    def result(self) -> T:
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error
        with self._lock:
            if not self._values:
                self._values.append(self._function())
        return self._values[0]
