"""Variables of functions: as arguments, closed over, and created while tracing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjit as aj

# ---- variables


def test_variables_as_arguments_are_bound_by_position() -> None:
    @aj.function
    def move(a: aj.Variable, b: aj.Variable) -> Any:
        a.assign_add(1.0)
        b.assign_add(10.0)
        return a * b

    p, q = aj.Variable(1.0), aj.Variable(2.0)
    assert (move(p, q).item(), p.item(), q.item()) == (24.0, 2.0, 12.0)
    assert (move(q, p).item(), p.item(), q.item()) == (156.0, 12.0, 13.0)
    assert move.trace_count == 1
    assert (move(p, p).item(), p.item()) == (529.0, 23.0)
    assert move.trace_count == 2


def test_an_argument_may_be_a_closed_over_variable() -> None:
    w = aj.Variable(1.0)

    @aj.function
    def f(a: aj.Variable) -> Any:
        a.assign_add(1.0)
        w.assign_add(10.0)
        return a + w

    p, q = aj.Variable(100.0), aj.Variable(200.0)
    assert f(p).item() == 112.0
    assert f(w).item() == 44.0
    assert f(q).item() == 233.0
    assert f(w).item() == 86.0
    assert f.trace_count == 2


def test_gradients_by_variables_that_are_arguments() -> None:
    @aj.function
    def step(x: Any, ws: dict[str, aj.Variable]) -> Any:
        with aj.GradientTape() as tape:
            loss = ((x @ ws["w"] + ws["b"]) ** 2).sum()
        return loss, tape.gradient(loss, ws)

    ws = {"w": aj.Variable([1.0, 1.0]), "b": aj.Variable(0.0)}
    loss, gradients = step(np.array([[1.0, 2.0]]), ws)
    assert (loss.item(), gradients["w"].tolist(), gradients["b"].item()) == (9.0, [6.0, 12.0], 6.0)


def test_variables_are_read_again_at_each_call() -> None:
    w = aj.Variable(1.0)
    f = aj.function(lambda x: x * w)
    assert f(2.0).item() == 2.0
    w.assign(5.0)
    assert f(2.0).item() == 10.0


class Lazy:
    def __init__(self) -> None:
        self.w: aj.Variable | None = None

    @aj.function
    def __call__(self, x: Any) -> Any:
        if self.w is None:
            self.w = aj.Variable(2.0)
        self.w.assign_add(1.0)
        return x * self.w


def test_variables_may_be_created_on_the_first_call() -> None:
    lazy = Lazy()
    assert (lazy(10.0).item(), lazy(10.0).item()) == (30.0, 40.0)
    assert lazy(np.ones(2)).tolist() == [5.0, 5.0]


def test_variables_created_on_every_call_are_refused() -> None:
    with pytest.raises(ValueError, match="singleton"):
        aj.function(lambda x: x * aj.Variable(1.0))(2.0)


def test_variables_created_on_a_later_trace_are_refused() -> None:
    kept: list[aj.Variable] = []

    @aj.function
    def f(x: Any) -> Any:
        kept.append(aj.Variable(1.0))
        return x * kept[-1]

    f(1.0)
    with pytest.raises(ValueError, match="singleton"):
        f(np.ones(2))
