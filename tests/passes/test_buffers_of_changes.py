"""Carries that a loop changes by several statements in place."""

from __future__ import annotations

from adjit.passes.memory.buffers import plan_buffers
from tests.passes.checks import rewrites


def test_a_carry_is_changed_by_several_statements_in_place() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %i: i64[], %v: f64[], %w: f64[16,16]) -> f64[16] {
          %r: f64[16] = for %k in 0..4 carry (%c: f64[16] = %x) {
            %a: f64[16] = fuse {
              %m: f64[16] = mul %c, %c
              yield %m
            }
            %b: f64[16] = scatter_set %a, %v, %i
            %n: f64[16] = fuse {
              %o: f64[16] = exp %b
              yield %o
            }
            yield %n
          }
          %y: f64[16] = matmul %r, %w
          return %y
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %i: i64[] @param+1, %v: f64[] @param+2, %w: f64[16,16] @param+3) -> f64[16] arena 192 {
          %r: f64[16] @%c = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[16] @arena+64 = %x) {
            %a: f64[16] @arena+64 = fuse {
              %m: f64[16] = mul %c, %c
              yield %m
            }
            %b: f64[16] @arena+64 = scatter_set %a, %v, %i
            %n: f64[16] @arena+64 = fuse {
              %o: f64[16] = exp %b
              yield %o
            }
            yield %n
          }
          %y: f64[16] @result+0 = matmul %r, %w
          return %y
        }
        """,
    )


def test_a_carry_that_is_read_after_the_first_change_is_not_changed() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %w: f64[16,16]) -> f64[16] {
          %r: f64[16] = for %k in 0..4 carry (%c: f64[16] = %x) {
            %a: f64[16] = fuse {
              %m: f64[16] = mul %c, %c
              yield %m
            }
            %d: f64[16] = matmul %c, %w
            %n: f64[16] = fuse {
              %o: f64[16] = mul %a, %d
              yield %o
            }
            yield %n
          }
          %b: f64[16] = matmul %r, %w
          return %b
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %w: f64[16,16] @param+1) -> f64[16] arena 448 {
          %r: f64[16] @%c = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[16] @arena+64 = %x) {
            %a: f64[16] @arena+192 = fuse {
              %m: f64[16] = mul %c, %c
              yield %m
            }
            %d: f64[16] @arena+320 = matmul %c, %w
            %n: f64[16] @arena+64 = fuse {
              %o: f64[16] = mul %a, %d
              yield %o
            }
            yield %n
          }
          %b: f64[16] @result+0 = matmul %r, %w
          return %b
        }
        """,
    )


def test_a_chain_of_changes_ends_where_a_value_is_read_later() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %w: f64[8,8]) -> (f64[8], f64[8]) {
          %r: f64[8], %s: f64[8] = for %k in 0..4 carry (%c: f64[8] = %x, %d: f64[8] = %x) {
            %a: f64[8] = fuse {
              %m: f64[8] = exp %c
              yield %m
            }
            %n: f64[8] = fuse {
              %o: f64[8] = tanh %a
              yield %o
            }
            %e: f64[8] = matmul %a, %w
            %g: f64[8] = matmul %e, %w
            yield %n, %g
          }
          %y: f64[8] = matmul %r, %w
          %z: f64[8] = matmul %s, %w
          return %y, %z
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %w: f64[8,8] @param+1) -> (f64[8], f64[8]) arena 320 {
          %r: f64[8] @%c, %s: f64[8] @%d = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[8] @arena+64 = %x, %d: f64[8] @arena+128 = %x) {
            %a: f64[8] @arena+192 = fuse {
              %m: f64[8] = exp %c
              yield %m
            }
            %n: f64[8] @arena+64 = fuse {
              %o: f64[8] = tanh %a
              yield %o
            }
            %e: f64[8] @arena+256 = matmul %a, %w
            %g: f64[8] @arena+128 = matmul %e, %w
            yield %n, %g
          }
          %y: f64[8] @result+0 = matmul %r, %w
          %z: f64[8] @result+1 = matmul %s, %w
          return %y, %z
        }
        """,
    )


def test_a_chain_of_changes_does_not_pass_through_what_was_there_before_the_loop() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %w: f64[8,8]) -> f64[8] {
          %g: f64[8] = fuse {
            %h: f64[8] = exp %x
            yield %h
          }
          %r: f64[8] = for %k in 0..4 carry (%c: f64[8] = %x) {
            %a: f64[8] = matmul %c, %w
            %n: f64[8] = fuse {
              %o: f64[8] = mul %a, %g
              yield %o
            }
            yield %n
          }
          %y: f64[8] = matmul %r, %w
          return %y
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %w: f64[8,8] @param+1) -> f64[8] arena 256 {
          %g: f64[8] @arena+0 = fuse {
            %h: f64[8] = exp %x
            yield %h
          }
          %r: f64[8] @%c = for %k: i64[] @arena+64 in 0..4 carry (%c: f64[8] @arena+128 = %x) {
            %a: f64[8] @arena+192 = matmul %c, %w
            %n: f64[8] @arena+128 = fuse {
              %o: f64[8] = mul %a, %g
              yield %o
            }
            yield %n
          }
          %y: f64[8] @result+0 = matmul %r, %w
          return %y
        }
        """,
    )


def test_a_chain_of_changes_of_one_carry_is_not_taken_for_another() -> None:
    """Both next values are computed from one array."""
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %w: f64[8,8]) -> (f64[8], f64[8]) {
          %r: f64[8], %s: f64[8] = for %k in 0..4 carry (%c: f64[8] = %x, %d: f64[8] = %x) {
            %a: f64[8] = fuse {
              %m: f64[8] = mul %c, %d
              yield %m
            }
            %n: f64[8], %o: f64[8] = fuse {
              %p: f64[8] = tanh %a
              %q: f64[8] = exp %a
              yield %p, %q
            }
            yield %n, %o
          }
          %y: f64[8] = matmul %r, %w
          %z: f64[8] = matmul %s, %w
          return %y, %z
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %w: f64[8,8] @param+1) -> (f64[8], f64[8]) arena 192 {
          %r: f64[8] @%c, %s: f64[8] @%d = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[8] @arena+64 = %x, %d: f64[8] @arena+128 = %x) {
            %a: f64[8] @arena+64 = fuse {
              %m: f64[8] = mul %c, %d
              yield %m
            }
            %n: f64[8] @arena+64, %o: f64[8] @arena+128 = fuse {
              %p: f64[8] = tanh %a
              %q: f64[8] = exp %a
              yield %p, %q
            }
            yield %n, %o
          }
          %y: f64[8] @result+0 = matmul %r, %w
          %z: f64[8] @result+1 = matmul %s, %w
          return %y, %z
        }
        """,
    )
