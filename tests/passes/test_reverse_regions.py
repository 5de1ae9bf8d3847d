"""Reverse mode through branches and loops: against finite differences, of second order, with checkpoints, interpreted and compiled."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.ir import ops
from adjit.ir.builder import Builder
from adjit.ir.func import Block, Func, Stmt
from adjit.ir.interpreter import run
from adjit.ir.operand import Literal
from adjit.ir.ops.control import For
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.ir.verifier import verify
from adjit.passes.autodiff.adjoint import value_and_grad_func
from adjit.passes.autodiff.recompute import copied
from adjit.passes.pipeline import OPTIMIZE
from adjit.passes.rewrite import Renaming
from tests.passes.loop_programs import PROGRAMS, scalar

CHECKPOINTS = ("{checkpoint=2}", "{checkpoint=100}", '{checkpoint="sqrt"}', '{checkpoint="binomial"}')


def floating(func: Func) -> list[int]:
    return [i for i, p in enumerate(func.params) if p.type.is_float]


def differences(func: Func, arrays: tuple[Any, ...], result: int = 0, step: float = 1e-6) -> list[Any]:
    """Central differences of one result by every floating parameter."""
    out = []
    for i in floating(func):
        gradient = np.zeros(arrays[i].shape)
        for at in np.ndindex(arrays[i].shape):
            moved = []
            for sign in (1, -1):
                x = np.array(arrays[i])
                x[at] += sign * step
                moved.append(run(func, *arrays[:i], x, *arrays[i + 1 :])[result])
            gradient[at] = (moved[0] - moved[1]) / (2 * step)
        out.append(gradient)
    return out


def checked(func: Func) -> Func:
    verify(func)
    again = parse_func(print_func(func))
    assert print_func(again) == print_func(func)
    return func


def weighted_gradient(func: Func) -> Func:
    """A function whose only result is a scalar that depends on all gradients of `func`, for second derivatives."""
    gradient = value_and_grad_func(func)
    with Builder(gradient.params) as builder:
        builder.stmts.extend(gradient.stmts)
        total = None
        for n, d in enumerate(gradient.results[len(func.results) :]):
            part = ops.sum(d * (n + 0.5))
            total = part if total is None else total + part
        block = builder.finish([total])
    return gradient.replace(block=block)


def compiled(func: Func, arrays: tuple[Any, ...]) -> list[Any]:
    return compile_func(OPTIMIZE(func))([np.array(a) for a in arrays])


def assert_all_close(got: Any, want: Any, rtol: float = 1e-12, atol: float = 1e-13) -> None:
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradient(name: str) -> None:
    program = PROGRAMS[name]
    func = program.func()
    gradient = checked(value_and_grad_func(func))
    got = run(gradient, *program.arrays)
    assert_all_close(got[:1], run(func, *program.arrays))
    assert_all_close(got[1:], differences(func, program.arrays), rtol=1e-6, atol=1e-8)
    assert_all_close(run(OPTIMIZE(gradient), *program.arrays), got)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradient_compiled(name: str) -> None:
    program = PROGRAMS[name]
    gradient = value_and_grad_func(program.func())
    assert_all_close(compiled(gradient, program.arrays), run(gradient, *program.arrays))


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_order(name: str) -> None:
    program = PROGRAMS[name]
    first = weighted_gradient(program.func())
    second = checked(value_and_grad_func(first))
    got = run(second, *program.arrays)
    assert_all_close(got[1:], differences(first, program.arrays), rtol=1e-5, atol=1e-7)
    assert_all_close(run(OPTIMIZE(second), *program.arrays), got, rtol=1e-10)


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_order_compiled(name: str) -> None:
    program = PROGRAMS[name]
    second = value_and_grad_func(weighted_gradient(program.func()))
    assert_all_close(compiled(second, program.arrays), run(second, *program.arrays), rtol=1e-10)


@pytest.mark.parametrize("name", ["polynomial", "until_small", "nested", "branch_in_loop", "vectors"])
def test_third_order(name: str) -> None:
    program = PROGRAMS[name]
    second = weighted_gradient(weighted_gradient(program.func()))
    third = value_and_grad_func(second)
    verify(third)
    got = run(third, *program.arrays)
    assert_all_close(got[1:], differences(second, program.arrays), rtol=1e-4, atol=1e-6)
    assert_all_close(compiled(third, program.arrays), got, rtol=1e-9)


@pytest.mark.parametrize("how", CHECKPOINTS)
@pytest.mark.parametrize("name", [n for n, p in PROGRAMS.items() if "{how}" in p.text])
def test_checkpoints_change_nothing(name: str, how: str) -> None:
    program = PROGRAMS[name]
    want = run(value_and_grad_func(program.func()), *program.arrays)
    gradient = value_and_grad_func(program.func(" " + how))
    verify(gradient)
    assert_all_close(run(gradient, *program.arrays), want)
    assert_all_close(compiled(gradient, program.arrays), want)


def test_checkpoints_change_nothing_of_second_order() -> None:
    for name in ("traced_bounds", "until_small"):
        program = PROGRAMS[name]
        want = run(value_and_grad_func(weighted_gradient(program.func())), *program.arrays)
        second = value_and_grad_func(weighted_gradient(program.func(" {checkpoint=2}")))
        verify(second)
        assert_all_close(run(second, *program.arrays), want, rtol=1e-10)
        assert_all_close(compiled(second, program.arrays), want, rtol=1e-10)


def test_results_that_are_not_differentiated_cost_nothing() -> None:
    func = PROGRAMS["polynomial"].func()
    block = Block(func.params, func.stmts, [func.params[0]])
    gradient = value_and_grad_func(func.replace(block=block))
    assert not any(s.phase == "backward" for s in gradient.stmts)


def unrolled(func: Func) -> Func:
    """The function with its loops of known length written out."""
    renaming = Renaming()
    stmts: list[Stmt] = []
    for stmt in func.stmts:
        if not isinstance(stmt.op, For):
            stmts.append(renaming.stmt(stmt))
            continue
        (body,) = stmt.blocks
        carries = renaming.all(stmt.args[2:])
        for k in range(int(run_literal(stmt.args[0])), int(run_literal(stmt.args[1]))):
            for param, value in zip(body.params, (Literal(k, stmt.args[0].type), *carries), strict=True):
                renaming[param] = value
            stmts += [copied(s, renaming) for s in body.stmts]
            carries = renaming.all(body.results)
        for result, value in zip(stmt.results, carries, strict=True):
            renaming[result] = value
    return func.replace(block=Block(func.params, stmts, renaming.all(func.results)))


def run_literal(x: Any) -> Any:
    assert isinstance(x, Literal)
    return x.value


@pytest.mark.parametrize("name", ["polynomial", "branch_in_loop", "vectors", "recurrent", "table", "while_in_for", "saved_predicate"])
def test_a_loop_has_the_gradient_of_its_trips_written_out(name: str) -> None:
    program = PROGRAMS[name]
    func = program.func()
    flat = unrolled(func)
    verify(flat)
    assert not any(isinstance(s.op, For) for s in flat.stmts)
    want = run(value_and_grad_func(flat), *program.arrays)
    assert_all_close(run(value_and_grad_func(func), *program.arrays), want)


@pytest.mark.parametrize(("first", "step"), [(1, 2), (0, 3), (7, -2)])
def test_a_carry_that_counts_in_steps_is_computed_and_not_stored(first: int, step: int) -> None:
    text = f"""func @f(%x: f64[], %n: i64[]) -> f64[] {{
  %r: f64[], %last: i64[] = for %k in 0..%n carry (%c: f64[] = %x, %i: i64[] = {first}) {{
    %w: f64[] = cast %i
    %d: f64[] = mul %c, %w
    %j: i64[] = add %i, {step}
    yield %d, %j
  }}
  return %r
}}
"""
    both = value_and_grad_func(parse_func(text))
    verify(both)
    product = float(np.prod([first + step * k for k in range(4)]))
    for got in (run(both, np.array(1.5), np.array(4)), compile_func(OPTIMIZE(both))([np.array(1.5), np.array(4)])):
        np.testing.assert_allclose([float(g) for g in got], [1.5 * product, product], rtol=1e-14)
    assert "saving" not in print_func(both), "what is counted is known without the loop"


BESIDE = {
    "loop": """
  %r: f64[], %q: f64[] = for %k in 0..3 carry (%c: f64[] = %x, %d: f64[] = %a) {
    %s: f64[] = sin %c
    %e: f64[] = exp %d
    yield %s, %e
  }""",
    "branch": """
  %p: bool[] = less %a, 0.5
  %r: f64[], %q: f64[] = if %p {
    %s: f64[] = sin %x
    %e: f64[] = exp %a
    yield %s, %e
  } else {
    %f: f64[] = cos %a
    yield %x, %f
  }""",
}


@pytest.mark.parametrize("region", BESIDE)
def test_a_result_that_does_not_depend_on_a_parameter_costs_nothing(region: str) -> None:
    """Only the statements that the requested derivative passes through are swept: `exp` is not among them."""
    text = f"func @f(%x: f64[], %a: f64[]) -> f64[] {{{BESIDE[region]}\n  %z: f64[] = mul %r, %q\n  return %z\n}}\n"
    func = parse_func(text)
    gradient = value_and_grad_func(func, [0])
    verify(gradient)
    backward = [s for s in gradient.stmts if s.phase == "backward"]
    (swept,) = (s for s in backward if s.blocks)
    assert len([r for r in swept.results if r.type.is_float]) == 1
    assert sum(s.op.name == "mul" for s in backward) == 1  # by %q alone: %r does not multiply a derivative of %q
    assert_all_close(run(gradient, scalar(0.3), scalar(0.4))[1:], differences(func, (scalar(0.3), scalar(0.4)))[:1], rtol=1e-6)


@pytest.mark.parametrize("start", [-2, 0, 1, 2])
def test_gradients_of_loops_that_start_anywhere(start: int) -> None:
    """The product of x + k for all k."""
    func = parse_func(
        dedent(f"""
        func @f(%x: f64[], %n: i64[]) -> f64[] {{
          %r: f64[] = for %k in {start}..%n carry (%c: f64[] = 1.0) {{
            %i: f64[] = cast %k {{dtype=f64}}
            %a: f64[] = add %x, %i
            %d: f64[] = mul %c, %a
            yield %d
          }}
          return %r
        }}
        """)
    )
    for stop in (start - 1, start, start + 1, start + 4):
        value, slope = run(value_and_grad_func(func), np.array(2.5), np.array(stop))
        factors = [2.5 + k for k in range(start, stop)]
        np.testing.assert_allclose(value, np.prod(factors), rtol=1e-14)
        np.testing.assert_allclose(slope, sum(np.prod(factors) / f for f in factors), rtol=1e-14)
