"""Rows of arrays and elements of stacks are read in place, and values that a loop saves are computed on its stack."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.ir.errors import OutOfBoundsError
from adjit.ir.func import Func
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.verifier import verify
from adjit.passes.autodiff.adjoint import value_and_grad_func
from adjit.passes.memory.buffers import plan_buffers
from adjit.passes.pipeline import OPTIMIZE
from adjit.passes.rewrite import walk
from tests.passes.checks import rewrites

X = np.arange(80.0).reshape(4, 20) / 47


def places(func: Func) -> list[str]:
    """The places of the results of all statements, at any depth."""
    found = (func.plan.places.get(id(r)) for stmt in walk(func.block) for r in stmt.results)
    return [str(place) for place in found if place is not None]


def check(text: str, *arrays: Any) -> Func:
    """Check that the compiled function has the results of the interpreter; return it with its plan."""
    func = parse_func(dedent(text))
    verify(func)
    out = OPTIMIZE(func)
    for got, want in zip(compile_func(out)([np.asarray(a) for a in arrays]), run(func, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    assert str(parse_func(str(out))) == str(out)
    return out


def test_a_row_at_the_counter_is_a_view() -> None:
    out = check(
        """
        func @f(%x: f64[4,20]) -> f64[20] {
          %r: f64[20] = for %k in 0..4 carry (%c: f64[20] = 0.0) {
            %row: f64[20] = gather %x, %k
            %t: f64[20] = tanh %row
            %n: f64[20] = add %t, %c
            yield %n
          }
          return %r
        }
        """,
        X,
    )
    assert places(out).count("view+0") == 1


def test_views_look_through_strides_and_several_indices() -> None:
    check(
        """
        func @f(%x: f64[2,2,20], %i: i64[]) -> (f64[2], f64[2], f64[20]) {
          %t: f64[20,2,2] = transpose %x {axes=[2, 0, 1]}
          %s: f64[20,2,1] = slice %t {starts=[0, 0, 1], stops=[20, 2, 2], steps=[1, 1, 1]}
          %u: f64[20,2] = reshape %s
          %v: f64[2] = gather %u, %i
          %e: f64[2] = exp %v
          %w: f64[20] = gather %x, 1:i64[], %i
          %l: f64[20] = log %w
          return %e, %v, %l
        }
        """,
        X.reshape(2, 2, 20) + 1,
        np.int64(-2),
    )


def test_an_index_outside_raises() -> None:
    text = """
        func @f(%x: f64[4,20], %i: i64[]) -> f64[20] {
          %v: f64[20] = gather %x, %i
          %e: f64[20] = exp %v
          return %e
        }
        """
    compiled = compile_func(OPTIMIZE(parse_func(dedent(text))))
    np.testing.assert_allclose(compiled([X, np.array(-4)])[0], np.exp(X[0]))
    for index in (4, -5):
        with pytest.raises(OutOfBoundsError, match=rf"gather: index {index} is out of bounds for axis 0 of f64\[4,20\]"):
            compiled([X, np.array(index)])


def test_an_array_is_not_changed_while_a_view_of_it_is_alive() -> None:
    check(
        """
        func @f(%x: f64[4,20], %i: i64[]) -> (f64[4,20], f64[20]) {
          %y: f64[4,20] = exp %x
          %v: f64[20] = gather %y, %i
          %z: f64[4,20] = scatter_add %y, %v, %i
          %w: f64[20] = gather %z, %i
          %s: f64[20] = sub %v, %w
          %r: f64[4,20] = for %k in 0..4 carry (%c: f64[4,20] = %z) {
            %before: f64[20] = gather %c, %k
            %n: f64[4,20] = scatter_set %c, %s, %k
            %m: f64[4,20] = scatter_add %n, %before, 2:i64[]
            yield %m
          }
          return %r, %s
        }
        """,
        X,
        np.int64(1),
    )


def test_a_view_of_one_row_does_not_become_the_result_in_place() -> None:
    check(
        """
        func @f(%x: f64[1,20], %i: i64[]) -> f64[1,20] {
          %y: f64[1,20] = exp %x
          %v: f64[20] = gather %y, %i
          %r: f64[20] = flip %v {axes=[0]}
          %s: f64[20] = add %r, %v
          %t: f64[1,20] = reshape %s
          %u: f64[1,20] = mul %t, %t
          return %u
        }
        """,
        X[:1],
        np.int64(0),
    )


def test_a_loop_makes_what_it_saves_on_its_stack() -> None:
    out = check(
        """
        func @f(%x: f64[9]) -> (f64[9], f64[9]) {
          %r: f64[9], %s: stack<f64[9]>, %t: stack<f64[9]>, %u: stack<f64[9]>, %v: stack<f64[9]> = for %k in 0..5 carry (%c: f64[9] = %x) {
            %a: f64[9] = exp %c
            %b: f64[9] = cumsum %a {axis=0}
            %n: f64[9] = tanh %b
            yield %n saving %b, %b, %n, %c
          }
          %q: f64[9] = for %j in 0..5 carry (%d: f64[9] = 0.0) {
            %sj: f64[9] = stack_read %s, %j
            %tj: f64[9] = stack_read %t, %j
            %uj: f64[9] = stack_read %u, %j
            %vj: f64[9] = stack_read %v, %j
            %e: f64[9] = mul %sj, %uj
            %g: f64[9] = sub %tj, %vj
            %h: f64[9] = add %e, %g
            %m: f64[9] = add %d, %h
            yield %m
          }
          return %r, %q
        }
        """,
        X[1, :9],
    )
    assert {"slot+0", "slot+1", "view+0", "view+1", "view+2", "view+3"} <= set(places(out))


def test_a_loop_without_bounds_grows_its_stacks_under_what_it_makes() -> None:
    check(
        """
        func @f(%x: f64[20]) -> (f64[20], f64[20]) {
          %r: f64[20], %i: i64[], %s: stack<f64[20]> = while carry (%c: f64[20] = %x, %k: i64[] = 0) {
            %p: bool[] = less %k, 100
            cond %p
          } do {
            %a: f64[20] = cumsum %c {axis=0}
            %n: f64[20] = tanh %a
            %l: i64[] = add %k, 1
            yield %n, %l saving %a
          }
          %q: f64[20] = for %j in 0..100 carry (%d: f64[20] = 0.0) {
            %sj: f64[20] = stack_read %s, %j
            %m: f64[20] = add %d, %sj
            yield %m
          }
          return %r, %q
        }
        """,
        X[1],
    )


def test_elements_of_a_stack_that_changes_are_copied() -> None:
    out = check(
        """
        func @f(%x: f64[20]) -> f64[20] {
          %r: f64[20], %s: stack<f64[20]> = for %k in 0..5 carry (%c: f64[20] = %x) {
            %n: f64[20] = tanh %c
            yield %n saving %n
          }
          %before: f64[20] = stack_read %s, 2:i64[]
          %t: stack<f64[20]> = stack_accumulate %s, 2:i64[], %r
          %after: f64[20] = stack_read %t, 2:i64[]
          %d: f64[20] = sub %after, %before
          return %d
        }
        """,
        X[1],
    )
    assert not any(place.startswith("view") for place in places(out))


def test_derivatives_through_rows_and_stacks() -> None:
    text = """
        func @f(%x: f64[4,20], %w: f64[20,20]) -> f64[] {
          %h: f64[20] = for %k in 0..4 carry (%c: f64[20] = 0.1) {
            %row: f64[20] = gather %x, %k
            %p: f64[20] = matmul %c, %w
            %a: f64[20] = add %p, %row
            %n: f64[20] = tanh %a
            yield %n
          }
          %s: f64[] = sum %h {axes=[0]}
          return %s
        }
        """
    func = parse_func(dedent(text))
    arrays = [X, np.linspace(-0.3, 0.3, 400).reshape(20, 20)]
    once = value_and_grad_func(func, (0, 1))
    for each in (func, once):
        for got, want in zip(compile_func(OPTIMIZE(each))(arrays), run(each, *arrays), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def test_one_value_for_two_carries_has_two_buffers() -> None:
    """A value computed in the place of one of them does not change the other."""
    check(
        """
        func @f(%x: f64[20], %m: f64[20,20]) -> (f64[20], f64[20]) {
          %r: f64[20], %q: f64[20] = for %k in 0..3 carry (%c: f64[20] = %x, %d: f64[20] = 0.0) {
            %p: f64[20] = matmul %m, %c
            %s: f64[20] = add %p, %d
            %t: f64[20] = tanh %s
            yield %t, %t
          }
          %e: f64[20] = for %j in 0..2 carry (%g: f64[20] = %r) {
            %u: f64[20] = matmul %m, %g
            yield %u
          }
          %z: f64[20] = add %e, %q
          return %z, %q
        }
        """,
        X[0] - 0.2,
        np.cos(np.arange(400.0)).reshape(20, 20) / 4,
    )


def test_a_reshape_that_no_strides_express_reads_a_copy() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[4,6], %w: f64[24,2]) -> f64[2] {
          %t: f64[6,4] = transpose %x {axes=[1, 0]}
          %r: f64[24] = reshape %t
          %y: f64[2] = matmul %r, %w
          return %y
        }
        """,
        """
        func @f(%x: f64[4,6] @param+0, %w: f64[24,2] @param+1) -> f64[2] arena 192 {
          %t: f64[6,4] @%x+0[1,6] = transpose %x {axes=[1, 0]}
          %t.1: f64[6,4] @arena+0 = fuse {
            %0: f64[6,4] = copy %t
            yield %0
          }
          %r: f64[24] @%t.1 = reshape %t.1
          %y: f64[2] @result+0 = matmul %r, %w
          return %y
        }
        """,
    )


def test_results_have_buffers_of_their_own() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[4,6], %w: f64[6,4]) -> (f64[4,4], f64[4,4], f64[4,4], f64[2,4], f64[16], f64[]) {
          %y: f64[4,4] = matmul %x, %w
          %t: f64[4,4] = transpose %y {axes=[1, 0]}
          %s: f64[2,4] = slice %y {starts=[0, 0], stops=[2, 4], steps=[1, 1]}
          %z: f64[4,4] = matmul %y, %y
          %r: f64[16] = reshape %z
          return %y, %y, %t, %s, %r, 2.0
        }
        """,
        """
        func @f(%x: f64[4,6] @param+0, %w: f64[6,4] @param+1) -> (f64[4,4], f64[4,4], f64[4,4], f64[2,4], f64[16], f64[]) arena 0 {
          %y: f64[4,4] @result+0 = matmul %x, %w
          %t: f64[4,4] @%y+0[1,4] = transpose %y {axes=[1, 0]}
          %s: f64[2,4] @%y = slice %y {starts=[0, 0], stops=[2, 4], steps=[1, 1]}
          %z: f64[4,4] @result+4 = matmul %y, %y
          %r: f64[16] @%z = reshape %z
          %y.1: f64[4,4] @result+1 = fuse {
            %0: f64[4,4] = copy %y
            yield %0
          }
          %t.1: f64[4,4] @result+2 = fuse {
            %1: f64[4,4] = copy %t
            yield %1
          }
          %s.1: f64[2,4] @result+3 = fuse {
            %2: f64[2,4] = copy %s
            yield %2
          }
          %3: f64[] @result+5 = fuse {
            %4: f64[] = fill {value=2.0}
            yield %4
          }
          return %y, %y.1, %t.1, %s.1, %r, %3
        }
        """,
    )


def test_rows_that_a_loop_reads_are_windows_and_several_rows_are_not() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[4,3,16], %i: i64[2], %w: f64[16,16]) -> f64[16] {
          %t: f64[3,4,16] = transpose %x {axes=[1, 0, 2]}
          %r: f64[16] = for %k in 0..3 carry (%c: f64[16] = 0.0) {
            %a: f64[4,16] = gather %t, %k
            %b: f64[16] = gather %t, %k, %k
            %e: f64[2,3,16] = gather %x, %i
            %e2: f64[2,16,3] = transpose %e {axes=[0, 2, 1]}
            %g: f64[16] = matmul %b, %w
            %h: f64[16] = fuse {
              %l: f64[16] = add %c, %g
              yield %l
            }
            %m: f64[2,3,3] = matmul %e, %e2
            yield %h
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[4,3,16] @param+0, %i: i64[2] @param+1, %w: f64[16,16] @param+2) -> f64[16] arena 1152 {
          %t: f64[3,4,16] @%x+0[16,48,1] = transpose %x {axes=[1, 0, 2]}
          %r: f64[16] @%c = for %k: i64[] @arena+0 in 0..3 carry (%c: f64[16] @result+0 = 0.0) {
            %a: f64[4,16] @view+0+0[48,1] = gather %t, %k
            %b: f64[16] @view+1 = gather %t, %k, %k
            %e: f64[2,3,16] @arena+64 = gather %x, %i
            %e2: f64[2,16,3] @%e+0[48,1,16] = transpose %e {axes=[0, 2, 1]}
            %g: f64[16] @arena+832 = matmul %b, %w
            %h: f64[16] @result+0 = fuse {
              %l: f64[16] = add %c, %g
              yield %l
            }
            %m: f64[2,3,3] @arena+960 = matmul %e, %e2
            yield %h
          }
          return %r
        }
        """,
    )


def test_a_region_of_scalars_runs_in_registers() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[], %n: i64[], %v: f64[8]) -> (f64[], f64[8]) {
          %y: f64[], %z: f64[8] = for %k in 0..%n carry (%c: f64[] = %x, %a: f64[8] = %v) {
            %e: f64[] = gather %a, %k
            %t: f64[] = mul %c, %e
            %b: f64[8] = scatter_set %a, %t, %k
            yield %t, %b
          }
          return %y, %z
        }
        """,
        """
        func @f(%x: f64[] @param+0, %n: i64[] @param+1, %v: f64[8] @param+2) -> (f64[], f64[8]) arena 0 {
          %y: f64[] @result+0, %z: f64[8] @%a = for %k in 0..%n carry (%c: f64[] = %x, %a: f64[8] @result+1 = %v) @registers {
            %e: f64[] = gather %a, %k
            %t: f64[] = mul %c, %e
            %b: f64[8] @%a = scatter_set %a, %t, %k
            yield %t, %b
          }
          return %y, %z
        }
        """,
    )


def test_a_loop_saves_what_it_makes_on_its_stack() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %w: f64[8,8]) -> f64[8] {
          %r: f64[8], %s: stack<f64[8]> = for %k in 0..4 carry (%c: f64[8] = %x) {
            %a: f64[8] = matmul %c, %w
            %n: f64[8] = fuse {
              %m: f64[8] = tanh %a
              yield %m
            }
            yield %n saving %a
          }
          %q: f64[8] = for %j in 0..4 carry (%d: f64[8] = %r) {
            %e: f64[8] = stack_read %s, %j
            %g: f64[8] = matmul %e, %w
            %h: f64[8] = fuse {
              %i: f64[8] = mul %e, %g
              %l: f64[8] = add %i, %d
              yield %l
            }
            yield %h
          }
          return %q
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %w: f64[8,8] @param+1) -> f64[8] arena 192 {
          %r: f64[8] @%c, %s: stack<f64[8]> @arena+0 = for %k: i64[] @arena+64 in 0..4 carry (%c: f64[8] @arena+128 = %x) {
            %a: f64[8] @slot+0 = matmul %c, %w
            %n: f64[8] @arena+128 = fuse {
              %m: f64[8] = tanh %a
              yield %m
            }
            yield %n saving %a
          }
          %q: f64[8] @%d = for %j: i64[] @arena+64 in 0..4 carry (%d: f64[8] @result+0 = %r) {
            %e: f64[8] @view+0 = stack_read %s, %j
            %g: f64[8] @arena+128 = matmul %e, %w
            %h: f64[8] @result+0 = fuse {
              %i: f64[8] = mul %e, %g
              %l: f64[8] = add %i, %d
              yield %l
            }
            yield %h
          }
          return %q
        }
        """,
    )
