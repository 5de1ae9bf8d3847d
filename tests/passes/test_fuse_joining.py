"""Fusion: which loop a statement joins, and which loops become one."""

from __future__ import annotations

from adjit.passes.fusion.fuse import fuse
from tests.passes.checks import rewrites


def test_a_padded_number_and_positions_are_not_in_one_loop() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000]) -> f64[5000] {
          %i: f64[5000] = iota {axis=0}
          %a: f64[5000] = mul %x, %i
          %p: f64[5000] = pad 1.0:f64[4999] {low=[1], high=[0], interior=[0], value=0.0}
          %b: f64[5000] = mul %a, %p
          return %b
        }
        """,
        """
        func @f(%x: f64[5000]) -> f64[5000] {
          %a: f64[5000] = fuse {
            %i: f64[5000] = iota {axis=0}
            %a.1: f64[5000] = mul %x, %i
            yield %a.1
          }
          %b: f64[5000] = fuse {
            %p: f64[5000] = pad 1.0:f64[4999] {low=[1], high=[0], interior=[0], value=0.0}
            %b.1: f64[5000] = mul %a, %p
            yield %b.1
          }
          return %b
        }
        """,
    )


def test_what_a_convolution_reads_is_stored() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f32[2,8,8,3], %k: f32[3,3,3,5]) -> f32[2,6,6,5] {
          %a: f32[2,8,8,3] = exp %x
          %l: f32[3,3,3,5] = neg %k
          %c: f32[2,6,6,5] = convolve %a, %l {strides=[1, 1], dilations=[1, 1], groups=1}
          return %c
        }
        """,
        """
        func @f(%x: f32[2,8,8,3], %k: f32[3,3,3,5]) -> f32[2,6,6,5] {
          %a: f32[2,8,8,3] = fuse {
            %a.1: f32[2,8,8,3] = exp %x
            yield %a.1
          }
          %l: f32[3,3,3,5] = fuse {
            %l.1: f32[3,3,3,5] = neg %k
            yield %l.1
          }
          %c: f32[2,6,6,5] = convolve %a, %l {strides=[1, 1], dilations=[1, 1], groups=1}
          return %c
        }
        """,
    )


def test_a_reduction_of_a_number_joins_a_small_loop() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[8]) -> (f64[8], f64[]) {
          %a: f64[8] = exp %x
          %s: f64[] = sum 2.0:f64[8] {axes=[0]}
          return %a, %s
        }
        """,
        """
        func @f(%x: f64[8]) -> (f64[8], f64[]) {
          %a: f64[8], %s: f64[] = fuse {
            %a.1: f64[8] = exp %x
            %s.1: f64[] = sum 2.0:f64[8] {axes=[0]}
            yield %a.1, %s.1
          }
          return %a, %s
        }
        """,
    )


def test_statements_after_a_reduction_over_no_axes_are_another_loop() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000]) -> (f64[5000], f64[5000]) {
          %a: f64[5000] = exp %x
          %s: f64[5000] = sum %a {axes=[]}
          %b: f64[5000] = mul %s, %x
          return %s, %b
        }
        """,
        """
        func @f(%x: f64[5000]) -> (f64[5000], f64[5000]) {
          %s: f64[5000] = fuse {
            %a: f64[5000] = exp %x
            %s.1: f64[5000] = sum %a {axes=[]}
            yield %s.1
          }
          %b: f64[5000] = fuse {
            %b.1: f64[5000] = mul %s, %x
            yield %b.1
          }
          return %s, %b
        }
        """,
    )


def test_statements_join_the_loop_that_follows_the_product_that_they_read() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[5000], %w: f64[5000,5000]) -> (f64[5000], f64[5000], f64[5000], f64[5000]) {
          %m: f64[5000] = matmul %x, %w
          %n: f64[5000] = matmul %m, %w
          %o: f64[5000] = matmul %n, %w
          %a: f64[5000] = exp %o
          %b: f64[5000] = mul %a, %o
          %v: f64[5000] = flip %o {axes=[0]}
          %c: f64[5000] = mul %a, %v
          return %m, %n, %b, %c
        }
        """,
        """
        func @f(%x: f64[5000], %w: f64[5000,5000]) -> (f64[5000], f64[5000], f64[5000], f64[5000]) {
          %m: f64[5000] = matmul %x, %w
          %n: f64[5000] = matmul %m, %w
          %o: f64[5000] = matmul %n, %w
          %v: f64[5000] = flip %o {axes=[0]}
          %b: f64[5000], %c: f64[5000] = fuse {
            %a: f64[5000] = exp %o
            %b.1: f64[5000] = mul %a, %o
            %c.1: f64[5000] = mul %a, %v
            yield %b.1, %c.1
          }
          return %m, %n, %b, %c
        }
        """,
    )


def test_strangers_do_not_join_a_loop_that_was_merged_into_another() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[8], %y: f64[8], %w: f64[8,8]) -> (f64[8], f64[8]) {
          %a: f64[8] = exp %x
          %m: f64[8] = matmul %y, %w
          %b: f64[8] = exp %m
          %c: f64[8] = mul %a, %b
          %d: f64[8] = neg %y
          return %c, %d
        }
        """,
        """
        func @f(%x: f64[8], %y: f64[8], %w: f64[8,8]) -> (f64[8], f64[8]) {
          %m: f64[8] = matmul %y, %w
          %c: f64[8], %d: f64[8] = fuse {
            %a: f64[8] = exp %x
            %b: f64[8] = exp %m
            %c.1: f64[8] = mul %a, %b
            %d.1: f64[8] = neg %y
            yield %c.1, %d.1
          }
          return %c, %d
        }
        """,
    )
