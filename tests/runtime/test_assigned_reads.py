"""What is read of a variable after an assignment is the variable again: tapes around a call differentiate by it as in eager code."""

from __future__ import annotations

import numpy as np
import pytest

import adjit as aj


def once(v):
    v.assign_add(1.0)
    return v * 3.0


def through(v):
    v.assign(v * 2.0)
    return v.value()


def both(v):
    y = v * 5.0
    v.assign(y)
    return v + y


def several(v):
    v.assign_add(1.0)
    y = v * 3.0
    v.assign(y)
    v.assign_add(y * 0.0)
    return y * v


def branch(v):
    if v > 0.0:
        v.assign(v * 2.0)
    return v * 7.0


def loop(v):
    for _ in aj.range(3):
        v.assign(v * 2.0)
    return v * v


def inner(v):
    return aj.function(once)(v) + v


PROGRAMS = [once, through, both, several, branch, loop, inner]


def gradient(program, start, compiled, closure):
    v = aj.Variable(np.float64(start))
    called = (lambda: program(v)) if closure else program
    called = aj.function(called) if compiled else called
    with aj.GradientTape() as tape:
        y = called() if closure else called(v)
    found = tape.gradient(y, v)
    return float(y), None if found is None else float(found), float(v)


@pytest.mark.parametrize("closure", [False, True])
@pytest.mark.parametrize("start", [1.5, -2.0])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_compiled_as_eager(program, start, closure):
    assert gradient(program, start, True, closure) == pytest.approx(gradient(program, start, False, closure))


def test_second_derivatives():
    def cube(v):
        v.assign(v * v)
        return v * v * v

    for wrap in (lambda f: f, aj.function):
        v, call = aj.Variable(2.0), wrap(cube)
        with aj.GradientTape() as outer:
            with aj.GradientTape() as tape:
                y = call(v)
            slope = tape.gradient(y, v)
        assert (float(y), float(slope), float(outer.gradient(slope, v))) == (64.0, 48.0, 24.0)


def test_an_argument_keeps_its_own_derivative():
    v = aj.Variable(1.0)

    @aj.function
    def f(x):
        v.assign(x * 2.0)
        return v * x

    x = aj.Tensor(3.0)
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    by_x, by_v = tape.gradient(y, [x, v])
    assert (float(y), float(by_x), float(by_v)) == (18.0, 6.0, 3.0)
