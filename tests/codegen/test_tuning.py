"""Which implementation computes a product: the table written by `tune`, its use, and OpenBLAS in strips on our own threads."""

from __future__ import annotations

import ctypes
import io
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.cache import disk as cache
from adjit.codegen.compile import Native, compile_func
from adjit.codegen.llvm.target import current
from adjit.codegen.products import blas, tuning
from adjit.codegen.products.tuning import Measured, Table
from adjit.ir import ops
from adjit.ir.ops.base import apply
from adjit.ir.ops.linalg import Matmul
from adjit.passes.pipeline import OPTIMIZE
from adjit.runtime import tune as tune_module
from tests.codegen.test_kernels import build, sample

FOUND = blas.find()
needs_blas = pytest.mark.skipif(FOUND is None, reason="there is neither .* has OpenBLAS here")
needs_cache = pytest.mark.skipif(not cache.HAS_POSIX, reason="there is no cache here")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADJIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("ADJIT_CACHE", raising=False)
    monkeypatch.delenv("ADJIT_BLAS", raising=False)
    return tmp_path / "cache"


def row(m: int, n: int, k: int, own: float, blas: float, layout: str = "nn", threads: int = 1, dtype: str = "f64") -> Measured:
    return Measured(dtype, layout, threads, m, n, k, own, blas)


def product(m: int = 150, n: int = 140, k: int = 160, threads: int = 1) -> Native:
    return compile_func(OPTIMIZE(build(lambda a, b: apply(Matmul(), a, b), sample(m, k), sample(k, n))), threads=threads)


def is_openblas(native: Native) -> bool:
    return "@adjit_blas_dgemm" in native.llvm


def test_without_a_table_products_are_our_own() -> None:
    assert tuning.load(current()) is None
    assert not is_openblas(product())


@needs_blas
@needs_cache
def test_a_table_decides(folder: Path) -> None:
    assert FOUND is not None
    table = Table(FOUND.source, (row(128, 128, 128, own=2e-4, blas=1e-4), row(1024, 1024, 1024, own=2e-2, blas=3e-2)))
    assert tuning.save(table, current())
    assert tuning.load(current()) == table
    assert is_openblas(product())
    assert not is_openblas(product(1000, 900, 1100))
    assert not is_openblas(product(threads=2))  # nobody measured two threads


@needs_blas
@needs_cache
@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[:-1],
        lambda content: content[:-9] + b"9" + content[-8:],
        lambda content: b"",
        lambda content: b"\0" * len(content),
    ],
)
def test_a_corrupt_table_is_none(folder: Path, spoil: Callable[[bytes], bytes]) -> None:
    assert FOUND is not None
    assert tuning.save(Table(FOUND.source, (row(128, 128, 128, own=2e-4, blas=1e-4),)), current())
    (entry,) = folder.iterdir()
    entry.write_bytes(spoil(entry.read_bytes()))
    tuning._read.forget()
    assert tuning.load(current()) is None
    assert not is_openblas(product())


@needs_cache
@pytest.mark.parametrize("content", [b"{}", b"[1]", b'["x", [[1, 2]]]', b'["x", [["f64", "nn", 1, 8, 8, 0, 1.0, 1.0]]]', b"\xff"])
def test_a_table_of_another_shape_is_none(folder: Path, content: bytes) -> None:
    cache.store(str(folder), tuning._key(current()), content)
    tuning._read.forget()
    assert tuning.load(current()) is None


@needs_cache
def test_a_table_that_others_may_write_is_none(folder: Path) -> None:
    assert tuning.save(Table("x", (row(128, 128, 128, own=2e-4, blas=1e-4),)), current())
    (entry,) = folder.iterdir()
    entry.chmod(0o666)
    tuning._read.forget()
    assert tuning.load(current()) is None


@needs_cache
def test_a_table_of_another_library_is_not_used(folder: Path) -> None:
    assert tuning.save(Table("libother.so", (row(128, 128, 128, own=2e-4, blas=1e-4),)), current())
    assert not is_openblas(product())


@needs_blas
@needs_cache
def test_the_environment_overrides_the_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FOUND is not None
    assert tuning.save(Table(FOUND.source, (row(128, 128, 128, own=2e-4, blas=1e-4),)), current())
    monkeypatch.setenv("ADJIT_BLAS", "own")
    assert not is_openblas(product())
    monkeypatch.setenv("ADJIT_BLAS", "openblas")
    assert is_openblas(product(1000, 900, 1100))


def test_nothing_breaks_without_a_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "find", lambda: None)
    monkeypatch.setenv("ADJIT_BLAS", "openblas")
    assert not is_openblas(product())
    with pytest.raises(aj.UnsupportedError, match=r"neither .* has OpenBLAS"):
        aj.tune()


def test_predictions_lie_between_what_was_measured() -> None:
    rows = [row(64, 64, 64, own=1.0, blas=2.0), row(1024, 1024, 1024, own=4.0, blas=1.0)]
    at = [tuning.predicted(rows, "f64", "nn", 1, n, n, n) for n in (64, 128, 256, 512, 1024)]
    assert at == sorted(at)
    assert at[0] == pytest.approx(math.log(0.5))
    assert at[-1] == pytest.approx(math.log(4.0))
    assert tuning.predicted(rows, "f64", "nn", 1, 100_000, 100_000, 100_000) == 0.0
    assert tuning.predicted(rows, "f32", "nn", 1, 64, 64, 64) == tuning.predicted(rows, "f64", "tn", 1, 64, 64, 64) == 0.0


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "plain": (lambda a, b: apply(Matmul(), a, b), ((300, 70), (70, 90))),
    "wide": (lambda a, b: apply(Matmul(), a, b), ((70, 90), (90, 1000))),
    "turned": (lambda a, b: apply(Matmul(), a.transpose((1, 0)), b.transpose((1, 0))), ((90, 260), (150, 90))),
    "strided": (lambda a, b: apply(Matmul(), a, b.transpose((1, 2, 0)).reshape((90, 300))), ((200, 90), (3, 90, 100))),
    "hosted": (lambda a, b, c: ops.tanh(apply(Matmul(), a, b) + c), ((200, 150), (150, 160), (200, 160))),
    "only_a_mask": (lambda a, b, c: apply(Matmul(), a, b) > c, ((200, 150), (150, 160), (200, 160))),
    "a_stack": (lambda a, b: apply(Matmul(), a, b), ((5, 50, 80), (5, 80, 220))),
    "a_hosted_stack": (lambda a, b, c: ops.tanh(apply(Matmul(), a, b) * c), ((5, 50, 80), (5, 80, 220), (5, 50, 220))),
    "a_stack_of_large": (lambda a, b: apply(Matmul(), a, b), ((3, 150, 80), (3, 80, 170))),
}


@needs_blas
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", CASES)
def test_products_of_openblas(name: str, dtype: str) -> None:
    program, shapes = CASES[name]
    arrays = [sample(*shape, dtype=dtype) / np.sqrt(shape[-1], dtype=dtype) for shape in shapes]
    func = OPTIMIZE(build(program, *arrays))
    with tuning.only("own"):
        wanted = compile_func(func)(arrays)
    with tuning.only("openblas"):
        natives = [compile_func(func, threads=threads) for threads in (1, 2, 3)]
    assert all(f"@adjit_blas_{'s' if dtype == 'f4' else 'd'}gemm" in native.llvm for native in natives)
    results = [native(arrays) for native in natives]
    for got, want in zip(results[0], wanted, strict=True):
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 if dtype == "f4" else 1e-12)
        else:
            assert np.mean(got != want) < 1e-3
    bits = [[r.tobytes() for r in result] for result in results]
    assert bits[1:] == bits[:-1]


@needs_blas
def test_the_number_of_threads_of_openblas_comes_back() -> None:
    assert FOUND is not None
    get, set_ = (ctypes.CFUNCTYPE(ctypes.c_int)(FOUND.threads[blas.GET]), ctypes.CFUNCTYPE(None, ctypes.c_int)(FOUND.threads[blas.SET]))
    before = get()
    try:
        set_(2)
        with tuning.only("openblas"):
            native = product(threads=2)
        native([sample(150, 160), sample(160, 140)])
        assert get() == 2
    finally:
        set_(before)


@needs_blas
@needs_cache
def test_tune_measures_prints_and_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune_module, "SHAPES", ((40, 50, 60),))
    out = io.StringIO()
    wins = aj.tune(seconds=0.0, file=out)
    lines = out.getvalue().splitlines()
    table = tuning.load(current())
    assert table is not None
    assert len(table.rows) == sum(wins.values()) == len(lines) - 1
    assert {(r.m, r.n, r.k) for r in table.rows} == {(40, 50, 60)}
    assert {r.layout for r in table.rows} == set(tune_module.LAYOUTS)


@needs_blas
def test_tune_without_a_cache_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune_module, "SHAPES", ((40, 50, 60),))
    monkeypatch.setitem(os.environ, "ADJIT_CACHE", "0")
    with pytest.raises(aj.UnsupportedError, match="could not be stored"):
        aj.tune(seconds=0.0, file=io.StringIO())


@needs_cache
def test_programs_on_the_disk_are_those_of_their_table(monkeypatch: pytest.MonkeyPatch) -> None:
    without = tuning.settings(current())
    assert tuning.save(Table("x", (row(128, 128, 128, own=2e-4, blas=1e-4),)), current())
    measured = tuning.settings(current())
    monkeypatch.setenv("ADJIT_BLAS", "own")
    assert len({without, measured, tuning.settings(current())}) == 3
