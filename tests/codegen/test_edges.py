"""Products whose last tiles are not full: edges are packed, computed and stored without touching what is beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

RNG = np.random.default_rng(0)
LAYOUTS: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda a, b: a @ b,
    "turned": lambda a, b: a @ b.T,
    "both turned": lambda a, b: a.T @ b.T,
    "gaps": lambda a, b: a @ b[:, ::2],
    "followed": lambda a, b: np.maximum(a @ b, 0.25) * 2,
}
SIDES = (2, 3, 4, 7, 8, 9, 15, 16, 17, 18, 31, 32, 33, 50, 63, 65)
DEPTHS = (3, 16, 61, 300, 520)  # from 256 on, panels are added up


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
def test_what_fills_up_a_tile_is_not_seen(turned: bool) -> None:
    """An infinity in the last column stays in the last column, and nothing is written beside the result."""
    f = aj.function((lambda a, b: a @ b.T) if turned else (lambda a, b: a @ b), dynamic=True, threads=1)
    for n in SIDES:
        a, b = RNG.normal(size=(40, 70)), RNG.normal(size=(70, n))
        b[5, -1] = np.inf
        found = f(a, np.ascontiguousarray(b.T) if turned else b).numpy()
        np.testing.assert_allclose(found[:, :-1], a @ b[:, :-1], rtol=1e-10)
        assert np.isinf(found[:, -1]).all()
