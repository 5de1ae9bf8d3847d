"""Distributions by rejection, factorisation and special functions: draws are tested against SciPy's distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

stats = pytest.importorskip("scipy.stats")

N = 4000
KEY = aj.random.key(11)
CONTINUOUS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "laplace": (lambda key: aj.random.laplace(key, (N,), "f64"), stats.laplace()),
    "logistic": (lambda key: aj.random.logistic(key, (N,), "f64"), stats.logistic()),
    "cauchy": (lambda key: aj.random.cauchy(key, (N,), "f64"), stats.cauchy()),
    "truncated_normal": (lambda key: aj.random.truncated_normal(key, -0.5, 2.0, (N,), "f64"), stats.truncnorm(-0.5, 2.0)),
    "gamma 0.3": (lambda key: aj.random.gamma(key, 0.3, (N,), "f64"), stats.gamma(0.3)),
    "gamma 1": (lambda key: aj.random.gamma(key, 1.0, (N,), "f64"), stats.gamma(1.0)),
    "gamma 25": (lambda key: aj.random.gamma(key, 25.0, (N,), "f64"), stats.gamma(25.0)),
    "beta": (lambda key: aj.random.beta(key, 2.0, 0.7, (N,), "f64"), stats.beta(2.0, 0.7)),
    "dirichlet": (lambda key: aj.random.dirichlet(key, np.array([1.0, 2.0, 3.0]), (N,), "f64")[:, 1], stats.beta(2.0, 4.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name: str) -> None:
    draw, expected = CONTINUOUS[name]
    compiled = np.asarray(aj.function(draw)(KEY))
    assert stats.kstest(compiled, expected.cdf).pvalue > 1e-4
    eager = np.asarray(draw(KEY))
    assert np.mean(np.isclose(eager, compiled, rtol=1e-9)) > 0.999  # a rejection may be decided by the last bit


@pytest.mark.parametrize("rate", [0.0, 0.3, 4.0, 9.99, 10.0, 60.0, 5000.0])
def test_poisson(rate: float) -> None:
    drawn = np.asarray(aj.function(lambda key: aj.random.poisson(key, rate, (N,)))(KEY))
    assert drawn.dtype == np.int64
    assert drawn.min() >= 0
    if rate == 0.0:
        assert not drawn.any()
        return
    assert abs(drawn.mean() - rate) < 5 * (rate / N) ** 0.5
    assert abs(drawn.var() - rate) < 6 * rate * (2.0 / N + 1.0 / (rate * N)) ** 0.5
    points = np.unique(np.quantile(drawn, [0.1, 0.3, 0.5, 0.7, 0.9]))
    np.testing.assert_allclose([(drawn <= k).mean() for k in points], stats.poisson(rate).cdf(points), atol=4 * 0.5 / N**0.5)


@pytest.mark.parametrize("mode", [lambda f: f, aj.function], ids=["eager", "compiled"])
def test_parameters_that_have_no_distribution(mode: Any) -> None:
    """They are visible in the result, which is not a plausible number."""
    wrong = np.array([np.nan, -1.0, -20.0, 2.0])
    drawn = np.asarray(mode(lambda key, a: aj.random.gamma(key, a, dtype="f64"))(KEY, wrong))
    assert np.isnan(drawn).tolist() == [True, True, True, False]
    counts = np.asarray(mode(lambda key, rate: aj.random.poisson(key, rate))(KEY, wrong))
    assert (counts < 0).tolist() == [True, True, True, False]


def test_parameters_broadcast() -> None:
    rates = np.array([[0.5], [50.0]])
    assert aj.random.poisson(KEY, rates, (2, 3)).shape == (2, 3)
    assert aj.random.gamma(KEY, np.array([1.0, 2.0])).shape == (2,)
    assert aj.random.beta(KEY, np.ones((2, 1)), np.ones(3)).shape == (2, 3)
    assert aj.random.gamma(KEY, np.ones((0, 3))).shape == (0, 3)
    with pytest.raises(aj.ShapeError, match=r"gamma: parameters of shape \[3\] do not broadcast to the shape \[2\]"):
        aj.random.gamma(KEY, np.ones(3), (2,))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_dtypes(dtype: str) -> None:
    for draw in (aj.random.laplace, aj.random.logistic, aj.random.cauchy):
        assert draw(KEY, (3,), dtype).dtype == np.dtype(dtype)
    assert aj.random.gamma(KEY, 2.0, (3,), dtype).dtype == np.dtype(dtype)
    assert aj.random.beta(KEY, 2.0, 3.0, (3,), dtype).dtype == np.dtype(dtype)
    assert aj.random.truncated_normal(KEY, dtype=dtype).dtype == np.dtype(dtype)


@pytest.mark.parametrize("mode", [lambda f: f, aj.function], ids=["eager", "compiled"])
@pytest.mark.parametrize("alpha", [0.4, 1.7, 12.0])
def test_gamma_differentiates_the_quantile(alpha: float, mode: Any) -> None:
    def total(a: Any) -> Any:
        return aj.random.gamma(KEY, a, (5,), "f64")

    x, slope = mode(lambda a: aj.jvp(total, (a,), (np.ones(()),)))(np.array(alpha))
    x, slope = np.asarray(x), np.asarray(slope)
    p = stats.gamma.cdf(x, alpha)
    h = 1e-5
    wanted = (stats.gamma.ppf(p, alpha + h) - stats.gamma.ppf(p, alpha - h)) / (2 * h)
    np.testing.assert_allclose(slope, wanted, rtol=1e-3)
    reverse = mode(aj.grad(lambda a: np.sum(total(a))))(np.array(alpha))
    np.testing.assert_allclose(reverse, slope.sum(), rtol=1e-9)


def test_multivariate_normal() -> None:
    mean, cov = np.array([1.0, -2.0]), np.array([[2.0, 0.6], [0.6, 0.5]])
    drawn = np.asarray(aj.function(lambda key, m, c: aj.random.multivariate_normal(key, m, c, (20_000,)))(KEY, mean, cov))
    assert drawn.shape == (20_000, 2)
    np.testing.assert_allclose(drawn.mean(0), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(drawn.T), cov, atol=0.08)
    with pytest.raises(aj.ShapeError, match="multivariate_normal"):
        aj.random.multivariate_normal(KEY, mean, np.eye(3))


def test_choice() -> None:
    p = np.array([0.1, 0.0, 0.6, 0.3])
    often = np.asarray(aj.random.choice(KEY, 4, (N,), p=p))
    np.testing.assert_allclose(np.bincount(often, minlength=4) / N, p, atol=0.05)
    once = np.asarray(aj.function(lambda key: aj.random.choice(key, 4, (3,), replace=False, p=p))(KEY))
    assert sorted(once) == [0, 2, 3]
    assert sorted(np.asarray(aj.random.choice(KEY, 6, (2, 3), replace=False)).ravel()) == list(range(6))
    rows = np.arange(10).reshape(5, 2)
    picked = np.asarray(aj.random.choice(KEY, rows, (7,)))
    assert picked.shape == (7, 2)
    assert all(any(np.array_equal(r, row) for row in rows) for r in picked)
    for arguments in ({"a": 3, "shape": (4,), "replace": False}, {"a": 0, "shape": (1,)}, {"a": 3, "p": p}):
        with pytest.raises(aj.ShapeError, match="choice"):
            aj.random.choice(KEY, **arguments)
