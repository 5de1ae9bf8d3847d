"""Variables assigned in branches and loops, and tapes inside and around them: traced = eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.interpreter import run
from adjit.ir.verifier import verify
from adjit.tracer.autograph.convert import convert
from adjit.tracer.autograph.items import range as rolled
from tests.tracer.running import trace


def both(make: Callable[[], tuple[Callable[..., Any], list[aj.Variable]]], *args: Any) -> Any:
    """The result and the final values of variables, eager on tensors and traced; checks that they are equal."""
    function, variables = make()
    expected = function(*(aj.tensor(a) for a in args))
    after = [v.numpy() for v in variables]
    function, variables = make()
    program = trace(convert(function), *(np.asarray(a) for a in args))
    verify(program.func)
    stores = [v.store for v in variables]
    assert all(any(cell is store for store in stores) for cell in program.cells)
    out = run(program.func, *map(np.asarray, args), *(cell.data for cell in program.cells), *program.captures)  # type: ignore[attr-defined]
    np.testing.assert_allclose(out[0], np.asarray(expected), rtol=1e-12)
    updates = dict(zip([id(p) for p, _ in program.func.updates], out[len(program.func.results) :], strict=True))
    params = program.func.params[program.arguments :]
    for store, value in zip(stores, after, strict=True):
        found = [updates.get(id(p)) for p, cell in zip(params, program.cells) if cell is store]
        np.testing.assert_allclose(found[0] if found and found[0] is not None else store.data, value, rtol=1e-12)
    return np.asarray(expected)


@pytest.mark.parametrize("x", [2.0, -2.0])
def test_assigned_in_one_branch(x: float) -> None:
    def make():
        v = aj.Variable(1.0, name="v")

        def f(x):
            if x > 0:
                v.assign_add(x)
            return v * 2

        return f, [v]

    both(make, x)


@pytest.mark.parametrize("n", [0, 3])
def test_assigned_in_loop(n: int) -> None:
    def make():
        v = aj.Variable([1.0, 2.0], name="v")
        count = aj.Variable(0, trainable=False)

        def f(x, n):
            for i in range(n):
                v.assign(v * x)
                if i > 0:
                    count.assign_add(1)
            return v.sum() + count

        return f, [v, count]

    both(make, 1.5, n)


def test_assigned_in_while_in_branch_in_loop() -> None:
    def make():
        v = aj.Variable(10.0)
        w = aj.Variable(0.5)

        def f(x):
            for _ in rolled(4):
                if v > 3:
                    while v > 2:
                        v.assign(v * w)
                else:
                    v.assign_add(x)
                    w.assign(w * 0.9)
            return v + w

        return f, [v, w]

    both(make, 2.5)


def test_variable_decides() -> None:
    def make():
        v = aj.Variable(3)

        def f(x):
            while v:
                v.assign_sub(1)
                x = x * 2
            return x

        return f, [v]

    assert both(make, 1.0) == 8.0


def test_tape_inside_of_loop() -> None:
    def make():
        v = aj.Variable([0.5, -0.5])

        def f(x, n):
            loss = 0.0
            for _ in range(n):
                with aj.GradientTape() as tape:
                    loss = ((v * x - 1.0) ** 2).sum()
                g = tape.gradient(loss, v)
                v.assign_sub(0.1 * g)
            return loss

        return f, [v]

    both(make, np.array([1.0, 2.0]), 5)


def test_tape_inside_of_branch_and_while() -> None:
    def make():
        v = aj.Variable(4.0)

        def f(x):
            steps = 0
            while True:
                with aj.GradientTape() as tape:
                    loss = (v - x) ** 2
                slope = tape.gradient(loss, v)
                if abs(slope) < 1e-3:
                    break
                if slope > 0:
                    with aj.GradientTape() as second:
                        cube = v**3
                    v.assign_sub(0.01 * second.gradient(cube, v))
                v.assign_sub(0.25 * slope)
                steps += 1
            return v + steps

        return f, [v]

    both(make, 1.5)


def test_tape_of_an_unrolled_loop_is_used_after_it() -> None:
    def make():
        v = aj.Variable(2.0)

        def f(x):
            for k in range(3):
                with aj.GradientTape() as tape:
                    loss = v * v * x * k
            return tape.gradient(loss, v)

        return f, [v]

    assert both(make, 1.5) == 12.0


def test_attribute_carried_by_a_loop() -> None:
    class Cell:
        def __init__(self):
            self.h = np.zeros(2)
            self.__calls = 0

        def run(self, x, n):
            for _ in range(n):
                self.h = np.tanh(self.h + x)
                self.__calls += 1
            return self.h.sum() + self.__calls

    def f(x, n):
        return Cell().run(x, n)

    def make():
        return f, []

    both(make, np.array([0.1, 0.2]), 4)
