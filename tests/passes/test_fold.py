"""Constant folding."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from adjit.passes.simplify.fold import fold
from tests.passes.checks import QUICK, keeps_meaning, leaves, rewrites


def test_literals_of_any_size_fold() -> None:
    rewrites(
        fold,
        """
        func @f(%x: f64[1000000]) -> f64[1000000] {
          %a: f64[1000000] = broadcast 2.0:f64[]
          %b: f64[1000000] = add %a, 1.0
          %c: f64[1000000] = mul %x, %b
          return %c
        }
        """,
        """
        func @f(%x: f64[1000000]) -> f64[1000000] {
          %c: f64[1000000] = mul %x, 3.0
          return %c
        }
        """,
    )


def test_small_constants_fold_and_uniform_ones_become_literals() -> None:
    rewrites(
        fold,
        """
        func @f(%x: f64[3]) -> (f64[3], f64[]) {
          %a: f64[3] = constant {data=[1.0, 2.0, 3.0]}
          %b: f64[3] = mul %a, 2.0
          %c: f64[] = sum %a {axes=[0]}
          %d: f64[3] = add %x, %b
          return %d, %c
        }
        """,
        """
        func @f(%x: f64[3]) -> (f64[3], f64[]) {
          %a: f64[3] = constant {data=[1.0, 2.0, 3.0]}
          %b: f64[3] = constant {data=[2.0, 4.0, 6.0]}
          %d: f64[3] = add %x, %b
          return %d, 6.0
        }
        """,
    )


def test_nothing_large_is_made() -> None:
    leaves(
        fold,
        """
        func @f() -> f64[100,3] {
          %a: f64[3] = constant {data=[1.0, 2.0, 3.0]}
          %b: f64[100,3] = broadcast %a
          return %b
        }
        """,
    )


def test_a_known_branch_takes_the_place_of_its_if() -> None:
    rewrites(
        fold,
        """
        func @f(%x: f64[]) -> f64[] {
          %p: bool[] = less 1.0:f64[], 2.0:f64[]
          %y: f64[] = if %p {
            %a: f64[] = exp %x
            yield %a
          } else {
            yield %x
          }
          %z: f64[] = neg %y
          return %z
        }
        """,
        """
        func @f(%x: f64[]) -> f64[] {
          %a: f64[] = exp %x
          %z: f64[] = neg %a
          return %z
        }
        """,
    )


def test_what_fails_is_left_to_fail() -> None:
    leaves(
        fold,
        """
        func @f() -> f64[2] {
          %x: f64[3] = constant {data=[1.0, 2.0, 3.0]}
          %i: i64[2] = constant {data=[0, 7]}
          %a: f64[2] = gather %x, %i
          return %a
        }
        """,
    )


@QUICK
@given(st.randoms(use_true_random=False))
def test_meaning_is_kept(random: Random) -> None:
    keeps_meaning(fold, random)
