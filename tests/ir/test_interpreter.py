"""The interpreter: the oracle for everything else."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from adjit.ir.errors import ShapeError
from adjit.ir.func import Func
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.verifier import verify


def func(text: str) -> Func:
    return verify(parse_func(dedent(text)))


def test_results_then_saved_then_updated() -> None:
    f = func("""
        func @f(%w: f64[2], %x: f64[2]) -> f64[] saving (f64[2]) {
          %p: f64[2] = mul %w, %x
          %l: f64[] = sum %p {axes=[0]}
          return %l saving %p updating %w = %p, %x = 1.0
        }
    """)
    out = run(f, np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    assert [a.tolist() for a in out] == [11.0, [3.0, 8.0], [3.0, 8.0], [1.0, 1.0]]


def test_both_branches() -> None:
    f = func("""
        func @f(%p: bool[], %x: f64[]) -> f64[] {
          %r: f64[] = if %p {
            %n: f64[] = neg %x
            yield %n
          } else {
            yield 7.0
          }
          return %r
        }
    """)
    assert run(f, np.array(True), np.array(2.0)) == (-2.0,)
    assert run(f, np.array(False), np.array(2.0)) == (7.0,)


def test_loops_carry_and_see_the_index() -> None:
    f = func("""
        func @f(%n: i64[], %x: f64[]) -> (f64[], f64[]) {
          %s: f64[], %t: f64[] = for %k in 1..%n carry (%a: f64[] = %x, %b: f64[] = 0.0) {
            %0: f64[] = cast %k
            %1: f64[] = mul %a, %0
            yield %1, %a
          }
          return %s, %t
        }
    """)
    assert run(f, np.array(5), np.array(1.0)) == (24.0, 6.0)
    assert run(f, np.array(1), np.array(3.0)) == (3.0, 0.0)


def test_while_loops_and_nesting() -> None:
    f = func("""
        func @f(%n: i64[]) -> i64[] {
          %total: i64[], %rest: i64[] = while carry (%t: i64[] = 0, %m: i64[] = %n) {
            %more: bool[] = cast %m
            cond %more
          } do {
            %inner: i64[] = for %k in 0..%m carry (%c: i64[] = %t) {
              %0: i64[] = add %c, %k
              yield %0
            }
            %fewer: i64[] = sub %m, 1
            yield %inner, %fewer
          }
          return %total
        }
    """)
    assert run(f, np.array(4)) == (sum(k for m in (4, 3, 2, 1) for k in range(m)),)
    assert run(f, np.array(0)) == (0,)


def test_fuse_is_equivalent_to_its_statements() -> None:
    f = func("""
        func @f(%x: f32[3]) -> (f32[3], f32[]) {
          %y: f32[3], %s: f32[] = fuse {
            %0: f32[3] = exp %x
            %1: f32[] = sum %0 {axes=[0]}
            yield %0, %1
          }
          return %y, %s
        }
    """)
    x = np.array([0.0, 1.0, 2.0], "f4")
    y, s = run(f, x)
    np.testing.assert_array_equal(y, np.exp(x))
    assert s.dtype == np.float32
    np.testing.assert_allclose(s, np.exp(x).sum(), rtol=1e-6)


def test_values_have_exactly_their_types() -> None:
    f = func("func @f(%x: f32[2]) -> (f32[2], f32[2,2], bool[3]) {\n  %y: f32[2,2] = broadcast %x\n  return 1.0, %y, true\n}")
    one, y, yes = run(f, np.zeros(2, "f4"))
    assert [(a.dtype.str, a.shape) for a in (one, y, yes)] == [("<f4", (2,)), ("<f4", (2, 2)), ("|b1", (3,))]


def test_wrong_arguments() -> None:
    f = func("func @f(%x: f64[2]) -> () {\n  return\n}")
    with pytest.raises(ShapeError, match="@f takes 1 arrays, not 2"):
        run(f, np.zeros(2), np.zeros(2))
    with pytest.raises(ShapeError, match=r"@f: %x is f64\[2\], got float64\[3\]"):
        run(f, np.zeros(3))
    with pytest.raises(ShapeError, match=r"%x is f64\[2\], got float32\[2\]"):
        run(f, np.zeros(2, "f4"))


def test_floating_point_trouble_is_silent() -> None:
    f = func("func @f(%x: f64[3]) -> f64[3] {\n  %y: f64[3] = div %x, 0.0\n  return %y\n}")
    np.testing.assert_array_equal(run(f, np.array([1.0, -1.0, 0.0]))[0], [np.inf, -np.inf, np.nan])


def test_errors_carry_the_users_line() -> None:
    f = parse_func("func @f(%x: f64[3], %y: f64[2]) -> () !model.py:1:1 {\n  %z: f64[3] = add %x, %y !2:5\n  return\n}")
    with pytest.raises(ShapeError, match=r"add: shapes differ.*\n  model\.py:2:5"):
        run(f, np.zeros(3), np.zeros(2))
