"""Updates of parameters and changed results: which are computed in place, and which are copied at the end."""

from __future__ import annotations

from adjit.passes.memory.buffers import plan_buffers
from tests.passes.checks import rewrites


def test_an_update_is_written_to_its_parameter_at_the_end() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%w: f64[16], %g: f64[16]) -> f64[] {
          %s: f64[] = fuse {
            %t: f64[] = sum %w {axes=[0]}
            yield %t
          }
          %n: f64[16] = fuse {
            %m: f64[16] = sub %w, %g
            yield %m
          }
          return %s updating %w = %n
        }
        """,
        """
        func @f(%w: f64[16] @param+0, %g: f64[16] @param+1) -> f64[] arena 0 {
          %s: f64[] @result+0 = fuse {
            %t: f64[] = sum %w {axes=[0]}
            yield %t
          }
          %n: f64[16] @param+0 = fuse {
            %m: f64[16] = sub %w, %g
            yield %m
          }
          return %s updating %w = %n
        }
        """,
    )


def test_an_update_of_what_is_read_later_or_elsewhere_is_copied() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%w: f64[16], %u: f64[16], %g: f64[16], %v: f64[16,16]) -> f64[16] {
          %n: f64[16] = fuse {
            %m: f64[16] = sub %w, %g
            yield %m
          }
          %s: f64[16] = matmul %w, %v
          %o: f64[16] = matmul %u, %v
          return %s updating %w = %n, %u = %o
        }
        """,
        """
        func @f(%w: f64[16] @param+0, %u: f64[16] @param+1, %g: f64[16] @param+2, %v: f64[16,16] @param+3) -> f64[16] arena 256 {
          %n: f64[16] @arena+0 = fuse {
            %m: f64[16] = sub %w, %g
            yield %m
          }
          %s: f64[16] @result+0 = matmul %w, %v
          %o: f64[16] @arena+128 = matmul %u, %v
          return %s updating %w = %n, %u = %o
        }
        """,
    )


def test_an_update_waits_for_the_last_statement_that_may_raise() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%w: f64[16], %u: f64[16], %g: f64[16], %p: bool[]) -> () {
          %n: f64[16] = fuse {
            %m: f64[16] = sub %w, %g
            yield %m
          }
          assert %p {message="p"}
          %o: f64[16] = fuse {
            %q: f64[16] = sub %u, %g
            yield %q
          }
          return updating %w = %n, %u = %o
        }
        """,
        """
        func @f(%w: f64[16] @param+0, %u: f64[16] @param+1, %g: f64[16] @param+2, %p: bool[] @param+3) -> () arena 128 {
          %n: f64[16] @arena+0 = fuse {
            %m: f64[16] = sub %w, %g
            yield %m
          }
          assert %p {message="p"}
          %o: f64[16] @param+1 = fuse {
            %q: f64[16] = sub %u, %g
            yield %q
          }
          return updating %w = %n, %u = %o
        }
        """,
    )


def test_an_update_of_another_size_or_dtype_has_its_own_buffer() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%w: f64[16], %u: f64[16], %g: f64[16]) -> (f64[], f64[16]) {
          %s: f64[], %n: f64[16] = fuse {
            %m: f64[16] = sub %w, %g
            %t: f64[] = sum %m {axes=[0]}
            yield %t, %m
          }
          return %s, %u updating %w = %n, %u = %g
        }
        """,
        """
        func @f(%w: f64[16] @param+0, %u: f64[16] @param+1, %g: f64[16] @param+2) -> (f64[], f64[16]) arena 0 {
          %s: f64[] @result+0, %n: f64[16] @param+0 = fuse {
            %m: f64[16] = sub %w, %g
            %t: f64[] = sum %m {axes=[0]}
            yield %t, %m
          }
          %u.1: f64[16] @result+1 = fuse {
            %0: f64[16] = copy %u
            yield %0
          }
          %g.1: f64[16] @param+1 = fuse {
            %1: f64[16] = copy %g
            yield %1
          }
          return %s, %u.1 updating %w = %n, %u = %g.1
        }
        """,
    )


def test_updates_before_a_long_statement_are_not_in_place() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%w: f64[1024,1024], %g: f64[1024,1024], %a: f64[1024,1024]) -> f64[1024,1024] {
          %n: f64[1024,1024] = fuse {
            %m: f64[1024,1024] = sub %w, %g
            yield %m
          }
          %b: f64[1024,1024] = matmul %a, %a
          %c: f64[1024,1024] = matmul %b, %b
          return %c updating %w = %n
        }
        """,
        """
        func @f(%w: f64[1024,1024] @param+0, %g: f64[1024,1024] @param+1, %a: f64[1024,1024] @param+2) -> f64[1024,1024] arena 16777216 {
          %n: f64[1024,1024] @arena+0 = fuse {
            %m: f64[1024,1024] = sub %w, %g
            yield %m
          }
          %b: f64[1024,1024] @arena+8388608 = matmul %a, %a
          %c: f64[1024,1024] @result+0 = matmul %b, %b
          return %c updating %w = %n
        }
        """,
    )


def test_updates_before_a_short_statement_are_in_place() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%w: f64[1024,1024], %g: f64[1024,1024], %a: f64[1024,1024]) -> f64[1024,1024] {
          %b: f64[1024,1024] = matmul %a, %a
          %n: f64[1024,1024] = fuse {
            %m: f64[1024,1024] = sub %w, %g
            yield %m
          }
          %c: f64[1024,1024] = fuse {
            %d: f64[1024,1024] = exp %b
            yield %d
          }
          return %c updating %w = %n
        }
        """,
        """
        func @f(%w: f64[1024,1024] @param+0, %g: f64[1024,1024] @param+1, %a: f64[1024,1024] @param+2) -> f64[1024,1024] arena 8388608 {
          %b: f64[1024,1024] @arena+0 = matmul %a, %a
          %n: f64[1024,1024] @param+0 = fuse {
            %m: f64[1024,1024] = sub %w, %g
            yield %m
          }
          %c: f64[1024,1024] @result+0 = fuse {
            %d: f64[1024,1024] = exp %b
            yield %d
          }
          return %c updating %w = %n
        }
        """,
    )


def test_what_is_changed_to_a_result_is_made_in_the_result() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %i: i64[], %v: f64[], %w: f64[16,16]) -> f64[16] {
          %a: f64[16] = matmul %x, %w
          %b: f64[16] = scatter_set %a, %v, %i
          %c: f64[16] = scatter_set %b, %v, %i
          return %c
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %i: i64[] @param+1, %v: f64[] @param+2, %w: f64[16,16] @param+3) -> f64[16] arena 0 {
          %a: f64[16] @result+0 = matmul %x, %w
          %b: f64[16] @result+0 = scatter_set %a, %v, %i
          %c: f64[16] @result+0 = scatter_set %b, %v, %i
          return %c
        }
        """,
    )


def test_what_is_read_later_is_not_made_in_the_result() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[8], %i: i64[], %v: f64[], %w: f64[8,8]) -> (f64[8], f64[8], f64[8]) {
          %a: f64[8] = matmul %x, %w
          %b: f64[8] = scatter_set %a, %v, %i
          %c: f64[8] = matmul %a, %w
          %d: f64[8] = scatter_set %x, %v, %i
          return %b, %c, %d
        }
        """,
        """
        func @f(%x: f64[8] @param+0, %i: i64[] @param+1, %v: f64[] @param+2, %w: f64[8,8] @param+3) -> (f64[8], f64[8], f64[8]) arena 64 {
          %a: f64[8] @arena+0 = matmul %x, %w
          %b: f64[8] @result+0 = scatter_set %a, %v, %i
          %c: f64[8] @result+1 = matmul %a, %w
          %d: f64[8] @result+2 = scatter_set %x, %v, %i
          return %b, %c, %d
        }
        """,
    )


def test_results_of_loops_are_not_made_in_the_result() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %i: i64[], %v: f64[], %w: f64[16,16]) -> f64[16] {
          %r: f64[16] = for %k in 0..4 carry (%c: f64[16] = %x) {
            %n: f64[16] = matmul %c, %w
            yield %n
          }
          %b: f64[16] = scatter_set %r, %v, %i
          return %b
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %i: i64[] @param+1, %v: f64[] @param+2, %w: f64[16,16] @param+3) -> f64[16] arena 320 {
          %r: f64[16] @%c = for %k: i64[] @arena+0 in 0..4 carry (%c: f64[16] @arena+64 = %x) {
            %n: f64[16] @arena+192 = matmul %c, %w
            yield %n
          }
          %b: f64[16] @result+0 = scatter_set %r, %v, %i
          return %b
        }
        """,
    )


def test_an_update_by_a_statement_that_may_raise_itself_is_copied() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%w: f64[16], %i: i64[], %v: f64[]) -> () {
          %n: f64[16] = scatter_set %w, %v, %i
          return updating %w = %n
        }
        """,
        """
        func @f(%w: f64[16] @param+0, %i: i64[] @param+1, %v: f64[] @param+2) -> () arena 128 {
          %n: f64[16] @arena+0 = scatter_set %w, %v, %i
          return updating %w = %n
        }
        """,
    )


def test_updates_are_in_place_if_the_rest_is_just_short_enough() -> None:
    """After the update, an estimated 0.4 s remain: 1.4 ms for the update itself, and the product, whose inner size must not be larger."""
    rewrites(
        plan_buffers,
        """
        func @f(%w: f64[1024,1024], %g: f64[1024,1024], %a: f64[1024,3777], %b: f64[3777,512]) -> f64[1024,512] {
          %n: f64[1024,1024] = fuse {
            %m: f64[1024,1024] = sub %w, %g
            yield %m
          }
          %c: f64[1024,512] = matmul %a, %b
          return %c updating %w = %n
        }
        """,
        """
        func @f(%w: f64[1024,1024] @param+0, %g: f64[1024,1024] @param+1, %a: f64[1024,3777] @param+2,
            %b: f64[3777,512] @param+3) -> f64[1024,512] arena 0 {
          %n: f64[1024,1024] @param+0 = fuse {
            %m: f64[1024,1024] = sub %w, %g
            yield %m
          }
          %c: f64[1024,512] @result+0 = matmul %a, %b
          return %c updating %w = %n
        }
        """,
    )


def test_a_variable_that_nothing_reads_is_overwritten_by_any_statement() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%w: f64[16], %x: f64[16], %v: f64[16,16]) -> () {
          %n: f64[16] = matmul %x, %v
          return updating %w = %n
        }
        """,
        """
        func @f(%w: f64[16] @param+0, %x: f64[16] @param+1, %v: f64[16,16] @param+2) -> () arena 0 {
          %n: f64[16] @param+0 = matmul %x, %v
          return updating %w = %n
        }
        """,
    )


def test_what_a_scatter_also_adds_is_not_made_in_the_result() -> None:
    rewrites(
        plan_buffers,
        """
        func @f(%x: f64[16], %i: i64[16], %w: f64[16,16]) -> f64[16] {
          %a: f64[16] = matmul %x, %w
          %b: f64[16] = scatter_add %a, %a, %i
          return %b
        }
        """,
        """
        func @f(%x: f64[16] @param+0, %i: i64[16] @param+1, %w: f64[16,16] @param+2) -> f64[16] arena 128 {
          %a: f64[16] @arena+0 = matmul %x, %w
          %b: f64[16] @result+0 = scatter_add %a, %a, %i
          return %b
        }
        """,
    )
