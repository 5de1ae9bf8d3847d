"""Tables that a loop fills row by row are changed in place, forward and backward: an iteration costs a row, not the table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import adjit as aj

T, S = 120, 40  # rows too long for registers
RNG = np.random.default_rng(0)
X, A, IDS = RNG.normal(size=(T, S)), RNG.normal(size=(S, S)), RNG.integers(0, T, T)


def forward_algorithm(x: Any, times: Any) -> Any:
    t = np.zeros((T + 1, S))
    for i in times(T):
        z = t[i][:, None] + A
        m = np.max(z, axis=0)
        t[i + 1] = m + np.log(np.sum(np.exp(z - m), axis=0)) + x[i]
    return np.sum(t[T])


def parts_of_rows(x: Any, times: Any) -> Any:
    t = np.zeros((T + 1, S))
    for i in times(T):
        t[i + 1, 1:] = np.tanh(t[i, 1:] + t[i, :-1] * x[i, 1:])
        t[i + 1, 0] += x[i, 0]
    return np.sum(t * t)


def swapped_rows(x: Any, times: Any) -> Any:
    """A row that is read before it is overwritten, and used afterwards."""
    t = x * 1.0
    for i in times(T - 1):
        old = t[i].copy()
        t[i] = np.tanh(t[i + 1])
        t[i + 1] = old * 0.5
    return np.sum(t * x)


def added_rows(x: Any, times: Any) -> Any:
    t = np.zeros((T, S))
    for i in times(T):
        row = t[(i * 7) % T]
        t[IDS[i]] += np.tanh(x[i]) * row + x[i]
        t[i, 2:5] *= 0.5
    return np.sum(t * t)


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    f.__name__: f for f in (forward_algorithm, parts_of_rows, swapped_rows, added_rows)
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name: str) -> None:
    run = PROGRAMS[name]
    value, gradient = aj.function(aj.value_and_grad(lambda x: run(x, aj.range)))(X)
    assert_allclose(value, run(X, range), rtol=1e-12)
    d = RNG.normal(size=X.shape)
    f = aj.function(lambda x: run(x, aj.range))
    slope = (np.asarray(f(X + 1e-6 * d)) - np.asarray(f(X - 1e-6 * d))) / 2e-6
    assert_allclose(np.sum(np.asarray(gradient) * d), slope, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["forward_algorithm", "parts_of_rows", "added_rows"])
def test_tables_are_changed_in_place(name: str) -> None:
    text = aj.function(aj.grad(lambda x: PROGRAMS[name](x, aj.range))).inspect(X).optimized
    for carries, body in re.findall(r"carry \((.*)\) .*\{\n((?:    .*\n)*)", text):
        tables = set(re.findall(rf"f64\[\d{{3}},{S}\] (@\S+) = ", carries))
        written = set(re.findall(rf"f64\[\d{{3}},{S}\] (@\S+) = (?:scatter|set_slice)", body))
        assert written <= tables
    assert text.count("scatter") > 2
