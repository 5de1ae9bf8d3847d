"""`checkpoint`: the same derivatives, compiled and under an eager tape, and fewer values stored for them."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import GradientError

X = np.linspace(-1.0, 1.0, 6)


def layers(x: Any) -> Any:
    for _ in range(5):
        x = np.sin(x) * np.exp(x)
    return x


def stages(x: Any, layer: Any) -> Any:
    for _ in range(4):
        x = layer(x * 0.5)
    return np.sum(x * x)


def plain(x: Any) -> Any:
    return stages(x, layers)


def kept(x: Any) -> Any:
    return stages(x, aj.checkpoint(layers))


def slope(fn: Any) -> Any:
    return lambda x: np.sum(np.cos(aj.grad(fn)(x)))


@pytest.mark.parametrize("form", [lambda f: f, aj.function], ids=["eager", "compiled"])
def test_derivatives_are_the_same(form: Any) -> None:
    np.testing.assert_allclose(form(kept)(X), plain(X), rtol=1e-13)
    np.testing.assert_allclose(form(aj.grad(kept))(X), aj.grad(plain)(X), rtol=1e-11)
    np.testing.assert_allclose(form(aj.grad(slope(kept)))(X), aj.grad(slope(plain))(X), rtol=1e-9)
    np.testing.assert_allclose(form(lambda x: aj.jvp(kept, (x,), (np.cos(x),))[1])(X), aj.jvp(plain, (X,), (np.cos(X),))[1], rtol=1e-11)


def products(x: Any) -> Any:
    for _ in range(5):
        x = np.tanh(x @ x)
    return x


@pytest.mark.one_size("the memory for packing is that of the largest blocks")
def test_compiled_code_keeps_less() -> None:
    """A matrix for each of twenty products, or one for each of four calls and those of one call."""
    x = np.eye(100)
    arenas = []
    for layer in (products, aj.checkpoint(products)):
        gradient = aj.function(aj.grad(lambda x, layer=layer: stages(x, layer), argnums=0))
        arenas.append(gradient.inspect(x).arena_bytes / x.nbytes)
    assert arenas[0] > 20
    assert arenas[1] < 15


class Alive:
    """Counts the tensors that are alive among those that a function made."""

    def __init__(self) -> None:
        self.made: list[weakref.ref[Any]] = []

    def __call__(self, x: Any) -> Any:
        for _ in range(5):
            x = np.sin(x)
            self.made.append(weakref.ref(x))
        return x

    def count(self) -> int:
        gc.collect()
        return sum(ref() is not None for ref in self.made)


def test_an_eager_tape_keeps_less() -> None:
    x, layer = aj.tensor(X), Alive()
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = aj.checkpoint(layer)(aj.checkpoint(layer)(x))
    assert layer.count() == 2
    derivative = tape.gradient(y, x)
    assert len(layer.made) == 20  # each of them ran once more
    np.testing.assert_allclose(derivative, aj.grad(lambda x: np.sum(Alive()(Alive()(x))))(X))


def test_what_is_closed_over_and_variables_have_gradients() -> None:
    w, c, x = aj.Variable(X), aj.tensor(2.0 * X), aj.tensor(3.0)
    with aj.GradientTape() as tape:
        tape.watch([c, x])
        y = aj.checkpoint(lambda x: (np.sum(w * c * x), {"and": x * x}))(x)
    w.assign(np.zeros(6))  # the second run sees the value that the first has seen
    dw, dc, dx = tape.gradient(y, [w, c, x])
    np.testing.assert_allclose(dw, 6.0 * X)
    np.testing.assert_allclose(dc, 3.0 * X)
    np.testing.assert_allclose(dx, np.sum(2.0 * X * X) + 6.0)
    np.testing.assert_array_equal(w.numpy(), np.zeros(6))


def test_a_function_that_assigns_runs_once() -> None:
    count = aj.Variable(0.0)

    def counted(x: Any) -> Any:
        count.assign_add(1.0)
        return np.sin(x)

    assert aj.grad(aj.checkpoint(counted))(0.5) == np.cos(0.5)
    assert count.numpy() == 1.0
    assert aj.function(aj.grad(aj.checkpoint(counted)))(0.5) == np.cos(0.5)
    assert count.numpy() == 2.0


def test_one_inside_of_another() -> None:
    def outer(x: Any) -> Any:
        return np.sum(aj.checkpoint(layers)(x) * aj.checkpoint(np.exp)(x))

    np.testing.assert_allclose(aj.grad(aj.checkpoint(outer))(X), aj.grad(lambda x: np.sum(layers(x) * np.exp(x)))(X), rtol=1e-11)


def test_a_variable_of_the_caller_may_be_assigned_later() -> None:
    def program(x: Any) -> Any:
        factor, calls = np.sin(x), 0

        def scaled(u: Any) -> Any:
            return u * factor * calls

        def counted(u: Any) -> Any:
            nonlocal calls
            calls = calls + 1
            return np.sum(scaled(u) * u)

        y = aj.checkpoint(counted)(x) + aj.checkpoint(counted)(x)
        factor = factor * 3.0
        return y * calls + np.sum(factor)

    x = np.linspace(0.1, 1.0, 4)
    want = 6.0 * (2.0 * x * np.sin(x) + x * x * np.cos(x)) + 3.0 * np.cos(x)
    assert np.allclose(aj.grad(program)(aj.tensor(x)), want)
    assert np.allclose(aj.function(aj.grad(program))(x), want)


def test_a_function_that_is_none_of_its_arguments_is_refused() -> None:
    generator = np.random.default_rng(0)

    def noisy(x: Any) -> Any:
        return x * generator.normal()

    with pytest.raises(GradientError, match="checkpoint: noisy returned a different result when it was recomputed"):
        aj.grad(aj.checkpoint(noisy))(1.0)


def test_without_a_tape_it_is_the_function() -> None:
    assert aj.checkpoint(lambda x, n=2: x * n)(3.0) == 6.0
