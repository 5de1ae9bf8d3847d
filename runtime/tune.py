"""`tune()`, or `python -m adjit.tune`: measure adjit's own matrix products against OpenBLAS's, and store the faster one for later programs.

Nothing is tuned unless requested: without a table, adjit's own products are used on every machine. The two differ in the last bits.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import numpy as np

from adjit.ir.errors import UnsupportedError
from adjit.ir.records import NamedTuple

from .config import config
from .function import function

SHAPES = (
    (64, 64, 512), (128, 128, 128), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024),
    (32, 512, 128), (128, 512, 784), (784, 512, 128), (128, 4096, 1024), (2048, 64, 512),
)  # fmt: skip
LAYOUTS = ("nn", "nt", "tn")
DTYPES = ("float32", "float64")
SHORT = {"float32": "f32", "float64": "f64"}
SECONDS = 0.04  # for each measurement; the fastest call counts


class Case(NamedTuple):
    dtype: str
    layout: str
    threads: int
    shape: tuple[int, int, int]


def tune(seconds: float = SECONDS, file: TextIO | None = None) -> dict[str, int]:
    """Return how often adjit's and OpenBLAS's matrix products were faster, measured for many shapes.

    Prints a table to `file` (default: standard output) and stores it in the cache, for all later programs. Raises UnsupportedError if there
    is no OpenBLAS to compare with, or no directory to store the table in.

    >>> aj.tune()                                                       # doctest: +SKIP
    """
    from adjit.codegen.llvm import target  # noqa: PLC0415 - keeps llvmlite out of `import adjit`
    from adjit.codegen.products import blas, tuning  # noqa: PLC0415 - keeps llvmlite out of `import adjit`

    found, out = blas.find(), file or sys.stdout
    if found is None:
        raise UnsupportedError("tune: neither NumPy's wheel nor scipy-openblas has OpenBLAS: all products use the built-in routines")
    machine = target.current()
    threads = config.threads or machine.threads
    cases = [Case(*case) for case in itertools.product(DTYPES, LAYOUTS, sorted({1, threads}), SHAPES)]
    print(f"{'m, n, k':>18} {'dtype':>8} {'layout':>7} {'threads':>8} {'own':>8} {'openblas':>9}   GFLOP/s", file=out)
    rows = []
    for number, case in enumerate(cases):
        own, theirs = (_seconds(case, choice, seconds) for choice in tuning.CHOICES)
        m, n, k = case.shape
        rows.append(tuning.Measured(SHORT[case.dtype], case.layout, case.threads, m, n, k, own, theirs))
        speeds = " ".join(f"{2e-9 * m * n * k / t:{width}.1f}" for t, width in ((own, 8), (theirs, 9)))
        _clear(out)
        print(f"{f'{m}, {n}, {k}':>18} {case.dtype:>8} {case.layout:>7} {case.threads:>8} {speeds}", file=out)
        _progress(out, number + 1, len(cases))
    _clear(out)
    if not tuning.save(tuning.Table(found.source, tuple(rows)), machine):
        raise UnsupportedError("tune: the table could not be stored: there is no cache (ADJIT_CACHE_DIR), or its disk is full or read-only")
    return {"own": sum(r.own <= r.blas for r in rows), "openblas": sum(r.own > r.blas for r in rows)}


def _seconds(case: Case, choice: str, seconds: float) -> float:
    """Return the time of the fastest call of one product, computed by the chosen implementation."""
    from adjit.codegen.products import tuning  # noqa: PLC0415 - as in `tune`

    m, n, k = case.shape
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(case.dtype) for shape in _stored(case.layout, m, n, k))
    product = function(_PRODUCTS[case.layout], threads=case.threads)
    with tuning.only(choice):
        product(a, b)
    return min(_times(lambda: product(a, b), seconds))


def _stored(layout: str, m: int, n: int, k: int) -> list[tuple[int, int]]:
    """Return the shapes of the factors as stored in memory."""
    return [shape if kind == "n" else shape[::-1] for kind, shape in zip(layout, ((m, k), (k, n)), strict=True)]


_PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "nn": lambda a, b: a @ b,
    "nt": lambda a, b: a @ b.T,
    "tn": lambda a, b: a.T @ b,
}


def _times(call: Callable[[], object], seconds: float) -> Iterator[float]:
    end = time.perf_counter() + seconds
    for count in itertools.count():
        start = time.perf_counter()
        if count > 2 and start > end:
            return
        call()
        yield time.perf_counter() - start


def _progress(out: TextIO, done: int, total: int) -> None:
    if out.isatty():
        print(f"[{'#' * (30 * done // total):30}] {done} of {total}", end="", file=out, flush=True)


def _clear(out: TextIO) -> None:
    if out.isatty():
        print("\r\033[K", end="", file=out)


def main() -> None:
    started = time.perf_counter()
    wins = tune()
    print(f"OpenBLAS was faster in {wins['openblas']} of {sum(wins.values())} cases, by our clock; {time.perf_counter() - started:.0f} s")
