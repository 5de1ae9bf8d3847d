"""Detects loss of speed: a few kernels against NumPy, as ratios measured in one run, each with a limit that allows for noise; and the
decisions of cost models about a few programs, which do not depend on the machine or on noise.

python benchmarks/regression.py          prints two tables; exits with 1 if a ratio is above its limit, or a decision has changed
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import adjit as aj
from adjit.runtime.quick import settle

ROUNDS = 30
TRIES = 4  # number of measurements of a ratio above its limit: a slow period of the machine passes, a slow kernel does not


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

    q, k, v = random.standard_normal((3, 4, 256, 64)).astype(np.float32)
    visible, factor = np.tril(np.ones((256, 256), bool)), np.float32(0.125)

    def weighted(q, k, v):
        return np.sum((aj.softmax(np.where(visible, q @ np.swapaxes(k, 1, 2) * factor, np.float32(-np.inf))) @ v) ** 2)

    attention = aj.function(aj.grad(weighted, argnums=(0, 1, 2)))

    def numpy_attention() -> Any:
        s = np.where(visible, q @ np.swapaxes(k, 1, 2) * factor, np.float32(-np.inf))
        e = np.exp(s - s.max(2, keepdims=True))
        p = e / e.sum(2, keepdims=True)
        d = 2 * (p @ v)
        dp = d @ np.swapaxes(v, 1, 2)
        ds = p * (dp - (dp * p).sum(2, keepdims=True)) * factor
        return ds @ k, np.swapaxes(ds, 1, 2) @ q, np.swapaxes(p, 1, 2) @ d

    narrow = random.standard_normal((1000, 20)).astype(np.float32)
    low, inner = np.ascontiguousarray(narrow.T), aj.function(lambda a, b: a @ b)

    hundred, eight = (random.standard_normal(shape).astype(np.float32) for shape in ((100, 100), (8, 512)))
    wide = random.standard_normal((512, 512)).astype(np.float32)
    padded, few = (aj.function(lambda a, b: a @ b, dynamic=False) for _ in range(2))
    system, side = random.standard_normal((100, 100)), random.standard_normal(100)
    solve = aj.function(np.linalg.solve)
    x8, y8 = aj.tensor(small), aj.tensor(small + 1)
    settle()  # eager calls in native code, as in programs with many of them

    return [
        Kernel("a call on 8 floats", lambda: affine(small), lambda: np.float32(2) * small + np.float32(1), 1.0),
        Kernel("tanh chain with gradient", lambda: chain(x, w), numpy_chain, 0.7),
        Kernel("softmax of 512 rows", lambda: softmax(logits), numpy_softmax, 0.7),
        Kernel("product of 256 x 256", lambda: product(a), lambda: a @ a, 2.5),
        Kernel("cholesky of 256 x 256", lambda: cholesky(positive), lambda: np.linalg.cholesky(positive), 1.5),
        Kernel("qr of 256 x 256", lambda: qr(positive), lambda: np.linalg.qr(positive), 1.5),
        # NumPy selects with AVX-512 where it can: 0.72 on such an Intel CPU, half of that on others
        Kernel("100 largest of 200,000", lambda: largest(x), lambda: np.partition(x, -100)[-100:], 1.2),
        Kernel("1,024 rows of a table", lambda: descend(ids), numpy_descend, 0.7),
        Kernel("causal attention with gradient", lambda: attention(q, k, v), numpy_attention, 0.7),
        Kernel("product of 20 x 1,000 x 20", lambda: inner(low, narrow), lambda: low @ narrow, 2.0),
        Kernel("product of 100 x 100", lambda: padded(hundred, hundred), lambda: hundred @ hundred, 2.0),
        Kernel("product of 8 x 512 x 512", lambda: few(eight, wide), lambda: eight @ wide, 2.0),
        Kernel("solve of 100 x 100", lambda: solve(system, side), lambda: np.linalg.solve(system, side), 1.5),
        Kernel("eager sum of 8 floats", lambda: x8 + y8, lambda: small + small, 1.0),
        Kernel("eager tanh of 8 floats", lambda: np.tanh(x8), lambda: np.tanh(small), 2.5),
        Kernel("eager indexing", lambda: x8[2:5], lambda: small[2:5], 3.0),
        Kernel("scalar while loop", lambda: newton(2e6), python_newton, 1.0),
    ]


class Decision(NamedTuple):
    """A decision of a cost model: a count in the optimised program."""

    name: str
    found: int
    expected: int


def decisions() -> list[Decision]:
    """One or more decisions of each cost model: with a mistake there, results are right, but slower."""
    f64 = np.ones

    def recurrent(w, u, xs):
        h = np.zeros((16, 32))
        for x in xs:
            h = np.tanh(x @ w + h @ u)
        return np.sum(h * h)

    def polynomial(x, n):
        y = x
        for _ in range(n):
            y = (y * x + 1.0) * 0.5 - y
        return np.sum(y)

    def nonlinear(x, n):
        y = x
        for _ in range(n):
            y = x * np.exp(np.sin(y) * 0.5)
        return np.sum(y)

    def rosenbrock(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    def costly_differences(x):
        return np.sum(np.sin(np.tanh(np.exp(np.sin(x[1:] - x[:-1])))))

    def optimized(f, *args):
        return aj.function(f).inspect(*args).optimized

    def chunks(f, *args):
        """The largest number of pieces that a kernel is cut into for threads."""
        return max((int(n) for n in re.findall(r"parallel chunk in 0\.\.(\d+)", aj.function(f).inspect(*args).loops)), default=0)

    step = aj.grad(recurrent, argnums=(0, 1))
    short, long = (optimized(step, f64((32, 32)), f64((32, 32)), f64((trips, 16, 32))) for trips in (100, 100_000))
    cheap, costly = (optimized(aj.grad(f), f64(1000), 100) for f in (polynomial, nonlinear))
    return [
        Decision("products in a recurrent network's loops", products_in_loops(short), 2),
        Decision("those of one too long to be stored", products_in_loops(long), 5),
        Decision("arrays that the network stores", saved(short), 2),
        Decision("arrays that a polynomial stores", saved(cheap), 1),
        Decision("arrays that costly functions store", saved(costly), 2),
        # of arrays that are larger than any first-level cache
        Decision("kernels of differences and their gradient", kernels_of(optimized(aj.value_and_grad(rosenbrock), f64(20_000))), 1),
        Decision("kernels of costly differences", kernels_of(optimized(aj.value_and_grad(costly_differences), f64(20_000))), 2),
        Decision("pieces of exp of 1,000 numbers", chunks(np.exp, f64(1000)), 0),
        Decision("pieces of exp of 100,000", chunks(np.exp, f64(100_000)), 12),
        Decision("pieces of exp of 1,000,000", chunks(np.exp, f64(1_000_000)), 31),
        Decision("pieces of a sum of 1,000,000", chunks(np.sum, f64(1_000_000)), 31),
        Decision("pieces of a negation of 10,000", chunks(np.negative, f64(10_000)), 0),
    ]


def products_in_loops(text: str) -> int:
    return sum(body.count("= matmul") for body in re.findall(r"^  [^\n]* = for .*?^  }", text, re.DOTALL | re.MULTILINE))


def saved(text: str) -> int:
    return sum(len(names.split(",")) for names in re.findall(r" saving (.*)", text))


def kernels_of(text: str) -> int:
    return len(re.findall(r"^  \S.* = (?:fuse|rows)\b", text, re.MULTILINE))


def best(calls: list[Callable[[], Any]]) -> list[float]:
    """The fastest of many runs of each, alternating so that a busy period affects all."""
    fastest = [float("inf")] * len(calls)
    repeats = []
    for call in calls:
        for _ in range(ROUNDS):  # the first ones compile, and wait for the native entry
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
        for _ in range(TRIES - 1):
            if ours <= kernel.limit * theirs:
                break
            ours, theirs = map(min, (ours, theirs), best([kernel.ours, kernel.numpy]))
        ratio = ours / theirs
        print(f"{kernel.name:<28} {1e6 * ours:>8.1f}us {1e6 * theirs:>8.1f}us {ratio:>7.2f} {kernel.limit:>6.2f}")
        if ratio > kernel.limit:
            slow.append(kernel.name)
    print(f"\n{'decision':<42} {'found':>6} {'expected':>9}")
    other = []
    for decision in decisions():
        print(f"{decision.name:<42} {decision.found:>6} {decision.expected:>9}")
        if decision.found != decision.expected:
            other.append(decision.name)
    if slow:
        print(f"slower than allowed: {', '.join(slow)}")
    if other:
        print(f"decisions that have changed: {', '.join(other)}")
    return 1 if slow or other else 0


if __name__ == "__main__":
    sys.exit(main())
