"""`out=` in compiled functions: NumPy's results and gradients, or an error where another variable would see the write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

X, Y = np.array([0.3, -1.2, 2.5, 0.7]), np.array([1.5, 0.2, -0.4, -2.0])


def chain(x, y):
    o = np.empty(4)
    np.add(x, y, out=o)
    np.multiply(o, 2, out=o)
    np.exp(o, out=o)
    return o


def masked(x, y):
    o = np.full(4, 7.0)
    np.divide(x, y, out=o, where=y > 0)
    return o


def broadcast(x, y):
    o = np.ones((2, 4))
    np.multiply(x, y, out=o)
    return o


def functions(x, y):
    a, b, c, d = np.empty(4), np.empty(4), np.empty(4), np.empty((3, 3))
    np.cumsum(x, out=a)
    np.sum(np.stack([x, y]), axis=0, out=b)
    np.clip(x, 0.1, 1.0, out=c)
    np.matmul(np.outer(x, y)[:3], np.outer(x, y)[:, :3], out=d)
    return a + b + c + np.sum(d)


def loop(x, y):
    total = np.zeros(4)
    k = 0
    while k < np.sum(y > 0) + 2:
        np.add(total, x * k, out=total)
        if total[0] > 0.5:
            np.negative(total, out=total)
        k += 1
    return total


def branch(x, y):
    out = x * 2
    if y[0] > 0:
        np.square(out, out=out)
    return out


def float32(x, y):
    o = np.zeros(4, "f4")
    np.add(x, y, out=o)
    return o


def integers(x, y):
    o = np.zeros(4, dtype=int)
    np.add(x > 0, 1, out=o)
    return o * y


def of_numpy_alone(x, y):
    o = np.zeros(4)
    np.add(X, 1.0, out=o)
    return o * y


@pytest.mark.parametrize("fn", [chain, masked, broadcast, functions, loop, branch, float32, integers, of_numpy_alone])
def test_results_and_gradients_are_those_of_numpy(fn: Callable[..., Any]) -> None:
    got, wanted = aj.function(fn)(X, Y), fn(X, Y)
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-6 if got.dtype == np.float32 else 1e-12, atol=1e-15)
    if fn is not float32:
        slope = aj.function(aj.grad(lambda x: np.sum(fn(x, Y))))(X)
        np.testing.assert_allclose(slope, [(np.sum(fn(X + h, Y)) - np.sum(fn(X - h, Y))) / 2e-6 for h in np.eye(4) * 1e-6], atol=1e-6)


def alias(x):
    o = np.zeros(4)
    p = o
    np.add(x, 1, out=o)
    return o, p


def argument(x):
    np.add(x, 1, out=x)
    return x


def view(x):
    o = np.zeros(4)
    np.outer(x[:2], x[:2], out=o.reshape(2, 2))
    return o


def cast(x):
    o = np.zeros(4, dtype=int)
    np.add(x, 1, out=o)
    return o


def shape(x):
    o = np.zeros(2)
    np.add(x, 1, out=o)
    return o


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (alias, "this write would also change `p`"),
        (argument, r"would change an argument(.|\n)*copy it first: x = x.copy\(\)"),
        (view, "np.outer is not supported"),
        (cast, r"out=: f64\[4\] cannot be cast to the dtype of i64\[4\]"),
        (shape, "out=: shapes"),
    ],
)
def test_refusals(fn: Callable[..., Any], message: str) -> None:
    with pytest.raises(aj.AdjitError, match=message):
        aj.function(fn)(X)


def test_a_users_own_function() -> None:
    def put(value, out):
        out.append(value)

    @aj.function
    def f(x):
        items: list[Any] = []
        put(x, out=items)
        return items[0] * 2

    assert f(3.0) == 6.0
