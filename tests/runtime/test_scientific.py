"""`aj.scipy` against SciPy: values eager and compiled, gradients against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.ndimage
import scipy.signal
import scipy.spatial.distance
import scipy.stats

import adjit as aj

RNG = np.random.default_rng(0)


def agree(ours: Callable[..., Any], theirs: Callable[..., Any], *args: Any, rtol: float = 1e-11, atol: float = 1e-12) -> None:
    """Values, eager and compiled; and the gradient by the first argument."""
    for got in (ours(*args), aj.function(ours)(*args)):
        np.testing.assert_allclose(np.asarray(got), theirs(*args), rtol=rtol, atol=atol)


def slope_agrees(loss: Callable[..., Any], x: Any, rtol: float = 1e-6) -> None:
    step = 1e-6 * np.random.default_rng(1).normal(size=np.shape(x))
    change = float(loss(x + step)) - float(loss(x - step))
    for gradient in (aj.grad(loss), aj.function(aj.grad(loss))):
        assert 2 * np.sum(np.asarray(gradient(x)) * step) == pytest.approx(change, rel=rtol)


# ---- stats

CONTINUOUS: dict[str, tuple[tuple[float, ...], list[float]]] = {
    **{name: ((), [-1.0, 0.3, 2.0]) for name in ("norm", "laplace", "logistic", "cauchy", "gumbel_r")},
    **{name: ((), [0.5, -1.0, 2.0]) for name in ("expon", "rayleigh", "halfnorm")},
    "uniform": ((), [0.2, 1.5, 0.9]),
    "t": ((3.5,), [-1.0, 0.3, 2.0]),
    **{name: ((2.5,), [1.0, 0.3, -2.0]) for name in ("gamma", "chi2", "lognorm", "weibull_min", "invgamma")},
    "pareto": ((2.5,), [1.5, 3.0, 0.5]),
    "beta": ((2.0, 3.5), [0.2, 1.5, 0.9]),
}
DISCRETE: dict[str, tuple[tuple[float, ...], list[int]]] = {
    "poisson": ((2.3,), [0, 1, 5, -1]), "bernoulli": ((0.3,), [0, 1, 2]), "binom": ((5.0, 0.3), [0, 2, 5, 6]), "geom": ((0.3,), [1, 2, 0]),
    "nbinom": ((3.0, 0.4), [0, 2, 7]),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name: str) -> None:
    shapes, points = CONTINUOUS[name]
    ours, theirs, x = getattr(aj.scipy.stats, name), getattr(scipy.stats, name), np.array(points)
    for got in (ours.logpdf(x, *shapes), aj.function(lambda x: ours.logpdf(x, *shapes))(x)):
        np.testing.assert_allclose(np.asarray(got), theirs.logpdf(x, *shapes), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(ours.pdf(x, *shapes, loc=0.1, scale=1.3)), theirs.pdf(x, *shapes, 0.1, 1.3), rtol=1e-12)
    inside = x[np.isfinite(theirs.logpdf(x, *shapes, 0.1, 1.3))]
    parameters = np.array([*shapes, 0.1, 1.3])
    slope_agrees(lambda p: aj.sum(ours.logpdf(inside, *(p[i] for i in range(len(parameters))))), parameters)


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name: str) -> None:
    shapes, points = DISCRETE[name]
    ours, theirs, k = getattr(aj.scipy.stats, name), getattr(scipy.stats, name), np.array(points)
    np.testing.assert_allclose(np.asarray(ours.logpmf(k, *shapes)), theirs.logpmf(k, *shapes), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(np.asarray(aj.function(lambda k: ours.pmf(k, *shapes))(k)), theirs.pmf(k, *shapes), rtol=1e-12, atol=1e-14)


def test_distributions_of_vectors() -> None:
    x, mean, cov = RNG.normal(size=(4, 2)), np.array([0.1, 0.2]), np.array([[2.0, 0.5], [0.5, 1.0]])
    agree(aj.scipy.stats.multivariate_normal.logpdf, scipy.stats.multivariate_normal.logpdf, x, mean, cov)
    round_ = aj.scipy.stats.multivariate_normal.logpdf(x, mean, 2.0)
    np.testing.assert_allclose(round_, scipy.stats.multivariate_normal.logpdf(x, mean, 2.0))
    agree(aj.scipy.stats.dirichlet.logpdf, scipy.stats.dirichlet.logpdf, np.array([0.2, 0.3, 0.5]), np.array([1.0, 2.0, 3.0]))
    with pytest.raises(TypeError, match="shape parameters"):
        aj.scipy.stats.beta.logpdf(0.5, 1.0)


# ---- integrate


def predators(y: Any, t: Any, a: Any, b: Any) -> Any:
    return aj.stack([a * y[0] - b * y[0] * y[1], -y[1] + y[0] * y[1]])


Y0, TIMES = np.array([1.0, 0.5]), np.linspace(0.0, 4.0, 5)


def test_odeint_and_its_gradient() -> None:
    wanted = scipy.integrate.odeint(lambda y, t: [1.5 * y[0] - y[0] * y[1], -y[1] + y[0] * y[1]], Y0, TIMES, rtol=1e-11, atol=1e-11)
    for solve in (aj.scipy.integrate.odeint, aj.function(lambda *args: aj.scipy.integrate.odeint(predators, *args[1:]))):
        np.testing.assert_allclose(np.asarray(solve(predators, Y0, TIMES, (1.5, 1.0))), wanted, rtol=1e-6)

    def last(p: Any) -> Any:
        return aj.sum(aj.scipy.integrate.odeint(predators, Y0, TIMES, (p[0], p[1]), rtol=1e-11, atol=1e-11)[-1])

    p, step = np.array([1.5, 1.0]), 1e-4
    compiled = aj.function(last)
    differences = [(float(compiled(p + d)) - float(compiled(p - d))) / (2 * step) for d in np.eye(2) * step]
    np.testing.assert_allclose(np.asarray(aj.function(aj.grad(last))(p)), differences, rtol=1e-6)


def test_times_run_either_way_and_have_derivatives() -> None:
    def decay(y: Any, t: Any) -> Any:
        return -y

    assert float(aj.scipy.integrate.odeint(decay, np.array([1.0]), np.array([1.0, 0.0]))[-1, 0]) == pytest.approx(np.e, rel=1e-7)
    slope = aj.grad(lambda end: aj.scipy.integrate.odeint(decay, np.array([1.0]), aj.stack([0.0 * end, end]))[-1, 0])(1.0)
    assert float(slope) == pytest.approx(-np.exp(-1.0), rel=1e-6)


def test_solve_ivp() -> None:
    times = np.array([0.0, 1.0, 2.0])

    def solve(y0: Any) -> Any:
        return aj.scipy.integrate.solve_ivp(lambda t, y: -2.0 * t * y, (0.0, 2.0), y0, t_eval=times, rtol=1e-9, atol=1e-12)

    found = aj.function(solve)(np.array([1.0, 3.0]))
    np.testing.assert_allclose(np.asarray(found.y), np.array([[1.0], [3.0]]) * np.exp(-(times**2)), rtol=1e-7)
    assert bool(found.success)
    ends = aj.scipy.integrate.solve_ivp(lambda t, y: y, (0.0, 1.0), np.array([1.0]))
    assert ends.y.shape == (1, 2)
    blown = aj.scipy.integrate.solve_ivp(lambda t, y: y * y, (0.0, 2.0), np.array([1.0]), max_steps=300)
    assert not bool(blown.success)
    with pytest.raises(aj.UnsupportedError, match="RK45"):
        aj.scipy.integrate.solve_ivp(lambda t, y: y, (0.0, 1.0), Y0, method="Radau")
    with pytest.raises(aj.ShapeError, match="must be equal"):
        aj.scipy.integrate.odeint(lambda y, t: y[:1], Y0, TIMES)


@pytest.mark.parametrize(
    ("f", "a", "b", "wanted"),
    [
        (lambda x: aj.exp(-x * x), -np.inf, np.inf, np.sqrt(np.pi)), (lambda x: 1 / (1 + x * x), 0.0, np.inf, np.pi / 2),
        (lambda x: aj.sqrt(x), 0.0, 1.0, 2 / 3), (lambda x: aj.log(x), 0.0, 1.0, -1.0), (lambda x: aj.exp(x), -np.inf, 1.0, np.e),
        (lambda x: aj.sin(x), 3.0, 1.0, np.cos(3.0) - np.cos(1.0)), (lambda x: aj.exp(-x), np.inf, 0.0, -1.0),
    ],
)  # fmt: skip
def test_quad(f: Callable[[Any], Any], a: float, b: float, wanted: float) -> None:
    value, error = aj.scipy.integrate.quad(f, a, b)
    assert float(value) == pytest.approx(wanted, rel=1e-13)
    assert float(error) < 1e-8


def test_derivatives_of_quad() -> None:
    def integral(b: Any, k: Any) -> Any:
        return aj.scipy.integrate.quad(lambda x, k: aj.sin(k * x), 0.0, b, (k,))[0]

    by_b, by_k = aj.function(aj.grad(integral, (0, 1)))(1.0, 2.0)
    assert float(by_b) == pytest.approx(np.sin(2.0), rel=1e-13)
    assert float(by_k) == pytest.approx(np.sin(2.0) / 2 - (1 - np.cos(2.0)) / 4, rel=1e-12)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_simpson(count: int) -> None:
    x, y = np.sort(RNG.uniform(size=count)), RNG.normal(size=(3, count))
    agree(lambda y: aj.scipy.integrate.simpson(y, x=x), lambda y: scipy.integrate.simpson(y, x=x), y, rtol=1e-9)
    agree(lambda y: aj.scipy.integrate.simpson(y, dx=0.3, axis=0), lambda y: scipy.integrate.simpson(y, dx=0.3, axis=0), y.T)


# ---- the rest


@pytest.mark.parametrize("count", [2, 3, 4, 9])
@pytest.mark.parametrize("ends", ["not-a-knot", "natural", "clamped"])
def test_cubic_splines(ends: str, count: int) -> None:
    x, y, at = np.sort(RNG.uniform(0, 5, count)), RNG.normal(size=(count, 2)), RNG.uniform(-1, 6, 20)
    theirs = scipy.interpolate.CubicSpline(x, y, bc_type=ends)
    for order in range(4):
        found = np.asarray(aj.scipy.interpolate.CubicSpline(x, y, ends)(at, order))
        np.testing.assert_allclose(found, theirs(at, order), rtol=1e-7, atol=1e-7)
    slope_agrees(lambda y: aj.sum(aj.sin(aj.scipy.interpolate.CubicSpline(x, y, ends)(np.array([1.0, 2.0])))), y)


def test_interp1d() -> None:
    x, y, at = np.arange(5.0), RNG.normal(size=5), np.array([0.5, 3.25])
    agree(lambda y: aj.scipy.interpolate.interp1d(x, y)(at), lambda y: np.interp(at, x, y), y)
    agree(lambda y: aj.scipy.interpolate.interp1d(x, y, "cubic")(at), lambda y: scipy.interpolate.interp1d(x, y, "cubic")(at), y)
    assert float(aj.scipy.interpolate.interp1d(x, y, fill_value=(7.0, 8.0))(-1.0)) == 7.0
    with pytest.raises(aj.UnsupportedError, match="linear"):
        aj.scipy.interpolate.interp1d(x, y, "quadratic")


@pytest.mark.parametrize("shapes", [((7,), (3,)), ((3,), (7,)), ((6, 7), (3, 2)), ((4, 5, 6), (2, 3, 2))])
def test_convolve(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = (RNG.normal(size=shape) for shape in shapes)
    for mode in ("full", "same", "valid"):
        agree(lambda a, b, m=mode: aj.scipy.signal.convolve(a, b, m), lambda a, b, m=mode: scipy.signal.convolve(a, b, m, "direct"), a, b)
    agree(aj.scipy.signal.correlate, lambda a, b: scipy.signal.correlate(a, b, method="direct"), a, b)
    slope_agrees(lambda a: aj.sum(aj.sin(aj.scipy.signal.convolve(a, b))), a)


@pytest.mark.parametrize("mode", ["constant", "grid-constant", "nearest", "grid-wrap", "reflect", "mirror"])
def test_map_coordinates(mode: str) -> None:
    image, at = RNG.normal(size=(5, 6)), RNG.uniform(-3, 9, size=(2, 40))
    for order in (0, 1):
        agree(
            lambda x, c, o=order: aj.scipy.ndimage.map_coordinates(x, c, o, mode, 0.5),
            lambda x, c, o=order: scipy.ndimage.map_coordinates(x, c, order=o, mode=mode, cval=0.5), image, at,
        )  # fmt: skip
    slope_agrees(lambda c: aj.sum(aj.sin(aj.scipy.ndimage.map_coordinates(image, c, 1, mode))), at)
    slope_agrees(lambda x: aj.sum(aj.sin(aj.scipy.ndimage.map_coordinates(x, list(at), 1, mode))), image)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski", "cosine", "correlation"])
def test_cdist(metric: str) -> None:
    a, b = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3))
    cdist = aj.scipy.spatial.distance.cdist
    agree(lambda a, b: cdist(a, b, metric), lambda a, b: scipy.spatial.distance.cdist(a, b, metric), a, b)
    slope_agrees(lambda a: aj.sum(aj.sin(cdist(a, b, metric))), a)
    assert np.isfinite(np.asarray(aj.grad(lambda a: aj.sum(cdist(a, a, metric)))(a))).all()


def test_optimize() -> None:
    found = aj.scipy.optimize.root(lambda x, a: x * x - a, np.array([1.0]), (np.array([2.0]),))
    assert float(found.x[0]) == pytest.approx(np.sqrt(2.0))
    assert bool(found.success)
    least = aj.function(lambda c: aj.scipy.optimize.minimize(lambda x, c: aj.sum((x - c) ** 4 + x * x), np.zeros(2), (c,)).fun)
    assert np.isfinite(float(least(np.array([1.0, 2.0]))))
    slope = aj.grad(lambda a: aj.scipy.optimize.fixed_point(lambda x, a: aj.sqrt(x + a), np.array(1.0), (a,)))(2.0)
    assert float(slope) == pytest.approx(1 / 3, rel=1e-10)


def test_names() -> None:
    with pytest.raises(AttributeError, match="has integrate"):
        aj.scipy.cluster
