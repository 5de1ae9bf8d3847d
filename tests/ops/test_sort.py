"""Lines of all lengths and dtypes in the one order that is stable and has NaN last, by merging and by digits."""

from __future__ import annotations

import numpy as np
import pytest

import adjit as aj
from adjit.ir.types import DTYPES

SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -1.0, 1.0]


def sample(name: str, n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    dtype = DTYPES[name]
    if dtype.kind == "f":
        x = np.round(rng.normal(size=n) * 100, 1).astype(dtype)
        x[rng.integers(0, n, len(SPECIAL))] = SPECIAL
        return x
    if dtype.kind == "b":
        return rng.integers(0, 2, n).astype(bool)
    info = np.iinfo(dtype)
    x = rng.integers(-9 if dtype.kind == "i" else 0, 9, n).astype(dtype)
    x[rng.integers(0, n, n // 2)] = rng.integers(info.min, info.max, n // 2, dtype=dtype, endpoint=True)
    return x


@pytest.mark.parametrize("n", [31, 300, 9000])
@pytest.mark.parametrize("name", [name for name, dtype in DTYPES.items() if dtype.kind != "c"])
def test_order(name: str, n: int) -> None:
    x = sample(name, n)
    order = np.argsort(x, kind="stable")
    assert np.array_equal(aj.function(aj.argsort)(x), order)
    assert np.array_equal(aj.function(aj.sort)(x), x[order], equal_nan=x.dtype.kind == "f")
    falling = np.argsort(-x if x.dtype.kind == "f" else ~x, kind="stable")
    assert np.array_equal(aj.function(lambda x: aj.argsort(x, descending=True))(x), falling)


def test_lines_of_an_axis() -> None:
    x = np.random.default_rng(0).integers(0, 50, (3, 100, 2)).astype("f4")
    assert np.array_equal(aj.function(lambda x: aj.argsort(x, axis=1))(x), np.argsort(x, 1, kind="stable"))
    assert np.array_equal(aj.function(lambda x: np.sort(x, axis=None))(x), np.sort(x, None))
