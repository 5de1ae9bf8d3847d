"""Rows of a number that is known only at run time: few are computed member by member, many row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.kernels.rows import FEW

RNG = np.random.default_rng(0)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


def normalized(x: Any) -> Any:
    d = x - np.mean(x, -1, keepdims=True)
    return d / np.sqrt(np.mean(d * d, -1, keepdims=True) + 1e-5)


def numbered(x: Any) -> Any:
    return softmax(x * np.arange(x.shape[0])[:, None]) + np.arange(x.shape[1])


CALLS: dict[str, Callable[[Any], Any]] = {"softmax": softmax, "normalized": normalized, "numbered": numbered}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("length", [16, 100, 131])
@pytest.mark.parametrize("name", CALLS)
def test_any_number_of_rows(name: str, length: int, dtype: str) -> None:
    f = aj.function(CALLS[name], input_signature=[aj.TensorSpec([None, length], dtype)])
    for rows in (2, 3, 7, FEW - 1, FEW, FEW + 1, 2 * FEW, 300):
        x = RNG.normal(size=(rows, length)).astype(dtype)
        np.testing.assert_allclose(f(x), CALLS[name](x), rtol=2e-5 if dtype == "f4" else 1e-12, atol=1e-5 if dtype == "f4" else 1e-13)
    assert f.trace_count == 1


@pytest.mark.one_size("the length of a row is known")
def test_both_ways_are_in_one_kernel() -> None:
    f = aj.function(softmax, input_signature=[aj.TensorSpec([None, 100], "f4")])
    text = f.inspect(np.ones((9, 100), "f4")).loops
    assert f"nest min(B, {FEW}) x 100" in text
    assert "for row in chunk*rows" in text
    long = aj.function(softmax, input_signature=[aj.TensorSpec([None, 2000], "f4")])
    assert f"min(B, {FEW})" not in long.inspect(np.ones((9, 2000), "f4")).loops
