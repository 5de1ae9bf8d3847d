"""Rows of arrays: those that a loop writes, computed in place or copied; those that are read in place."""

from __future__ import annotations

from adjit.passes.memory.buffers import plan_buffers
from tests.passes.checks import rewrites


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


def test_rows_that_lie_elsewhere_are_copied_into_the_array() -> None:
    """A row of another array, a parameter, a row that is saved; and a number."""
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[4,8], %v: f64[8], %w: f64[8,8]) -> (f64[4,8], f64[4,8], f64[4,8], f64[4]) {
          %r: f64[4,8], %r1: f64[4,8], %r2: f64[4,8], %r3: f64[4], %s: stack<f64[8]> = for %k in 0..4 carry (%c: f64[4,8] = 0.0,
              %c1: f64[4,8] = 0.0, %c2: f64[4,8] = 0.0, %c3: f64[4] = 0.0) {
            %row: f64[8] = gather %x, %k
            %a: f64[8] = matmul %row, %w
            %b: f64[] = fuse {
              %m: f64[] = sum %row {axes=[0]}
              yield %m
            }
            %n: f64[4,8] = scatter_set %c, %row, %k
            %n1: f64[4,8] = scatter_set %c1, %v, %k
            %n2: f64[4,8] = scatter_set %c2, %a, %k
            %n3: f64[4] = scatter_set %c3, %b, %k
            yield %n, %n1, %n2, %n3 saving %a
          }
          return %r, %r1, %r2, %r3
        }
        """,
        """
        func @f(%x: f64[4,8] @param+0, %v: f64[8] @param+1, %w: f64[8,8] @param+2) -> (f64[4,8], f64[4,8], f64[4,8], f64[4]) arena 192 {
          %r: f64[4,8] @%c, %r1: f64[4,8] @%c1, %r2: f64[4,8] @%c2, %r3: f64[4] @%c3,
              %s: stack<f64[8]> @arena+0 = for %k: i64[] @arena+64 in 0..4 carry (%c: f64[4,8] @result+0 = 0.0, %c1: f64[4,8] @result+1 = 0.0,
              %c2: f64[4,8] @result+2 = 0.0, %c3: f64[4] @result+3 = 0.0) {
            %row: f64[8] @view+0 = gather %x, %k
            %a: f64[8] @slot+0 = matmul %row, %w
            %b: f64[] @arena+128 = fuse {
              %m: f64[] = sum %row {axes=[0]}
              yield %m
            }
            %n: f64[4,8] @result+0 = scatter_set %c, %row, %k
            %n1: f64[4,8] @result+1 = scatter_set %c1, %v, %k
            %n2: f64[4,8] @result+2 = scatter_set %c2, %a, %k
            %n3: f64[4] @result+3 = scatter_set %c3, %b, %k
            yield %n, %n1, %n2, %n3 saving %a
          }
          return %r, %r1, %r2, %r3
        }
        """,  # noqa: E501
    )


def test_rows_whose_index_the_same_kernel_computes_are_copied() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[4,8], %i: i64[4,8]) -> f64[4,8] {
          %r: f64[4,8] = for %k in 0..4 carry (%c: f64[4,8] = 0.0) {
            %row: f64[8] = gather %x, %k
            %at: i64[8] = gather %i, %k
            %a: f64[8], %j: i64[] = fuse {
              %m: f64[8] = exp %row
              %o: i64[] = max %at {axes=[0]}
              yield %m, %o
            }
            %n: f64[4,8] = scatter_set %c, %a, %j
            yield %n
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[4,8] @param+0, %i: i64[4,8] @param+1) -> f64[4,8] arena 192 {
          %r: f64[4,8] @%c = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[4,8] @result+0 = 0.0) {
            %row: f64[8] @view+0 = gather %x, %k
            %at: i64[8] @view+1 = gather %i, %k
            %a: f64[8] @arena+64, %j: i64[] @arena+128 = fuse {
              %m: f64[8] = exp %row
              %o: i64[] = max %at {axes=[0]}
              yield %m, %o
            }
            %n: f64[4,8] @result+0 = scatter_set %c, %a, %j
            yield %n
          }
          return %r
        }
        """,
    )


def test_rows_of_an_array_that_is_read_or_not_carried_on_are_copied() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[4,8], %w: f64[8,8]) -> (f64[4,8], f64[8]) {
          %r: f64[4,8], %s: f64[8] = for %k in 0..4 carry (%c: f64[4,8] = 0.0, %d: f64[8] = 0.0) {
            %row: f64[8] = gather %x, %k
            %a: f64[8] = matmul %row, %w
            %n: f64[4,8] = scatter_set %c, %a, %k
            %b: f64[8] = matmul %row, %w
            %o: f64[4,8] = scatter_set %x, %b, %k
            %e: f64[8] = fuse {
              %m: f64[8] = sum %o {axes=[0]}
              yield %m
            }
            %q: f64[4,8] = fuse {
              %l: f64[4,8] = exp %n
              yield %l
            }
            yield %q, %e
          }
          return %r, %s
        }
        """,
        """
        func @f(%x: f64[4,8] @param+0, %w: f64[8,8] @param+1) -> (f64[4,8], f64[8]) arena 384 {
          %r: f64[4,8] @%c, %s: f64[8] @%d = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[4,8] @result+0 = 0.0, %d: f64[8] @result+1 = 0.0) {
            %row: f64[8] @view+0 = gather %x, %k
            %a: f64[8] @row+0 = matmul %row, %w
            %n: f64[4,8] @result+0 = scatter_set %c, %a, %k
            %b: f64[8] @arena+64 = matmul %row, %w
            %o: f64[4,8] @arena+128 = scatter_set %x, %b, %k
            %e: f64[8] @result+1 = fuse {
              %m: f64[8] = sum %o {axes=[0]}
              yield %m
            }
            %q: f64[4,8] @result+0 = fuse {
              %l: f64[4,8] = exp %n
              yield %l
            }
            yield %q, %e
          }
          return %r, %s
        }
        """,  # noqa: E501
    )


def test_an_index_lives_until_a_row_is_read_in_place() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[4,16], %i: i64[], %w: f64[16,16]) -> (f64[16], i64[]) {
          %j: i64[] = fuse {
            %m: i64[] = sub 3, %i
            yield %m
          }
          %k: i64[] = fuse {
            %n: i64[] = mul %i, 5
            yield %n
          }
          %row: f64[16] = gather %x, %j
          %l: i64[] = fuse {
            %o: i64[] = add %k, 1
            yield %o
          }
          %a: f64[16] = matmul %row, %w
          return %a, %l
        }
        """,
        """
        func @f(%x: f64[4,16] @param+0, %i: i64[] @param+1, %w: f64[16,16] @param+2) -> (f64[16], i64[]) arena 128 {
          %j: i64[] @arena+0 = fuse {
            %m: i64[] = sub 3, %i
            yield %m
          }
          %k: i64[] @arena+64 = fuse {
            %n: i64[] = mul %i, 5
            yield %n
          }
          %row: f64[16] @view+0 = gather %x, %j
          %l: i64[] @result+1 = fuse {
            %o: i64[] = add %k, 1
            yield %o
          }
          %a: f64[16] @result+0 = matmul %row, %w
          return %a, %l
        }
        """,
    )


def test_an_array_lives_as_long_as_a_row_that_is_read_in_place() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[4,16], %i: i64[], %w: f64[16,16]) -> f64[4,16] {
          %a: f64[4,16] = matmul %x, %w
          %row: f64[16] = gather %a, %i
          %b: f64[4,16] = matmul %x, %w
          %c: f64[4,16] = matmul %b, %w
          %d: f64[16] = matmul %row, %w
          %m: f64[4,16] = broadcast %d {shape=[4, 16]}
          %e: f64[4,16] = fuse {
            %n: f64[4,16] = add %c, %m
            yield %n
          }
          return %e
        }
        """,
        """
        func @f(%x: f64[4,16] @param+0, %i: i64[] @param+1, %w: f64[16,16] @param+2) -> f64[4,16] arena 1536 {
          %a: f64[4,16] @arena+0 = matmul %x, %w
          %row: f64[16] @view+0 = gather %a, %i
          %b: f64[4,16] @arena+512 = matmul %x, %w
          %c: f64[4,16] @arena+1024 = matmul %b, %w
          %d: f64[16] @arena+512 = matmul %row, %w
          %m: f64[4,16] @%d+0[0,1] = broadcast %d
          %e: f64[4,16] @result+0 = fuse {
            %n: f64[4,16] = add %c, %m
            yield %n
          }
          return %e
        }
        """,
    )


def test_a_row_that_is_read_in_place_is_not_overwritten() -> None:
    """It is in the buffer of an array of the same size that dies with it."""
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[1,16], %i: i64[], %w: f64[16,16]) -> f64[16] {
          %a: f64[1,16] = matmul %x, %w
          %row: f64[16] = gather %a, %i
          %b: f64[16] = fuse {
            %m: f64[16] = exp %row
            yield %m
          }
          %c: f64[16] = matmul %b, %w
          return %c
        }
        """,
        """
        func @f(%x: f64[1,16] @param+0, %i: i64[] @param+1, %w: f64[16,16] @param+2) -> f64[16] arena 256 {
          %a: f64[1,16] @arena+0 = matmul %x, %w
          %row: f64[16] @view+0 = gather %a, %i
          %b: f64[16] @arena+128 = fuse {
            %m: f64[16] = exp %row
            yield %m
          }
          %c: f64[16] @result+0 = matmul %b, %w
          return %c
        }
        """,
    )
