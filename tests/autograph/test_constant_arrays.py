"""NumPy's functions and methods on constant arrays whose other arguments are traced: NumPy itself does not dispatch on these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

A = np.arange(6.0)
M = A.reshape(2, 3)
I = np.array([1, 2])
X = np.array([0.4, 0.7])

CASES: dict[str, Callable[[Any, Any], Any]] = {
    "take": lambda i, x: np.take(A, i),
    "take along an axis": lambda i, x: np.take(M, i - 3, axis=1),
    "repeat": lambda i, x: np.repeat(A[:2], i),
    "roll": lambda i, x: np.roll(A, i[0]),
    "pad": lambda i, x: np.pad(A, 1, constant_values=x[0]),
    "nan_to_num": lambda i, x: np.nan_to_num(A / A, nan=x[0]),
    "full_like": lambda i, x: np.full_like(A, x[0]),
    "resize": lambda i, x: np.resize(A, (i[0], i[1])),
    "sum": lambda i, x: np.sum(A, initial=x[0]),
    "prod": lambda i, x: np.prod(A + 1.0, initial=x[1]),
    "max": lambda i, x: np.max(M, 0, initial=x[0] * 4),
    "min": lambda i, x: np.amin(M, axis=1, initial=x[0]),
    "method take": lambda i, x: A.take(i),
    "method repeat": lambda i, x: A[:2].repeat(i),
    "method reshape": lambda i, x: A.reshape(i[1], -1),
    "method sum": lambda i, x: M.sum(1, initial=x[0]),
    "method prod": lambda i, x: M.prod(initial=x[0]),
    "method max": lambda i, x: M.max(1, initial=x[0] * 4),
    "method min": lambda i, x: M.min(initial=x[0] - 1),
    "method mean": lambda i, x: M.mean(where=x[0] < M),
    "method clip": lambda i, x: A.clip(x[0], 4 * x[1]),
    "method dot": lambda i, x: M.T.dot(x),
    "method searchsorted": lambda i, x: A.searchsorted(x, side="right"),
}


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("case", CASES)
def test_results_are_numpys(case: str) -> None:
    fn = CASES[case]
    compiled = aj.function(fn)
    for i, x in ((I, X), (I[::-1].copy(), -X)):
        np.testing.assert_allclose(compiled(i, x), fn(i, x), rtol=1e-12, strict=False)
        assert compiled(i, x).dtype == np.asarray(fn(i, x)).dtype


def test_gradients() -> None:
    def loss(x: Any) -> Any:
        return np.sum(np.pad(A, 1, constant_values=x[0]) ** 2) + A.clip(x[0], 9.0).sum() + M.T.dot(x).sum() + np.sum(A, initial=x[1])

    np.testing.assert_allclose(aj.function(aj.grad(loss))(X), [4 * X[0] + 1 + 3, 12 + 1])


def test_the_rest_stays_numpys() -> None:
    """Without traced arguments these are calls of NumPy: their results are arrays, which may be written to."""

    def f(x: Any) -> Any:
        a = np.take(A, [1, 2]).copy()
        b = A.take([3])
        assert type(a) is type(b) is np.ndarray
        a[0] = 7.0
        return x * a[0] + b.sum()

    assert aj.function(f)(2.0) == 17.0
