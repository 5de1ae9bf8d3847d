"""Dead code elimination."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from adjit.passes.simplify.dce import eliminate_dead_code, eliminate_repeated_checks
from tests.passes.checks import QUICK, keeps_meaning, leaves, rewrites


def test_unused_statements_are_removed() -> None:
    rewrites(
        eliminate_dead_code,
        """
        func @f(%x: f64[3], %w: f64[3]) -> f64[3] {
          %a: f64[3] = exp %x
          %b: f64[3] = tanh %x
          %c: f64[3] = mul %a, %b
          return %b updating %w = %x
        }
        """,
        """
        func @f(%x: f64[3], %w: f64[3]) -> f64[3] {
          %b: f64[3] = tanh %x
          return %b updating %w = %x
        }
        """,
    )


def test_updates_and_saved_values_are_outputs() -> None:
    leaves(
        eliminate_dead_code,
        """
        func @f(%x: f64[3], %w: f64[3]) -> () saving (f64[3]) {
          %a: f64[3] = exp %x
          %b: f64[3] = tanh %x
          return saving %a updating %w = %b
        }
        """,
    )


def test_effects_stay_with_what_they_read() -> None:
    rewrites(
        eliminate_dead_code,
        """
        func @f(%x: f64[]) -> () {
          %a: bool[] = less %x, 1.0
          %b: bool[] = less %x, 2.0
          assert %a {message="x is too large"}
          return
        }
        """,
        """
        func @f(%x: f64[]) -> () {
          %a: bool[] = less %x, 1.0
          assert %a {message="x is too large"}
          return
        }
        """,
    )


def test_what_is_printed_stays_wherever_it_is() -> None:
    before = """
        func @f(%x: f64[]) -> () {
          %a: f64[] = exp %x
          %dead: f64[] = log %x
          print %a {template="{}"}
          %r: f64[] = for %k in 0..3 carry (%c: f64[] = %x) {
            %n: f64[] = sin %c
            print %k {template="{}"}
            yield %n
          }
          return
        }
        """
    after = """
        func @f(%x: f64[]) -> () {
          %a: f64[] = exp %x
          print %a {template="{}"}
          for %k in 0..3 {
            print %k {template="{}"}
          }
          return
        }
        """
    for each in (eliminate_dead_code, eliminate_repeated_checks):
        rewrites(each, before, after)


def test_a_failure_happens_even_if_the_result_is_not_used() -> None:
    """An index out of bounds raises eagerly, so it does here; but the array is not read."""
    rewrites(
        eliminate_dead_code,
        """
        func @f(%x: f64[5], %y: f64[5], %i: u8[2], %m: f64[2,2]) -> f64[5] {
          %e: f64[5] = exp %x
          %a: f64[2] = gather %e, %i
          %s: f64[5] = scatter_set %e, %a, %i
          %c: f64[2,2] = cholesky %m
          return %y
        }
        """,
        """
        func @f(%x: f64[5], %y: f64[5], %i: u8[2], %m: f64[2,2]) -> f64[5] {
          check_index %i {of="gather", x=f64[5]}
          check_index %i {of="scatter_set", x=f64[5]}
          %c: f64[2,2] = cholesky %m
          return %y
        }
        """,
    )


def test_what_decides_whether_a_failure_happens_stays() -> None:
    rewrites(
        eliminate_dead_code,
        """
        func @f(%x: f64[5], %n: i64[], %p: bool[]) -> f64[5] {
          %s: f64[], %t: f64[] = for %k in 0..%n carry (%c: f64[] = 0.0, %d: f64[] = 0.0) {
            %q: f64[] = if %p {
              %a: f64[] = gather %x, %k
              yield %a
            } else {
              yield 1.0
            }
            %1: f64[] = add %c, %q
            %2: f64[] = add %d, 1.0
            yield %1, %2
          }
          return %x
        }
        """,
        """
        func @f(%x: f64[5], %n: i64[], %p: bool[]) -> f64[5] {
          for %k in 0..%n {
            if %p {
              check_index %k {of="gather", x=f64[5]}
            }
          }
          return %x
        }
        """,
    )


def test_indices_known_to_be_within_bounds_need_no_check() -> None:
    rewrites(
        eliminate_dead_code,
        """
        func @f(%x: f64[5], %i: i64[]) -> f64[5] {
          %0: i64[5] = iota {axis=0}
          %a: f64[5] = gather %x, %0
          %1: i64[5] = sub %0, 5
          %b: f64[5] = gather %x, %1
          %2: i64[5] = add %0, 1
          %3: i64[5] = minimum %2, 4
          %c: f64[5] = gather %x, %3
          %s: f64[] = for %k in 0..4 carry (%d: f64[] = 0.0) {
            %4: i64[] = sub 3, %k
            %e: f64[] = gather %x, %4
            %5: f64[] = add %d, %e
            yield %5
          }
          %6: f64[5] = gather %x, %2
          return %x
        }
        """,
        """
        func @f(%x: f64[5], %i: i64[]) -> f64[5] {
          %0: i64[5] = iota {axis=0}
          %1: i64[5] = add %0, 1
          check_index %1 {of="gather", x=f64[5]}
          return %x
        }
        """,
    )


def test_backward_statements_are_checked_by_their_forward_ones() -> None:
    rewrites(
        eliminate_dead_code,
        """
        func @f(%x: f64[5], %i: i64[]) -> f64[] {
          %a: f64[] = gather %x, %i
        backward:
          %b: f64[5] = scatter_add 0.0:f64[5], %a, %i
          %c: f64[] = gather %x, %i
          return %a
        }
        """,
        """
        func @f(%x: f64[5], %i: i64[]) -> f64[] {
          %a: f64[] = gather %x, %i
          return %a
        }
        """,
    )


def test_regions_lose_results() -> None:
    rewrites(
        eliminate_dead_code,
        """
        func @f(%p: bool[], %x: f64[]) -> f64[] {
          %a: f64[], %b: f64[] = if %p {
            %c: f64[] = exp %x
            %d: f64[] = tanh %x
            yield %c, %d
          } else {
            yield %x, %x
          }
          return %b
        }
        """,
        """
        func @f(%p: bool[], %x: f64[]) -> f64[] {
          %b: f64[] = if %p {
            %d: f64[] = tanh %x
            yield %d
          } else {
            yield %x
          }
          return %b
        }
        """,
    )


def test_loops_lose_carries_that_feed_only_themselves() -> None:
    rewrites(
        eliminate_dead_code,
        """
        func @f(%x: f64[], %y: f64[]) -> f64[] {
          %r: f64[], %s: f64[] = for %k in 0..5 carry (%a: f64[] = %x, %b: f64[] = %y) {
            %c: f64[] = exp %a
            %d: f64[] = mul %b, %b
            yield %c, %d
          }
          return %s
        }
        """,
        """
        func @f(%x: f64[], %y: f64[]) -> f64[] {
          %s: f64[] = for %k in 0..5 carry (%b: f64[] = %y) {
            %d: f64[] = mul %b, %b
            yield %d
          }
          return %s
        }
        """,
    )


def test_loops_keep_what_decides_and_what_is_read_in_turn() -> None:
    leaves(
        eliminate_dead_code,
        """
        func @f(%x: f64[], %y: f64[]) -> f64[] {
          %r: f64[], %s: f64[], %t: f64[] = while carry (%a: f64[] = %x, %b: f64[] = %y, %c: f64[] = 1.0) {
            %p: bool[] = less %a, 10.0
            cond %p
          } do {
            %d: f64[] = mul %a, %c
            %e: f64[] = add %b, %d
            yield %d, %e, %c
          }
          return %s
        }
        """,
    )


@QUICK
@given(st.randoms(use_true_random=False))
def test_meaning_is_kept(random: Random) -> None:
    keeps_meaning(eliminate_dead_code, random)
