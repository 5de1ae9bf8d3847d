"""Reverse-mode derivatives in JAX's spelling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjit as aj

X = np.linspace(0.5, 2.0, 4)


def scaled() -> Any:
    """The square, with a derivative that is recognisably not that of the square."""

    @aj.custom_vjp
    def f(x: Any) -> Any:
        return x * x

    f.defvjp(lambda x: (x * x, x), lambda x, g: (10.0 * x * g,))
    return f


@pytest.mark.parametrize("mode", [lambda f: f, aj.function], ids=["eager", "compiled"])
def test_the_rule_is_used(mode: Any) -> None:
    f = scaled()
    np.testing.assert_allclose(mode(f)(X), X * X)
    np.testing.assert_allclose(mode(aj.grad(lambda x: np.sum(f(x))))(X), 10.0 * X)
    np.testing.assert_allclose(mode(aj.grad(lambda x: np.sum(aj.grad(lambda x: np.sum(f(x)))(x))))(X), [10.0] * 4)


@pytest.mark.parametrize("mode", [lambda f: f, aj.function], ids=["eager", "compiled"])
def test_structures_and_none(mode: Any) -> None:
    @aj.custom_vjp
    def f(p: Any, k: Any) -> Any:
        return {"sum": p["a"] + p["b"], "product": p["a"] * k}

    def backward(saved: Any, g: Any) -> Any:
        a, k = saved
        return {"a": g["sum"] + g["product"] * k, "b": None}, a * g["product"]

    f.defvjp(lambda p, k: ({"sum": p["a"] + p["b"], "product": p["a"] * k}, (p["a"], k)), backward)

    def loss(p: Any, k: Any) -> Any:
        out = f(p, k)
        return np.sum(out["sum"]) + np.sum(out["product"])

    dp, dk = mode(aj.grad(loss, argnums=(0, 1)))({"a": X, "b": X}, np.full(4, 3.0))
    np.testing.assert_allclose(dp["a"], np.full(4, 4.0))
    np.testing.assert_allclose(dp["b"], np.zeros(4))  # the rule says so
    np.testing.assert_allclose(dk, X)


def test_arguments_that_are_not_differentiated() -> None:
    @aj.custom_vjp
    def plain(f: Any, x: Any) -> Any:
        return f(x)

    applied = aj.custom_vjp(lambda f, x: f(x), nondiff_argnums=(0,))
    applied.defvjp(lambda f, x: (f(x), x), lambda f, x, g: (g * f(x),))
    np.testing.assert_allclose(aj.grad(lambda x: np.sum(applied(np.sin, x)))(X), np.sin(X))
    with pytest.raises(aj.GradientError, match=r"needs its derivative: call plain.defvjp"):
        plain(np.sin, X)


def test_wrong_rules() -> None:
    f = scaled()
    f.defvjp(lambda x: x * x, lambda x, g: (g,))
    with pytest.raises(aj.GradientError, match="must return the result and what the backward function needs"):
        f(X)
    f.defvjp(lambda x: (x * x, x), lambda x, g: (g, g))
    with pytest.raises(aj.GradientError, match="must return a tuple of 1, one for each argument"):
        aj.grad(lambda x: np.sum(f(x)))(X)
    f.defvjp(lambda x: (x * x, x), lambda x, g: ([g],))
    with pytest.raises(aj.GradientError, match="for an argument of structure"):
        aj.grad(lambda x: np.sum(f(x)))(X)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_forward_function_may_call_the_function_itself(compiled: bool) -> None:
    """As in JAX's documentation."""

    @aj.custom_vjp
    def f(x, y):
        return np.sin(x) * y

    def forward(x, y):
        return f(x, y), (np.cos(x), np.sin(x), y)

    def backward(saved, g):
        c, s, y = saved
        return c * g * y, s * g

    f.defvjp(forward, backward)
    gradient = aj.grad(lambda x: f(x, 2.0) + f(x * x, 1.0))
    found = (aj.function(gradient) if compiled else gradient)(0.5)
    assert float(found) == pytest.approx(2.0 * np.cos(0.5) + 2.0 * 0.5 * np.cos(0.25))
    assert float(f(1.0, 3.0)) == pytest.approx(3.0 * np.sin(1.0))
