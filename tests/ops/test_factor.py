"""Factorisations beyond their rows in the table: sizes, matrices without a factorisation, and applications."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import adjit as aj


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [1, 17, 64])
def test_large(n: int, dtype: str) -> None:
    a = np.random.default_rng(n).normal(size=(n, n)).astype(dtype)
    spd = a @ a.T + n * np.eye(n, dtype=dtype)
    close = {"rtol": 1e-3, "atol": 1e-3} if dtype == "f4" else {"rtol": 1e-9, "atol": 1e-9}
    factor = aj.function(np.linalg.cholesky)(spd)
    assert factor.dtype == spd.dtype
    np.testing.assert_allclose(factor, np.linalg.cholesky(spd), **close)
    for ours, theirs in zip(aj.function(np.linalg.qr)(a), np.linalg.qr(a), strict=True):
        np.testing.assert_allclose(ours, theirs, **close)
    for ours, theirs in zip(aj.function(np.linalg.slogdet)(a), np.linalg.slogdet(a), strict=True):
        np.testing.assert_allclose(ours, theirs, **close)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(49, 49), (130, 60), (161, 161), (300, 49), (2, 70, 50), (200, 7)], ids=str)
def test_qr_by_blocks(shape: tuple[int, ...], dtype: str) -> None:
    a = np.random.default_rng(0).normal(size=shape).astype(dtype)
    a[..., 5] = a[..., 1] if a.shape[-1] < 10 else 0.0  # a dependent column, or one that needs no reflection in its block
    q, r = map(np.asarray, aj.function(np.linalg.qr)(a))
    close = {"atol": 1e-4 if dtype == "f4" else 1e-12}
    np.testing.assert_allclose(q @ r, a, **close)
    np.testing.assert_allclose(np.swapaxes(q, -1, -2) @ q, np.broadcast_to(np.eye(q.shape[-1]), r.shape), **close)
    assert (np.tril(r, -1) == 0).all()
    bits = [[np.asarray(x).tobytes() for x in aj.function(np.linalg.qr, threads=threads)(a)] for threads in (1, 2, 3)]
    assert bits[0] == bits[1] == bits[2]


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_qr_of_one_value(value: float) -> None:
    a = np.full((60, 50), value)
    for ours, theirs in zip(aj.function(np.linalg.qr)(a), np.linalg.qr(a), strict=True):
        np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs))
        np.testing.assert_array_equal(np.abs(np.nan_to_num(ours)), np.abs(np.nan_to_num(theirs)))


def test_singular() -> None:
    a = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
    for function in (np.linalg.slogdet, aj.function(np.linalg.slogdet)):
        sign, size = function(aj.tensor(a))
        assert (float(sign), float(size)) == (0.0, -np.inf)
    assert float(aj.function(np.linalg.det)(a)) == 0.0


@pytest.mark.parametrize("wrap", [aj.function, lambda f: f], ids=["compiled", "eager"])
def test_not_positive(wrap: Any) -> None:
    def f(a):
        return np.linalg.cholesky(a)

    with pytest.raises(np.linalg.LinAlgError, match="cholesky: the matrix is not positive definite"):
        wrap(f)(aj.tensor(np.array([[1.0, 2.0], [2.0, 1.0]])))
    with pytest.raises(aj.ShapeError, match=r"cholesky: the matrices must be square, not f64\[2,3\]"):
        wrap(f)(aj.tensor(np.ones((2, 3))))


def test_marginal_likelihood() -> None:
    """Gaussian process regression, an application of Cholesky factors."""
    x = np.linspace(0.0, 1.0, 8)
    y = np.sin(5 * x)

    def likelihood(theta: Any) -> Any:
        kernel = np.exp(theta[0] - 0.5 * (x[:, None] - x) ** 2 * np.exp(theta[1])) + np.exp(theta[2]) * np.eye(8)
        factor = np.linalg.cholesky(kernel)
        white = np.linalg.solve(factor, y)
        return 0.5 * white @ white + np.sum(np.log(np.diag(factor)))

    def directly(theta: Any) -> Any:
        kernel = np.exp(theta[0] - 0.5 * (x[:, None] - x) ** 2 * np.exp(theta[1])) + np.exp(theta[2]) * np.eye(8)
        return 0.5 * y @ np.linalg.solve(kernel, y) + 0.5 * np.linalg.slogdet(kernel)[1]

    theta = np.array([0.3, 2.0, -2.0])
    for f in (likelihood, directly):
        step = 1e-6 * np.eye(3)
        slopes = [(f(theta + h) - f(theta - h)) / 2e-6 for h in step]
        np.testing.assert_allclose(aj.function(aj.grad(f))(theta), slopes, rtol=1e-6)
        np.testing.assert_allclose(aj.grad(f)(theta), slopes, rtol=1e-6)


def test_least_squares() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(7, 3)), rng.normal(size=7)
    np.testing.assert_allclose(aj.function(lambda a, b: np.linalg.lstsq(a, b)[0])(a, b), np.linalg.lstsq(a, b)[0])
    np.testing.assert_allclose(aj.function(np.linalg.pinv)(a), np.linalg.pinv(a))
    np.testing.assert_allclose(aj.function(np.linalg.pinv)(a.T), np.linalg.pinv(a.T))
    x = np.linspace(-1.0, 1.0, 7)
    np.testing.assert_allclose(aj.function(lambda x, y: np.polyfit(x, y, 2))(x, b), np.polyfit(x, b, 2))


@pytest.mark.parametrize("n", [96, 97, 119, 120, 149, 200])
@pytest.mark.parametrize(("group", "width"), [(1, 24), (2, 24), (3, 24), (2, 16), (8, 8)])
def test_groups_of_blocks_of_an_elimination(monkeypatch: pytest.MonkeyPatch, n: int, group: int, width: int) -> None:
    """Large matrices are updated after groups of blocks: the same for small ones, with exchanges in every block."""
    module = importlib.import_module("adjit.ir.ops.lu")
    monkeypatch.setenv("ADJIT_CACHE", "0")
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(2, n, n)), rng.normal(size=(2, n, 3))
    a[0, 0, 0] = a[1, :5, 0] = 0.0
    monkeypatch.setattr(module, "WIDTHS", ((n, width),))
    monkeypatch.setattr(module, "GROUPED", 2 * group * width)
    monkeypatch.setattr(module, "GROUP", group)
    f = aj.function(lambda a, b: (np.linalg.inv(a), np.linalg.solve(a, b), np.linalg.slogdet(a)[1]))
    inverse, solution, logdet = map(np.asarray, f(a, b))
    np.testing.assert_allclose(inverse, np.linalg.inv(a), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(solution, np.linalg.solve(a, b), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(logdet, np.linalg.slogdet(a)[1], rtol=1e-12)
