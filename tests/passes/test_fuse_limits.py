"""Fusion: statements that stay out of a loop, and statements that join one later."""

from __future__ import annotations

from adjit.passes.fusion.fuse import fuse
from tests.passes.checks import rewrites


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
