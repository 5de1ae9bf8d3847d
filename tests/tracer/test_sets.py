"""Results whose length depends on values: NumPy's for known values, `size` elements for traced ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

A = np.array([3.0, 1.0, 3.0, 0.0, 2.0, 1.0])
B = np.array([[1.0, 4.0], [0.0, 1.0]])
INTS = np.array([[0, 2, 0], [7, 0, 2]])
HOLES = np.array([np.nan, 1.0, np.nan, 1.0])

# NumPy's function, the arguments
CALLS: list[tuple[str, tuple[Any, ...]]] = [
    *[(name, (x,)) for name in ("nonzero", "flatnonzero", "argwhere") for x in (A, B, INTS, A > 1, np.zeros(3))],
    *[(name, (x,)) for name in ("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values") for x in (A, B, INTS)],
    *[(name, pair) for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d") for pair in ((A, B), (INTS, np.array([2, 9])), (A, A))],
    ("unique", (HOLES,)),
]


def parts(x: Any) -> list[Any]:
    return list(x) if isinstance(x, tuple) else [x]


def by_numpy(name: str, args: tuple[Any, ...]) -> list[Any]:
    """NumPy's result; sorted, if its order is unspecified."""
    out = getattr(np, name)(*args)
    return [np.sort(out)] if name == "unique_values" else parts(out)


@pytest.mark.parametrize(("name", "args"), CALLS, ids=lambda x: x if isinstance(x, str) else "")
def test_eagerly_as_numpy(name: str, args: tuple[Any, ...]) -> None:
    expected = by_numpy(name, args)
    for got in (getattr(np, name)(*map(aj.tensor, args)), getattr(aj, name)(*map(aj.tensor, args))):
        for a, b in zip(parts(got), expected, strict=True):
            np.testing.assert_array_equal(np.asarray(a), b)
            assert np.asarray(a).dtype == b.dtype


@pytest.mark.parametrize(("name", "args"), CALLS, ids=lambda x: x if isinstance(x, str) else "")
@pytest.mark.parametrize("size", [2, 9])
def test_compiled_with_a_size(name: str, args: tuple[Any, ...], size: int) -> None:
    expected = by_numpy(name, args)
    got = parts(aj.function(lambda *xs: getattr(aj, name)(*xs, size=size))(*args))
    for i, (a, b) in enumerate(zip(got, expected, strict=True)):
        if (name == "unique_inverse" and i == 1) or (name == "unique_all" and i == 2):
            np.testing.assert_array_equal(a, b)  # which of them each element is: of all elements
            continue
        n = min(size, len(b))
        assert a.shape == (size, *b.shape[1:])
        np.testing.assert_array_equal(np.asarray(a)[:n], b[:n])


def test_missing_elements_are_padded() -> None:
    assert aj.function(lambda x: aj.unique(x, size=6))(A).tolist() == [0.0, 1.0, 2.0, 3.0, 0.0, 0.0]
    assert aj.function(lambda x: aj.unique(x, size=6, fill_value=-1))(A).tolist() == [0.0, 1.0, 2.0, 3.0, -1.0, -1.0]
    assert aj.function(lambda x: aj.nonzero(x, size=4, fill_value=9)[0])(np.array([0, 1, 1])).tolist() == [1, 2, 9, 9]
    assert aj.function(lambda x: aj.unique(x, return_counts=True, size=5)[1])(A).tolist() == [1, 2, 1, 2, 0]


def test_examples_of_vmap_need_a_size() -> None:
    for use in (lambda x: np.nonzero(x)[0], lambda x: np.unique(x), lambda x: np.intersect1d(x, x)):
        np.testing.assert_array_equal(aj.function(use)(A), use(A))
        with pytest.raises(aj.TraceError, match=r"size=n"):
            aj.vmap(use)(np.stack([A, A]))


def test_scalars_have_no_positions() -> None:
    with pytest.raises(ValueError, match="0-dimensional"):
        np.nonzero(aj.tensor(1.0))


def test_derivatives_of_distinct_elements() -> None:
    for f in (lambda x: np.sum(np.unique(x) ** 2), aj.function(lambda x: aj.sum(aj.unique(x, size=4, fill_value=0) ** 2))):
        assert aj.grad(f)(A).tolist() == [6.0, 2.0, 0.0, 0.0, 4.0, 0.0]


UPDATES: dict[str, tuple[Any, ...]] = {
    "put": (np.array([0, -1, 2]), [10.0, 20.0]),
    "put_along_axis": (np.array([[1], [0], [2]]), np.array([[7.0], [8.0], [9.0]]), 1),
    "putmask": (np.arange(12).reshape(3, 4) % 3 == 0, [1.0, 2.0, 3.0]),
    "place": (np.arange(12).reshape(3, 4) % 3 == 0, [1.0, 2.0, 3.0]),
    "fill_diagonal": (5.0,),
}


@pytest.mark.parametrize("name", UPDATES)
@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (5, 2)])
def test_updates_give_new_arrays(name: str, shape: tuple[int, int]) -> None:
    if name not in ("put", "fill_diagonal") and shape != (3, 4):
        return
    x = np.random.default_rng(0).normal(size=shape)
    expected = x.copy()
    getattr(np, name)(expected, *UPDATES[name])
    update: Callable[[Any], Any] = lambda x: getattr(aj, name)(x, *UPDATES[name])  # noqa: E731
    for got in (update(x), aj.function(update)(x)):
        np.testing.assert_array_equal(got, expected)
    kept = expected == x
    np.testing.assert_array_equal(aj.function(aj.grad(lambda x: aj.sum(update(x))))(x), kept.astype(float))


def test_fill_diagonal_of_tall_and_cubic_arrays() -> None:
    for x, wrap in ((np.zeros((7, 3)), True), (np.zeros((3, 3, 3)), False)):
        expected = x.copy()
        np.fill_diagonal(expected, [1.0, 2.0], wrap=wrap)
        np.testing.assert_array_equal(aj.fill_diagonal(x, [1.0, 2.0], wrap=wrap), expected)


@pytest.mark.parametrize("function", [np.gcd, np.lcm], ids=lambda f: f.__name__)
def test_divisors_compiled(function: Any) -> None:
    a, b = np.arange(-6, 7), np.arange(0, 26, 2)[::-1].copy()
    np.testing.assert_array_equal(aj.function(lambda a, b: function(a, b))(a, b), function(a, b))


def test_representations_compiled() -> None:
    x = np.array([0.0, 1.0, -0.3, 1e-310, 1e300, np.inf, np.nan, 5e-324])
    f = aj.function(lambda x: (*np.frexp(x), np.spacing(x), np.nextafter(x, 1.0), np.ldexp(x, -3), np.bitwise_count(aj.arange(9))))
    expected = (*np.frexp(x), np.spacing(x), np.nextafter(x, 1.0), np.ldexp(x, -3), np.bitwise_count(np.arange(9)))
    for a, b in zip(f(x), expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_positions_outside_raise() -> None:
    f = aj.function(lambda i: np.ravel_multi_index((i, i), (3, 4)))
    assert f(np.array([1, 2])).tolist() == [5, 10]
    for bad in (3, -1):
        with pytest.raises(aj.OutOfBoundsError):
            f(np.array([0, bad]))


TRIMMED = [np.array([0.0, 0.0, 1.0, 0.0, 2.0, 0.0]), np.zeros(3), np.zeros(0)]
if hasattr(np, "unstack"):  # NumPy 2.1, or later: arrays of any rank
    TRIMMED += [np.pad([[0.0, 1.0], [2.0, 0.0]], 2), np.zeros((2, 3))]


@pytest.mark.parametrize("ends", ["fb", "f", "b", "FB"])
@pytest.mark.parametrize("x", TRIMMED, ids=str)
def test_trim_zeros(x: Any, ends: str) -> None:
    for axis in [None, 0, -1] if hasattr(np, "unstack") else [None]:
        options = {} if axis is None else {"axis": axis}
        trimmed = lambda x, options=options: np.trim_zeros(x, ends, **options)  # noqa: E731
        for found in (trimmed(aj.tensor(x)), aj.function(trimmed)(x)):
            np.testing.assert_array_equal(found, trimmed(x))


def test_trim_zeros_takes_new_sizes_and_has_gradients() -> None:
    f = aj.function(lambda x: np.trim_zeros(x) ** 2)
    g = aj.function(aj.grad(lambda x: aj.sum(np.trim_zeros(x) ** 2)))
    for x in (TRIMMED[0], TRIMMED[0][::-1], np.array([0.0, 3.0, 0.0, 0.0, 0.0, 0.0]), np.ones(6)):
        np.testing.assert_array_equal(f(x), np.trim_zeros(x) ** 2)
        np.testing.assert_array_equal(g(x), 2 * x)
    with pytest.raises(aj.ShapeError, match=r"trim must consist of 'f' \(front\) and 'b' \(back\), not 'x'"):
        np.trim_zeros(aj.tensor(TRIMMED[0]), "x")
