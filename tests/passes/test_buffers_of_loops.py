"""Buffers of loops: carries that are changed in place, rows that are computed in the array of all."""

from __future__ import annotations

from adjit.passes.memory.buffers import plan_buffers
from tests.passes.checks import rewrites


def test_a_carry_is_changed_in_place() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %w: f64[16,16]) -> f64[16] {
          %r: f64[16] = for %k in 0..4 carry (%c: f64[16] = %x) {
            %n: f64[16] = fuse {
              %m: f64[16] = mul %c, %c
              yield %m
            }
            yield %n
          }
          %b: f64[16] = matmul %r, %w
          return %b
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %w: f64[16,16] @param+1) -> f64[16] arena 192 {
          %r: f64[16] @%c = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[16] @arena+64 = %x) {
            %n: f64[16] @arena+64 = fuse {
              %m: f64[16] = mul %c, %c
              yield %m
            }
            yield %n
          }
          %b: f64[16] @result+0 = matmul %r, %w
          return %b
        }
        """,
    )


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


def test_carries_that_are_exchanged_are_copied_once() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %y: f64[16]) -> (f64[16], f64[16]) {
          %r: f64[16], %s: f64[16] = for %k in 0..4 carry (%c: f64[16] = %x, %d: f64[16] = %y) {
            yield %d, %c
          }
          return %r, %s
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %y: f64[16] @param+1) -> (f64[16], f64[16]) arena 192 {
          %r: f64[16] @%c, %s: f64[16] @%d = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[16] @result+0 = %x, %d: f64[16] @result+1 = %y) {
            %d.1: f64[16] @arena+64 = fuse {
              %0: f64[16] = copy %d
              yield %0
            }
            %c.1: f64[16] @result+1 = fuse {
              %1: f64[16] = copy %c
              yield %1
            }
            yield %d.1, %c.1
          }
          return %r, %s
        }
        """,
    )


def test_what_a_loop_reads_from_outside_lives_until_its_end() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %w: f64[16,16]) -> f64[16] {
          %a: f64[16] = matmul %x, %w
          %r: f64[16] = for %k in 0..4 carry (%c: f64[16] = %x) {
            %n: f64[16] = fuse {
              %m: f64[16] = mul %c, %a
              yield %m
            }
            %o: f64[16] = matmul %n, %w
            %q: f64[16] = for %l in 0..4 carry (%e: f64[16] = %o) {
              %g: f64[16] = matmul %e, %w
              %h: f64[16] = matmul %g, %w
              yield %h
            }
            yield %q
          }
          %b: f64[16] = matmul %r, %w
          return %b
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %w: f64[16,16] @param+1) -> f64[16] arena 576 {
          %a: f64[16] @arena+0 = matmul %x, %w
          %r: f64[16] @%c = for %k: i64[] @arena+128 in 0..4 carry (%c: f64[16] @arena+192 = %x) {
            %n: f64[16] @arena+320 = fuse {
              %m: f64[16] = mul %c, %a
              yield %m
            }
            %o: f64[16] @arena+448 = matmul %n, %w
            %q: f64[16] @%e = for %l: i64[] @arena+320 in 0..4 carry (%e: f64[16] @arena+192 = %o) {
              %g: f64[16] @arena+384 = matmul %e, %w
              %h: f64[16] @arena+192 = matmul %g, %w
              yield %h
            }
            yield %q
          }
          %b: f64[16] @result+0 = matmul %r, %w
          return %b
        }
        """,
    )


def test_a_carry_that_stays_is_not_copied() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %w: f64[8,8]) -> f64[8] {
          %r: f64[8], %s: f64[8] = for %k in 0..4 carry (%c: f64[8] = %x, %d: f64[8] = %x) {
            %n: f64[8] = fuse {
              %m: f64[8] = mul %c, %d
              yield %m
            }
            yield %n, %d
          }
          %b: f64[8] = matmul %r, %w
          return %b
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %w: f64[8,8] @param+1) -> f64[8] arena 192 {
          %r: f64[8] @%c, %s: f64[8] @%d = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[8] @arena+64 = %x, %d: f64[8] @arena+128 = %x) {
            %n: f64[8] @arena+64 = fuse {
              %m: f64[8] = mul %c, %d
              yield %m
            }
            yield %n, %d
          }
          %b: f64[8] @result+0 = matmul %r, %w
          return %b
        }
        """,
    )


def test_rows_are_made_in_the_array_that_a_loop_fills() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[4,16], %w: f64[16,16]) -> f64[4,16] {
          %r: f64[4,16] = for %k in 0..4 carry (%c: f64[4,16] = 0.0) {
            %row: f64[16] = gather %x, %k
            %a: f64[16] = matmul %row, %w
            %n: f64[4,16] = scatter_set %c, %a, %k
            yield %n
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[4,16] @param+0, %w: f64[16,16] @param+1) -> f64[4,16] arena 64 {
          %r: f64[4,16] @%c = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[4,16] @result+0 = 0.0) {
            %row: f64[16] @view+0 = gather %x, %k
            %a: f64[16] @row+0 = matmul %row, %w
            %n: f64[4,16] @result+0 = scatter_set %c, %a, %k
            yield %n
          }
          return %r
        }
        """,
    )


def test_rows_at_an_index_that_is_known_later_are_copied() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[4,16], %w: f64[16,16]) -> f64[4,16] {
          %r: f64[4,16] = for %k in 0..4 carry (%c: f64[4,16] = 0.0) {
            %row: f64[16] = gather %x, %k
            %a: f64[16] = matmul %row, %w
            %j: i64[] = fuse {
              %l: i64[] = sub 3, %k
              yield %l
            }
            %n: f64[4,16] = scatter_set %c, %a, %j
            yield %n
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[4,16] @param+0, %w: f64[16,16] @param+1) -> f64[4,16] arena 256 {
          %r: f64[4,16] @%c = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[4,16] @result+0 = 0.0) {
            %row: f64[16] @view+0 = gather %x, %k
            %a: f64[16] @arena+64 = matmul %row, %w
            %j: i64[] @arena+192 = fuse {
              %l: i64[] = sub 3, %k
              yield %l
            }
            %n: f64[4,16] @result+0 = scatter_set %c, %a, %j
            yield %n
          }
          return %r
        }
        """,
    )


def test_a_condition_reads_the_carry_before_it_is_changed() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %w: f64[16,16]) -> f64[16] {
          %r: f64[16], %q: f64[] = while carry (%c: f64[16] = %x, %e: f64[] = 1.0) {
            %p: bool[] = fuse {
              %t: bool[] = less %e, 5.0
              yield %t
            }
            cond %p
          } do {
            %n: f64[16] = matmul %c, %w
            %f: f64[] = fuse {
              %s: f64[] = sum %n {axes=[0]}
              yield %s
            }
            yield %n, %f
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %w: f64[16,16] @param+1) -> f64[16] arena 256 {
          %r: f64[16] @%c, %q: f64[] @%e = while carry (%c: f64[16] @result+0 = %x, %e: f64[] @arena+0 = 1.0) {
            %p: bool[] @arena+64 = fuse {
              %t: bool[] = less %e, 5.0
              yield %t
            }
            cond %p
          } do {
            %n: f64[16] @arena+128 = matmul %c, %w
            %f: f64[] @arena+0 = fuse {
              %s: f64[] = sum %n {axes=[0]}
              yield %s
            }
            yield %n, %f
          }
          return %r
        }
        """,
    )
