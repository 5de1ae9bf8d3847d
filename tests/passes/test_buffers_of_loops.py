"""Buffers of loops: carries that are changed in place, and the lifetimes of values."""

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


def test_a_carry_that_is_neither_read_nor_changed_has_its_buffer() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %w: f64[8,8]) -> f64[8] {
          %r: f64[8], %s: f64[8] = for %k in 0..4 carry (%c: f64[8] = %x, %d: f64[8] = %x) {
            %n: f64[8] = matmul %c, %w
            yield %n, %d
          }
          %b: f64[8] = matmul %s, %w
          return %b
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %w: f64[8,8] @param+1) -> f64[8] arena 256 {
          %r: f64[8] @%c, %s: f64[8] @%d = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[8] @arena+64 = %x, %d: f64[8] @arena+128 = %x) {
            %n: f64[8] @arena+192 = matmul %c, %w
            yield %n, %d
          }
          %b: f64[8] @result+0 = matmul %s, %w
          return %b
        }
        """,
    )


def test_the_counter_lives_until_the_end_of_its_loop() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[4,8], %w: f64[8,8]) -> f64[8] {
          %r: f64[8] = for %k in 0..4 carry (%c: f64[8] = 0.0) {
            %row: f64[8] = gather %x, %k
            %a: f64[8] = matmul %row, %w
            %s: f64[] = fuse {
              %m: f64[] = sum %a {axes=[0]}
              yield %m
            }
            %b: f64[8] = broadcast %s {shape=[8]}
            %n: f64[8] = fuse {
              %o: f64[8] = mul %c, %b
              yield %o
            }
            yield %n
          }
          %y: f64[8] = matmul %r, %w
          return %y
        }
        """,
        """
        func @f(%x: f64[4,8] @param+0, %w: f64[8,8] @param+1) -> f64[8] arena 256 {
          %r: f64[8] @%c = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[8] @arena+64 = 0.0) {
            %row: f64[8] @view+0 = gather %x, %k
            %a: f64[8] @arena+128 = matmul %row, %w
            %s: f64[] @arena+192 = fuse {
              %m: f64[] = sum %a {axes=[0]}
              yield %m
            }
            %b: f64[8] @%s+0[0] = broadcast %s
            %n: f64[8] @arena+64 = fuse {
              %o: f64[8] = mul %c, %b
              yield %o
            }
            yield %n
          }
          %y: f64[8] @result+0 = matmul %r, %w
          return %y
        }
        """,
    )


def test_a_carry_does_not_lie_where_its_initial_value_does() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %w: f64[8,8]) -> f64[8] {
          %a: f64[8] = matmul %x, %w
          %r: f64[8] = for %k in 0..4 carry (%c: f64[8] = %a) {
            %n: f64[8] = matmul %c, %w
            yield %n
          }
          %y: f64[8] = matmul %r, %w
          return %y
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %w: f64[8,8] @param+1) -> f64[8] arena 192 {
          %a: f64[8] @arena+0 = matmul %x, %w
          %r: f64[8] @%c = for %k: i64[] @arena+64 in 0..4 carry (%c: f64[8] @arena+128 = %a) {
            %n: f64[8] @arena+0 = matmul %c, %w
            yield %n
          }
          %y: f64[8] @result+0 = matmul %r, %w
          return %y
        }
        """,
    )


def test_a_next_value_with_its_own_buffer_lives_until_the_end_of_the_body() -> None:
    """The carry is read after it was computed."""
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %w: f64[8,8]) -> (f64[8], f64[8]) {
          %r: f64[8], %s: f64[8] = for %k in 0..4 carry (%c: f64[8] = %x, %d: f64[8] = %x) {
            %n: f64[8] = matmul %c, %w
            %a: f64[8] = matmul %c, %w
            %b: f64[8] = matmul %a, %w
            %e: f64[8] = matmul %b, %w
            %o: f64[8] = matmul %e, %w
            yield %n, %o
          }
          %y: f64[8] = matmul %r, %w
          %z: f64[8] = matmul %s, %w
          return %y, %z
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %w: f64[8,8] @param+1) -> (f64[8], f64[8]) arena 384 {
          %r: f64[8] @%c, %s: f64[8] @%d = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[8] @arena+64 = %x, %d: f64[8] @arena+128 = %x) {
            %n: f64[8] @arena+192 = matmul %c, %w
            %a: f64[8] @arena+256 = matmul %c, %w
            %b: f64[8] @arena+320 = matmul %a, %w
            %e: f64[8] @arena+256 = matmul %b, %w
            %o: f64[8] @arena+128 = matmul %e, %w
            yield %n, %o
          }
          %y: f64[8] @result+0 = matmul %r, %w
          %z: f64[8] @result+1 = matmul %s, %w
          return %y, %z
        }
        """,
    )
