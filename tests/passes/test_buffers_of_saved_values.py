"""Buffers of values that loops save: computed on the stack, or copied there at the end of an iteration."""

from __future__ import annotations

from adjit.passes.memory.buffers import plan_buffers
from tests.passes.checks import rewrites


def test_every_value_that_is_saved_has_a_slot() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %w: f64[8,8]) -> f64[8] {
          %r: f64[8], %s: stack<f64[8]>, %t: stack<f64[8]> = for %k in 0..4 carry (%c: f64[8] = %x) {
            %a: f64[8] = matmul %c, %w
            %b: f64[8] = matmul %a, %w
            %n: f64[8] = matmul %b, %w
            yield %n saving %a, %b
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %w: f64[8,8] @param+1) -> f64[8] arena 192 {
          %r: f64[8] @%c, %s: stack<f64[8]> @arena+0,
              %t: stack<f64[8]> @arena+64 = for %k: i64[] @arena+128 in 0..4 carry (%c: f64[8] @result+0 = %x) {
            %a: f64[8] @slot+0 = matmul %c, %w
            %b: f64[8] @slot+1 = matmul %a, %w
            %n: f64[8] @result+0 = matmul %b, %w
            yield %n saving %a, %b
          }
          return %r
        }
        """,
    )


def test_a_carry_that_is_saved_is_changed_in_place() -> None:
    """It was saved when the iteration began."""
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %w: f64[8,8]) -> f64[8] {
          %r: f64[8], %s: stack<f64[8]> = for %k in 0..4 carry (%c: f64[8] = %x) {
            %n: f64[8] = fuse {
              %m: f64[8] = exp %c
              yield %m
            }
            yield %n saving %c
          }
          %y: f64[8] = matmul %r, %w
          return %y
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %w: f64[8,8] @param+1) -> f64[8] arena 192 {
          %r: f64[8] @%c, %s: stack<f64[8]> @arena+0 = for %k: i64[] @arena+64 in 0..4 carry (%c: f64[8] @arena+128 = %x) {
            %n: f64[8] @arena+128 = fuse {
              %m: f64[8] = exp %c
              yield %m
            }
            yield %n saving %c
          }
          %y: f64[8] @result+0 = matmul %r, %w
          return %y
        }
        """,
    )


def test_what_is_saved_at_the_end_of_an_iteration_lives_until_then() -> None:
    """Scalars, views and parts have no slots."""
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %w: f64[8,8]) -> f64[8] {
          %r: f64[8], %s: stack<f64[]>, %t: stack<f64[8]>, %u: stack<f64[4]> = for %k in 0..4 carry (%c: f64[8] = %x) {
            %a: f64[] = fuse {
              %m: f64[] = sum %c {axes=[0]}
              yield %m
            }
            %b: f64[8] = matmul %c, %w
            %v: f64[8] = flip %b {axes=[0]}
            %d: f64[8] = matmul %c, %w
            %o: f64[4] = slice %d {starts=[0], stops=[4], steps=[1]}
            %e: f64[8] = matmul %c, %w
            %g: f64[8] = matmul %e, %w
            %h: f64[8] = matmul %g, %w
            %n: f64[8] = matmul %h, %w
            yield %n saving %a, %v, %o
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %w: f64[8,8] @param+1) -> f64[8] arena 576 {
          %r: f64[8] @%c, %s: stack<f64[]> @arena+0, %t: stack<f64[8]> @arena+64,
              %u: stack<f64[4]> @arena+128 = for %k: i64[] @arena+192 in 0..4 carry (%c: f64[8] @result+0 = %x) {
            %a: f64[] @arena+256 = fuse {
              %m: f64[] = sum %c {axes=[0]}
              yield %m
            }
            %b: f64[8] @arena+320 = matmul %c, %w
            %v: f64[8] @%b+7[-1] = flip %b {axes=[0]}
            %d: f64[8] @arena+384 = matmul %c, %w
            %o: f64[4] @%d = slice %d {starts=[0], stops=[4], steps=[1]}
            %e: f64[8] @arena+448 = matmul %c, %w
            %g: f64[8] @arena+512 = matmul %e, %w
            %h: f64[8] @arena+448 = matmul %g, %w
            %n: f64[8] @result+0 = matmul %h, %w
            yield %n saving %a, %v, %o
          }
          return %r
        }
        """,
    )


def test_what_comes_from_outside_and_views_of_carries_have_no_slots() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %w: f64[8,8]) -> f64[8] {
          %o: f64[8] = matmul %x, %w
          %r: f64[8], %s: stack<f64[8]>, %t: stack<f64[8]>, %u: stack<f64[2,4]>, %v: stack<f64[]> = for %k in 0..4 carry (%c: f64[8] = %x) {
            %a: f64[2,4] = reshape %c
            %b: f64[8] = matmul %c, %w
            %n: f64[8] = fuse {
              %m: f64[8] = mul %b, %o
              yield %m
            }
            yield %n saving %x, %o, %a, 1.0:f64[]
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %w: f64[8,8] @param+1) -> f64[8] arena 448 {
          %o: f64[8] @arena+256 = matmul %x, %w
          %r: f64[8] @%c, %s: stack<f64[8]> @arena+0, %t: stack<f64[8]> @arena+64, %u: stack<f64[2,4]> @arena+128,
              %v: stack<f64[]> @arena+192 = for %k: i64[] @arena+320 in 0..4 carry (%c: f64[8] @result+0 = %x) {
            %a: f64[2,4] @%c = reshape %c
            %b: f64[8] @arena+384 = matmul %c, %w
            %n: f64[8] @arena+384 = fuse {
              %m: f64[8] = mul %b, %o
              yield %m
            }
            yield %n saving %x, %o, %a, 1.0:f64[]
          }
          return %r
        }
        """,
    )


def test_a_reshaped_array_is_saved_where_it_is_computed() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %w: f64[8,8]) -> f64[8] {
          %r: f64[8], %s: stack<f64[2,4]>, %t: stack<f64[8]> = for %k in 0..4 carry (%c: f64[8] = %x) {
            %a: f64[8] = matmul %c, %w
            %b: f64[2,4] = reshape %a
            %n: f64[8] = matmul %a, %w
            yield %n saving %b, %a
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %w: f64[8,8] @param+1) -> f64[8] arena 192 {
          %r: f64[8] @%c, %s: stack<f64[2,4]> @arena+0,
              %t: stack<f64[8]> @arena+64 = for %k: i64[] @arena+128 in 0..4 carry (%c: f64[8] @result+0 = %x) {
            %a: f64[8] @slot+0 = matmul %c, %w
            %b: f64[2,4] @%a = reshape %a
            %n: f64[8] @result+0 = matmul %a, %w
            yield %n saving %b, %a
          }
          return %r
        }
        """,
    )


def test_what_a_loop_changes_on_the_way_is_saved_in_its_slot() -> None:
    """The chain of changes in place ends there."""
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %w: f64[8,8]) -> f64[8] {
          %r: f64[8], %s: stack<f64[8]> = for %k in 0..4 carry (%c: f64[8] = %x) {
            %a: f64[8] = fuse {
              %m: f64[8] = exp %c
              yield %m
            }
            %n: f64[8] = fuse {
              %o: f64[8] = tanh %a
              yield %o
            }
            yield %n saving %a
          }
          %y: f64[8] = matmul %r, %w
          return %y
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %w: f64[8,8] @param+1) -> f64[8] arena 192 {
          %r: f64[8] @%c, %s: stack<f64[8]> @arena+0 = for %k: i64[] @arena+64 in 0..4 carry (%c: f64[8] @arena+128 = %x) {
            %a: f64[8] @slot+0 = fuse {
              %m: f64[8] = exp %c
              yield %m
            }
            %n: f64[8] @arena+128 = fuse {
              %o: f64[8] = tanh %a
              yield %o
            }
            yield %n saving %a
          }
          %y: f64[8] @result+0 = matmul %r, %w
          return %y
        }
        """,
    )


def test_a_stack_that_a_loop_carries_is_changed_in_place() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %w: f64[8,8]) -> f64[8] {
          %r: f64[8], %s: stack<f64[8]> = for %k in 0..4 carry (%c: f64[8] = %x) {
            %n: f64[8] = matmul %c, %w
            yield %n saving %c
          }
          %t: stack<f64[8]>, %q: f64[8] = for %j in 0..4 carry (%u: stack<f64[8]> = %s, %d: f64[8] = %r) {
            %e: f64[8] = stack_read %u, %j
            %g: f64[8] = matmul %e, %w
            %v: stack<f64[8]> = stack_accumulate %u, %j, %g
            %h: f64[8] = matmul %d, %w
            yield %v, %h
          }
          return %q
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %w: f64[8,8] @param+1) -> f64[8] arena 256 {
          %r: f64[8] @%c, %s: stack<f64[8]> @arena+0 = for %k: i64[] @arena+64 in 0..4 carry (%c: f64[8] @arena+128 = %x) {
            %n: f64[8] @arena+192 = matmul %c, %w
            yield %n saving %c
          }
          %t: stack<f64[8]> @%s, %q: f64[8] @%d = for %j: i64[] @arena+64 in 0..4 carry (%u: stack<f64[8]> @%s = %s, %d: f64[8] @result+0 = %r) {
            %e: f64[8] @arena+128 = stack_read %u, %j
            %g: f64[8] @arena+192 = matmul %e, %w
            %v: stack<f64[8]> @%s = stack_accumulate %u, %j, %g
            %h: f64[8] @arena+128 = matmul %d, %w
            yield %v, %h
          }
          return %q
        }
        """,  # noqa: E501
    )
