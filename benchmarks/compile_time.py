"""How compile time grows with the length of a program: a 64-vector chain of 100, 1,000, 5,000 (and 100,000) ops, with its gradient.

    python benchmarks/compile_time.py [--huge] [--rounds 3]

Prints the time of every stage, the total, the total per op, and the cost of each op beyond the next shorter chain: time is linear in the
length if that last figure stays the same from row to row. Each measurement is a fresh process with an empty cache of native code; the
fastest of `--rounds` counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import adjit as aj

LENGTHS = (100, 1_000, 5_000)
HUGE = 100_000
STAGES = ("trace", "optimize", "compile")


def chain(x: np.ndarray, length: int) -> np.ndarray:
    """Four kinds of elementwise op in turn, with constants that make neighbouring ops differ."""
    for k in range(length):
        match k % 4:
            case 0:
                x = x * (1.5 + 0.001 * (k % 7))
            case 1:
                x = np.sin(x)
            case 2:
                x = x + (0.1 + 0.001 * (k % 11))
            case _:
                x = np.tanh(x)
    return x


def measure(length: int) -> dict[str, float]:
    """Seconds of each stage of the first call, of that whole call, and of a later call."""
    x = np.random.default_rng(0).standard_normal(64).astype("f4")
    f = aj.function(aj.value_and_grad(lambda x: np.sum(chain(x, length))))
    start = time.perf_counter()
    value, gradient = f(x)
    total = time.perf_counter() - start
    if not (np.isclose(float(value), chain(x, length).sum(), rtol=1e-3) and np.isfinite(np.asarray(gradient)).all()):
        raise AssertionError(f"a chain of {length} ops gives {float(value)}, NumPy gives {chain(x, length).sum()}")
    start = time.perf_counter()
    f(x)
    run = time.perf_counter() - start
    return {**f.inspect(x).seconds, "total": total, "run": run}


def fresh(length: int) -> dict[str, float]:
    """`measure` in a separate process, so that the caches of an earlier chain do not help a later one."""
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "ADJIT_CACHE_DIR": cache}
        run = subprocess.run([sys.executable, __file__, "--length", str(length)], env=env, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--huge", action="store_true", help=f"also a chain of {HUGE:,} ops")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--length", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.length:
        print(json.dumps(measure(options.length)))
        return 0
    print("| ops | " + " | ".join(STAGES) + " | total | µs per op | µs per further op | run |")
    print("|--:|" + "--:|" * (len(STAGES) + 4))
    previous_length, previous_total = 0, 0.0
    for length in (*LENGTHS, HUGE) if options.huge else LENGTHS:
        rounds = 1 if length == HUGE else options.rounds
        best = min((fresh(length) for _ in range(rounds)), key=lambda times: times["total"])
        further = (best["total"] - previous_total) / (length - previous_length)
        previous_length, previous_total = length, best["total"]
        cells = [f"{1e3 * best[stage]:.1f} ms" for stage in (*STAGES, "total")]
        cells += [f"{1e6 * best['total'] / length:.0f}", f"{1e6 * further:.0f}", f"{1e6 * best['run']:.0f} µs"]
        print(f"| {length:,} | " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
