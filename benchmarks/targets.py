"""The cost of missing CPU instructions: products, convolutions, vector math and a fused kernel, on reduced targets, in one run.

Each row is one function; each column a target, as the time on it over the time on a target with FMA and vectors of the same width. A CPU
without FMA should take at most three times as long. Kernels that use several vectors at once can use longer registers on the target with
FMA, which has AVX2: their figures are conservative. `--host` compares with the machine's own target instead, whatever its width.

    python benchmarks/targets.py [--host] [--rounds 40] [names...]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from adjit.codegen.compile import compile_func
from adjit.codegen.llvm import toolchain as llvm
from adjit.codegen.llvm.target import LEVELS, current, described, names_of
from adjit.ir import ops
from adjit.ir.ops.convolution import conv
from adjit.ir.target import Target
from adjit.passes.pipeline import OPTIMIZE
from tests.codegen.vecmath_harness import BINARY, DOMAINS, FUNCTIONS, build
from tests.ops.harness import func_of

Call = Callable[[], object]
LIMIT = 3.0


def level(name: str, without: str = "") -> Target:
    """A level of x86-64, without one of its features."""
    missing = {without: False} if without else {}
    return described(llvm.host().triple, name, missing, names_of(name) - {without})


def pairs() -> dict[str, tuple[Target, Target]]:
    """Targets without FMA, each paired with one that has FMA and vectors of the same width."""
    fma = level("x86-64-v3")
    narrow = replace(fma, vector_bytes=16)
    return {
        "x86-64": (level("x86-64"), narrow),
        "x86-64-v2": (level("x86-64-v2"), narrow),
        "AVX2, no FMA": (level("x86-64-v3", "fma"), fma),
    }


def vector_math(name: str, dtype: str) -> Callable[[Target], Call]:
    low, high = DOMAINS.get(name, (0.0, 10.0))
    rng = np.random.default_rng(0)
    kind = np.dtype(dtype)
    args = tuple(rng.uniform(max(low, -10.0), min(high, 10.0), 4096).astype(kind) for _ in range(2 if name in BINARY else 1))
    out = np.empty_like(args[0])

    def prepared(target: Target) -> Call:
        run = build(name, kind, target.vector_bytes // kind.itemsize, target)
        return lambda: run(*args, out=out)

    return prepared


def program(call: Callable[..., Any], *shapes: tuple[int, ...], dtype: str = "f4") -> Callable[[Target], Call]:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in shapes]

    def prepared(target: Target) -> Call:
        native = compile_func(OPTIMIZE(func_of(call, arrays)), target.with_threads(1))
        return lambda: native(arrays)

    return prepared


def fused(x: Any, y: Any) -> Any:
    return ops.sum(ops.tanh(x * y + 0.5) * ops.exp(-x * x) + x / (1.0 + y * y))


CASES: dict[str, Callable[[Target], Call]] = {
    **{f"{name} {dtype}": vector_math(name, dtype) for name in FUNCTIONS for dtype in ("f4", "f8")},
    "product 24 f4": program(ops.matmul, (24, 24), (24, 24)),
    "product 256 f4": program(ops.matmul, (256, 256), (256, 256)),
    "product 256 f8": program(ops.matmul, (256, 256), (256, 256), dtype="f8"),
    "convolution f4": program(conv, (4, 28, 28, 8), (3, 3, 8, 16)),
    "fused f4": program(fused, (200, 200), (200, 200)),
    "fused f8": program(fused, (200, 200), (200, 200), dtype="f8"),
    "rounding f4": program(lambda x: ops.floor(x) + ops.round(x * 3.0), (200, 200)),
    "cholesky f8": program(lambda x: ops.cholesky(ops.matmul(x, ops.transpose(x, (1, 0)))), (60, 80), dtype="f8"),
}


def best(calls: list[Call], rounds: int) -> list[float]:
    """The fastest run of each, alternating."""
    times = [np.inf] * len(calls)
    for _ in range(rounds):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            times[k] = min(times[k], time.perf_counter() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="words that a case's name begins with")
    parser.add_argument("--host", action="store_true")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    if not llvm.host().triple.startswith("x86_64"):
        sys.exit("the lesser targets are levels of x86-64")
    print(f"this machine: {current()}")
    columns = {name: (level(name), current()) for name in LEVELS if _runs(name)} if options.host else pairs()
    print(f"{'':16s}" + "".join(f"{name:>14s}" for name in columns))
    worst = {}
    for case, prepared in CASES.items():
        if options.names and not case.startswith(tuple(options.names)):
            continue
        ratios = []
        for lesser, full in columns.values():
            mine, theirs = best([prepared(lesser), prepared(full)], options.rounds)
            ratios.append(mine / theirs)
        worst[case] = max(ratios)
        print(f"{case:16s}" + "".join(f"{ratio:13.2f}x" for ratio in ratios), flush=True)
    slow = [case for case, ratio in worst.items() if ratio > LIMIT]
    if not options.host:
        print(f"more than {LIMIT} times as long: {', '.join(slow) or 'none'}")


def _runs(name: str) -> bool:
    has = {word for word, there in llvm.host().features.items() if there}
    return names_of(name) <= has


if __name__ == "__main__":
    main()
