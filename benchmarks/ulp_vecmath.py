"""Errors and speed of the vector math library: the largest ULP error of each function over a dense sweep, and ns per element beside NumPy.

float32: every STRIDE-th of the 2**32 bit patterns, and random arguments where the function is interesting, against float64.
float64: random bit patterns and interesting intervals, against the 80-bit long double (mpmath for erf; needs x86 for the rest).
Both then zoom in on the worst place found, three times.
Needs mpmath.

    python benchmarks/ulp_vecmath.py [--stride 257] [--count 1000000] [names...]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.codegen.vecmath_harness import (
    BINARY,
    DOMAINS,
    FUNCTIONS,
    Array,
    build,
    by_numpy,
    in_domain,
    mp_ulps,
    native_width,
    samples,
    ulps,
)

F32, F64 = np.dtype("f4"), np.dtype("f8")
PIECE = 1 << 20


def sweep(name: str, dtype: np.dtype[Any], stride: int, count: int) -> Iterator[tuple[Array, ...]]:
    """Batches of arguments."""
    if name == "erf":  # its references come one at a time
        stride, count = stride * 16, count // 50 if dtype == F64 else count // 4
    if dtype == F32 and name not in BINARY:
        for start in range(0, 2**32, stride * PIECE):
            patterns = np.arange(start, min(start + stride * PIECE, 2**32), stride, dtype=np.uint64).astype(np.uint32)
            yield (in_domain(name, patterns.view(F32)),)
    for seed, first in enumerate(range(0, count, PIECE)):
        yield samples(name, dtype, min(PIECE, count - first), seed)
    if name in ("sin", "cos", "tan"):
        near = (np.round(np.geomspace(1, 2.0**52, count)) * np.pi / 2).astype(dtype)
        yield (near,)
        yield (np.nextafter(near, dtype.type(0)),)


def zoomed(name: str, dtype: np.dtype[Any], where: list[float], count: int, seed: int) -> tuple[Array, ...]:
    """Arguments within a few percent of `where`: a sweep of everything is thin at any one place."""
    rng = np.random.default_rng(seed)
    args = tuple((w * (1 + rng.uniform(-0.04, 0.04, count))).astype(dtype) for w in where)
    if name in BINARY:
        keep = np.isfinite(args[0]) & np.isfinite(args[1])
        return args[0][keep], args[1][keep]
    return (in_domain(name, args[0]),)


def measure(name: str, dtype: np.dtype[Any], stride: int, count: int) -> tuple[int, float, float, list[float]]:
    """Number of samples, largest and mean error, and where the largest is; the mean is of the sweep, without the zooms."""
    run = build(name, dtype, native_width(dtype))
    wide = np.float64 if dtype == F32 else np.longdouble
    total, summed, largest, where = 0, 0.0, -1.0, [np.nan]

    def look(args: tuple[Array, ...]) -> float:
        nonlocal total, largest, where
        got = run(*args)
        errors = mp_ulps(got, name, *args) if name == "erf" and dtype == F64 else ulps(got, by_numpy(name)(*(a.astype(wide) for a in args)))
        worst = int(np.argmax(errors))
        total += len(got)
        if errors[worst] > largest:
            largest, where = float(errors[worst]), [float(a[worst]) for a in args]
        return float(errors.sum())

    for args in sweep(name, dtype, stride, count):
        if len(args[0]):
            summed += look(args)
    mean = summed / total
    for seed in range(3):
        look(zoomed(name, dtype, where, count // 50 if name == "erf" else count, seed))
    return total, largest, mean, where


def nanoseconds(call: Callable[..., Any], args: tuple[Array, ...]) -> float:
    """Per element, without the cost of a call on nothing."""

    full, empty = (tuple(a[:n] for a in args) for n in (None, 0))
    best = dict.fromkeys((id(full), id(empty)), np.inf)
    out = {id(arrays): np.empty_like(arrays[0]) for arrays in (full, empty)}
    for _ in range(500):
        for arrays in (full, empty):  # in turns, so that a busy spell of the machine meets both
            start = time.perf_counter()
            call(*arrays, out=out[id(arrays)])
            best[id(arrays)] = min(best[id(arrays)], time.perf_counter() - start)
    return (best[id(full)] - best[id(empty)]) / len(args[0]) * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(FUNCTIONS))
    parser.add_argument("--stride", type=int, default=257)
    parser.add_argument("--count", type=int, default=1_000_000)
    options = parser.parse_args()
    np.seterr(all="ignore")
    print(f"{'function':10s} {'dtype':8s} {'samples':>10s} {'max ULP':>8s} {'mean':>6s} {'ns':>6s} {'NumPy ns':>9s}  worst at")
    for name in options.names:
        for dtype in (F32, F64):
            low, high = DOMAINS.get(name, (0.0, 10.0))
            rng = np.random.default_rng(0)
            args = tuple(rng.uniform(max(low, -10.0), min(high, 10.0), 4096).astype(dtype) for _ in range(2 if name in BINARY else 1))
            ours = nanoseconds(build(name, dtype, native_width(dtype)), args)
            reference = by_numpy(name)
            theirs = nanoseconds(reference, args) if isinstance(reference, np.ufunc) else np.nan
            total, largest, mean, where = measure(name, dtype, options.stride, options.count)
            place = ", ".join(map(repr, where))
            print(f"{name:10s} {dtype!s:8s} {total:10d} {largest:8.3f} {mean:6.3f} {ours:6.2f} {theirs:9.2f}  {place}", flush=True)


if __name__ == "__main__":
    main()
