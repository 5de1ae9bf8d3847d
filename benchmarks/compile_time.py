"""How compile time grows with the length of a program: a 64-vector chain of 100, 1,000, 5,000 (and 100,000) ops, with its gradient; and
a network of 100, 300 and 1,000 layers (two parameters each), with its gradient.

    python benchmarks/compile_time.py [--huge] [--rounds 3]

Prints the time of every stage, the total, the total per op (or layer), and the cost of each one beyond the next shorter program: time is
linear in the length if that last figure stays the same from row to row. Each measurement is a fresh process with an empty cache of native
code; the fastest of `--rounds` counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

import adjit as aj

LENGTHS = (100, 1_000, 5_000)
LAYERS = (100, 300, 1_000)
HUGE = 100_000
STAGES = ("trace", "optimize", "compile")


def chain(x: np.ndarray, length: int) -> np.ndarray:
    """Four kinds of elementwise op in turn, with constants that make successive ops differ."""
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


def network(params: list[tuple[np.ndarray, np.ndarray]], x: np.ndarray) -> np.ndarray:
    for weights, bias in params:
        x = np.tanh(x @ weights + bias)
    return x


def chain_program(length: int) -> tuple[Any, tuple[Any, ...]]:
    return (lambda x: np.sum(chain(x, length))), (np.random.default_rng(0).standard_normal(64).astype("f4"),)


def network_program(length: int) -> tuple[Any, tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    params = [((0.3 * rng.standard_normal((8, 8))).astype("f4"), np.full(8, 0.1, "f4")) for _ in range(length)]
    return (lambda params, x: np.sum(network(params, x))), (params, rng.standard_normal((4, 8)).astype("f4"))


PROGRAMS = {"ops": chain_program, "layers": network_program}


def measure(kind: str, length: int) -> dict[str, float]:
    """Seconds of each stage of the first call, of that whole call, and of a later call."""
    program, args = PROGRAMS[kind](length)
    f = aj.function(aj.value_and_grad(program))
    start = time.perf_counter()
    value, _ = f(*args)
    total = time.perf_counter() - start
    if not np.isclose(float(value), program(*args), rtol=1e-3):
        raise AssertionError(f"{length} {kind} give {float(value)}, NumPy gives {program(*args)}")
    start = time.perf_counter()
    f(*args)
    run = time.perf_counter() - start
    return {**f.inspect(*args).seconds, "total": total, "run": run}


def fresh(kind: str, length: int) -> dict[str, float]:
    """`measure` in a separate process, so that the caches of an earlier program do not help a later one."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, __file__, "--kind", kind, "--length", str(length)]
        run = subprocess.run(command, env={**os.environ, "ADJIT_CACHE_DIR": cache}, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout)


def print_table(kind: str, lengths: tuple[int, ...], rounds: int) -> None:
    print(f"| {kind} | " + " | ".join(STAGES) + " | total | µs each | µs each further | run |")
    print("|--:|" + "--:|" * (len(STAGES) + 4))
    previous_length, previous_total = 0, 0.0
    for length in lengths:
        best = min((fresh(kind, length) for _ in range(1 if length == HUGE else rounds)), key=lambda times: times["total"])
        further = (best["total"] - previous_total) / (length - previous_length)
        previous_length, previous_total = length, best["total"]
        cells = [f"{1e3 * best[stage]:.1f} ms" for stage in (*STAGES, "total")]
        cells += [f"{1e6 * best['total'] / length:.0f}", f"{1e6 * further:.0f}", f"{1e6 * best['run']:.0f} µs"]
        print(f"| {length:,} | " + " | ".join(cells) + " |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--huge", action="store_true", help=f"also a chain of {HUGE:,} ops")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kind", choices=tuple(PROGRAMS), help=argparse.SUPPRESS)
    parser.add_argument("--length", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.length:
        print(json.dumps(measure(options.kind, options.length)))
        return 0
    print_table("ops", (*LENGTHS, HUGE) if options.huge else LENGTHS, options.rounds)
    print()
    print_table("layers", LAYERS, options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
