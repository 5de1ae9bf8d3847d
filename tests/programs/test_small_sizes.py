"""Loops over zero, one and many rows of zero, one and many elements; and a `while` in functions that adjit calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.tracer.pytree import flatten

SHAPES = [(0,), (0, 3), (0, 1), (1,), (1, 1), (1, 3), (3, 1), (3, 0), (80,), (80, 1), (80, 3)]
scale = aj.Variable(np.array(0.75), name="scale")


def by_map(x: Any) -> Any:
    return aj.map(lambda v: (v * 2.0, {"large": v > 1.0, "scaled": v[..., None] * scale}), x)


def by_scan(x: Any) -> Any:
    return aj.scan(lambda c, v: (0.5 * c + np.sum(v), c * v), 0.5, x)


def from_the_end(x: Any) -> Any:
    return aj.scan(lambda c, v: (0.5 * c + np.sum(v), c * v), 0.5, x, reverse=True)


def recomputed(x: Any) -> Any:
    return aj.scan(lambda c, v: (0.5 * c + np.sum(v), c * v), 0.5, x, checkpoint="sqrt")


def by_for(x: Any) -> Any:
    total = 0.0
    for row in x:
        if np.sum(row) > 0.5:
            total = total * 0.5 + np.sum(row * row)
    return total


def by_list(x: Any) -> Any:
    rows, z = [], x * 1.0
    for _ in aj.range(1):
        z = np.sin(z)
        rows.append(z)
    return np.stack(rows)


def written(x: Any) -> Any:
    y = aj.zeros(x.shape)
    for k in aj.range(x.shape[0]):
        y = y.at[k].set(x[k] * x[-1 - k])
        y = y.at[k].add(1.0)
    return y


def chosen(x: Any) -> Any:
    """Rows that are indexed by a value of the run."""
    total, last = 0.0, np.asarray(x.shape[-1] - 1) + (np.sum(x) * 0).astype("i8")
    for row in x:
        total = 0.5 * total + (np.sum(row) if x.ndim == 1 else row[last])
    return total


FUNCTIONS = [by_map, by_scan, from_the_end, recomputed, by_for, by_list, written, chosen]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_compiled_is_eager(function: Callable[..., Any], shape: tuple[int, ...]) -> None:
    if function is chosen and shape[-1] == 0:
        pytest.skip("a row without elements cannot be indexed")
    x = np.random.default_rng(0).uniform(-1, 1, shape)

    def loss(x: Any) -> Any:
        return sum(np.sum(np.sin(leaf * 1.0)) for leaf in flatten(function(x))[0])

    assert_same(aj.function(function)(x), function(x))
    assert_same(aj.function(aj.grad(loss))(x), aj.grad(loss)(x))


def assert_same(got: Any, want: Any) -> None:
    for a, b in zip(flatten(got)[0], flatten(want)[0], strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("index", [-3, -2, 1, 2])
def test_an_array_of_one_element_checks_its_index(index: int) -> None:
    def read(x: Any, i: Any) -> Any:
        total = 0.0
        for _ in aj.range(3):
            total = total + x[i]
        return total

    def write(x: Any, i: Any) -> Any:
        y = x * 1.0
        for _ in aj.range(3):
            y[i] = y[0] + 1.0
        return y

    for function in (read, write):
        with pytest.raises(IndexError, match="out of bounds"):
            aj.function(function)(np.ones(1), index)
        for right in (0, -1):
            np.testing.assert_allclose(aj.function(function)(np.ones(1), right), function(np.ones(1), right))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1"])
def test_the_fill_of_a_stack_takes_its_dtype(dtype: str) -> None:
    def stacked(x: Any) -> Any:
        rows = []
        for row in x:
            if np.sum(row) > 0:
                rows.append(row)  # noqa: PERF401 - a list that a loop appends to is what is tested
        return aj.stack(rows, fill=2, length=5)

    x = np.array([[1, 2], [-3, 1], [0, 4]], dtype)
    assert_same(aj.function(stacked)(x), np.array([[1, 2], [0, 4], [2, 2], [2, 2], [2, 2]], dtype))
    assert_same(stacked(x), np.array([[1, 2], [0, 4], [2, 2], [2, 2], [2, 2]], dtype))


# ---- a `while` inside functions that adjit calls


def newton(a: Any) -> Any:
    x = a
    while np.abs(x * x - a) > 1e-13:
        x = 0.5 * (x + a / x)
    return x


@aj.custom_gradient
def with_gradient(a: Any) -> Any:
    x = a
    while np.abs(x * x - a) > 1e-13:
        x = 0.5 * (x + a / x)

    def grad_fn(ct: Any) -> Any:
        y, k = ct * 0.0, 0.0
        while k < 2.0:
            y, k = y + 0.25 * ct / x, k + 1.0
        return y

    return x, grad_fn


@aj.custom_jvp
def with_tangent(a: Any) -> Any:
    x = a
    while np.abs(x * x - a) > 1e-13:
        x = 0.5 * (x + a / x)
    return x


@with_tangent.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (a,), (da,) = primals, tangents
    x = with_tangent(a)
    y, k = da * 0.0, 0.0
    while k < 2.0:
        y, k = y + 0.25 * da / x, k + 1.0
    return x, y


@pytest.mark.parametrize("root", [newton, aj.checkpoint(newton), with_gradient, with_tangent], ids=["", "checkpoint", "gradient", "jvp"])
def test_a_while_in_functions_that_adjit_calls(root: Callable[..., Any]) -> None:
    for mode in (lambda f: f, aj.function):
        np.testing.assert_allclose(mode(root)(2.0), np.sqrt(2.0), rtol=1e-12)
        np.testing.assert_allclose(mode(aj.grad(root))(2.0), 0.5 / np.sqrt(2.0), rtol=1e-12)
        np.testing.assert_allclose(mode(lambda x: aj.jvp(root, (x,), (1.0,))[1])(2.0), 0.5 / np.sqrt(2.0), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u4"])
@pytest.mark.parametrize(("shape", "axis"), [((0,), None), ((0, 3), 0), ((3, 0), -1), ((0, 3), 1), ((2, 0, 3), (0, 1))], ids=str)
def test_extremes_that_start_with_a_value(shape: tuple[int, ...], axis: Any, dtype: str) -> None:
    x = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    for name in ("max", "min"):
        for keepdims in (False, True):
            numpy = getattr(np, name)
            want = np.asarray(numpy(x, axis=axis, keepdims=keepdims, initial=3))
            assert_same(numpy(aj.tensor(x), axis=axis, keepdims=keepdims, initial=3), want)
            assert_same(aj.function(lambda x, f=numpy, k=keepdims: f(x, axis=axis, keepdims=k, initial=3))(x), want)
