"""Forward mode through branches and loops: against reverse mode, forward over reverse, reverse over forward, interpreted and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adjit.ir.builder import Builder
from adjit.ir.func import Value
from adjit.ir.interpreter import run
from adjit.ir.verifier import verify
from adjit.passes.autodiff.adjoint import value_and_grad_func
from adjit.passes.autodiff.forward import jvp_func, push_forward
from adjit.passes.pipeline import OPTIMIZE
from tests.passes.loop_programs import PROGRAMS, Program
from tests.passes.test_reverse_regions import assert_all_close, compiled, differences, floating


def directions(program: Program) -> tuple[Any, ...]:
    """A tangent for each floating parameter."""
    return tuple(np.cos(np.arange(a.size) + 1.0).reshape(a.shape) for a in program.arrays if a.dtype.kind == "f")


@pytest.mark.parametrize("name", PROGRAMS)
def test_tangents_agree_with_gradients(name: str) -> None:
    program = PROGRAMS[name]
    func = program.func()
    forward = jvp_func(func)
    verify(forward)
    along = directions(program)
    got = run(forward, *program.arrays, *along)
    gradients = run(value_and_grad_func(func), *program.arrays)[1:]
    want = sum(float((g * d).sum()) for g, d in zip(gradients, along, strict=True))
    assert_all_close(got, [run(func, *program.arrays)[0], want])
    assert_all_close(compiled(forward, (*program.arrays, *along)), got)


@pytest.mark.parametrize("name", PROGRAMS)
def test_forward_over_reverse(name: str) -> None:
    """The product of the Hessian with a direction."""
    program = PROGRAMS[name]
    along = directions(program)
    gradient = value_and_grad_func(program.func())
    mixed = jvp_func(gradient)
    verify(mixed)
    got = run(mixed, *program.arrays, *along)
    places = floating(gradient)
    for n in range(len(places)):
        total = 0.0
        for d, by in zip(differences_of(gradient, program, 1 + n), along, strict=True):
            total = total + np.tensordot(d, by, by.ndim)
        np.testing.assert_allclose(got[len(gradient.results) + 1 + n], total, rtol=1e-5, atol=1e-7)
    assert_all_close(compiled(mixed, (*program.arrays, *along)), got, rtol=1e-10)


def differences_of(func: Any, program: Program, result: int, step: float = 1e-6) -> list[Any]:
    """The Jacobian of one result by every floating parameter."""
    out = []
    for i in floating(func):
        columns = []
        for at in np.ndindex(program.arrays[i].shape):
            moved = []
            for sign in (1, -1):
                x = np.array(program.arrays[i])
                x[at] += sign * step
                moved.append(run(func, *program.arrays[:i], x, *program.arrays[i + 1 :])[result])
            columns.append((moved[0] - moved[1]) / (2 * step))
        stacked = np.stack(columns, -1)
        out.append(stacked.reshape(stacked.shape[:-1] + program.arrays[i].shape))
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_reverse_over_forward(name: str) -> None:
    program = PROGRAMS[name]
    along = directions(program)
    forward = jvp_func(program.func())
    block = forward.block
    tangent = forward.replace(block=type(block)(block.params, block.stmts, block.results[-1:]))
    mixed = value_and_grad_func(tangent)
    verify(mixed)
    arrays = (*program.arrays, *along)
    got = run(mixed, *arrays)
    assert_all_close(got[1:], differences(tangent, arrays), rtol=1e-5, atol=1e-7)
    assert_all_close(compiled(mixed, arrays), got, rtol=1e-10)


@pytest.mark.parametrize("name", ["until_small", "branch_in_loop", "table"])
def test_tangents_of_statements_that_stand_elsewhere(name: str) -> None:
    program = PROGRAMS[name]
    func = program.func()
    along = directions(program)
    sources = [func.params[i] for i in floating(func)]
    tangents = [Value(s.type) for s in sources]
    with Builder([*func.params, *tangents]) as builder:
        builder.stmts.extend(func.stmts)
        known = push_forward(func.stmts, sources, tangents)
        block = builder.finish([*func.results, known[id(func.results[0])]])
    pushed = func.replace(block=block)
    verify(pushed)
    want = run(jvp_func(func), *program.arrays, *along)
    assert_all_close(run(pushed, *program.arrays, *along), want)
    assert_all_close(run(OPTIMIZE(pushed), *program.arrays, *along), want)
