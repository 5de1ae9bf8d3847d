"""GFLOP/s of adjit's matrix products beside the best of NumPy's (OpenBLAS) and PyTorch's (MKL), if that is installed, in one run.

    python benchmarks/products.py [--dtypes float32,float64] [--shapes 100x100x100,4096x64x64] [--seconds 0.1]

A shape is m x n x k. Every shape has a program of its own, as for a function that is called with one shape only. ADJIT_NUM_THREADS and
OMP_NUM_THREADS set the number of threads; with one, no pause is needed between the libraries, whose threads spin after a call.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

from workload import peer, rng

import adjit as aj

SQUARE = (16, 24, 32, 48, 64, 96, 100, 128, 192, 200, 256, 384, 500, 512, 768, 1000, 1024, 1536, 2048, 4096)
TALL = ((20, 20, 1000), (1848, 544, 4), (4096, 64, 64), (64, 4096, 64), (64, 64, 4096), (1000, 100, 100), (100, 1000, 100))
LOW = ((4096, 16, 16), (10_000, 32, 32), (128, 10, 784), (8, 512, 512), (32, 512, 128), (16, 500, 100), (128, 512, 784), (784, 512, 128))
ROUNDS, PAUSE = 3, 0.21  # seconds


def fastest(calls: list[Callable[[], Any]], seconds: float, pause: float) -> list[float]:
    """The fastest of many calls of each, in alternating bursts."""
    out = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for k, call in enumerate(calls):
            time.sleep(pause)
            call()
            end = time.perf_counter() + seconds / ROUNDS
            while True:
                start = time.perf_counter()
                call()
                out[k] = min(out[k], time.perf_counter() - start)
                if time.perf_counter() >= end:
                    break
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtypes", default="float32,float64")
    parser.add_argument("--shapes", default=",".join("x".join(map(str, s)) for s in (*((n, n, n) for n in SQUARE), *TALL, *LOW)))
    parser.add_argument("--seconds", type=float, default=0.1, help="for each library and shape")
    options = parser.parse_args()
    torch, pause = peer("torch"), 0.0 if os.environ.get("OMP_NUM_THREADS") == "1" else PAUSE
    print("| m x n x k | dtype | adjit | NumPy | PyTorch | adjit's time over the best |\n|---|---|--:|--:|--:|--:|")
    for dtype in options.dtypes.split(","):
        for shape in options.shapes.split(","):
            m, n, k = map(int, shape.split("x"))
            a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
            product = aj.function(lambda a, b: a @ b, dynamic=False)
            calls: list[Callable[[], Any]] = [lambda f=product, a=a, b=b: f(a, b), lambda a=a, b=b: a @ b]  # type: ignore[misc]
            if torch is not None:
                left, right = torch.tensor(a), torch.tensor(b)
                calls.append(lambda a=left, b=right: a @ b)  # type: ignore[misc]
            ours, *theirs = fastest(calls, options.seconds, pause)
            rates = [f"{2e-9 * m * n * k / t:.1f}" for t in (ours, *theirs)] + ["-"] * (2 - len(theirs))
            print(f"| {m} x {n} x {k} | {dtype} | {' | '.join(rates)} | {ours / min(theirs):.2f} |", flush=True)


if __name__ == "__main__":
    main()
