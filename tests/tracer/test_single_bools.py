"""Single bools in keys: each adds a new axis, of which all or nothing is selected, as in NumPy, next to any other items."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

BOOLS = [True, False, np.bool_(True), np.array(False)]
OTHERS = [0, slice(1, None), None, ..., np.array([1, 0]), np.array([[1], [0]]), np.array([True, False])]
KEYS = [(b,) for b in BOOLS] + [key for b in BOOLS for other in (*OTHERS, *BOOLS) for key in ((b, other), (other, b))]
LONGER = [key for a, b in itertools.product(OTHERS, OTHERS) for key in itertools.permutations((a, True, b))]
X = np.arange(12.0).reshape(2, 2, 3)


def read(x: Any, key: Any) -> Any:
    return x[key]


def written(x: Any, key: Any) -> Any:
    if isinstance(x, aj.Tensor):
        return x.at[key].set(7.0)
    y = x.copy()
    y[key] = 7.0
    return y


def outcome(compute: Callable[[Any, Any], Any], x: Any, key: Any) -> Any:
    try:
        return np.asarray(compute(x, key))
    except (IndexError, aj.ShapeError):
        return "refused"


@pytest.mark.parametrize("compute", [read, written])
@pytest.mark.parametrize("shape", [(2, 2, 3), (2,), ()], ids=str)
def test_reads_and_writes_are_numpys(shape: tuple[int, ...], compute: Callable[[Any, Any], Any]) -> None:
    x = X.ravel()[: int(np.prod(shape))].reshape(shape)
    for key in KEYS + LONGER:
        got, wanted = outcome(compute, aj.tensor(x), key), outcome(compute, x, key)
        np.testing.assert_array_equal(got, wanted, err_msg=f"{key}", strict=not isinstance(wanted, str))


def test_traced_arrays_and_gradients() -> None:
    def f(x: Any) -> Any:
        return np.sum(x[True] ** 2) + np.sum(x[..., False]) + np.sum(x[0, np.bool_(True), [1, 0]])

    np.testing.assert_allclose(aj.function(f)(X), f(X))
    np.testing.assert_allclose(aj.function(aj.grad(f))(X), aj.grad(f)(X))
    expected = 2.0 * X
    expected[0] += 1.0
    np.testing.assert_allclose(aj.grad(f)(X), expected)


def test_traced_bools() -> None:
    """The size of a selection is found when the function runs; a write needs no size."""
    for key in (1.0, -1.0):
        selected = aj.function(lambda x, a: x[a > 0.0])(X, key)
        np.testing.assert_array_equal(selected, X[key > 0.0], strict=True)
        new = aj.function(lambda x, a: (x.at[a > 0.0].set(7.0), x.at[a > 0.0].add(x), x.at[a > 0.0].set(x[:1] * 2.0)))(X, key)
        taken = key > 0.0
        np.testing.assert_array_equal(new, [np.where(taken, 7.0, X), np.where(taken, 2.0 * X, X), np.where(taken, 2.0 * X[:1], X)])
