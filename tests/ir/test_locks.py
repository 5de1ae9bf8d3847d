"""Values that are created once by any number of threads, and locks in forked children."""

from __future__ import annotations

import os
import threading
import time

import pytest

from adjit.ir.locks import new_lock, once

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


def test_all_threads_get_the_value_that_one_of_them_made() -> None:
    made: list[int] = []

    @once
    def slow(n: int) -> object:
        made.append(n)
        time.sleep(0.05)
        return object()

    assert not slow.is_made()
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(slow(1))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]
    assert len(set(map(id, found))) == 1
    assert slow.is_made()
    assert slow(2) is not slow(1)
    assert slow(2) is slow(2)
    assert made == [1, 2]
    slow.forget()
    assert slow(1) is not found[0]
    assert made == [1, 2, 1]


def test_an_error_is_not_kept() -> None:
    attempts: list[int] = []

    @once
    def second_time() -> int:
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("not yet")
        return 7

    with pytest.raises(OSError, match="not yet"):
        second_time()
    assert second_time() == second_time() == 7
    assert len(attempts) == 2


def in_child(check: object) -> int:
    """The exit code of a forked child that calls `check` (0: it gave True; 14: it hung)."""
    child = os.fork()
    if child == 0:
        import signal

        signal.alarm(10)
        os._exit(0 if check() else 1)  # type: ignore[operator]
    return os.waitpid(child, 0)[1]


@needs_fork
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_finds_no_lock_that_another_thread_holds() -> None:
    lock, own, held, over = new_lock(), new_lock(), threading.Event(), threading.Event()

    @once
    def value() -> int:
        held.set()
        over.wait()
        return 7

    def hold() -> None:
        with lock:
            value()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()

    def check() -> bool:
        over.set()  # for the child, whose own call creates the value again
        with lock, own:
            return value() == 7

    with own:  # what the forking thread holds, it holds in the child as well
        assert in_child(check) == 0
    over.set()
    thread.join()
