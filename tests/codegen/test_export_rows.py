"""Exported code of every row of the op table, called from C, C++ and JavaScript: the same bits as in Python, or nearly so elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.codegen.llvm.target import current
from adjit.codegen.products import tuning
from adjit.ir.func import Func
from adjit.ir.ops.base import Array
from adjit.ir.ops.eig import ComplexEig, Eig
from adjit.ir.types import DTYPES
from adjit.passes.pipeline import OPTIMIZE
from adjit.passes.rewrite import walk
from tests.codegen.export_harness import ARM, C99, CPP, EVERYTHING, Batch, Outcome, browser, need, ulps
from tests.ops.cases_collective import CASES as COLLECTIVE
from tests.ops.harness import Row, func_of
from tests.ops.test_rows import ROWS, SMOOTH

MOST_ULPS = 64.0  # of the largest number of a result, on machines with other vectors and without FMA


def programs(every: int = 1) -> Iterator[tuple[str, Func, list[Array]]]:
    """Each row in one of its dtypes, and the gradients of the smooth ones; without those that need MPI or LAPACK, and are refused."""
    elsewhere = {case.name for case in COLLECTIVE}
    for name, func, args in _programs(every, elsewhere):
        if not any(isinstance(stmt.op, Eig | ComplexEig) for stmt in walk(func.block)):
            yield name, func, args


def _programs(every: int, elsewhere: set[str]) -> Iterator[tuple[str, Func, list[Array]]]:
    for k, case in enumerate(ROWS):
        if k % every == 0 and case.name not in elsewhere:
            args = case.draw(DTYPES[case.dtypes[k % len(case.dtypes)]])
            yield case.name, func_of(case.call, args), args
    for k, case in enumerate(SMOOTH):
        if (k % (4 * every) == 0 or EVERYTHING) and case.name not in elsewhere:
            row = Row(case, case.draw(case.widest))
            yield f"gradient of {case.name}", row.pullback_func(), [*row.args, *row.cotangents]


def native(func: Func, args: list[Array]) -> list[Array]:
    """The results of native code in Python, without LAPACK, which exported code does not have."""
    target = current().with_threads(1)
    with tuning.only("own"):
        return compile_func(OPTIMIZE.run(func, None, target), target)([np.ascontiguousarray(a) for a in args])


@pytest.mark.parametrize("compiler", [C99, CPP], ids=["C99", "C++"])
def test_rows_give_the_same_bits(tmp_path: Path, compiler: list[str]) -> None:
    need(compiler[0])
    batch = Batch(tmp_path)
    found = list(programs(1 if EVERYTHING else 3 if compiler is C99 else 24))
    for _, func, args in found:
        batch.add_func(func, args)
    for (name, func, args), outcome in zip(found, batch.run(compiler), strict=True):
        assert outcome.codes == [0], name
        for got, wanted in zip(outcome.results[0], native(func, args), strict=True):
            assert got.tobytes() == wanted.tobytes(), name


def nearly(batch: Batch, every: int, run: Callable[[Batch], list[Outcome]] = Batch.run) -> None:
    found = list(programs(every))
    for _, func, args in found:
        batch.add_func(func, args)
    worst: dict[str, float] = {}
    for (name, func, args), outcome in zip(found, run(batch), strict=True):
        assert outcome.codes == [0], name
        for got, wanted in zip(outcome.results[0], native(func, args), strict=True):
            if got.dtype.kind == "f":
                worst[name] = max(worst.get(name, 0.0), ulps(got, wanted))
            else:
                assert got.tobytes() == wanted.tobytes(), name
    assert {name: error for name, error in worst.items() if error > MOST_ULPS} == {}


def test_rows_on_aarch64(tmp_path: Path) -> None:
    need("qemu-aarch64")
    nearly(Batch(tmp_path, "aarch64-linux"), 1 if EVERYTHING else 9, lambda batch: batch.run(ARM, ["qemu-aarch64"]))


def test_rows_as_wasm(tmp_path: Path) -> None:
    nearly(Batch(tmp_path, "wasm32"), 1 if EVERYTHING else 9)


def test_rows_in_a_browser(tmp_path: Path) -> None:
    browser()
    nearly(Batch(tmp_path, "wasm32"), 4 if EVERYTHING else 30, Batch.run_in_browser)


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_rows_on_levels_of_x86(tmp_path: Path, level: str) -> None:
    target = current()
    if not target.triple.startswith("x86_64"):
        pytest.skip("this is no x86-64")
    from adjit.codegen.llvm import toolchain
    from adjit.codegen.llvm.target import names_of

    if not names_of(level) <= {word for word, has in toolchain.host().features.items() if has}:
        pytest.skip(f"this CPU does not run {level}")
    nearly(Batch(tmp_path, level), 4 if EVERYTHING else 40)
