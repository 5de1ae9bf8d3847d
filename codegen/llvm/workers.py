"""Threads that compile: LLVM runs without the GIL, so the next module is emitted or compiled meanwhile.

Forks wait for these threads: LLVM has locks of its own, and a child that was forked while another thread was inside LLVM would wait for
them forever.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Generic, ParamSpec, TypeVar

from adjit.ir.forks import Stage, before_fork
from adjit.ir.locks import new_lock

P = ParamSpec("P")
T = TypeVar("T")
PATIENCE = 60.0  # seconds that a fork waits for threads that compile


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_running = threading.BoundedSemaphore(cores())  # at most this many at a time


_inside: set[tuple[int, int]] = set()  # a ticket for each use of LLVM that has begun: the thread (0: one of ours), and a number
_numbers = count()
_forks = new_lock()
llvm_lock = new_lock()  # taken around each short call of LLVM; its methods are C, so that Ctrl-C cannot leave it locked


def ticket(own_thread: bool = True) -> tuple[int, int]:
    """A new element for `_inside`. It is added and removed by plain calls of `set`, in `try` and `finally`, so that Ctrl-C leaves none."""
    return threading.get_ident() if own_thread else 0, next(_numbers)


def are_busy() -> bool:
    """Whether a thread is running in LLVM, or is about to."""
    return bool(_inside)


def _wait_for_compilers() -> None:
    me, deadline = threading.get_ident(), time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        _forks.acquire()  # no thread enters until the fork is over
        if all(thread == me for thread, _ in list(_inside)):
            break
        _forks.release()
        time.sleep(0.0005)
    else:
        _forks.acquire()


def _wait_for_frees() -> None:
    llvm_lock.acquire()  # libraries that are freed take it


def _after_fork() -> None:
    for lock in (llvm_lock, _forks):
        with suppress(RuntimeError):  # it is not held: Ctrl-C has ended the wait for it
            lock.release()


def _after_fork_in_child() -> None:
    me = threading.get_ident()
    for each in [t for t in _inside if t[0] != me]:
        _inside.discard(each)
    _after_fork()


before_fork(Stage.COMPILING, _wait_for_compilers)
before_fork(Stage.FREEING, _wait_for_frees)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


def in_llvm(work: Callable[P, T]) -> Callable[P, T]:
    """Decorates a function that calls LLVM: a fork waits until it returns."""

    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        mine = ticket()
        try:
            with _forks:
                _inside.add(mine)
            return work(*args, **kwargs)
        finally:
            _inside.discard(mine)

    return wrapper


class Later(Generic[T]):
    """The result of a function that runs on a thread of its own; on a single core, or if no thread can be started, on the caller's."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._values: list[T] = []
        self._error: BaseException | None = None
        self._lock = new_lock()
        self._ticket = ticket(own_thread=False)
        self._thread = self._started() if cores() > 1 else None

    def _started(self) -> threading.Thread | None:
        thread = threading.Thread(target=self._run, name="adjit compiler", daemon=True)
        try:
            with _forks:
                _inside.add(self._ticket)
            thread.start()
        except BaseException as error:
            _inside.discard(self._ticket)
            if not isinstance(error, RuntimeError | MemoryError):  # a limit of the system, or the interpreter is exiting
                raise
            return None
        return thread

    def _run(self) -> None:
        try:
            with _running:
                self._values.append(self._function())
        except BaseException as error:
            self._error = error  # raised by `result`
        finally:
            _inside.discard(self._ticket)

    def is_done(self) -> bool:
        """Whether `result` does not have to wait for a thread."""
        return self._thread is None or not self._thread.is_alive()

    def wait(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def result(self) -> T:
        self.wait()
        error, self._error = self._error, None
        if error is not None and not isinstance(error, MemoryError):  # there may be more memory by now
            raise error
        with self._lock:
            if not self._values:
                self._values.append(self._function())
        return self._values[0]
