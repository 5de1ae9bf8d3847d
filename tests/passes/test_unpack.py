"""Small arrays in loops become scalars: by text, on loops that must stay, and on random functions."""

from __future__ import annotations

from random import Random
from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjit.codegen.compile import compile_func
from adjit.ir.func import Func
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.passes.autodiff.adjoint import value_and_grad_func
from adjit.passes.loops.unpack import unpack_small_arrays
from adjit.passes.pipeline import OPTIMIZE
from tests.passes.checks import QUICK, keeps_meaning, leaves, rewrites
from tests.passes.loop_programs import PROGRAMS


def test_elements_become_values() -> None:
    rewrites(
        unpack_small_arrays,
        """
        func @f(%x: f64[2], %a: f64[2]) -> f64[2] {
          %r: f64[2] = for %k in 0..5 carry (%c: f64[2] = %x) {
            %d: f64[2] = flip %c {axes=[0]}
            %s: f64[] = sum %c {axes=[0]}
            %b: f64[2] = broadcast %s
            %m: f64[2] = mul %d, %a
            %n: f64[2] = sub %m, %b
            yield %n
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[2], %a: f64[2]) -> f64[2] {
          %0: f64[1] = slice %x {starts=[0], stops=[1], steps=[1]}
          %1: f64[] = reshape %0
          %2: f64[1] = slice %x {starts=[1], stops=[2], steps=[1]}
          %3: f64[] = reshape %2
          %4: f64[1] = slice %a {starts=[0], stops=[1], steps=[1]}
          %5: f64[] = reshape %4
          %6: f64[1] = slice %a {starts=[1], stops=[2], steps=[1]}
          %7: f64[] = reshape %6
          %r: f64[], %r.1: f64[] = for %k in 0..5 carry (%c: f64[] = %1, %c.1: f64[] = %3) {
            %8: f64[] = add %c, %c.1
            %9: f64[] = mul %c.1, %5
            %10: f64[] = mul %c, %7
            %11: f64[] = sub %9, %8
            %12: f64[] = sub %10, %8
            yield %11, %12
          }
          %13: f64[1] = reshape %r
          %14: f64[1] = reshape %r.1
          %r.2: f64[2] = concatenate %13, %14 {axis=0}
          return %r.2
        }
        """,
    )


def test_indices_known_at_run_time_keep_an_array_whole() -> None:
    leaves(
        unpack_small_arrays,
        """
        func @f(%x: f64[3]) -> f64[3] {
          %r: f64[3] = for %k in 0..3 carry (%c: f64[3] = %x) {
            %d: f64[3] = mul %c, 2.0
            %v: f64[] = gather %d, %k
            %e: f64[3] = scatter_set %c, %v, %k
            yield %e
          }
          return %r
        }
        """,
    )


def test_an_array_that_the_loop_makes_and_indexes_keeps_it() -> None:
    leaves(
        unpack_small_arrays,
        """
        func @f(%x: f64[]) -> f64[] {
          %r: f64[] = for %k in 0..3 carry (%c: f64[] = %x) {
            %d: f64[3] = broadcast %c
            %e: f64[3] = scatter_set %d, 1.0:f64[], %k
            %v: f64[] = gather %e, %k
            yield %v
          }
          return %r
        }
        """,
    )


def test_large_arrays_keep_a_loop() -> None:
    leaves(
        unpack_small_arrays,
        """
        func @f(%x: f64[100], %y: f64[2]) -> (f64[100], f64[2]) {
          %r: f64[100], %s: f64[2] = for %k in 0..3 carry (%c: f64[100] = %x, %d: f64[2] = %y) {
            %e: f64[100] = sin %c
            %f: f64[2] = sin %d
            yield %e, %f
          }
          return %r, %s
        }
        """,
    )


MIXED = """
    func @mixed(%x: f64[2], %n: i64[]) -> f64[] {
      %r: f64[2], %s: stack<f64[2]> = for %k in 0..%n carry (%c: f64[2] = %x) {
        %d: f64[2] = sin %c
        yield %d saving %c
      }
      %t: f64[100] = for %j in 0..%n carry (%e: f64[100] = 0.0) {
        %f: f64[2] = stack_read %s, %j
        %g: f64[] = sum %f {axes=[0]}
        %h: f64[100] = broadcast %g
        %i: f64[100] = add %e, %h
        yield %i
      }
      %y: f64[] = sum %t {axes=[0]}
      return %y
    }
"""


def test_a_stack_that_is_read_whole_keeps_the_loop_that_makes_it() -> None:
    func = parse_func(dedent(MIXED))
    assert print_func(unpack_small_arrays(func)) == print_func(func)


def loops(func: Func) -> list[bool]:
    """Which loops run in registers."""
    return [id(s) in func.plan.registers for s in func.stmts if s.op.name in ("for", "while")]


@pytest.mark.parametrize("name", ["vectors", "recurrent"])
def test_gradients_of_small_states_run_in_registers(name: str) -> None:
    program = PROGRAMS[name]
    gradient = value_and_grad_func(program.func())
    optimized = OPTIMIZE(gradient)
    assert all(loops(optimized))
    got = compile_func(optimized)([np.array(a) for a in program.arrays])
    for a, b in zip(got, run(gradient, *program.arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@QUICK
@given(st.randoms(use_true_random=False))
def test_meaning_is_kept(random: Random) -> None:
    keeps_meaning(unpack_small_arrays, random)
