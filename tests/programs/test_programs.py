"""Random programs have the same results and derivatives, however they are run.

These consist of ops, and run eagerly, taped, interpreted after every pass, and compiled. `ADJIT_OP_PROGRAMS=2000` runs that many.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.ir.builder import Builder
from adjit.ir.func import Func, Stmt, Value
from adjit.ir.interpreter import run
from adjit.ir.operand import Concrete, Literal, Operand, array_of, evaluate
from adjit.ir.ops.base import Op
from adjit.ir.types import TensorType, as_dtype
from adjit.ir.verifier import verify
from adjit.passes.autodiff.adjoint import value_and_grad_func
from adjit.passes.autodiff.forward import jvp_func
from adjit.passes.autodiff.reverse import backpropagate
from adjit.passes.pipeline import OPTIMIZE
from tests.programs.generator import Array, Program, make_program

COUNT = int(os.environ.get("ADJIT_OP_PROGRAMS", "150"))


class Taped(Concrete):
    """An eager operand whose ops are recorded."""

    __slots__ = ("tape",)
    level = 2

    def __init__(self, data: Array, tape: list[Stmt]) -> None:
        super().__init__(data)
        self.tape = tape

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        out = evaluate(op, [array_of(a, op) for a in args], [a.type for a in args])
        results = tuple(Taped(a, self.tape) for a in out)
        self.tape.append(Stmt(op, args, results))
        return results[0] if len(results) == 1 else results


def data(operand: Operand) -> Array:
    return operand.data if isinstance(operand, Concrete) else operand.array()  # type: ignore[attr-defined, no-any-return]


def trace(program: Program) -> Func:
    params = [Value(TensorType(as_dtype(a.dtype), a.shape), f"x{i}") for i, a in enumerate(program.arrays)]
    with Builder(params) as builder:
        return Func("program", builder.finish(program(*params)))


def eager_gradients(program: Program) -> list[Array]:
    tape: list[Stmt] = []
    sources = [Taped(a, tape) for a in program.arrays]
    loss = program(*sources)[0]
    floats = [s for s in sources if s.type.is_float]
    found = backpropagate(list(tape), [loss], [Literal(1.0, loss.type)], floats)
    return [np.zeros(s.shape, s.dtype) if g is None else data(g) for s, g in zip(floats, found)]


def assert_same(got: Any, want: Any, program: Program, where: str) -> None:
    assert len(got) == len(want), where
    for k, (a, b) in enumerate(zip(got, want)):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), f"{where}, result {k}: {a.dtype}{a.shape} is not {b.dtype}{b.shape}\n{program}"
        if b.dtype.kind == "f":
            scale = program.tolerance * max(1.0, float(np.abs(b).max(initial=0.0)))
            np.testing.assert_allclose(a, b, rtol=0, atol=scale, err_msg=f"{where}, result {k}\n{program}")
        else:
            np.testing.assert_array_equal(a, b, err_msg=f"{where}, result {k}\n{program}")


def check_everywhere(func: Func, want: list[Array], program: Program, arrays: list[Array], what: str) -> None:
    """`func`, interpreted after every pass and compiled, returns `want`."""

    def interpreted(name: str, stage: Func) -> None:
        verify(stage)
        assert_same(run(stage, *arrays), want, program, f"{what} interpreted after {name}")

    interpreted("tracing", func)
    native = compile_func(OPTIMIZE.run(func, interpreted))
    assert_same(native(arrays), want, program, f"{what} compiled")


@pytest.mark.parametrize("seed", range(COUNT))
def test_program(seed: int) -> None:
    program = make_program(seed)
    values = [data(x) for x in program(*map(Concrete, program.arrays))]
    func = trace(program)
    check_everywhere(value_and_grad_func(func), [*values, *eager_gradients(program)], program, program.arrays, "forward and gradient")


@pytest.mark.parametrize("seed", range(0, COUNT, 5))
def test_tangents_agree_with_gradients(seed: int) -> None:
    """<gradient, v> is the tangent of the loss along v."""
    program = make_program(seed)
    func = trace(program)
    numbers = np.random.default_rng(seed)
    floats = [a for a in program.arrays if a.dtype.kind == "f"]
    along = [np.asarray(numbers.normal(size=a.shape)).astype(a.dtype) for a in floats]
    tangent = run(jvp_func(func), *program.arrays, *along)[len(func.results)]
    dot = sum(float(np.sum(g * v)) for g, v in zip(eager_gradients(program), along))
    scale = sum(float(np.sum(np.abs(g * v))) for g, v in zip(eager_gradients(program), along))
    assert abs(dot - float(tangent)) <= program.tolerance * max(1.0, scale), program


def test_programs_are_reproducible() -> None:
    assert repr(make_program(7)) == repr(make_program(7))
    assert sum(len(make_program(seed).steps) for seed in range(20)) > 20 * 10


def test_gradients_agree_with_finite_differences() -> None:
    for seed in range(12):
        program = make_program(seed)
        if program.tolerance > 1e-6:
            continue
        x, step = program.arrays[0], 1e-6
        v = np.asarray(np.random.default_rng(seed).normal(size=x.shape))
        ends = [float(data(program(*map(Concrete, [x + s * step * v, *program.arrays[1:]]))[0])) for s in (1, -1)]
        dot = float(np.sum(eager_gradients(program)[0] * v))
        if "stop_gradient" not in repr(program):
            np.testing.assert_allclose((ends[0] - ends[1]) / (2 * step), dot, rtol=1e-4, atol=1e-5, err_msg=repr(program))
