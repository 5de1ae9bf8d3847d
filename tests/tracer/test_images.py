"""Convolutions and pooling as functions: against sums over windows in NumPy, and against the layers; eager, compiled, derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjit as aj

random = np.random.default_rng(3)


def convolved(x: Any, w: Any, strides: int) -> Any:
    """A convolution without padding, written as a sum over the places of the filter."""
    rank = x.ndim - 2
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[:rank], tuple(range(1, rank + 1)))
    windows = windows[(slice(None), *(slice(None, None, strides),) * rank)]
    return np.tensordot(np.moveaxis(windows, rank + 1, -1), w, rank + 1)


@pytest.mark.parametrize("strides", [1, 2])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_values(rank: int, strides: int) -> None:
    conv = {1: aj.conv1d, 2: aj.conv2d, 3: aj.conv3d}[rank]
    x, w = random.normal(size=(2, *(5, 6, 4)[:rank], 3)), random.normal(size=(*(3, 2, 2)[:rank], 3, 4))
    want = convolved(x, w, strides)
    np.testing.assert_allclose(conv(x, w, strides), want, rtol=1e-12)
    np.testing.assert_allclose(aj.function(lambda x, w: conv(x, w, strides=strides))(x, w), want, rtol=1e-12)
    padded = np.pad(x, [(0, 0), *[(1, 1)] * rank, (0, 0)])
    np.testing.assert_allclose(conv(x, w, strides, padding=1), convolved(padded, w, strides), rtol=1e-12)
    np.testing.assert_allclose(conv(x, w, strides, padding=[(1, 1)] * rank), convolved(padded, w, strides), rtol=1e-12)


@pytest.mark.parametrize("padding", ["valid", "same"])
def test_the_transpose_is_the_adjoint(padding: str) -> None:
    x, w = random.normal(size=(2, 6, 8, 3)), random.normal(size=(2, 2, 3, 4))
    y = aj.conv2d(x, w, strides=2, padding=padding)
    u = random.normal(size=y.shape)
    back = aj.conv_transpose(u, w, strides=2, padding=padding)
    np.testing.assert_allclose(np.sum(np.asarray(y) * u), np.sum(np.asarray(back) * x), rtol=1e-12)


@pytest.mark.parametrize("pool", [aj.max_pool, aj.avg_pool], ids=lambda f: f.__name__)
def test_pooling(pool: Any) -> None:
    x = random.normal(size=(2, 6, 4, 3))
    how = np.max if pool is aj.max_pool else np.mean
    want = how(x.reshape(2, 3, 2, 2, 2, 3), axis=(2, 4))
    np.testing.assert_allclose(pool(x, 2), want, rtol=1e-12)
    np.testing.assert_allclose(aj.function(lambda x: pool(x, (2, 2), strides=2))(x), want, rtol=1e-12)
    edges = pool(x, 3, strides=3, padding=[(1, 2), (1, 1)])
    np.testing.assert_allclose(np.asarray(edges)[:, 0, 0], how(x[:, :2, :2], axis=(1, 2)), rtol=1e-12)


def test_derivatives() -> None:
    x, w = random.normal(size=(1, 5, 5, 2)), random.normal(size=(3, 3, 2, 2))

    def loss(x: Any, w: Any) -> Any:
        return np.sum(np.sin(aj.avg_pool(aj.max_pool(aj.conv2d(x, w, padding="same"), 2, strides=1), 2)))

    compiled, eager = aj.function(aj.grad(loss, (0, 1)))(x, w), aj.grad(loss, (0, 1))(x, w)
    for at, (a, b) in enumerate(zip(compiled, eager, strict=True)):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
        step = [np.zeros_like(x), np.zeros_like(w)]
        step[at] = random.normal(size=a.shape)
        slope = (float(loss(x + 1e-6 * step[0], w + 1e-6 * step[1])) - float(loss(x - 1e-6 * step[0], w - 1e-6 * step[1]))) / 2e-6
        np.testing.assert_allclose(np.sum(a.numpy() * step[at]), slope, rtol=1e-6)


def test_refused() -> None:
    with pytest.raises(aj.ShapeError, match=r"conv2d: images f64\[5,5,3\] and filters f64\[3,3,3,2\] must have 4 axes each"):
        aj.conv2d(np.ones((5, 5, 3)), np.ones((3, 3, 3, 2)))
    with pytest.raises(aj.ShapeError, match=r"padding is 'valid', 'same', .* not 'full'"):
        aj.conv2d(np.ones((1, 5, 5, 3)), np.ones((3, 3, 3, 2)), padding="full")
