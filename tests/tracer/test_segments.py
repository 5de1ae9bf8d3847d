"""Rows combined by segment: each function against a loop in NumPy, eager and compiled, with derivatives; and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

IDS = np.array([0, 2, 0, -1, 4, 2, 2])
GRID = np.array([[0, 2], [0, 0], [-2, 4]])
REFERENCE: dict[Any, Callable[[Any], Any]] = {
    aj.segment_sum: lambda rows: rows.sum(0),
    aj.segment_prod: lambda rows: rows.prod(0),
    aj.segment_max: lambda rows: rows.max(0, initial=lowest(rows.dtype)),
    aj.segment_min: lambda rows: rows.min(0, initial=highest(rows.dtype)),
    aj.segment_mean: lambda rows: rows.sum(0) / max(len(rows), 1),
}
FUNCTIONS = pytest.mark.parametrize("segment", REFERENCE, ids=lambda f: f.__name__)


def lowest(dtype: Any) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def highest(dtype: Any) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def wanted(segment: Any, data: Any, ids: Any, count: int) -> Any:
    rows = data.reshape(ids.size, *data.shape[ids.ndim :])
    return np.stack([REFERENCE[segment](rows[ids.reshape(-1) == k]) for k in range(count)])


@FUNCTIONS
@pytest.mark.parametrize(
    ("shape", "ids"), [((7,), IDS), ((7, 3), IDS), ((7, 0), IDS), ((3, 2, 2), GRID), ((0, 2), IDS[:0])],
    ids=["1d", "2d", "empty", "grid", "none"],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1"])
def test_values(segment: Any, shape: tuple[int, ...], ids: Any, dtype: str) -> None:
    data = np.random.default_rng(0).integers(1, 5, shape).astype(dtype)
    want = wanted(segment, data, ids, 5)
    for found in (segment(data, ids, 5), aj.function(segment, static=("num_segments",))(data, ids, num_segments=5)):
        np.testing.assert_allclose(found, want, rtol=1e-6)
        if segment is not aj.segment_mean:
            assert np.asarray(found).dtype == data.dtype
    np.testing.assert_allclose(aj.function(lambda x: segment(x, ids, 5))(data), want, rtol=1e-6)


@FUNCTIONS
def test_derivatives(segment: Any) -> None:
    data = np.random.default_rng(1).normal(size=(7, 3))

    def loss(x: Any, ids: Any) -> Any:
        out = segment(x, ids, 5)
        return np.sum(np.where(np.isfinite(out), np.sin(out), 0.0))

    compiled = aj.function(aj.grad(loss))(data, IDS)
    np.testing.assert_allclose(compiled, aj.grad(lambda x: loss(x, IDS))(data), rtol=1e-12, atol=1e-12)
    direction = np.random.default_rng(2).normal(size=data.shape)
    value = lambda t: float(loss(data + t * direction, IDS))  # noqa: E731
    np.testing.assert_allclose(np.sum(compiled.numpy() * direction), (value(1e-6) - value(-1e-6)) / 2e-6, rtol=1e-7)


@pytest.mark.parametrize("number", [3, 4, 1000])
@FUNCTIONS
def test_an_id_out_of_range_raises(segment: Any, number: int) -> None:
    ids = np.array([0, number, 1])
    with pytest.raises(aj.OutOfBoundsError):
        segment(np.ones(3), ids, 3)
    with pytest.raises(aj.OutOfBoundsError):
        aj.function(lambda x, i: segment(x, i, 3))(np.ones(3), ids)


def test_refused() -> None:
    with pytest.raises(aj.DTypeError, match=r"segment ids must be integers, not f64\[3\]"):
        aj.segment_sum(np.ones(3), np.ones(3), 2)
    with pytest.raises(aj.ShapeError, match=r"segment ids of shape \(2,\) do not fit the first axes of f64\[3\]"):
        aj.segment_sum(np.ones(3), [0, 1], 2)
