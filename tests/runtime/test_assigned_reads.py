"""A value read from a variable after an assignment counts as the variable: tapes around a call differentiate it as in eager code."""

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


def read_in_branch(v):
    y = v * v
    if v > 0.0:
        y = y + v * 2.0
        v.assign(5.0)
        y = y + v * v
    return y


def read_in_branch_only(v):
    if aj.stop_gradient(v) > 0.0:
        v.assign(5.0)
        y = v * v
    else:
        y = v * 2.0
    return y * v


def read_in_loop(v):
    y = 0.0 * v
    for _ in aj.range(3):
        y = y + v * 2.0
        v.assign(v * 2.0)
        y = y + v * v
    return y


def read_in_while(v):
    y = 0.0 * v
    while v < 10.0:
        y = y + v * v
        v.assign_add(3.0)
    return y * v


def branch_in_loop(v):
    y = v * 2.0
    for i in aj.range(4):
        if i > 1:
            v.assign_add(1.0)
            y = y * v
        elif v > 0.0:
            v.assign(v * v)
    return y


def loop_in_branch(v):
    y = v * 2.0
    if y < 100.0:
        for _ in aj.range(3):
            v.assign(v + y)
            y = y + v * v
    return y + v


def recomputed(v):
    def part(x):
        v.assign(v * 3.0)
        return x * v * v

    return aj.checkpoint(part)(v * 2.0) + v


def inner(v):
    return aj.function(once)(v) + v


IN_REGIONS = [read_in_branch, read_in_branch_only, read_in_loop, read_in_while, branch_in_loop, loop_in_branch]
PROGRAMS = [once, through, both, several, branch, loop, *IN_REGIONS, inner]


def gradient(program, start, compiled, closure):
    v = aj.Variable(np.float64(start))
    called = (lambda: program(v)) if closure else program
    called = aj.function(called) if compiled else called
    with aj.GradientTape() as tape:
        y = called() if closure else called(v)
    found = tape.gradient(y, v)
    return float(y), None if found is None else float(found), float(v)


def inside(program, start, compiled):
    """The same, with the tape in the function."""
    v = aj.Variable(np.float64(start))

    def taped():
        with aj.GradientTape() as tape:
            y = program(v)
        return y, tape.gradient(y, v)

    y, found = (aj.function(taped) if compiled else taped)()
    return float(y), float(found), float(v)


@pytest.mark.parametrize("closure", [False, True])
@pytest.mark.parametrize("start", [1.5, -2.0])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_compiled_as_eager(program, start, closure):
    assert gradient(program, start, True, closure) == pytest.approx(gradient(program, start, False, closure))


@pytest.mark.parametrize("start", [1.5, -2.0])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_tape_inside(program, start):
    assert inside(program, start, True) == pytest.approx(inside(program, start, False))


@pytest.mark.parametrize("start", [1.5, -2.0])
@pytest.mark.parametrize("program", IN_REGIONS, ids=lambda p: p.__name__)
def test_second_derivatives_in_branches_and_loops(program, start):
    def second(compiled):
        v = aj.Variable(np.float64(start))
        with aj.GradientTape() as outer:
            with aj.GradientTape() as tape:
                y = (aj.function(program) if compiled else program)(v)
            slope = tape.gradient(y, v)
        found = outer.gradient(slope, v, unconnected_gradients="zero")
        return float(slope), float(found)

    assert second(True) == pytest.approx(second(False))


def test_recomputed_regions():
    assert inside(recomputed, 2.0, True) == pytest.approx((2.0 * 2.0 * 6.0 * 6.0 + 6.0, 2.0 * 36.0 + 2.0 * 2.0 * 2.0 * 6.0 + 1.0, 6.0))


def test_a_tape_that_pauses_or_begins_between_reads():
    v = aj.Variable(3.0)

    @aj.function
    def paused():
        with aj.GradientTape() as tape:
            y = v * v
            with tape.stop_recording():
                v.assign(v * 2.0)
            y = y + v * 5.0
        first = tape.gradient(y, v)
        v.assign(v * 2.0)
        with aj.GradientTape() as tape:
            y = v * v
        return first, tape.gradient(y, v)

    first, second = paused()
    assert (float(first), float(second)) == (6.0 + 5.0, 24.0)


def test_a_tape_inside_of_a_branch_and_a_loop():
    v = aj.Variable(3.0)

    @aj.function
    def steps(n):
        total = 0.0
        for _ in aj.range(n):
            if v > 0.0:
                with aj.GradientTape() as tape:
                    y = v * v
                    v.assign(v + 1.0)
                    y = y + v * 10.0
                total = total + tape.gradient(y, v)
        return total

    assert float(steps(3)) == sum(2.0 * x + 10.0 for x in (3.0, 4.0, 5.0))


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
