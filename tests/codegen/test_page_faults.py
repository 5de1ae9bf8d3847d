"""Memory that calls use repeatedly is kept, so that it is not paged in at every call; unused memory is returned to the system."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest

import adjit as aj

resource = pytest.importorskip("resource")


def faults() -> int:
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def faults_of_a_call(f: Any, *args: Any) -> float:
    """The average over calls, after some that may allocate."""
    for _ in range(3):
        f(*args)
    before = faults()
    for _ in range(4):
        f(*args)
    return (faults() - before) / 4


@aj.function
@aj.grad
def saved(x: Any, n: Any) -> Any:
    """The loop saves x in every iteration, and more."""
    for _ in range(n):
        x = np.sin(x) * x
    return np.sum(x)


def test_many_results_of_medium_size_are_used_again() -> None:
    arrays = [np.full(25_000, float(k)) for k in range(40)]  # 200 kB each
    f = aj.function(lambda xs: [x * 2.0 for x in xs])
    assert faults_of_a_call(f, arrays) < 0.2 * 40 * arrays[0].nbytes / resource.getpagesize()


def test_results_that_are_held_are_not_overwritten() -> None:
    f = aj.function(lambda xs: [x + 1.0 for x in xs])
    held = [f([np.full(25_000, float(10 * i + k)) for k in range(10)]) for i in range(4)]
    for i, results in enumerate(held):
        for k, result in enumerate(results):
            assert np.all(np.asarray(result) == 10 * i + k + 1.0)


def test_large_stacks_are_kept() -> None:
    x, n = np.linspace(0.0, 1.0, 50_000), 100  # 40 MB for each saved value
    assert faults_of_a_call(saved, x, n) < 0.2 * n * x.nbytes / resource.getpagesize()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_large_stacks_are_freed_when_a_call_needs_little_of_them() -> None:
    x = np.linspace(0.0, 1.0, 50_000)
    saved(x, 400)
    gc.collect()
    before = resident()
    saved(x, 2)
    assert before - resident() > 0.8 * 400 * x.nbytes
