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


def test_a_large_row_keeps_a_loop() -> None:
    """It would be read as a whole at the end of the loop, and it has more elements than can be unpacked."""
    leaves(
        unpack_small_arrays,
        """
        func @f(%x: i64[1,3,3,2], %y: f64[2]) -> (i64[3,3,2], f64[2]) {
          %r: i64[3,3,2], %s: f64[2] = for %k in 0..2 carry (%c: i64[3,3,2] = 0, %d: f64[2] = %y) {
            %e: i64[3,3,2] = gather %x, 0:i64[]
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


def test_products_and_reductions_of_elements_are_pairwise() -> None:
    rewrites(
        unpack_small_arrays,
        """
        func @f(%x: f64[3], %w: f64[3,3]) -> f64[3] {
          %r: f64[3] = for %k in 0..100 carry (%c: f64[3] = %x) {
            %p: f64[3] = matmul %w, %c
            %m: f64[] = max %p {axes=[0]}
            %b: f64[3] = broadcast %m
            %n: f64[3] = sub %p, %b
            yield %n
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[3], %w: f64[3,3]) -> f64[3] {
          %0: f64[1] = slice %x {starts=[0], stops=[1], steps=[1]}
          %1: f64[] = reshape %0
          %2: f64[1] = slice %x {starts=[1], stops=[2], steps=[1]}
          %3: f64[] = reshape %2
          %4: f64[1] = slice %x {starts=[2], stops=[3], steps=[1]}
          %5: f64[] = reshape %4
          %6: f64[9] = reshape %w
          %7: f64[1] = slice %6 {starts=[0], stops=[1], steps=[1]}
          %8: f64[] = reshape %7
          %9: f64[1] = slice %6 {starts=[1], stops=[2], steps=[1]}
          %10: f64[] = reshape %9
          %11: f64[1] = slice %6 {starts=[2], stops=[3], steps=[1]}
          %12: f64[] = reshape %11
          %13: f64[1] = slice %6 {starts=[3], stops=[4], steps=[1]}
          %14: f64[] = reshape %13
          %15: f64[1] = slice %6 {starts=[4], stops=[5], steps=[1]}
          %16: f64[] = reshape %15
          %17: f64[1] = slice %6 {starts=[5], stops=[6], steps=[1]}
          %18: f64[] = reshape %17
          %19: f64[1] = slice %6 {starts=[6], stops=[7], steps=[1]}
          %20: f64[] = reshape %19
          %21: f64[1] = slice %6 {starts=[7], stops=[8], steps=[1]}
          %22: f64[] = reshape %21
          %23: f64[1] = slice %6 {starts=[8], stops=[9], steps=[1]}
          %24: f64[] = reshape %23
          %r: f64[], %r.1: f64[], %r.2: f64[] = for %k in 0..100 carry (%c: f64[] = %1, %c.1: f64[] = %3, %c.2: f64[] = %5) {
            %25: f64[] = mul %8, %c
            %26: f64[] = mul %10, %c.1
            %27: f64[] = mul %12, %c.2
            %28: f64[] = add %25, %26
            %29: f64[] = add %28, %27
            %30: f64[] = mul %14, %c
            %31: f64[] = mul %16, %c.1
            %32: f64[] = mul %18, %c.2
            %33: f64[] = add %30, %31
            %34: f64[] = add %33, %32
            %35: f64[] = mul %20, %c
            %36: f64[] = mul %22, %c.1
            %37: f64[] = mul %24, %c.2
            %38: f64[] = add %35, %36
            %39: f64[] = add %38, %37
            %40: f64[] = maximum %29, %34
            %41: f64[] = maximum %40, %39
            %42: f64[] = sub %29, %41
            %43: f64[] = sub %34, %41
            %44: f64[] = sub %39, %41
            yield %42, %43, %44
          }
          %45: f64[1] = reshape %r
          %46: f64[1] = reshape %r.1
          %47: f64[1] = reshape %r.2
          %r.3: f64[3] = concatenate %45, %46, %47 {axis=0}
          return %r.3
        }
        """,
    )


def test_movements_of_elements_disappear() -> None:
    rewrites(
        unpack_small_arrays,
        """
        func @f(%x: f64[2]) -> f64[2] {
          %r: f64[2] = for %k in 0..100 carry (%c: f64[2] = %x) {
            %a: f64[2] = flip %c {axes=[0]}
            %s: f64[1] = slice %a {starts=[1], stops=[2], steps=[1]}
            %p: f64[2] = pad %s {low=[1], high=[0], interior=[0], value=3.0}
            %q: f64[4] = concatenate %p, %c {axis=0}
            %i: f64[4] = iota {axis=0}
            %t: f64[4] = mul %q, %i
            %u: f64[2,2] = reshape %t
            %v: f64[2] = sum %u {axes=[0]}
            yield %v
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[2]) -> f64[2] {
          %0: f64[1] = slice %x {starts=[0], stops=[1], steps=[1]}
          %1: f64[] = reshape %0
          %2: f64[1] = slice %x {starts=[1], stops=[2], steps=[1]}
          %3: f64[] = reshape %2
          %r: f64[], %r.1: f64[] = for %k in 0..100 carry (%c: f64[] = %1, %c.1: f64[] = %3) {
            %4: f64[] = mul %c, 2.0
            %5: f64[] = mul %c.1, 3.0
            %6: f64[] = add 0.0, %4
            %7: f64[] = add %c, %5
            yield %6, %7
          }
          %8: f64[1] = reshape %r
          %9: f64[1] = reshape %r.1
          %r.2: f64[2] = concatenate %8, %9 {axis=0}
          return %r.2
        }
        """,
    )


def test_zeros_added_by_gradients_are_dropped_and_others_are_not() -> None:
    rewrites(
        unpack_small_arrays,
        """
        func @f(%x: f64[2]) -> f64[2] {
        backward:
          %r: f64[2] = for %k in 0..100 carry (%c: f64[2] = %x) {
            %s: f64[1] = slice %c {starts=[1], stops=[2], steps=[1]}
            %p: f64[2] = pad %s {low=[1], high=[0], interior=[0], value=0.0}
            %q: f64[2] = pad %s {low=[0], high=[1], interior=[0], value=1.0}
            %a: f64[2] = add %c, %p
            %b: f64[2] = add %q, %a
            yield %b
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[2]) -> f64[2] {
        backward:
          %0: f64[1] = slice %x {starts=[0], stops=[1], steps=[1]}
          %1: f64[] = reshape %0
          %2: f64[1] = slice %x {starts=[1], stops=[2], steps=[1]}
          %3: f64[] = reshape %2
          %r: f64[], %r.1: f64[] = for %k in 0..100 carry (%c: f64[] = %1, %c.1: f64[] = %3) {
            %4: f64[] = add %c.1, %c.1
            %5: f64[] = add %c.1, %c
            %6: f64[] = add 1.0, %4
            yield %5, %6
          }
          %7: f64[1] = reshape %r
          %8: f64[1] = reshape %r.1
          %r.2: f64[2] = concatenate %7, %8 {axis=0}
          return %r.2
        }
        """,
    )


def test_branches_and_elements_that_are_indexed() -> None:
    rewrites(
        unpack_small_arrays,
        """
        func @f(%x: f64[2], %t: f64[8]) -> (f64[2], f64[8]) {
          %r: f64[2], %u: f64[8] = for %k in 0..100 carry (%c: f64[2] = %x, %d: f64[8] = %t) {
            %i: i64[] = remainder %k, 8
            %e: f64[] = gather %d, %i
            %p: bool[] = greater %e, 0.0
            %y: f64[2] = if %p {
              %m: f64[2] = mul %c, 2.0
              yield %m
            } else {
              %h: f64[2] = broadcast %e
              yield %h
            }
            %n: f64[8] = scatter_set %d, %e, %i
            yield %y, %n
          }
          return %r, %u
        }
        """,
        """
        func @f(%x: f64[2], %t: f64[8]) -> (f64[2], f64[8]) {
          %0: f64[1] = slice %x {starts=[0], stops=[1], steps=[1]}
          %1: f64[] = reshape %0
          %2: f64[1] = slice %x {starts=[1], stops=[2], steps=[1]}
          %3: f64[] = reshape %2
          %r: f64[], %r.1: f64[], %u: f64[8] = for %k in 0..100 carry (%c: f64[] = %1, %c.1: f64[] = %3, %d: f64[8] = %t) {
            %i: i64[] = bitwise_and %k, 7
            %4: f64[] = gather %d, %i
            %p: bool[] = greater %4, 0.0
            %y: f64[], %y.1: f64[] = if %p {
              %5: f64[] = mul %c, 2.0
              %6: f64[] = mul %c.1, 2.0
              yield %5, %6
            } else {
              yield %4, %4
            }
            %7: f64[8] = scatter_set %d, %4, %i
            yield %y, %y.1, %7
          }
          %8: f64[1] = reshape %r
          %9: f64[1] = reshape %r.1
          %r.2: f64[2] = concatenate %8, %9 {axis=0}
          return %r.2, %u
        }
        """,
    )


def repeated(op: str, shape: str, times: int) -> Func:
    """A loop that applies an op to its carry, several times in each iteration."""
    steps = "\n".join(f"    %c{k + 1}: f64[{shape}] = {op.replace('%x', f'%c{k}')}" for k in range(times))
    text = f"  %r: f64[{shape}] = for %k in 0..9 carry (%c0: f64[{shape}] = %a) {{\n{steps}\n    yield %c{times}\n  }}\n"
    return parse_func(f"func @f(%a: f64[{shape}]) -> f64[{shape}] {{\n{text}  return %r\n}}\n")


@pytest.mark.parametrize(
    ("op", "shape", "most"),
    [
        ("tanh %x", "4", 4),  # 16 calls of vector math
        ("matmul %x, %x", "4,4", 8),  # 112 statements each, of 1,000 in all
        ("neg %x", "16", 59),  # and a few to take the array apart and to put it together
    ],
)
def test_large_bodies_keep_a_loop(op: str, shape: str, most: int) -> None:
    func, large = repeated(op, shape, most), repeated(op, shape, most + 1)
    assert unpack_small_arrays(func) is not func
    assert unpack_small_arrays(large) is large
