"""NumPy functions that are composed of ops: their derivatives, eager and compiled, against central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

RNG = np.random.default_rng(5)
V, W, M, S = RNG.normal(size=5), RNG.normal(size=5), RNG.normal(size=(3, 4)), RNG.normal(size=(3, 3))

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "median": (np.median, V),
    "median_of_rows": (lambda x: np.median(x, axis=1), M),
    "quantile": (lambda x: np.quantile(x, [0.2, 0.9], axis=0), M),
    "quantile_by_q": (lambda q: np.quantile(aj.tensor(V) if isinstance(q, aj.Tensor) else V, q), np.array([0.3, 0.6])),
    "nanvar": (lambda x: np.nanvar(np.where(x > 1.0, np.nan, x)), V),
    "cov": (np.cov, M),
    "corrcoef": (lambda x: np.corrcoef(x)[0, 1:], M),
    "histogram_weights": (lambda w: np.histogram(V, bins=[-2.0, 0.0, 2.0], weights=w)[0], W),
    "running_max": (np.maximum.accumulate, V),
    "gradient": (lambda x: np.gradient(x, 0.5, axis=1), M),
    "gradient_by_coordinates": (lambda at: np.gradient(V, at), np.array([0.0, 0.4, 0.7, 1.5, 2.0])),
    "unwrap": (lambda x: np.unwrap(5 * x), V),
    "polyfit": (lambda y: np.polyfit(np.arange(5.0), y, 2), V),
    "piecewise": (lambda x: np.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * v]), V),
    "insert": (lambda x: np.insert(x, 1, x[3] * 2), V),
    "det": (np.linalg.det, S),
    "pinv": (np.linalg.pinv, M),
    "roll": (lambda x: np.roll(x, 3, axis=1), M),
    "nanquantile": (lambda x: np.nanquantile(np.where(x > 1.0, np.nan, x), [0.3, 0.8], axis=0), M),
    "nanpercentile_by_q": (lambda q: np.nanpercentile(aj.tensor(V) if isinstance(q, aj.Tensor) else V, q), np.array([30.0, 60.0])),
    "histogram2d_weights": (lambda w: np.histogram2d(V, W, [[-2.0, 0.0, 2.0], [-2.0, 2.0]], weights=w)[0], W),
    "ix": (lambda x: x[np.ix_(np.array([2, 0]), np.array([1, 1]))], M),
    "poly": (np.poly, V),
    "polyadd": (lambda x: np.polyadd(x, x[:2]), V),
    "polysub": (lambda x: np.polysub(x[:2], x * x), V),
    "polymul": (lambda x: np.polymul(x, x[:3]), V),
    "polydiv": (lambda x: np.concatenate(np.polydiv(x, x[:2] + 3.0)), V),
    "apply_along_axis": (lambda x: np.apply_along_axis(lambda v: np.outer(v, v), 0, x), M),
    "apply_over_axes": (lambda x: np.apply_over_axes(np.sum, x * x, [0]), M),
    "ldexp": (lambda x: np.ldexp(x, np.array([-2, 0, 1, 3, 4])), V),
    "frexp": (lambda x: np.frexp(x)[0], V),
    "nextafter": (lambda x: np.nextafter(x, 0.0), V),
    "i0": (np.i0, np.array([0.3, -2.0, 7.0, 9.0])),
    "partition": (lambda x: np.partition(x, 2)[2], V),
}


def weighted(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def loss(x: Any) -> Any:
        y = f(x)
        return np.sum(y * np.cos(np.arange(float(np.size(y)))).reshape(np.shape(y)))

    return loss


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient(name: str) -> None:
    f, x = FUNCTIONS[name]
    loss = weighted(f)
    slopes = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-6
        slopes[place] = (loss(x + step) - loss(x - step)) / 2e-6
    np.testing.assert_allclose(aj.function(aj.grad(loss))(x), slopes, rtol=1e-5, atol=1e-6)
    if "histogram" not in name and "coordinates" not in name:
        np.testing.assert_allclose(aj.grad(loss)(x), slopes, rtol=1e-5, atol=1e-6)
