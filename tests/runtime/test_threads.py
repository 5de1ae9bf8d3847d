"""Compiled functions in several threads."""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.entry.route import Header
from adjit.codegen.llvm import owned
from adjit.ir.gate import gate
from adjit.runtime import stores
from adjit.runtime.signature import probe
from tests.ir.test_locks import in_child

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")

FIRST_CALLS = """
import threading, numpy as np, adjit as aj

barrier = threading.Barrier(4)
found = {}

def work(k):
    f = aj.function(lambda x: np.sum(np.sin(x) * k) + np.sum(x @ x.T))
    barrier.wait()
    for _ in range(20):
        found[k] = f(np.ones((10 + int(k), 3)))

threads = [threading.Thread(target=work, args=(float(k),)) for k in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for k, y in found.items():
    assert np.isclose(y, np.sin(1.0) * k * (10 + k) * 3 + 3 * (10 + k) ** 2), (k, y)
assert len(found) == 4
"""


def test_first_calls_of_several_threads_at_once(tmp_path: Path) -> None:
    """The shared objects that the first call creates (LLVM, the linker, the entry, products, the pool), created by four threads at once."""
    for _ in range(2):  # with an empty disk cache, and with a full one
        run = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", FIRST_CALLS],
            env={"PATH": "", "ADJIT_CACHE_DIR": str(tmp_path / "cache")}, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr


def loop(x: Any) -> Any:
    """Some milliseconds without the GIL."""
    for _ in aj.range(60):
        x = np.sin(x) + x * 0.001
    return np.sum(x)


def while_running(work: Callable[[], Any], disturb: Callable[[], Any], times: int) -> list[Any]:
    """The results of repeated calls of `work` in a thread, while this thread does something else."""
    found: list[Any] = []
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            found.append(work())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        for _ in range(times):
            disturb()
            time.sleep(0.0005)
    finally:
        over.set()
        thread.join()
    return found


def test_code_that_runs_is_not_freed_when_the_function_forgets_it() -> None:
    f = aj.function(loop, reduce_retracing=True, max_traces=2)
    x = np.ones(20_000)
    expected = float(f(x))
    turns = itertools.count(1)

    def forget() -> None:
        turn = next(turns)
        f(np.ones(1 + turn % 3))  # evicts
        if turn % 4 == 0:
            f.clear_cache()
            gc.collect()

    assert set(map(float, while_running(lambda: f(x), forget, 12))) == {expected}


def test_code_that_runs_is_not_freed_with_its_function() -> None:
    x = np.ones(20_000)
    functions = [aj.function(loop, reduce_retracing=True)]
    expected = float(functions[0](x))
    functions[0](x)

    def exchange() -> None:
        new = aj.function(loop, reduce_retracing=True)
        new(x)
        functions[0] = new
        gc.collect()

    assert set(map(float, while_running(lambda: functions[0](x), exchange, 5))) == {expected}


def test_arrays_in_lists_and_dicts_that_others_empty_meanwhile() -> None:
    f = aj.function(lambda tree: loop(tree["x"][0] + tree["y"]))

    def fresh() -> dict[str, Any]:
        return {"x": [np.ones(20_000)], "y": np.zeros(20_000)}

    expected = float(f(fresh()))
    trees = [fresh()]

    def call() -> float:
        tree = trees[0] = fresh()
        return float(f(tree))

    def empty() -> None:
        tree = trees[0]
        if f._shortcut._routes[0][1].words[Header.BUSY]:  # the call has begun
            tree.pop("x", []).clear()
            tree.clear()

    assert set(while_running(call, empty, 50)) == {expected}


SIZE = 200_000


class Pair:
    """Two variables that a step keeps equal, and functions that read them."""

    def __init__(self) -> None:
        self.a, self.b = aj.Variable(np.zeros(SIZE), name="a"), aj.Variable(np.zeros(SIZE), name="b")
        self.step = aj.function(self._step)
        self.short = aj.function(lambda: (self.a[0], self.a[SIZE - 1], self.b[0], self.b[SIZE - 1]))
        self.long = aj.function(lambda x: (*self.short(), x * loop(self.a[:100]), self.a[SIZE // 2], self.b[SIZE // 2])[:4])
        for _ in range(2):
            self.step(np.ones(()))
            self.short()
            self.long(np.ones(()))

    def _step(self, x: Any) -> Any:
        self.a.assign_add(x * np.ones(SIZE))
        self.b.assign_add(x * np.ones(SIZE))
        return x

    def eager(self) -> tuple[Any, ...]:
        a = self.a.numpy()
        return a[0], a[-1]


@pytest.mark.parametrize("reader", ["short", "long", "eager"])
def test_readers_see_variables_between_two_steps_and_never_in_the_middle_of_one(reader: str) -> None:
    pair, one = Pair(), np.ones(())
    read, args = getattr(pair, reader), (one,) if reader == "long" else ()
    seen = while_running(lambda: {float(x) for x in read(*args)}, lambda: pair.step(one), 50)
    assert all(len(each) == 1 for each in seen), "torn"
    values = [min(each) for each in seen]
    assert values == sorted(values)
    assert float(pair.a[0]) == float(pair.b[SIZE - 1]) == 52.0  # no step is lost


def test_steps_of_several_threads_are_all_counted() -> None:
    pair, one = Pair(), np.ones(())
    threads = [threading.Thread(target=lambda: [pair.step(one) for _ in range(30)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(np.concatenate([pair.a.numpy(), pair.b.numpy()]).tolist()) == {122.0}


def test_a_handler_that_reads_what_the_interrupted_step_writes_gets_an_error() -> None:
    w = aj.Variable(np.zeros(1000), name="w")

    @aj.function
    def step(x: Any) -> Any:
        w.assign_add(loop(x) * np.ones(1000))
        return x

    x = np.ones(200_000)
    step(x)
    seen: list[BaseException] = []

    def handle(*_: object) -> None:
        try:
            float(w[0])
        except aj.AdjitError as error:
            seen.append(error)

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        for _ in range(5):
            step(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert all("'w' is being written by the call that this code interrupts" in str(error) for error in seen)
    assert float(w[0]) == float(w[999])


@needs_fork
def test_a_child_forked_during_a_step_finds_variables_whole() -> None:
    pair, one = Pair(), np.ones(())
    codes: list[int] = []

    def check() -> bool:
        before = float(pair.a[0])
        pair.step(one)
        values = [float(v) for v in (*pair.short(), *pair.long(one))]
        return values == [before + 1.0] * 8

    def fork() -> None:
        codes.append(in_child(check))

    while_running(lambda: pair.step(one), fork, 5)
    assert codes == [0] * 5


@needs_fork
def test_a_fork_waits_for_a_step_that_frees_native_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection can begin anywhere in a step, with its variables locked: a waiting fork must not hold a lock that freeing needs."""
    monkeypatch.setattr(stores, "PATIENCE", 5.0)
    w = aj.Variable(np.zeros(3), name="w")
    step = aj.function(lambda x: w.assign_add(x))
    step(np.ones(3))
    begun = threading.Event()

    def run() -> None:
        claim, held = stores.Claim([w.store], [True]), ctypes.c_int64(0)
        claim.take(held)
        begun.set()
        while not gate.reasons:  # until the fork waits for this
            time.sleep(0.001)
        time.sleep(0.05)
        owned.free()
        stores._locks().release(claim.table, claim.count, 1, held)

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait()
    code = in_child(lambda: w.numpy().tolist() == [1.0] * 3)
    thread.join()
    assert code == 0


@needs_fork
def test_a_child_forked_while_another_thread_traces_or_compiles() -> None:
    begun, over = threading.Event(), threading.Event()

    def slow(x: Any) -> Any:
        begun.set()
        over.wait(20)
        return x + 1.0

    f, g = aj.function(slow), aj.function(lambda x: x * 2.0)
    thread = threading.Thread(target=lambda: f(np.ones(3)))
    thread.start()
    begun.wait()

    def check() -> bool:
        over.set()
        h = aj.function(lambda x: x @ x)
        for _ in range(3):
            fine = float(g(np.ones(3))[0]) == 2.0 and float(f(np.ones(3))[0]) == 2.0 and float(h(np.ones(3))) == 3.0
        return fine and not gate.reasons and gc.isenabled()

    code = in_child(check)
    over.set()
    thread.join()
    assert code == 0


def test_eager_changes_of_several_threads_are_all_counted() -> None:
    w = aj.Variable(np.zeros(100))

    @aj.function
    def step() -> None:
        w.assign_add(1.0)

    changes: list[Callable[[], Any]] = [lambda: w.assign_add(1.0), lambda: w.assign_sub(-1.0), step]
    threads = [threading.Thread(target=lambda c=c: [c() for _ in range(300)]) for c in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(w.numpy().tolist()) == {900.0}


def test_a_list_that_another_thread_changes_is_taken_as_it_is_at_one_moment() -> None:
    """The key determines the number of arrays that the native code takes: with fewer, it would read beyond their table."""
    given: list[Any] = [np.ones(3)]
    key: list[Any] = []
    arrays: list[Any] = []
    calls: list[str] = []

    def on_call(frame: FrameType, event: str, _: Any) -> None:
        """Threads are switched where a function begins: as if another one had changed the list then."""
        calls.append(frame.f_code.co_name)
        if calls == ["probe", "probe"]:
            given.clear()

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        assert probe((given,), key, arrays)
    finally:
        sys.settrace(before)
    assert not given
    assert key[1] == len(arrays) == 1
