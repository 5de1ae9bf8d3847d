"""Fusion."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjit.ir.builder import Builder
from adjit.ir.func import Func, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops import exp, tanh
from adjit.ir.ops.control import Fuse
from adjit.ir.ops.maps import Map
from adjit.ir.ops.reduce import Reduce
from adjit.ir.types import F64, TensorType
from adjit.passes.autodiff.adjoint import value_and_grad_func
from adjit.passes.fusion.fuse import MAX_OPS, MAX_SMALL_OPS, SMALL, fuse
from adjit.passes.fusion.legalize import legalize
from adjit.passes.pipeline import OPTIMIZE
from adjit.passes.rewrite import walk
from tests.passes.checks import QUICK, keeps_meaning, rewrites


def test_producers_consumers_and_reductions_share_a_loop() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[3], %y: f64[3]) -> (f64[3], f64[]) {
          %a: f64[3] = mul %x, %y !m.py:1:1
          %b: f64[3] = exp %a !m.py:2:1
          %c: f64[] = sum %b {axes=[0]} !m.py:3:1
          return %b, %c
        }
        """,
        """
        func @f(%x: f64[3], %y: f64[3]) -> (f64[3], f64[]) {
          %b: f64[3], %c: f64[] = fuse !m.py:1:1 {
            %a: f64[3] = mul %x, %y !m.py:1:1
            %b.1: f64[3] = exp %a !m.py:2:1
            %c.1: f64[] = sum %b.1 {axes=[0]} !m.py:3:1
            yield %b.1, %c.1
          }
          return %b, %c
        }
        """,
    )


def test_groups_that_meet_become_one() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000], %y: f64[5000]) -> f64[] {
          %a: f64[5000] = exp %x
          %b: f64[5000] = exp %y
          %c: f64[5000] = mul %a, %b
          %d: f64[] = sum %c {axes=[0]}
          return %d
        }
        """,
        """
        func @f(%x: f64[5000], %y: f64[5000]) -> f64[] {
          %d: f64[] = fuse {
            %a: f64[5000] = exp %x
            %b: f64[5000] = exp %y
            %c: f64[5000] = mul %a, %b
            %d.1: f64[] = sum %c {axes=[0]}
            yield %d.1
          }
          return %d
        }
        """,
    )


def test_groups_stay_apart_where_one_waits_for_a_reduction_of_the_other() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000], %y: f64[5000]) -> f64[5000] {
          %a: f64[5000] = exp %x
          %s: f64[] = sum %a {axes=[0]}
          %w: f64[5000] = broadcast %s
          %b: f64[5000] = mul %y, %w
          %c: f64[5000] = mul %a, %b
          return %c
        }
        """,
        """
        func @f(%x: f64[5000], %y: f64[5000]) -> f64[5000] {
          %a: f64[5000], %s: f64[] = fuse {
            %a.1: f64[5000] = exp %x
            %s.1: f64[] = sum %a.1 {axes=[0]}
            yield %a.1, %s.1
          }
          %w: f64[5000] = broadcast %s
          %c: f64[5000] = fuse {
            %b: f64[5000] = mul %y, %w
            %c.1: f64[5000] = mul %a, %b
            yield %c.1
          }
          return %c
        }
        """,
    )


def test_elementwise_statements_join_the_convolution_that_they_read() -> None:
    """What the next pass reads is stored; a reduction is a loop of its own, and what does not read the convolution stays outside."""
    rewrites(
        fuse,
        """
        func @f(%x: f32[2,5,5,1], %w: f32[2,2,1,3], %b: f32[3], %t: f32[2,4,4,3]) -> (f32[2,4,4,3], f32[3], f32[2,4,4,3]) {
          %0: f32[2,4,4,3] = convolve %x, %w {strides=[1, 1], dilations=[1, 1], groups=1} !m.py:1:1
          %1: f32[2,4,4,3] = broadcast %b !m.py:2:1
          %2: f32[2,4,4,3] = add %0, %1 !m.py:2:1
          %y: f32[2,4,4,3] = maximum %2, 0.0 !m.py:3:1
          %s: f32[3] = sum %y {axes=[0, 1, 2]} !m.py:4:1
          %u: f32[2,4,4,3] = mul %t, %t !m.py:5:1
          return %y, %s, %u
        }
        """,
        """
        func @f(%x: f32[2,5,5,1], %w: f32[2,2,1,3], %b: f32[3], %t: f32[2,4,4,3]) -> (f32[2,4,4,3], f32[3], f32[2,4,4,3]) {
          %0: f32[2,4,4,3] = broadcast %b !m.py:2:1
          %y: f32[2,4,4,3] = fuse !m.py:1:1 {
            %1: f32[2,4,4,3] = convolve %x, %w {strides=[1, 1], dilations=[1, 1], groups=1} !m.py:1:1
            %2: f32[2,4,4,3] = add %1, %0 !m.py:2:1
            %y.1: f32[2,4,4,3] = maximum %2, 0.0 !m.py:3:1
            yield %y.1
          }
          %s: f32[3], %u: f32[2,4,4,3] = fuse !m.py:4:1 {
            %s.1: f32[3] = sum %y {axes=[0, 1, 2]} !m.py:4:1
            %u.1: f32[2,4,4,3] = mul %t, %t !m.py:5:1
            yield %s.1, %u.1
          }
          return %y, %s, %u
        }
        """,
    )


def test_what_waits_for_a_reduction_is_a_second_loop() -> None:
    rewrites(
        fuse,
        """
        func @softmax(%x: f64[2,5]) -> f64[2,5] {
          %m: f64[2] = max %x {axes=[1]}
          %m1: f64[2,1] = reshape %m
          %mb: f64[2,5] = broadcast %m1
          %d: f64[2,5] = sub %x, %mb
          %e: f64[2,5] = exp %d
          %s: f64[2] = sum %e {axes=[1]}
          %s1: f64[2,1] = reshape %s
          %sb: f64[2,5] = broadcast %s1
          %y: f64[2,5] = div %e, %sb
          return %y
        }
        """,
        """
        func @softmax(%x: f64[2,5]) -> f64[2,5] {
          %m: f64[2] = fuse {
            %m.1: f64[2] = max %x {axes=[1]}
            yield %m.1
          }
          %m1: f64[2,1] = reshape %m
          %mb: f64[2,5] = broadcast %m1
          %e: f64[2,5], %s: f64[2] = fuse {
            %d: f64[2,5] = sub %x, %mb
            %e.1: f64[2,5] = exp %d
            %s.1: f64[2] = sum %e.1 {axes=[1]}
            yield %e.1, %s.1
          }
          %s1: f64[2,1] = reshape %s
          %sb: f64[2,5] = broadcast %s1
          %y: f64[2,5] = fuse {
            %y.1: f64[2,5] = div %e, %sb
            yield %y.1
          }
          return %y
        }
        """,
    )


def test_a_product_parts_what_comes_before_it_from_what_comes_after() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[4,4], %w: f64[4,4]) -> (f64[4,4], f64[4,4]) {
          %a: f64[4,4] = tanh %x
          %p: f64[4,4] = matmul %a, %w
          %b: f64[4,4] = exp %x
          %c: f64[4,4] = mul %p, %b
          %d: f64[4,4] = add %a, 1.0
          return %c, %d
        }
        """,
        """
        func @f(%x: f64[4,4], %w: f64[4,4]) -> (f64[4,4], f64[4,4]) {
          %a: f64[4,4], %d: f64[4,4] = fuse {
            %a.1: f64[4,4] = tanh %x
            %d.1: f64[4,4] = add %a.1, 1.0
            yield %a.1, %d.1
          }
          %p: f64[4,4] = matmul %a, %w
          %c: f64[4,4] = fuse {
            %b: f64[4,4] = exp %x
            %c.1: f64[4,4] = mul %p, %b
            yield %c.1
          }
          return %c, %d
        }
        """,
    )


def test_the_derivative_of_tanh_is_computed_in_the_backward_loop() -> None:
    """The statements could join the loop of the tanh, but sink to where their result is read: y is stored anyway."""
    rewrites(
        fuse,
        """
        func @f(%x: f64[4,4], %w: f64[4,4]) -> f64[4,4] {
          %y: f64[4,4] = tanh %x
        backward:
          %q: f64[4,4] = mul %y, %y
          %t: f64[4,4] = sub 1.0, %q
        forward:
          %p: f64[4,4] = matmul %y, %w
        backward:
          %x.bar: f64[4,4] = mul %p, %t
          return %x.bar
        }
        """,
        """
        func @f(%x: f64[4,4], %w: f64[4,4]) -> f64[4,4] {
          %y: f64[4,4] = fuse {
            %y.1: f64[4,4] = tanh %x
            yield %y.1
          }
          %p: f64[4,4] = matmul %y, %w
        backward:
          %x.bar: f64[4,4] = fuse {
            %q: f64[4,4] = mul %y, %y
            %t: f64[4,4] = sub 1.0, %q
            %x.bar.1: f64[4,4] = mul %p, %t
            yield %x.bar.1
          }
          return %x.bar
        }
        """,
    )


def test_constants_are_made_where_they_are_read() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[4,4]) -> (f64[4,4], f64[4,4], i64[4,4]) {
          %i: i64[4,4] = iota {axis=0}
          %c: f64[4,4] = cast %i
          %a: f64[4,4] = mul %x, %c
          %p: f64[4,4] = matmul %a, %x
          %b: f64[4,4] = cast %i
          %d: f64[4,4] = mul %p, %b
          return %a, %d, %i
        }
        """,
        """
        func @f(%x: f64[4,4]) -> (f64[4,4], f64[4,4], i64[4,4]) {
          %a: f64[4,4] = fuse {
            %i: i64[4,4] = iota {axis=0}
            %c: f64[4,4] = cast %i
            %a.1: f64[4,4] = mul %x, %c
            yield %a.1
          }
          %p: f64[4,4] = matmul %a, %x
          %d: f64[4,4] = fuse {
            %i.1: i64[4,4] = iota {axis=0}
            %b: f64[4,4] = cast %i.1
            %d.1: f64[4,4] = mul %p, %b
            yield %d.1
          }
          %i.2: i64[4,4] = fuse {
            %i.3: i64[4,4] = iota {axis=0}
            yield %i.3
          }
          return %a, %d, %i.2
        }
        """,
    )


def test_loops_are_fused_inside() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[3]) -> f64[3] {
          %w: f64[3] = exp %x
          %r: f64[3] = for %k in 0..5 carry (%c: f64[3] = %x) {
            %a: f64[3] = mul %c, %w
            %b: f64[3] = add %a, 1.0
            yield %b
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[3]) -> f64[3] {
          %w: f64[3] = fuse {
            %w.1: f64[3] = exp %x
            yield %w.1
          }
          %r: f64[3] = for %k in 0..5 carry (%c: f64[3] = %x) {
            %b: f64[3] = fuse {
              %a: f64[3] = mul %c, %w
              %b.1: f64[3] = add %a, 1.0
              yield %b.1
            }
            yield %b
          }
          return %r
        }
        """,
    )


def test_small_strangers_share_a_loop_and_large_ones_do_not() -> None:
    def loops(n: int) -> int:
        xs = [Value(TensorType(F64, (n,)), f"x{k}") for k in range(2)]
        with Builder(xs) as b:
            func = Func("f", b.finish([exp(x) for x in xs]))
        return len(fuse(func).stmts)

    assert (loops(100), loops(100_000)) == (1, 2)


def chain(length: int, size: int = 64) -> Func:
    x, w = (Value(TensorType(F64, (size,)), name) for name in "xw")
    y: Operand = x
    with Builder([x, w]) as b:
        for _ in range(length // 3):
            y = tanh(y * w + 0.5)
        return Func("chain", b.finish([y.sum()]))


@pytest.mark.parametrize(("size", "most"), [(64, MAX_SMALL_OPS), (SMALL, MAX_SMALL_OPS), (SMALL + 1, MAX_OPS)])
def test_groups_are_bounded(size: int, most: int) -> None:
    out = fuse(chain(3000, size))
    assert all(len(stmt.blocks[0].stmts) <= most for stmt in out.stmts if isinstance(stmt.op, Fuse))
    assert 3000 // most <= len(out.stmts) <= 3000 // most + 2


def test_a_hundred_thousand_statements_are_no_problem() -> None:
    assert len(OPTIMIZE(chain(100_000)).stmts) <= 100_000 // MAX_SMALL_OPS + 2


def test_gradients_of_chains_are_fused_too() -> None:
    assert len(OPTIMIZE(value_and_grad_func(chain(3000))).stmts) < 100


def is_fused(func: Func) -> bool:
    """Whether every elementwise op and reduction stands in a fuse region."""
    inside = {id(s) for stmt in walk(func.block) if isinstance(stmt.op, Fuse) for s in stmt.blocks[0].stmts}
    return all(id(s) in inside for s in walk(func.block) if isinstance(s.op, Map | Reduce))


@QUICK
@given(st.randoms(use_true_random=False))
def test_meaning_is_kept(random: Random) -> None:
    def each(func: Func) -> Func:
        out = fuse(legalize(func))
        assert is_fused(out)
        return out

    keeps_meaning(each, random)


def test_literals_that_memory_is_read_for_get_a_fill() -> None:
    rewrites(
        legalize,
        """
        func @f(%x: f64[2,2]) -> (f64[2,2], f64[2,2], f64[2]) {
          %a: f64[2,2] = matmul %x, 1.0:f64[2,2]
          %b: f64[2,2] = matmul 1.0:f64[2,2], %x
          %c: f64[2] = sum 1.0:f64[2,2] {axes=[0]}
          %d: f64[2,2] = add %a, 2.0
          return %b, %d, %c
        }
        """,
        """
        func @f(%x: f64[2,2]) -> (f64[2,2], f64[2,2], f64[2]) {
          %0: f64[2,2] = fill {value=1.0}
          %a: f64[2,2] = matmul %x, %0
          %b: f64[2,2] = matmul %0, %x
          %c: f64[2] = sum %0 {axes=[0]}
          %d: f64[2,2] = add %a, 2.0
          return %b, %d, %c
        }
        """,
    )
    assert isinstance(legalize(Func("f", Builder().finish([Literal(1.0, TensorType(F64))]))).results[0], Literal)


def test_a_value_stays_stored_where_a_later_loop_would_read_more_for_it() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000], %w: f64[5000]) -> (f64[5000], f64[5000]) {
          %a: f64[5000] = sub %x, %w
          %s: f64[] = sum %a {axes=[0]}
          %t: f64[5000] = broadcast %s
          %b: f64[5000] = mul %a, %t
          %u: f64[] = max %b {axes=[0]}
          %v: f64[5000] = broadcast %u
          %c: f64[5000] = mul %a, %v
          %d: f64[5000] = add %x, %w
          %e: f64[5000] = mul %d, %v
          %g: f64[5000] = mul %x, %e
          %h: f64[5000] = mul %w, %c
          return %g, %h
        }
        """,
        """
        func @f(%x: f64[5000], %w: f64[5000]) -> (f64[5000], f64[5000]) {
          %a: f64[5000], %s: f64[] = fuse {
            %a.1: f64[5000] = sub %x, %w
            %s.1: f64[] = sum %a.1 {axes=[0]}
            yield %a.1, %s.1
          }
          %t: f64[5000] = broadcast %s
          %u: f64[] = fuse {
            %b: f64[5000] = mul %a, %t
            %u.1: f64[] = max %b {axes=[0]}
            yield %u.1
          }
          %v: f64[5000] = broadcast %u
          %g: f64[5000], %h: f64[5000] = fuse {
            %d: f64[5000] = add %x, %w
            %c: f64[5000] = mul %a, %v
            %e: f64[5000] = mul %d, %v
            %g.1: f64[5000] = mul %x, %e
            %h.1: f64[5000] = mul %w, %c
            yield %g.1, %h.1
          }
          return %g, %h
        }
        """,
    )


def test_what_costs_more_than_a_load_is_stored() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000]) -> (f64[5000], f64[5000]) {
          %a: f64[5000] = exp %x
          %s: f64[] = sum %a {axes=[0]}
          %t: f64[5000] = broadcast %s
          %b: f64[5000] = mul %a, %t
          %u: f64[] = max %b {axes=[0]}
          %v: f64[5000] = broadcast %u
          %c: f64[5000] = mul %a, %v
          return %b, %c
        }
        """,
        """
        func @f(%x: f64[5000]) -> (f64[5000], f64[5000]) {
          %a: f64[5000], %s: f64[] = fuse {
            %a.1: f64[5000] = exp %x
            %s.1: f64[] = sum %a.1 {axes=[0]}
            yield %a.1, %s.1
          }
          %t: f64[5000] = broadcast %s
          %b: f64[5000], %u: f64[] = fuse {
            %b.1: f64[5000] = mul %a, %t
            %u.1: f64[] = max %b.1 {axes=[0]}
            yield %b.1, %u.1
          }
          %v: f64[5000] = broadcast %u
          %c: f64[5000] = fuse {
            %c.1: f64[5000] = mul %a, %v
            yield %c.1
          }
          return %b, %c
        }
        """,
    )


def test_a_value_that_leaves_is_stored_and_read() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000], %m: f64[5000,8]) -> (f64[8], f64[5000]) {
          %a: f64[5000] = neg %x
          %s: f64[] = sum %a {axes=[0]}
          %y: f64[8] = matmul %a, %m
          %t: f64[5000] = broadcast %s
          %b: f64[5000] = mul %a, %t
          return %y, %b
        }
        """,
        """
        func @f(%x: f64[5000], %m: f64[5000,8]) -> (f64[8], f64[5000]) {
          %a: f64[5000], %s: f64[] = fuse {
            %a.1: f64[5000] = neg %x
            %s.1: f64[] = sum %a.1 {axes=[0]}
            yield %a.1, %s.1
          }
          %t: f64[5000] = broadcast %s
          %y: f64[8] = matmul %a, %m
          %b: f64[5000] = fuse {
            %b.1: f64[5000] = mul %a, %t
            yield %b.1
          }
          return %y, %b
        }
        """,
    )


def test_views_of_results_follow_the_loop_that_makes_them() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[64,80], %y: f64[80,64]) -> (f64[80,64], f64[80,64]) {
          %p: f64[80,64] = transpose %x {axes=[1, 0]}
          %a: f64[64,80] = exp %x
          %t: f64[80,64] = transpose %a {axes=[1, 0]}
          %b: f64[80,64] = mul %t, %y
          %q: f64[80,64] = mul %p, %y
          return %b, %q
        }
        """,
        """
        func @f(%x: f64[64,80], %y: f64[80,64]) -> (f64[80,64], f64[80,64]) {
          %p: f64[80,64] = transpose %x {axes=[1, 0]}
          %a: f64[64,80] = fuse {
            %a.1: f64[64,80] = exp %x
            yield %a.1
          }
          %t: f64[80,64] = transpose %a {axes=[1, 0]}
          %b: f64[80,64], %q: f64[80,64] = fuse {
            %b.1: f64[80,64] = mul %t, %y
            %q.1: f64[80,64] = mul %p, %y
            yield %b.1, %q.1
          }
          return %b, %q
        }
        """,
    )


def test_differences_of_all_pairs_are_computed_in_every_loop_that_reads_them() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[80], %w: f64[80,80]) -> (f64[80,80], f64[80,80]) {
          %c: f64[80,1] = reshape %x
          %p: f64[80,80] = broadcast %c
          %q: f64[80,80] = broadcast %x
          %a: f64[80,80] = sub %p, %q
          %s: f64[] = sum %a {axes=[0, 1]}
          %t: f64[80,80] = broadcast %s
          %b: f64[80,80] = mul %a, %t
          %y: f64[80,80] = matmul %w, %b
          %d: f64[80,80] = mul %a, %y
          return %y, %d
        }
        """,
        """
        func @f(%x: f64[80], %w: f64[80,80]) -> (f64[80,80], f64[80,80]) {
          %c: f64[80,1] = reshape %x
          %p: f64[80,80] = broadcast %c
          %q: f64[80,80] = broadcast %x
          %s: f64[] = fuse {
            %a: f64[80,80] = sub %p, %q
            %s.1: f64[] = sum %a {axes=[0, 1]}
            yield %s.1
          }
          %t: f64[80,80] = broadcast %s
          %b: f64[80,80] = fuse {
            %a.1: f64[80,80] = sub %p, %q
            %b.1: f64[80,80] = mul %a.1, %t
            yield %b.1
          }
          %y: f64[80,80] = matmul %w, %b
          %d: f64[80,80] = fuse {
            %a.2: f64[80,80] = sub %p, %q
            %d.1: f64[80,80] = mul %a.2, %y
            yield %d.1
          }
          return %y, %d
        }
        """,
    )


def test_a_convolution_takes_what_follows_it_up_to_one_call_of_math() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f32[2,8,8,3], %k: f32[3,3,3,5], %b: f32[2,6,6,5]) -> (f32[2,6,6,5], f32[2,6,6,5]) {
          %c: f32[2,6,6,5] = convolve %x, %k {strides=[1, 1], dilations=[1, 1], groups=1}
          %a: f32[2,6,6,5] = add %c, %b
          %e: f32[2,6,6,5] = exp %a
          %l: f32[2,6,6,5] = log %e
          return %e, %l
        }
        """,
        """
        func @f(%x: f32[2,8,8,3], %k: f32[3,3,3,5], %b: f32[2,6,6,5]) -> (f32[2,6,6,5], f32[2,6,6,5]) {
          %e: f32[2,6,6,5] = fuse {
            %c: f32[2,6,6,5] = convolve %x, %k {strides=[1, 1], dilations=[1, 1], groups=1}
            %a: f32[2,6,6,5] = add %c, %b
            %e.1: f32[2,6,6,5] = exp %a
            yield %e.1
          }
          %l: f32[2,6,6,5] = fuse {
            %l.1: f32[2,6,6,5] = log %e
            yield %l.1
          }
          return %e, %l
        }
        """,
    )


def test_a_convolution_has_no_positions() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f32[2,8,8,3], %k: f32[3,3,3,5]) -> (f32[2,6,6,5], f32[2,6,6,5]) {
          %c: f32[2,6,6,5] = convolve %x, %k {strides=[1, 1], dilations=[1, 1], groups=1}
          %j: f32[2,6,6,5] = fill {value=2.0}
          %a: f32[2,6,6,5] = mul %c, %j
          %i: f32[2,6,6,5] = iota {axis=3}
          %t: f32[2,6,6,5] = mul %a, %i
          return %a, %t
        }
        """,
        """
        func @f(%x: f32[2,8,8,3], %k: f32[3,3,3,5]) -> (f32[2,6,6,5], f32[2,6,6,5]) {
          %a: f32[2,6,6,5] = fuse {
            %j: f32[2,6,6,5] = fill {value=2.0}
            %c: f32[2,6,6,5] = convolve %x, %k {strides=[1, 1], dilations=[1, 1], groups=1}
            %a.1: f32[2,6,6,5] = mul %c, %j
            yield %a.1
          }
          %t: f32[2,6,6,5] = fuse {
            %i: f32[2,6,6,5] = iota {axis=3}
            %t.1: f32[2,6,6,5] = mul %a, %i
            yield %t.1
          }
          return %a, %t
        }
        """,
    )


def test_constants_move_along_with_a_group_that_is_merged() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[64,32], %w: f64[32,128]) -> f64[64,128] {
          %m: f64[64,128] = matmul %x, %w
          %i: i64[64,128] = iota {axis=1}
          %c: bool[64,128] = less %i, 5
          %a: f64[64,128] = where %c, %m, 0.0
          %k: f64[64,128] = fill {value=2.0}
          %n: f64[64,128] = matmul %x, %w
          %b: f64[64,128] = mul %n, %k
          %r: f64[64,128] = add %a, %b
          return %r
        }
        """,
        """
        func @f(%x: f64[64,32], %w: f64[32,128]) -> f64[64,128] {
          %m: f64[64,128] = matmul %x, %w
          %n: f64[64,128] = matmul %x, %w
          %r: f64[64,128] = fuse {
            %k: f64[64,128] = fill {value=2.0}
            %i: i64[64,128] = iota {axis=1}
            %c: bool[64,128] = less %i, 5
            %a: f64[64,128] = where %c, %m, 0.0
            %b: f64[64,128] = mul %n, %k
            %r.1: f64[64,128] = add %a, %b
            yield %r.1
          }
          return %r
        }
        """,
    )


def test_pads_and_positions_are_not_in_one_loop() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[4999]) -> (f64[5000], f64[5000]) {
          %p: f64[5000] = pad %x {low=[1], high=[0], interior=[0], value=0.0}
          %e: f64[5000] = exp %p
          %i: f64[5000] = iota {axis=0}
          %a: f64[5000] = mul %e, %i
          %b: f64[5000] = mul %p, 2.0
          return %a, %b
        }
        """,
        """
        func @f(%x: f64[4999]) -> (f64[5000], f64[5000]) {
          %e: f64[5000], %b: f64[5000] = fuse {
            %p: f64[5000] = pad %x {low=[1], high=[0], interior=[0], value=0.0}
            %e.1: f64[5000] = exp %p
            %b.1: f64[5000] = mul %p, 2.0
            yield %e.1, %b.1
          }
          %a: f64[5000] = fuse {
            %i: f64[5000] = iota {axis=0}
            %a.1: f64[5000] = mul %e, %i
            yield %a.1
          }
          return %a, %b
        }
        """,
    )


def test_the_operand_of_a_pad_is_stored_before() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000]) -> f64[5002] {
          %a: f64[5000] = exp %x
          %p: f64[5002] = pad %a {low=[1], high=[1], interior=[0], value=0.0}
          %q: f64[5002] = pad %x {low=[2], high=[0], interior=[0], value=1.0}
          %b: f64[5002] = mul %p, %q
          return %b
        }
        """,
        """
        func @f(%x: f64[5000]) -> f64[5002] {
          %a: f64[5000] = fuse {
            %a.1: f64[5000] = exp %x
            yield %a.1
          }
          %b: f64[5002] = fuse {
            %p: f64[5002] = pad %a {low=[1], high=[1], interior=[0], value=0.0}
            %q: f64[5002] = pad %x {low=[2], high=[0], interior=[0], value=1.0}
            %b.1: f64[5002] = mul %p, %q
            yield %b.1
          }
          return %b
        }
        """,
    )


def test_effects_are_not_moved_into_loops() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[], %y: f64[]) -> f64[] {
          %a: f64[] = exp %x
          %p: bool[] = less %a, 1.0
          assert %p {message="p"}
          %b: f64[] = mul %a, %y
          return %b
        }
        """,
        """
        func @f(%x: f64[], %y: f64[]) -> f64[] {
          %p: bool[], %b: f64[] = fuse {
            %a: f64[] = exp %x
            %p.1: bool[] = less %a, 1.0
            %b.1: f64[] = mul %a, %y
            yield %p.1, %b.1
          }
          assert %p {message="p"}
          return %b
        }
        """,
    )


def test_constants_that_leave_are_made_once() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000], %m: f64[5000,8]) -> (f64[8], f64[5000], f64[5000]) {
          %k: f64[5000] = iota {axis=0}
          %y: f64[8] = matmul %k, %m
          %a: f64[5000] = mul %x, %k
          return %y, %a, %k
        }
        """,
        """
        func @f(%x: f64[5000], %m: f64[5000,8]) -> (f64[8], f64[5000], f64[5000]) {
          %k: f64[5000], %a: f64[5000] = fuse {
            %k.1: f64[5000] = iota {axis=0}
            %a.1: f64[5000] = mul %x, %k.1
            yield %k.1, %a.1
          }
          %y: f64[8] = matmul %k, %m
          return %y, %a, %k
        }
        """,
    )


def test_a_statement_sinks_into_its_only_reader() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000], %m: f64[5000,5000]) -> f64[5000] {
          %a: f64[5000] = tanh %x
          %b: f64[5000] = mul %a, %a
          %c: f64[5000] = sub 1.0, %b
          %y: f64[5000] = matmul %m, %a
          %d: f64[5000] = mul %c, %y
          return %d
        }
        """,
        """
        func @f(%x: f64[5000], %m: f64[5000,5000]) -> f64[5000] {
          %a: f64[5000] = fuse {
            %a.1: f64[5000] = tanh %x
            yield %a.1
          }
          %y: f64[5000] = matmul %m, %a
          %d: f64[5000] = fuse {
            %b: f64[5000] = mul %a, %a
            %c: f64[5000] = sub 1.0, %b
            %d.1: f64[5000] = mul %c, %y
            yield %d.1
          }
          return %d
        }
        """,
    )


def test_a_statement_stays_where_it_reads_more_than_it_makes() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000], %w: f64[5000], %v: f64[5000], %m: f64[5000,5000]) -> f64[5000] {
          %a: f64[5000] = mul %x, %w
          %b: f64[5000] = add %a, %v
          %c: f64[5000] = exp %b
          %y: f64[5000] = matmul %m, %c
          %d: f64[5000] = mul %b, %y
          return %d
        }
        """,
        """
        func @f(%x: f64[5000], %w: f64[5000], %v: f64[5000], %m: f64[5000,5000]) -> f64[5000] {
          %b: f64[5000], %c: f64[5000] = fuse {
            %a: f64[5000] = mul %x, %w
            %b.1: f64[5000] = add %a, %v
            %c.1: f64[5000] = exp %b.1
            yield %b.1, %c.1
          }
          %y: f64[5000] = matmul %m, %c
          %d: f64[5000] = fuse {
            %d.1: f64[5000] = mul %b, %y
            yield %d.1
          }
          return %d
        }
        """,
    )


def test_small_loops_close_by_are_joined_and_older_ones_are_not() -> None:
    rewrites(
        fuse,
        """
        func @f(%a: f64[8], %b: f64[8], %c: f64[8], %w: f64[8,8]) -> (f64[8], f64[8], f64[], f64[8]) {
          %d: f64[8] = exp %a
          %y: f64[8] = matmul %d, %w
          %e: f64[8] = exp %b
          %g: f64[8] = mul %y, %c
          %s: f64[] = sum %g {axes=[0]}
          %t: f64[8] = broadcast %s
          %h: f64[8] = mul %t, %c
          return %e, %g, %s, %h
        }
        """,
        """
        func @f(%a: f64[8], %b: f64[8], %c: f64[8], %w: f64[8,8]) -> (f64[8], f64[8], f64[], f64[8]) {
          %d: f64[8], %e: f64[8] = fuse {
            %d.1: f64[8] = exp %a
            %e.1: f64[8] = exp %b
            yield %d.1, %e.1
          }
          %y: f64[8] = matmul %d, %w
          %g: f64[8], %s: f64[] = fuse {
            %g.1: f64[8] = mul %y, %c
            %s.1: f64[] = sum %g.1 {axes=[0]}
            yield %g.1, %s.1
          }
          %t: f64[8] = broadcast %s
          %h: f64[8] = fuse {
            %h.1: f64[8] = mul %t, %c
            yield %h.1
          }
          return %e, %g, %s, %h
        }
        """,
    )


def test_backward_loops_are_marked() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000], %w: f64[5000,5000]) -> (f64[5000], f64[5000]) {
          %a: f64[5000] = exp %x
          %y: f64[5000] = matmul %w, %a
        backward:
          %b: f64[5000] = mul %y, %x
          %c: f64[5000] = neg %b
          return %a, %c
        }
        """,
        """
        func @f(%x: f64[5000], %w: f64[5000,5000]) -> (f64[5000], f64[5000]) {
          %a: f64[5000] = fuse {
            %a.1: f64[5000] = exp %x
            yield %a.1
          }
          %y: f64[5000] = matmul %w, %a
        backward:
          %c: f64[5000] = fuse {
            %b: f64[5000] = mul %y, %x
            %c.1: f64[5000] = neg %b
            yield %c.1
          }
          return %a, %c
        }
        """,
    )


def test_unused_loops_are_dropped() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000]) -> f64[5000] {
          %a: f64[5000] = exp %x
          %b: f64[5000] = neg %x
          return %b
        }
        """,
        """
        func @f(%x: f64[5000]) -> f64[5000] {
          %b: f64[5000] = fuse {
            %a: f64[5000] = exp %x
            %b.1: f64[5000] = neg %x
            yield %b.1
          }
          return %b
        }
        """,
    )
