"""Products go into the regions that read them first: before and after, as text."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from adjit.passes.fusion.fuse import fuse
from adjit.passes.fusion.hosts import host_products
from adjit.passes.fusion.legalize import legalize
from tests.passes.checks import QUICK, keeps_meaning, leaves, rewrites


def test_bias_and_activation_are_computed_with_the_product() -> None:
    rewrites(
        host_products,
        """
        func @f(%x: f32[6,4], %w: f32[4,5], %b: f32[5]) -> f32[6,5] {
          %0: f32[6,5] = broadcast %b
          %1: f32[6,5] = matmul %x, %w
          %2: f32[6,5] = fuse {
            %3: f32[6,5] = add %1, %0
            %4: f32[6,5] = maximum 0.0, %3
            yield %4
          }
          return %2
        }
        """,
        """
        func @f(%x: f32[6,4], %w: f32[4,5], %b: f32[5]) -> f32[6,5] {
          %0: f32[6,5] = broadcast %b
          %1: f32[6,5] = fuse {
            %2: f32[6,5] = matmul %x, %w
            %3: f32[6,5] = add %2, %0
            %4: f32[6,5] = maximum 0.0, %3
            yield %4
          }
          return %1
        }
        """,
    )


def test_what_others_read_is_stored_and_sums_of_what_is_stored_follow() -> None:
    rewrites(
        host_products,
        """
        func @f(%d: f32[6,4], %w: f32[4,5], %h: f32[6,5]) -> (f32[6,5], f32[5], f32[6,5]) {
          %0: f32[6,5] = matmul %d, %w
          %1: f32[6,5], %2: f32[5] = fuse {
            %3: bool[6,5] = greater %h, 0.0
            %4: f32[6,5] = where %3, %0, 0.0
            %5: f32[5] = sum %4 {axes=[0]}
            yield %4, %5
          }
          return %1, %2, %0
        }
        """,
        """
        func @f(%d: f32[6,4], %w: f32[4,5], %h: f32[6,5]) -> (f32[6,5], f32[5], f32[6,5]) {
          %0: f32[6,5], %1: f32[6,5] = fuse {
            %2: f32[6,5] = matmul %d, %w
            %3: bool[6,5] = greater %h, 0.0
            %4: f32[6,5] = where %3, %2, 0.0
            yield %2, %4
          }
          %5: f32[5] = fuse {
            %6: f32[5] = sum %1 {axes=[0]}
            yield %6
          }
          return %1, %5, %0
        }
        """,
    )


def test_a_large_product_goes_to_the_update_at_the_end_and_takes_no_memory_until_then() -> None:
    rewrites(
        host_products,
        """
        func @f(%x: f32[8,2], %h: f32[2,9], %w: f32[8,9]) -> f32[8,2] {
          %0: f32[2,9] = fuse {
            %1: f32[2,9] = exp %h
            yield %1
          }
          %2: f32[8,9] = matmul %x, %0
          %3: f32[8,2] = fuse {
            %4: f32[8,2] = exp %x
            yield %4
          }
          %5: f32[8,9] = fuse {
            %6: f32[8,9] = sub %w, %2
            yield %6
          }
          return %3 updating %w = %5
        }
        """,
        """
        func @f(%x: f32[8,2], %h: f32[2,9], %w: f32[8,9]) -> f32[8,2] {
          %0: f32[2,9] = fuse {
            %1: f32[2,9] = exp %h
            yield %1
          }
          %2: f32[8,2] = fuse {
            %3: f32[8,2] = exp %x
            yield %3
          }
          %4: f32[8,9] = fuse {
            %5: f32[8,9] = matmul %x, %0
            %6: f32[8,9] = sub %w, %5
            yield %6
          }
          return %2 updating %w = %4
        }
        """,
    )


def test_a_small_product_stays_where_its_operands_can_be_forgotten() -> None:
    leaves(
        host_products,
        """
        func @f(%x: f32[3,90], %h: f32[90,3], %w: f32[3,3]) -> f32[3,90] {
          %0: f32[90,3] = fuse {
            %1: f32[90,3] = exp %h
            yield %1
          }
          %2: f32[3,3] = matmul %x, %0
          %3: f32[3,90] = fuse {
            %4: f32[3,90] = exp %x
            yield %4
          }
          %5: f32[3,3] = fuse {
            %6: f32[3,3] = sub %w, %2
            yield %6
          }
          return %3 updating %w = %5
        }
        """,
    )


def test_a_product_does_not_go_past_the_update_of_what_it_reads() -> None:
    leaves(
        host_products,
        """
        func @f(%x: f32[8,2], %w: f32[2,9], %h: f32[8,9]) -> f32[8,9] {
          %0: f32[8,9] = matmul %x, %w
          %1: f32[2,9] = fuse {
            %2: f32[2,9] = exp %w
            yield %2
          }
          %3: f32[8,9] = fuse {
            %4: f32[8,9] = sub %h, %0
            yield %4
          }
          return %3 updating %w = %1
        }
        """,
    )


def test_what_is_reduced_without_being_stored_keeps_a_product_out() -> None:
    leaves(
        host_products,
        """
        func @f(%x: f32[6,4], %w: f32[4,5]) -> f32[] {
          %0: f32[6,5] = matmul %x, %w
          %1: f32[] = fuse {
            %2: f32[6,5] = mul %0, %0
            %3: f32[] = sum %2 {axes=[0, 1]}
            yield %3
          }
          return %1
        }
        """,
    )


def test_a_region_has_one_host_the_nearest() -> None:
    rewrites(
        host_products,
        """
        func @f(%x: f32[6,4], %w: f32[4,5], %v: f32[4,5]) -> f32[6,5] {
          %0: f32[6,5] = matmul %x, %w
          %1: f32[6,5] = matmul %x, %v
          %2: f32[6,5] = fuse {
            %3: f32[6,5] = mul %0, %1
            yield %3
          }
          return %2
        }
        """,
        """
        func @f(%x: f32[6,4], %w: f32[4,5], %v: f32[4,5]) -> f32[6,5] {
          %0: f32[6,5] = matmul %x, %w
          %1: f32[6,5] = fuse {
            %2: f32[6,5] = matmul %x, %v
            %3: f32[6,5] = mul %0, %2
            yield %3
          }
          return %1
        }
        """,
    )


def test_vectors_integers_and_positions_stay_out() -> None:
    leaves(
        host_products,
        """
        func @f(%x: i32[6,4], %w: i32[4,5], %a: f32[1,4], %b: f32[4,5], %c: f32[3,4]) -> (i32[6,5], f32[1,5], f32[3,5]) {
          %0: i32[6,5] = matmul %x, %w
          %1: i32[6,5] = fuse {
            %2: i32[6,5] = add %0, 1
            yield %2
          }
          %3: f32[1,5] = matmul %a, %b
          %4: f32[1,5] = fuse {
            %5: f32[1,5] = add %3, 1.0
            yield %5
          }
          %6: f32[3,5] = matmul %c, %b
          %7: f32[3,5] = fuse {
            %8: f32[3,5] = iota {axis=1}
            %9: f32[3,5] = add %6, %8
            yield %9
          }
          return %1, %4, %7
        }
        """,
    )


@QUICK
@given(st.randoms(use_true_random=False))
def test_meaning_is_kept(random: Random) -> None:
    keeps_meaning(lambda func: host_products(fuse(legalize(func))), random)
