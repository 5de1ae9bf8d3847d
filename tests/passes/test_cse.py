"""Common subexpressions."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from adjit.passes.simplify.cse import eliminate_common_subexpressions
from tests.passes.checks import QUICK, keeps_meaning, leaves, rewrites


def test_repetitions_become_one_and_so_do_those_that_read_them() -> None:
    rewrites(
        eliminate_common_subexpressions,
        """
        func @f(%x: f64[3], %y: f64[3]) -> (f64[3], f64[3]) {
          %a: f64[3] = add %x, %y
          %b: f64[3] = add %y, %x
          %c: f64[3] = sub %a, 1.0
          %d: f64[3] = sub %b, 1.0
          return %c, %d
        }
        """,
        """
        func @f(%x: f64[3], %y: f64[3]) -> (f64[3], f64[3]) {
          %a: f64[3] = add %x, %y
          %c: f64[3] = sub %a, 1.0
          return %c, %c
        }
        """,
    )


def test_what_differs_stays() -> None:
    leaves(
        eliminate_common_subexpressions,
        """
        func @f(%x: f64[3], %y: f64[3]) -> (f64[3], f64[3], f64[3], f64[3], f64[], f64[]) {
          %a: f64[3] = sub %x, %y
          %b: f64[3] = sub %y, %x
          %c: f64[3] = add %x, 0.0
          %d: f64[3] = add %x, -0.0
          %e: f64[] = sum %x {axes=[0]}
          %f: f64[] = max %x {axes=[0]}
          return %a, %b, %c, %d, %e, %f
        }
        """,
    )


def test_zeros_of_both_signs_are_two_constants() -> None:
    leaves(
        eliminate_common_subexpressions,
        """
        func @f() -> (f64[3], f64[3]) {
          %a: f64[3] = fill {value=0.0}
          %b: f64[3] = fill {value=-0.0}
          return %a, %b
        }
        """,
    )


def test_regions_see_only_enclosing_values() -> None:
    rewrites(
        eliminate_common_subexpressions,
        """
        func @f(%p: bool[], %x: f64[]) -> (f64[], f64[]) {
          %a: f64[] = exp %x
          %b: f64[] = if %p {
            %c: f64[] = exp %x
            %d: f64[] = tanh %x
            %e: f64[] = mul %c, %d
            yield %e
          } else {
            %h: f64[] = tanh %x
            yield %h
          }
          %g: f64[] = tanh %x
          return %b, %g
        }
        """,
        """
        func @f(%p: bool[], %x: f64[]) -> (f64[], f64[]) {
          %a: f64[] = exp %x
          %b: f64[] = if %p {
            %d: f64[] = tanh %x
            %e: f64[] = mul %a, %d
            yield %e
          } else {
            %h: f64[] = tanh %x
            yield %h
          }
          %g: f64[] = tanh %x
          return %b, %g
        }
        """,
    )


def test_what_the_forward_part_needs_is_forward() -> None:
    rewrites(
        eliminate_common_subexpressions,
        """
        func @f(%x: f64[3]) -> (f64[3], f64[3]) {
        backward:
          %a: f64[3] = tanh %x
        forward:
          %b: f64[3] = tanh %x
          return %a, %b
        }
        """,
        """
        func @f(%x: f64[3]) -> (f64[3], f64[3]) {
          %a: f64[3] = tanh %x
          return %a, %a
        }
        """,
    )


def test_effects_happen_as_often_as_written() -> None:
    leaves(
        eliminate_common_subexpressions,
        """
        func @f(%p: bool[]) -> () {
          assert %p {message="p"}
          assert %p {message="p"}
          return
        }
        """,
    )


@QUICK
@given(st.randoms(use_true_random=False))
def test_meaning_is_kept(random: Random) -> None:
    keeps_meaning(eliminate_common_subexpressions, random)
