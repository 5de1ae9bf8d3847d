"""GFLOP/s of adjit's matrix products compared with NumPy's (OpenBLAS), in one run: python benchmarks/products.py"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import adjit as aj

SHAPES = [(n, n, n) for n in (8, 16, 32, 64, 128, 256, 500, 1024, 2048)]
SHAPES += [(128, 512, 784), (784, 512, 128), (128, 10, 256), (4, 512, 512), (20, 20, 1000), (1848, 544, 4), (4096, 64, 64)]


def best(call: Callable[[], object], seconds: float = 0.3) -> float:
    call()
    fastest, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def main() -> None:
    random = np.random.default_rng(0)
    product = aj.function(lambda a, b: a @ b)
    print(f"{'m, n, k':>18} {'dtype':>8} {'adjit':>8} {'numpy':>8}   GFLOP/s")
    for dtype in ("float32", "float64"):
        for m, n, k in SHAPES:
            a, b = random.standard_normal((m, k)).astype(dtype), random.standard_normal((k, n)).astype(dtype)
            ours, theirs = best(lambda: product(a, b)), best(lambda: a @ b)  # noqa: B023 - called at once
            work = 2e-9 * m * n * k
            print(f"{f'{m}, {n}, {k}':>18} {dtype:>8} {work / ours:8.1f} {work / theirs:8.1f}")


if __name__ == "__main__":
    main()
