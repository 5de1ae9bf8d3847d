"""The tables of tape and function semantics: eagerly, inside `@function`, inside a nested function, and in a second call."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.runtime.recording import listening
from tests.runtime.semantics_cases import CASES, Case
from tests.runtime.tape_cases import CASES as TAPE_CASES


def plain(result: Any) -> Any:
    return aj.tree_map(lambda x: x if isinstance(x, str) else np.asarray(x).tolist(), result)


def test_the_tables_are_long_enough() -> None:
    assert len(CASES) >= 80
    assert len(CASES) + len(TAPE_CASES) >= 120
    assert len({c.name for c in CASES}) == len(CASES)


@pytest.mark.parametrize("way", ["eager", "compiled", "nested"])
@pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])
def test_table(case: Case, way: str) -> None:
    run: Callable[[], Any] = case.fn
    if way != "eager":
        run = aj.function(run)
    if way == "nested":
        inner = run
        run = aj.function(lambda: inner())
    for _ in range(2):
        assert plain(run()) == case.gives
    assert listening.recorders == ()


# ---- memory

if sys.platform == "linux":

    def resident() -> int:
        """Bytes of this process in memory."""
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_calls_leave_memory_flat() -> None:
    w = aj.Variable(np.ones(16))

    @aj.function
    def step(x: Any) -> Any:
        with aj.GradientTape() as tape:
            loss = ((w * x) ** 2).sum()
        w.assign_sub(1e-6 * tape.gradient(loss, w))
        return loss

    x = np.ones(16)
    for _ in range(2_000):
        step(x)
    gc.collect()
    before = resident()
    for _ in range(20_000):
        step(x)
    assert resident() - before < 1 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_retraces_leave_memory_flat() -> None:
    def retrace(times: int) -> None:
        for n in range(times):
            f = aj.function(lambda x, n=n: (x * 2.0 + 1.0).sum(), max_traces=4, reduce_retracing=True)
            f(np.ones(3 + n % 7))

    retrace(60)
    gc.collect()
    before = resident()
    retrace(150)
    gc.collect()
    assert resident() - before < 8 << 20


def test_eager_tapes_leave_no_state() -> None:
    w = aj.Variable(np.ones(8))

    def step() -> None:
        with aj.GradientTape() as tape:
            y = (np.sin(w) * w).sum()
        tape.gradient(y, w)

    for _ in range(20):
        step()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(500):
            step()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()
