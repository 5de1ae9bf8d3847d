"""Loop-invariant code motion, by text and on random functions."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from adjit.passes.loops.licm import hoist_invariants
from tests.passes.checks import QUICK, keeps_meaning, leaves, rewrites


def test_invariants_leave_loops() -> None:
    rewrites(
        hoist_invariants,
        """
        func @f(%x: f64[], %a: f64[]) -> f64[] {
          %r: f64[] = for %k in 0..5 carry (%c: f64[] = %x) {
            %e: f64[] = exp %a
            %f: f64[] = mul %e, 2.0
            %n: f64[] = mul %c, %f
            yield %n
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[], %a: f64[]) -> f64[] {
          %e: f64[] = exp %a
          %f: f64[] = mul %e, 2.0
          %r: f64[] = for %k in 0..5 carry (%c: f64[] = %x) {
            %n: f64[] = mul %c, %f
            yield %n
          }
          return %r
        }
        """,
    )


def test_out_of_several_loops_as_far_as_possible() -> None:
    rewrites(
        hoist_invariants,
        """
        func @f(%x: f64[], %a: f64[]) -> f64[] {
          %r: f64[] = while carry (%c: f64[] = %x) {
            %big: f64[] = mul %a, 3.0
            %p: bool[] = less %c, %big
            cond %p
          } do {
            %q: f64[] = for %k in 0..2 carry (%d: f64[] = %c) {
              %e: f64[] = exp %a
              %f: f64[] = exp %c
              %g: f64[] = add %d, %e
              %h: f64[] = add %g, %f
              yield %h
            }
            yield %q
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[], %a: f64[]) -> f64[] {
          %big: f64[] = mul %a, 3.0
          %e: f64[] = exp %a
          %r: f64[] = while carry (%c: f64[] = %x) {
            %p: bool[] = less %c, %big
            cond %p
          } do {
            %f: f64[] = exp %c
            %q: f64[] = for %k in 0..2 carry (%d: f64[] = %c) {
              %g: f64[] = add %d, %e
              %h: f64[] = add %g, %f
              yield %h
            }
            yield %q
          }
          return %r
        }
        """,
    )


def test_statements_that_may_fail_or_never_run_stay() -> None:
    leaves(
        hoist_invariants,
        """
        func @f(%x: f64[], %a: f64[3], %i: i64[], %p: bool[]) -> f64[] {
          %r: f64[] = for %k in 0..5 carry (%c: f64[] = %x) {
            %g: f64[] = gather %a, %i
            %e: f64[] = if %p {
              %s: f64[] = exp %x
              yield %s
            } else {
              yield %g
            }
            %n: f64[] = mul %c, %e
            yield %n
          }
          return %r
        }
        """,
    )


@QUICK
@given(st.randoms(use_true_random=False))
def test_meaning_is_kept(random: Random) -> None:
    keeps_meaning(hoist_invariants, random)
