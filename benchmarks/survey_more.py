"""Sixty more functions for `survey.py`: transforms, decompositions, statistics, indexing, loss functions, small programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

Made = tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...] | None]
rng = numpy.random.default_rng(1)
MILLION = 1_000_000


def normal(*shape: int) -> numpy.ndarray:
    return rng.standard_normal(shape, "f4")


def positive(*shape: int) -> numpy.ndarray:
    return numpy.abs(normal(*shape)) + numpy.float32(0.1)


def spread(n: int) -> numpy.ndarray:
    """A symmetric matrix with eigenvalues that are well apart."""
    a = normal(n, n)
    return (a + a.T) / 2 + numpy.diag(3 * numpy.arange(n, dtype="f4"))


def cross_entropy(np: Any, x: Any, labels: Any) -> Any:
    moved = x - np.max(x, -1, keepdims=True)
    return -np.mean(np.take_along_axis(moved, labels[:, None], -1)[:, 0] - np.log(np.sum(np.exp(moved), -1)))


def gaussian_log_density(np: Any, x: Any, mean: Any, scale: Any) -> Any:
    return np.sum(-0.5 * ((x - mean) / scale) ** 2 - np.log(scale))


def gram_schmidt_step(np: Any, a: Any) -> Any:
    q, r = np.linalg.qr(a)
    return np.sum(q * q * q) + np.sum(np.diagonal(r))


def whitened(np: Any, x: Any) -> Any:
    d = x - np.mean(x, 0)
    return np.sum(np.linalg.cholesky(d.T @ d / x.shape[0] + 0.1 * np.eye(x.shape[1], dtype="float32")) ** 2)


def kalman(np: Any, f: Any, p: Any, h: Any) -> Any:
    predicted = f @ p @ f.T
    gain = np.linalg.solve(h @ predicted @ h.T + np.eye(h.shape[0], dtype="float32"), h @ predicted)
    return np.sum((predicted - predicted @ h.T @ gain) ** 2)


def lstm_cell(np: Any, x: Any, h: Any, c: Any, w: Any, u: Any) -> Any:
    i, f, g, o = np.split(x @ w + h @ u, 4, axis=1)
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return np.sum(sigmoid(o) * np.tanh(c))


def bilinear_form(np: Any, x: Any, a: Any, y: Any) -> Any:
    return np.sum(np.einsum("bi,ij,bj->b", x, a, y) ** 2)


def total_variation(np: Any, x: Any) -> Any:
    return np.mean(np.abs(np.diff(x, axis=0))) + np.mean(np.abs(np.diff(x, axis=1)))


def black_scholes(np: Any, s: Any, k: Any) -> Any:
    d = (np.log(s / k) + 0.02) / 0.2
    cdf = lambda v: 0.5 * (1 + np.tanh(0.7978845608 * (v + 0.044715 * v**3)))  # noqa: E731
    return np.sum(s * cdf(d) - k * cdf(d - 0.2))


def power_iteration(np: Any, a: Any, v: Any) -> Any:
    for _ in range(10):
        v = a @ v
        v = v / np.sqrt(np.sum(v * v))
    return v @ (a @ v)


def more_cases() -> dict[str, Made]:
    heavy, wide = normal(MILLION), normal(1000, 1000)
    index = rng.integers(0, 1000, 50_000, "i4")
    complex_signal = (normal(65536) + 1j * normal(65536)).astype("c8")
    return {
        "fft, 65536": (lambda np, x: np.sum(np.abs(np.fft.fft(x))), (complex_signal,), (0,)),
        "rfft, 1024 x 1024": (lambda np, x: np.sum(np.abs(np.fft.rfft(x)) ** 2), (normal(1024, 1024),), (0,)),
        "fft2, 512 x 512": (lambda np, x: np.sum(np.abs(np.fft.fft2(x)) ** 2), (normal(512, 512),), (0,)),
        "circular convolution, 4096": (
            lambda np, x, y: np.sum(np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(y)) ** 2), (normal(4096), normal(4096)), (0, 1),
        ),
        "complex exponentials, 1e6": (lambda np, x: np.sum(np.abs(np.exp(1j * x) + 1)), (heavy,), (0,)),
        "complex products, 1e6": (lambda np, x, y: np.sum(np.real((x + 1j * y) ** 2)), (heavy, normal(MILLION)), (0, 1)),
        "eigh, 100": (lambda np, a: np.sum(np.linalg.eigh((a + a.T) / 2)[0] ** 2), (spread(100),), (0,)),
        "svd, 100 x 50": (lambda np, a: np.sum(np.linalg.svd(a, full_matrices=False)[1]), (normal(100, 50),), (0,)),
        "qr, 200 x 100": (gram_schmidt_step, (normal(200, 100),), (0,)),
        "inverse, 200": (lambda np, a: np.sum(np.linalg.inv(a)), (spread(200) + 9 * numpy.eye(200, dtype="f4"),), (0,)),
        "log-determinant, 200": (lambda np, a: np.linalg.slogdet(a)[1], (spread(200) + 9 * numpy.eye(200, dtype="f4"),), (0,)),
        "Cholesky of a covariance, 2000 x 100": (whitened, (normal(2000, 100),), (0,)),
        "matrix power 8, 200": (lambda np, a: np.sum(np.linalg.matrix_power(a / 20, 8)), (normal(200, 200),), (0,)),
        "chain of five matrices": (lambda np, *m: np.linalg.multi_dot(m), tuple(normal(150, 150) for _ in range(5)), None),
        "Kalman update, 64 x 16": (kalman, (normal(64, 64) / 8, spread(64), normal(16, 64)), (0,)),
        "power iteration, 500": (power_iteration, (spread(500), normal(500)), (0,)),
        "bilinear forms, 512 x 128": (bilinear_form, (normal(512, 128), normal(128, 128), normal(512, 128)), (0, 1, 2)),
        "outer products of rows, 2000 x 32": (lambda np, x: np.sum(np.einsum("bi,bj->bij", x, x) ** 3), (normal(2000, 32),), (0,)),
        "trace of a product, 500": (lambda np, a, b: np.einsum("ij,ji->", a, b), (normal(500, 500), normal(500, 500)), (0, 1)),
        "Kronecker product, 40 x 40": (lambda np, a, b: np.sum(np.kron(a, b) ** 2), (normal(40, 40), normal(20, 20)), (0, 1)),
        "cross products, 1e5": (lambda np, a, b: np.sum(np.cross(a, b) ** 2), (normal(100_000, 3), normal(100_000, 3)), (0, 1)),
        "cross-entropy, 4096 x 1000": (cross_entropy, (normal(4096, 1000), rng.integers(0, 1000, 4096, "i4")), (0,)),
        "Gaussian log density, 1e6": (gaussian_log_density, (heavy, normal(MILLION), positive(MILLION)), (0, 1, 2)),
        "Black-Scholes, 1e6": (black_scholes, (positive(MILLION) + 1, positive(MILLION) + 1), (0, 1)),
        "LSTM cell, 64 x 256": (lstm_cell, (*(normal(64, 256) for _ in range(3)), normal(256, 1024), normal(256, 1024)), (3, 4)),
        "total variation, 1000 x 1000": (total_variation, (wide,), (0,)),
        "KL divergence, 1e6": (lambda np, p, q: np.sum(p * np.log(p / q)), (positive(MILLION), positive(MILLION)), (0, 1)),
        "cosine similarity, 4096 x 256": (
            lambda np, a, b: np.sum(np.sum(a * b, 1) / np.sqrt(np.sum(a * a, 1) * np.sum(b * b, 1))),
            (normal(4096, 256), normal(4096, 256)), (0, 1),
        ),
        "hinge loss, 1e6": (lambda np, x, y: np.mean(np.maximum(0, 1 - x * y)), (heavy, numpy.sign(normal(MILLION))), (0,)),
        "softplus, 1e6": (lambda np, x: np.sum(np.logaddexp(x, 0)), (heavy,), (0,)),
        "arctan2 and hypot, 1e6": (lambda np, x, y: np.sum(np.arctan2(x, y) + np.hypot(x, y)), (heavy, normal(MILLION)), (0, 1)),
        "hyperbolic functions, 1e6": (lambda np, x: np.sum(np.sinh(x) / np.cosh(x) + np.arcsinh(x)), (heavy,), (0,)),
        "inverse sines, 1e6": (lambda np, x: np.sum(np.arcsin(x) * np.arccos(x)), (numpy.clip(heavy, -0.9, 0.9),), (0,)),
        "cube roots and powers, 1e6": (lambda np, x: np.sum(np.cbrt(x) * x**2.5), (positive(MILLION),), (0,)),
        "exp2 and log2, 1e6": (lambda np, x: np.sum(np.exp2(np.log2(x) * 0.5)), (positive(MILLION),), (0,)),
        "rounding, 1e6": (lambda np, x: np.floor(x) + np.ceil(x) - np.rint(x) + np.trunc(x), (heavy,), None),
        "remainders, 1e6": (lambda np, x: np.remainder(x, 0.7) + np.fmod(x, 0.3), (heavy,), None),
        "comparisons, 1e6": (lambda np, x, y: (x < y) & (x > 0) | (y == 1), (heavy, normal(MILLION)), None),
        "shifts and masks, 1e6": (lambda np, x: ((x << 3) ^ (x >> 2)) & 255, (rng.integers(0, 1 << 20, MILLION, "i4"),), None),
        "median of rows, 1000 x 1000": (lambda np, x: np.median(x, axis=1), (wide,), None),
        "quantiles, 1e5": (lambda np, x: np.quantile(x, numpy.array([0.1, 0.5, 0.9], "f4")), (normal(100_000),), None),
        "argsort, 1e5": (lambda np, x: np.argsort(x), (normal(100_000),), None),
        "searchsorted, 1e5 in 1e4": (
            lambda np, a, x: np.searchsorted(a, x), (numpy.sort(normal(10_000)), normal(100_000)), None,
        ),
        "interpolation, 1e5": (
            lambda np, x, xp, fp: np.sum(np.interp(x, xp, fp)), (normal(100_000), numpy.sort(normal(1000)), normal(1000)), (2,),
        ),
        "histogram, 1e6": (lambda np, x: np.histogram(x, bins=64, range=(-4, 4))[0], (heavy,), None),
        "bincount, 5e4": (lambda np, x: np.bincount(x, minlength=1000, length=1000) if np is not numpy else np.bincount(x, minlength=1000),
            (index,), None),
        "covariance, 2000 x 100": (lambda np, x: np.sum(np.cov(x.T) ** 2), (normal(2000, 100),), (0,)),
        "normalised columns, 1000 x 1000": (lambda np, x: np.sum(((x - np.mean(x, 0)) / np.std(x, 0)) ** 3), (wide,), (0,)),
        "running maximum, 1e6": (lambda np, x: np.maximum.accumulate(x), (heavy,), None),
        "differences, 1e6": (lambda np, x: np.sum(np.diff(x, 2) ** 2), (heavy,), (0,)),
        "gradient of a grid, 1000 x 1000": (lambda np, x: sum(np.sum(g * g) for g in np.gradient(x)), (wide,), (0,)),
        "triangles, 1000 x 1000": (lambda np, x: np.sum(np.tril(x) @ np.triu(x)), (wide,), (0,)),
        "flip and rotate, 1000 x 1000": (lambda np, x: np.flip(x, 0) + np.rot90(x), (wide,), None),
        "windows by indices, 1e5 x 16": (
            lambda np, x: np.sum(x[numpy.arange(100_000 - 16)[:, None] + numpy.arange(16)] ** 2), (normal(100_000),), (0,),
        ),
        "rows by a mask, 1000 x 1000": (lambda np, x, m: np.sum(np.where(m[:, None], x, -x) ** 3), (wide, normal(1000) > 0), (0,)),
        "diagonals, 1000 x 1000": (lambda np, x: np.sum(np.diagonal(x) ** 2) + np.trace(x), (wide,), (0,)),
        "polynomial by Horner, 1e6": (lambda np, x: np.sum(np.polyval(numpy.array([1, -2, 3, -4, 5], "f4"), x)), (heavy,), (0,)),
        "trapezoid, 1e6": (lambda np, y: np.trapezoid(y * y, dx=0.5), (heavy,), (0,)),
        "convolution of vectors, 10000 * 31": (lambda np, x, w: np.sum(np.convolve(x, w) ** 2), (normal(10_000), normal(31)), (0, 1)),
        "moments, 1e6": (lambda np, x: np.mean(x**3) / np.mean(x * x) ** 1.5 + np.mean(x**4), (heavy,), (0,)),
    }  # fmt: skip
