"""Fusion: which values are stored between loops, and which are recomputed."""

from __future__ import annotations

from adjit.ir.builder import Builder
from adjit.ir.func import Func
from adjit.ir.operand import Literal
from adjit.ir.types import F64, TensorType
from adjit.passes.fusion.fuse import fuse
from adjit.passes.fusion.legalize import legalize
from tests.passes.checks import rewrites


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
