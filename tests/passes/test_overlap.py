"""All-reduces start where their operands are computed."""

from __future__ import annotations

import adjit.ir.ops.collective  # noqa: F401 - the pass leaves programs alone that have not loaded it
from adjit.passes.overlap import overlap_reductions
from tests.passes.checks import leaves, rewrites


def test_a_reduction_starts_after_its_operand_and_ends_where_it_stood() -> None:
    rewrites(
        overlap_reductions,
        """
        func @f(%x: f64[100,100], %w: f64[100,100]) -> (f64[100,100], f64[100,100]) {
          %a: f64[100,100] = matmul %x, %w
          %b: f64[100,100] = matmul %a, %w
          %c: f64[100,100] = all_reduce %b
          %d: f64[100,100] = all_reduce %a
          return %c, %d
        }
        """,
        """
        func @f(%x: f64[100,100], %w: f64[100,100]) -> (f64[100,100], f64[100,100]) {
          %a: f64[100,100] = matmul %x, %w
          %a.sum: f64[100,100] = start_all_reduce %a
          %b: f64[100,100] = matmul %a, %w
          %c: f64[100,100] = all_reduce %b
          %d: f64[100,100] = finish_all_reduce %a.sum
          return %c, %d
        }
        """,
    )


def test_small_arrays_and_those_without_work_in_between_stay() -> None:
    leaves(
        overlap_reductions,
        """
        func @f(%x: f64[10,10], %w: f64[100,100]) -> (f64[10,10], f64[100,100]) {
          %a: f64[10,10] = matmul %x, %x
          %b: f64[100,100] = matmul %w, %w
          %c: f64[10,10] = all_reduce %a
          %d: f64[100,100] = all_reduce %b
          return %c, %d
        }
        """,
    )


def test_none_is_moved_across_what_may_fail() -> None:
    rewrites(
        overlap_reductions,
        """
        func @f(%x: f64[100,100], %p: bool[]) -> (f64[100,100], f64[100,100]) {
          %a: f64[100,100] = matmul %x, %x
          assert %p {message="no"}
          %b: f64[100,100] = matmul %a, %x
          %c: f64[100,100] = all_reduce %a
          return %b, %c
        }
        """,
        """
        func @f(%x: f64[100,100], %p: bool[]) -> (f64[100,100], f64[100,100]) {
          %a: f64[100,100] = matmul %x, %x
          assert %p {message="no"}
          %a.sum: f64[100,100] = start_all_reduce %a
          %b: f64[100,100] = matmul %a, %x
          %c: f64[100,100] = finish_all_reduce %a.sum
          return %b, %c
        }
        """,
    )
