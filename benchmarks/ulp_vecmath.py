"""Accuracy and speed of elementwise functions: the largest error of each in ULP over a dense sweep, and ns per element next to NumPy's.

float32: every STRIDE-th of the 2**32 bit patterns, and random arguments where the function is interesting, against float64.
float64: random bit patterns and interesting intervals, against the 80-bit long double (mpmath for erf; needs x86 for the rest).
Both then zoom in on the worst argument found, three times. The functions are compiled for the target of this process: ADJIT_TARGET and
ADJIT_VECTOR_BYTES select others. docs/numerics.md publishes the largest errors. Needs mpmath.

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

from tests.accuracy import ROWS, Row
from tests.codegen.vecmath_harness import DOMAINS, Array

F32, F64 = np.dtype("f4"), np.dtype("f8")
PIECE = 1 << 20


def sweep(row: Row, dtype: np.dtype[Any], stride: int, count: int) -> Iterator[tuple[Array, ...]]:
    """Batches of arguments."""
    if row.name == "erf":  # its reference values are computed one at a time
        stride, count = stride * 16, count // 50 if dtype == F64 else count // 4
    if dtype == F32 and row.arity == 1:
        for start in range(0, 2**32, stride * PIECE):
            patterns = np.arange(start, min(start + stride * PIECE, 2**32), stride, dtype=np.uint64).astype(np.uint32)
            yield (row.inside(patterns.view(F32)),)
    for seed, first in enumerate(range(0, count, PIECE)):
        yield row.samples(dtype, min(PIECE, count - first), seed)
    if row.name in ("sin", "cos", "tan"):
        near = (np.round(np.geomspace(1, 2.0**52, count)) * np.pi / 2).astype(dtype)
        yield (near,)
        yield (np.nextafter(near, dtype.type(0)),)


def zoomed(row: Row, dtype: np.dtype[Any], where: list[float], count: int, seed: int) -> tuple[Array, ...]:
    """Arguments within a few percent of `where`: a sweep of the whole range is sparse around any number."""
    rng = np.random.default_rng(seed)
    args = tuple((w * (1 + rng.uniform(-0.04, 0.04, count))).astype(dtype) for w in where)
    if row.arity == 2:
        keep = np.isfinite(args[0]) & np.isfinite(args[1])
        return args[0][keep], args[1][keep]
    return (row.inside(args[0]),)


def measure(row: Row, dtype: np.dtype[Any], stride: int, count: int) -> tuple[int, float, float, list[float]]:
    """The number of samples, the largest and mean error, and where the largest is; the mean is that of the sweep, without the zooms."""
    run = row.compiled()
    total, summed, largest, where = 0, 0.0, -1.0, [np.nan]

    def look(args: tuple[Array, ...]) -> float:
        nonlocal total, largest, where
        padded = tuple(np.concatenate([a, np.ones(-len(a) % PIECE, a.dtype)]) for a in args)  # so that only one shape is compiled
        pieces = [np.asarray(run(*(a[k : k + PIECE] for a in padded))) for k in range(0, len(padded[0]), PIECE)]
        got = np.concatenate(pieces)[: len(args[0])]
        errors = row.exact_errors(got, *args) if row.name == "erf" and dtype == F64 else row.errors(got, *args)
        worst = int(np.argmax(errors))
        total += len(got)
        if errors[worst] > largest:
            largest, where = float(errors[worst]), [float(a[worst]) for a in args]
        return float(errors.sum())

    for args in sweep(row, dtype, stride, count):
        if len(args[0]):
            summed += look(args)
    mean = summed / total
    for seed in range(3):
        look(zoomed(row, dtype, where, count // 50 if row.name == "erf" else count, seed))
    return total, largest, mean, where


def nanoseconds(call: Callable[..., Any], args: tuple[Array, ...]) -> float:
    """Time per element, without the overhead of a call, measured on one element."""
    full, one = args, tuple(a[:1] for a in args)
    best = [np.inf, np.inf]
    for _ in range(500):
        for k, arrays in enumerate((full, one)):  # alternating, so that a busy period of the machine affects both
            start = time.perf_counter()
            call(*arrays)
            best[k] = min(best[k], time.perf_counter() - start)
    return (best[0] - best[1]) / len(args[0]) * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="beginnings of the functions' texts; all of them unless given")
    parser.add_argument("--stride", type=int, default=257)
    parser.add_argument("--count", type=int, default=1_000_000)
    options = parser.parse_args()
    np.seterr(all="ignore")
    print(f"{'function':18s} {'dtype':8s} {'samples':>10s} {'max ULP':>8s} {'mean':>6s} {'ns':>6s} {'NumPy ns':>9s}  worst at")
    for row in ROWS:
        if options.names and not row.text.startswith(tuple(options.names)):
            continue
        for dtype in (F32, F64):
            low, high = DOMAINS.get(row.name, (0.0, 10.0))
            rng = np.random.default_rng(0)
            args = tuple(rng.uniform(max(low, -10.0), min(high, 10.0), 4096).astype(dtype) for _ in range(row.arity))
            ours = nanoseconds(row.compiled(), args)
            theirs = nanoseconds(row.function, args) if isinstance(row.function, np.ufunc) else np.nan
            total, largest, mean, where = measure(row, dtype, options.stride, options.count)
            place = ", ".join(map(repr, where))
            print(f"{row.text:18s} {dtype!s:8s} {total:10d} {largest:8.3f} {mean:6.3f} {ours:6.2f} {theirs:9.2f}  {place}", flush=True)


if __name__ == "__main__":
    main()
