"""Detects loss of speed: a few kernels against NumPy, as ratios measured in one run, each with a limit that allows for noise.

python benchmarks/regression.py          prints a table; exits with 1 if a ratio is above its limit
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import adjit as aj

ROUNDS = 30


class Kernel(NamedTuple):
    name: str
    ours: Callable[[], Any]
    numpy: Callable[[], Any]
    limit: float  # of adjit's time over NumPy's


def kernels() -> list[Kernel]:
    random = np.random.default_rng(0)
    small = np.arange(8, dtype=np.float32)
    x, w = random.standard_normal((2, 200_000)).astype(np.float32)
    logits = random.standard_normal((512, 500)).astype(np.float32)
    a = random.standard_normal((256, 256)).astype(np.float32)

    affine = aj.function(lambda x: 2.0 * x + 1.0)
    chain = aj.function(aj.value_and_grad(lambda x, w: np.sum(np.tanh(x * w + 0.5)), argnums=(0, 1)))
    softmax = aj.function(lambda x: aj.softmax(x, axis=1))
    product = aj.function(lambda a: a @ a)

    @aj.function
    def newton(s):
        r = s
        while np.abs(r * r - s) > 1e-12 * s:
            r = 0.5 * (r + s / r)
        return r

    def numpy_chain() -> Any:
        y = np.tanh(x * w + np.float32(0.5))
        d = 1 - y * y
        return y.sum(), d * w, d * x

    def numpy_softmax() -> Any:
        e = np.exp(logits - logits.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    def python_newton() -> float:
        s = r = 2e6
        while abs(r * r - s) > 1e-12 * s:
            r = 0.5 * (r + s / r)
        return r

    positive = a.astype(np.float64) @ a.T + 256 * np.eye(256)
    cholesky = aj.function(np.linalg.cholesky)
    qr = aj.function(np.linalg.qr)
    largest = aj.function(lambda x: np.sort(x)[-100:])

    table, ids = aj.Variable(random.standard_normal((50_000, 64)).astype(np.float32)), random.integers(0, 50_000, 1024)

    @aj.function
    def descend(ids):
        with aj.GradientTape() as tape:
            loss = np.sum(table[ids] ** 2)
        table.assign_sub(0.1 * tape.gradient(loss, table))

    rows = np.array(table)

    def numpy_descend() -> None:
        np.subtract.at(rows, ids, np.float32(0.2) * rows[ids])

    return [
        Kernel("a call on 8 floats", lambda: affine(small), lambda: np.float32(2) * small + np.float32(1), 1.0),
        Kernel("tanh chain with gradient", lambda: chain(x, w), numpy_chain, 0.7),
        Kernel("softmax of 512 rows", lambda: softmax(logits), numpy_softmax, 0.7),
        Kernel("product of 256 x 256", lambda: product(a), lambda: a @ a, 2.5),
        Kernel("cholesky of 256 x 256", lambda: cholesky(positive), lambda: np.linalg.cholesky(positive), 1.5),
        Kernel("qr of 256 x 256", lambda: qr(positive), lambda: np.linalg.qr(positive), 1.5),
        Kernel("100 largest of 200,000", lambda: largest(x), lambda: np.partition(x, -100)[-100:], 0.7),
        Kernel("1,024 rows of a table", lambda: descend(ids), numpy_descend, 0.7),
        Kernel("scalar while loop", lambda: newton(2e6), python_newton, 1.0),
    ]


def best(calls: list[Callable[[], Any]]) -> list[float]:
    """The fastest of many runs of each, alternating so that a busy period affects all."""
    fastest = [float("inf")] * len(calls)
    repeats = []
    for call in calls:
        call()
        start = time.perf_counter()
        call()
        repeats.append(max(1, int(2e-3 / max(time.perf_counter() - start, 1e-7))))
    for _ in range(ROUNDS):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(repeats[k]):
                call()
            fastest[k] = min(fastest[k], (time.perf_counter() - start) / repeats[k])
    return fastest


def main() -> int:
    print(f"{'kernel':<28} {'adjit':>10} {'numpy':>10} {'ratio':>7} {'limit':>6}")
    slow = []
    for kernel in kernels():
        ours, theirs = best([kernel.ours, kernel.numpy])
        ratio = ours / theirs
        print(f"{kernel.name:<28} {1e6 * ours:>8.1f}us {1e6 * theirs:>8.1f}us {ratio:>7.2f} {kernel.limit:>6.2f}")
        if ratio > kernel.limit:
            slow.append(kernel.name)
    if slow:
        print(f"slower than allowed: {', '.join(slow)}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
