"""`np.fft` and `aj.fft`: NumPy's values, dtypes and errors, eager and compiled; gradients against differences; sizes of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import AdjitError, DTypeError
from adjit.ir.ops.base import Array
from adjit.ir.ops.fft import factors_of, is_smooth, roots, unit_root

ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
OF_REAL = ("rfft", "rfft2", "rfftn", "ihfft")
RNG = np.random.default_rng(5)


def drawn(shape: tuple[int, ...], dtype: str) -> Array:
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape) if dtype.startswith("c") else x).astype(dtype)


def options(name: str) -> list[dict[str, Any]]:
    if name in SEVERAL:
        return [{}, {"norm": "ortho"}, {"s": (6, 5), "axes": (2, 0)}]
    return [{}, {"norm": "ortho", "axis": 1}, {"norm": "forward"}, {"n": 7}, {"n": 16, "axis": 0}, {"n": 2}]


@pytest.mark.parametrize("name", [*ONE, *SEVERAL])
def test_as_numpy(name: str) -> None:
    function = getattr(np.fft, name)
    calls = [
        (drawn((4, 9, 10), dtype), kwargs)
        for dtype in (("f8", "f4") if name in OF_REAL else ("f8", "c16", "c8"))
        for kwargs in options(name)
    ]  # fmt: skip
    compiled = aj.function(lambda xs: [function(x, **kwargs) for x, (_, kwargs) in zip(xs, calls, strict=True)])([x for x, _ in calls])
    for (x, kwargs), native in zip(calls, compiled, strict=True):
        wanted = function(x, **kwargs)
        near = 1e-12 if wanted.dtype in (np.float64, np.complex128) else 1e-5
        for got in (native, function(aj.tensor(x), **kwargs), getattr(aj.fft, name)(x, **kwargs)):
            assert got.dtype == wanted.dtype
            np.testing.assert_allclose(np.asarray(got), wanted, rtol=near, atol=near * float(np.abs(wanted).max()))


def test_frequencies_and_shifts() -> None:
    x = drawn((5, 6), "f8")
    for axes in (None, 1, (0, 1)):
        np.testing.assert_array_equal(aj.function(lambda x, axes=axes: np.fft.fftshift(x, axes))(x), np.fft.fftshift(x, axes))
        np.testing.assert_array_equal(np.fft.ifftshift(aj.tensor(x), axes), np.fft.ifftshift(x, axes))
    for n in (4, 5):
        np.testing.assert_array_equal(aj.fft.fftfreq(n, 0.1), np.fft.fftfreq(n, 0.1))
        np.testing.assert_array_equal(aj.fft.rfftfreq(n), np.fft.rfftfreq(n))


@pytest.mark.parametrize("dtype", ["c16", "c8"])
def test_sizes(dtype: str) -> None:
    """Powers of two, other smooth numbers, primes, and lengths that are cut in two; as rows, as columns and alone."""
    shapes = [((n,), 0) for n in (3, 11, 16, 63, 64, 128, 360, 1024, 1009, 2 * 521, 4096, 5040)]
    shapes += [((33, 128), 1), ((9, 1000), 1), ((700, 3), 0), ((1030, 9), 0), ((40, 40), 0), ((3, 96), 1), ((2, 96, 3), 1), ((23, 37), 1)]
    arrays = [drawn(shape, dtype) for shape, _ in shapes]
    got = aj.function(lambda xs: [[np.fft.fft(x, axis=a), np.fft.ifft(x, axis=a)] for x, (_, a) in zip(xs, shapes, strict=True)])(arrays)
    near = 2e-15 if dtype == "c16" else 1e-6
    for x, (_, axis), pair in zip(arrays, shapes, got, strict=True):
        for out, wanted in zip(pair, (np.fft.fft(x, axis=axis), np.fft.ifft(x, axis=axis)), strict=True):
            assert np.abs(out.numpy() - wanted).max() <= near * np.abs(wanted).max(), (x.shape, axis)


def test_threads_share_the_work() -> None:
    for shape in ((1 << 17,), (64, 2048)):
        x = drawn(shape, "c16")
        np.testing.assert_allclose(aj.function(np.fft.fft, threads=2)(x), np.fft.fft(x), atol=1e-10)


def test_views_are_transformed_where_they_lie() -> None:
    x = drawn((24, 20), "c16")
    for view in (lambda x: x.T, lambda x: x[::2, ::-1], lambda x: x[3:19, 1]):
        np.testing.assert_allclose(aj.function(lambda x, view=view: np.fft.fft(view(x)))(x), np.fft.fft(view(x)), atol=1e-13)


@pytest.mark.parametrize("name", ["fft", "rfft", "irfft", "hfft", "ihfft", "ifft"])
@pytest.mark.parametrize("n", [6, 7])
def test_gradients(name: str, n: int) -> None:
    x = drawn((3, n), "f8" if name in OF_REAL else "c16")
    weights = drawn(getattr(np.fft, name)(x).shape, "c16")

    def loss(x: Any) -> Any:
        return np.sum(np.abs(getattr(np.fft, name)(x) * weights) ** 2) + np.sum(np.real(getattr(np.fft, name)(x) * weights) ** 3)

    wanted = np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        for direction in (1, 1j) if x.dtype == complex else (1,):
            step = np.zeros_like(x)
            step[at] = 1e-6 * direction
            wanted[at] += direction * (loss(x + step) - loss(x - step)) / 2e-6
    for gradient in (aj.grad(loss), aj.function(aj.grad(loss))):
        np.testing.assert_allclose(gradient(x), wanted, rtol=1e-5, atol=1e-5)


def test_vmap_and_loops() -> None:
    rows = drawn((4, 12), "c16")
    np.testing.assert_allclose(aj.function(aj.vmap(np.fft.fft))(rows), np.fft.fft(rows), atol=1e-13)

    @aj.function
    def smoothed(x: Any, n: Any) -> Any:
        for _ in range(n):
            x = np.fft.irfft(np.fft.rfft(x) * np.exp(-0.1 * np.arange(7)))
        return np.sum(x * x)

    gradient = aj.function(lambda x, n: aj.grad(smoothed)(x, n))(rows[0].real, aj.tensor(3))
    kernel = np.exp(-0.1 * np.arange(7)) ** 6
    np.testing.assert_allclose(gradient, 2 * np.fft.irfft(np.fft.rfft(rows[0].real) * kernel), atol=1e-12)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_fftconvolve(mode: str) -> None:
    a, b = drawn((9,), "f8"), drawn((4,), "f8")
    for x, y in ((a, b), (a + 1j, b)):
        compiled = aj.function(lambda x, y: aj.fft.fftconvolve(x, y, mode))
        np.testing.assert_allclose(compiled(x, y), np.convolve(x, y, mode), atol=1e-13)
        wanted = np.convolve(x, y, mode) if mode != "same" else np.convolve(y, x)[(x.size - 1) // 2 :][: y.size]  # of the first one
        np.testing.assert_allclose(compiled(y, x), wanted, atol=1e-13)


def test_errors() -> None:
    x = aj.tensor(drawn((3, 4), "c16"))
    with pytest.raises(DTypeError, match="takes real numbers"):
        np.fft.rfft(x)
    with pytest.raises(ValueError, match="norm"):
        aj.fft.fft(x, norm="other")
    for call in (lambda: aj.fft.fft(x, n=0), lambda: aj.fft.fft(x, axis=2), lambda: aj.fft.irfft(x, axis=0, n=-1)):
        with pytest.raises((AdjitError, ValueError)):
            call()


def test_roots_are_rounded_well() -> None:
    k = np.arange(1000)
    exact = np.exp(-2j * np.longdouble("3.14159265358979323846264338327950288") * k / 1000)
    assert np.abs(unit_root(k, 1000) - exact).max() < 2.3e-16
    assert [unit_root(np.array(j), 4) for j in range(4)] == [1, -1j, -1, 1j]
    assert all(np.prod(factors_of(n)) == n for n in range(1, 300))
    assert is_smooth(2 * 3 * 5 * 7 * 11 * 13)
    assert not is_smooth(2 * 17)
    assert roots(8).shape == (2, 1)
