"""Complex numbers in NumPy's order: comparisons, extrema, sorting, with NaN and infinities, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

PARTS = [0.0, 1.0, -1.0, np.nan, np.inf]
NUMBERS = np.random.default_rng(0).permutation([complex(a, b) for a in PARTS for b in PARTS])
RNG = np.random.default_rng(1)
TIES = RNG.integers(-2, 3, (3, 4, 5)) + 1j * RNG.integers(-2, 3, (3, 4, 5))


def check(function: Callable[..., Any], *args: Any) -> None:
    with np.errstate(invalid="ignore"):
        expected = np.asarray(function(*args))
    for got in (aj.function(function)(*args), function(*map(aj.tensor, args))):
        assert np.asarray(got).dtype == expected.dtype
        np.testing.assert_array_equal(np.asarray(got), expected)


@pytest.mark.parametrize("name", ["less", "less_equal", "greater", "greater_equal", "maximum", "minimum"])
def test_pairs_of_numbers(name: str) -> None:
    function = getattr(np, name)
    check(lambda a, b: function(a, b), *np.meshgrid(NUMBERS, NUMBERS))
    check(lambda a, b: function(a, b), TIES, TIES[0, 0].real.copy())


@pytest.mark.parametrize("axis", [0, -1])
def test_sorted(axis: int) -> None:
    check(lambda x: np.sort(x, axis=axis), TIES)
    check(lambda x: np.argsort(x, axis=axis, kind="stable"), TIES)
    check(np.sort, NUMBERS)
    check(np.sort_complex, TIES)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "ptp", "median"])
@pytest.mark.parametrize("axis", [None, 1, (0, 2)])
def test_extrema(name: str, axis: Any) -> None:
    if isinstance(axis, tuple) and name.startswith("arg"):
        pytest.skip("takes one axis")
    check(lambda x: getattr(np, name)(x, axis=axis), TIES)


def test_the_first_nan_is_the_extremum() -> None:
    found = aj.function(lambda x: (np.argmax(x), np.argmin(x)))
    for start in range(3):
        assert found(NUMBERS[start:]) == (np.argmax(NUMBERS[start:]), np.argmin(NUMBERS[start:]))


def test_extrema_without_nan() -> None:
    some = np.array([1 + 1j, complex(np.nan, 1), 3, 2 - 1j, complex(0, np.nan), -2])
    for name in ("nanmax", "nanmin", "nanargmax", "nanargmin"):
        check(getattr(np, name), some)
        check(lambda x, name=name: getattr(np, name)(x, axis=0), some.reshape(3, 2)[:2])
    slope = aj.grad(lambda z: aj.real(aj.nanmax(z)))(some)
    np.testing.assert_array_equal(np.asarray(slope), [0, 0, 1, 0, 0, 0])


@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema_of_selected_numbers(name: str) -> None:
    function = getattr(np, name)
    check(lambda x: function(x, axis=0, initial=1.0, where=x.real > 0), TIES)
    check(lambda x: function(x, initial=-1j, where=x.real > 9), TIES)


def test_gradients_follow_the_elements() -> None:
    weights = np.arange(3.0)
    slope = aj.grad(lambda z: aj.sum(aj.real(aj.sort(z)) * weights) + aj.imag(aj.max(z)))(np.array([3.0 + 1j, 1.0j, 2.0 - 1j]))
    np.testing.assert_array_equal(np.asarray(slope), [2.0 + 1j, 0.0, 1.0])
