"""Fusion: which statements share a loop."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjit.ir.builder import Builder
from adjit.ir.func import Func, Value
from adjit.ir.operand import Operand
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


def test_groups_stay_separate_if_one_needs_a_reduction_of_the_other() -> None:
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
    """Values that the next loop reads are stored; a reduction is its own loop; statements that do not read the convolution stay outside."""
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


def test_statements_after_a_reduction_are_a_second_loop() -> None:
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


def test_a_product_separates_earlier_from_later_statements() -> None:
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


def test_a_hundred_thousand_statements_work() -> None:
    assert len(OPTIMIZE(chain(100_000)).stmts) <= 100_000 // MAX_SMALL_OPS + 2


def test_gradients_of_chains_are_fused_too() -> None:
    assert len(OPTIMIZE(value_and_grad_func(chain(3000))).stmts) < 100


def is_fused(func: Func) -> bool:
    """Whether every elementwise op and reduction is in a fuse region."""
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
