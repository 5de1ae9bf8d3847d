"""Products whose last tiles are not full: edges are packed, computed and stored without touching adjacent memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.llvm.target import current
from adjit.codegen.products import cutting
from adjit.ir.types import F32

RNG = np.random.default_rng(0)
LAYOUTS: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda a, b: a @ b,
    "turned": lambda a, b: a @ b.T,
    "both turned": lambda a, b: a.T @ b.T,
    "gaps": lambda a, b: a @ b[:, ::2],
    "followed": lambda a, b: np.maximum(a @ b, 0.25) * 2,
}
SIDES = (2, 3, 4, 7, 8, 9, 15, 16, 17, 18, 31, 32, 33, 50, 63, 65)
DEPTHS = (3, 16, 61, 300, 520)  # from 256 or 384 on, panels are added up


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_edges_of_all_widths(layout: str, dtype: str) -> None:
    f = aj.function(LAYOUTS[layout], dynamic=True, threads=1)
    tolerance = 1e-4 if dtype == "f4" else 1e-11
    for i, n in enumerate(SIDES):
        m, k = SIDES[-1 - i] + 1, DEPTHS[i % len(DEPTHS)]
        a, b = RNG.normal(size=(k, m) if layout == "both turned" else (m, k)), RNG.normal(size=(n, k) if "turned" in layout else (k, n))
        b = np.repeat(b, 2, 1) if layout == "gaps" else b
        wanted = LAYOUTS[layout](a.astype(dtype).astype("f8"), b.astype(dtype).astype("f8"))
        np.testing.assert_allclose(f(a.astype(dtype), b.astype(dtype)), wanted, rtol=tolerance, atol=tolerance * 10)


@pytest.mark.parametrize("turned", [False, True])
def test_padding_of_a_tile_is_not_visible(turned: bool) -> None:
    """An infinity in the last column stays in the last column, and nothing is written outside the result."""
    f = aj.function((lambda a, b: a @ b.T) if turned else (lambda a, b: a @ b), dynamic=True, threads=1)
    for n in SIDES:
        a, b = RNG.normal(size=(40, 70)), RNG.normal(size=(70, n))
        b[5, -1] = np.inf
        found = f(a, np.ascontiguousarray(b.T) if turned else b).numpy()
        np.testing.assert_allclose(found[:, :-1], a @ b[:, :-1], rtol=1e-10)
        assert np.isinf(found[:, -1]).all()


def test_tiles_for_edges_are_compiled_for_the_sizes_that_have_them() -> None:
    target = current()._replace(vector_bytes=64, vector_registers=32, in_halves=True)  # tiles of 8 x 32
    found = {(m, n): {e.is_low for e in cutting.edges_of(m, n, F32, target)} for m in (64, 67, 71) for n in (96, 99, 127)}
    low, thin = True, False
    assert found[64, 96] == found[71, 127] == set()
    assert found[67, 96] == found[67, 127] == {low}
    assert found[64, 99] == found[71, 99] == {thin}
    assert found[67, 99] == {low, thin}
    narrow = target._replace(vector_bytes=32, vector_registers=16, in_halves=False)  # 6 x 16: all heights take one kind
    assert [e.is_low for e in cutting.edges_of(64, 99, F32, narrow)] == [False]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_whole_tiles_compute_the_same_as_tiles_for_edges(dtype: str) -> None:
    """A program that needs no tiles for edges may run before one that does: in its table are the whole ones."""
    code = f"""
import sys
import numpy as np
import adjit as aj
from adjit.codegen.products import routine
if sys.argv[1] == "whole":
    routine.edge_names = lambda *_: set()
rng = np.random.default_rng(0)
for m, n, k in ((67, 99, 300), (131, 33, 520), (65, 130, 61)):
    a, b = rng.normal(size=(m, k)).astype("{dtype}"), rng.normal(size=(k, n)).astype("{dtype}")
    print(aj.function(lambda a, b: a @ b, threads=1)(a, b).numpy().tobytes().hex())
    print(aj.function(lambda a, b: a.T @ b, threads=1)(a.T.copy(), b).numpy().tobytes().hex())
"""
    found = [
        subprocess.run([sys.executable, "-c", code, which], capture_output=True, text=True, check=True).stdout
        for which in ("whole", "edges")
    ]
    assert found[0] == found[1] != ""
