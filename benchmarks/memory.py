"""Memory growth over calls of one compiled function, and over retraces. Prints the growth of the resident set; budgets are 1 MB and 50 MB.

python benchmarks/memory.py [calls] [retraces]          # 1,000,000 and 10,000 by default
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import adjit as aj


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def growth(work: Callable[[int], None], warm_up: int, times: int) -> tuple[float, float]:
    """Megabytes added by `times` rounds after a warm-up, and the seconds they take."""
    work(warm_up)
    gc.collect()
    before, started = resident(), time.perf_counter()
    work(times)
    seconds = time.perf_counter() - started
    gc.collect()
    return (resident() - before) / 2**20, seconds


def calls(times: int) -> None:
    x = np.ones(64)
    for _ in range(times):
        step(x)


W = aj.Variable(np.ones(64))


@aj.function
def step(x: Any) -> Any:
    with aj.GradientTape() as tape:
        loss = np.mean((W * x - 1.0) ** 2)
    W.assign_sub(1e-3 * tape.gradient(loss, W))
    return loss


def retraces(times: int) -> None:
    f = aj.function(lambda x, tag: (np.sin(x) * 2.0).sum(), max_traces=8, reduce_retracing=True)
    x = np.ones(8)
    for n in range(times):
        f(x, f"{n}")


if __name__ == "__main__":
    many, few = (int(a) for a in (*sys.argv[1:3], *("1000000", "10000")[len(sys.argv) - 1 :]))
    for name, work, warm_up, times, budget in (("calls", calls, 10_000, many, 1), ("retraces", retraces, 200, few, 50)):
        megabytes, seconds = growth(work, warm_up, times)
        verdict = "flat" if megabytes < budget else "GROWS"
        each = seconds / times * 1e6
        print(f"{times:>9,} {name:<9} {megabytes:+8.2f} MB (budget {budget} MB: {verdict})   {seconds:7.1f} s, {each:,.1f} us each")
