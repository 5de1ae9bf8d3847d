"""The first NaN: named with its op, its numbers and the user's line, forward and backward; by `f.debug` and `config.debug_nans`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.tracer.control import fori_loop


@pytest.fixture
def debugging() -> Iterator[None]:
    aj.config.debug_nans = True
    try:
        yield
    finally:
        aj.config.debug_nans = False


def ratio(x: Any, y: Any) -> Any:
    a = x + 1.0
    b = a / y  # the line
    return (b * 2.0).sum()


def test_forward() -> None:
    f = aj.function(ratio)
    x = np.ones(3)
    with pytest.raises(aj.NonFiniteError, match=r"@ratio: `div` gave an infinity in 1 of 3 elements at \[1\]: div\(2\.0, 0\.0\)") as caught:
        f.debug(x, np.array([1.0, 0.0, 2.0]))
    assert "b = a / y  # the line" in str(caught.value)
    assert isinstance(caught.value, FloatingPointError)
    assert f.debug(x, x).item() == 12.0


@pytest.mark.parametrize("dynamic", [False, True])
def test_backward_names_the_forward_op(dynamic: bool) -> None:
    @aj.function(dynamic=dynamic)
    def step(x: Any) -> Any:
        return aj.grad(lambda x: np.sqrt(x * 2.0).sum())(x)

    with pytest.raises(aj.NonFiniteError, match=r"@step, backward, in the adjoint of `sqrt`.*gave an infinity") as caught:
        step.debug(np.array([1.0, 0.0]))
    assert "np.sqrt(x * 2.0)" in str(caught.value)


def test_masked_values_are_not_reported() -> None:
    f = aj.function(lambda x: np.where(x > 0.0, np.log(x), 0.0))
    assert f.debug(np.array([0.0, 1.0])).tolist() == [0.0, 0.0]


def test_of_several_the_first_that_matters() -> None:
    @aj.function
    def f(x: Any) -> Any:
        masked = np.where(x > 0.0, np.log(x), 0.0)
        return masked + np.arcsin(x + 2.0)

    with pytest.raises(aj.NonFiniteError, match=r"`asin` gave NaN.*asin\(2\.0\)"):
        f.debug(np.array(0.0))


def test_an_argument_that_was_bad_from_the_start() -> None:
    with pytest.raises(aj.NonFiniteError, match=r"%y was NaN in 1 of 2 elements from the start"):
        aj.function(ratio).debug(np.ones(2), np.array([1.0, np.nan]))


def test_loops() -> None:
    @aj.function
    def looped(x: Any, n: Any) -> Any:
        return fori_loop(0, n, lambda k, x: x * x * 1e100, x) + 1.0

    with pytest.raises(aj.NonFiniteError, match=r"`mul` gave an infinity"):
        looped.debug(1e50, 5)


@pytest.mark.usefixtures("debugging")
def test_the_setting_checks_every_call_and_leaves_variables_unchanged() -> None:
    w = aj.Variable([1.0, 2.0], name="w")

    @aj.function
    def step(x: Any) -> Any:
        w.assign_sub(np.log(x))
        return w.sum()

    assert step(np.ones(2)).item() == 3.0
    with pytest.raises(aj.NonFiniteError, match=r"`log` gave an infinity"):
        step(np.array([1.0, 0.0]))
    assert w.numpy().tolist() == [1.0, 2.0]


def test_the_setting_can_be_turned_off(debugging: None) -> None:
    f = aj.function(lambda x: 1.0 / x)
    with pytest.raises(aj.NonFiniteError):
        f(np.zeros(1))
    aj.config.debug_nans = False
    assert f(np.zeros(1)).tolist() == [np.inf]


def test_methods() -> None:
    class Model:
        @aj.function
        def __call__(self, x: Any) -> Any:
            return np.log(x)

    with pytest.raises(aj.NonFiniteError, match="log"):
        Model().__call__.debug(np.zeros(()))
