"""All-reduces start where their operands are computed."""

from __future__ import annotations

from functools import partial
from textwrap import dedent

import adjit.ir.ops.collective  # noqa: F401 - the pass leaves programs alone that have not loaded it
from adjit.ir.parser import parse_func
from adjit.ir.target import IN_ORDER, SHARED, USUAL
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


def test_the_only_region_that_reads_large_sums_makes_them() -> None:
    rewrites(
        overlap_reductions,
        """
        func @f(%x: f64[600,600], %w: f64[600,600]) -> f64[600,600] {
          %a: f64[600,600] = matmul %x, %x
          %b: f64[600,600] = matmul %a, %x
          %c: f64[600,600] = all_reduce %a
          %d: f64[600,600] = fuse {
            %e: f64[600,600] = mul %c, 0.5
            %g: f64[600,600] = sub %w, %e
            yield %g
          }
          return %b updating %w = %d
        }
        """,
        """
        func @f(%x: f64[600,600], %w: f64[600,600]) -> f64[600,600] {
          %a: f64[600,600] = matmul %x, %x
          %a.sum: f64[600,600] = defer_all_reduce %a
          %b: f64[600,600] = matmul %a, %x
          %a.sum.1: f64[600,600] = finish_all_reduce %a.sum
          %d: f64[600,600] = fuse {
            %c: f64[600,600] = sum_deferred %a.sum.1
            %e: f64[600,600] = mul %c, 0.5
            %g: f64[600,600] = sub %w, %e
            yield %g
          }
          return %b updating %w = %d
        }
        """,
    )


PRODUCT = """
    func @f(%x: f64[600,600], %w: f64[600,600]) -> f64[600,600] {
      %a: f64[600,600] = matmul %x, %x
      %b: f64[600,600] = tanh %x
      %c: f64[600,600] = all_reduce %a
      %d: f64[600,600] = fuse {
        %e: f64[600,600] = mul %c, 0.5
        %g: f64[600,600] = sub %w, %e
        yield %g
      }
      return %b updating %w = %d
    }
    """


def test_on_one_machine_the_region_computes_the_product_as_well() -> None:
    rewrites(
        partial(overlap_reductions, target=USUAL.with_exchange(SHARED, 2)),
        PRODUCT,
        """
        func @f(%x: f64[600,600], %w: f64[600,600]) -> f64[600,600] {
          %b: f64[600,600] = tanh %x
          %d: f64[600,600] = fuse {
            %c: f64[600,600] = matmul_all_reduce %x, %x
            %e: f64[600,600] = mul %c, 0.5
            %g: f64[600,600] = sub %w, %e
            yield %g
          }
          return %b updating %w = %d
        }
        """,
    )


def test_it_does_not_if_the_product_is_needed_its_factors_change_or_there_are_threads() -> None:
    def summed(text: str, threads: int = 1) -> bool:
        target = USUAL.with_exchange(SHARED, 2).with_threads(threads)
        return "matmul_all_reduce" in str(overlap_reductions(parse_func(dedent(text)), target))

    assert summed(PRODUCT)
    assert not summed(PRODUCT, threads=2)
    assert not summed(PRODUCT.replace("tanh %x", "tanh %a"))
    assert not summed(PRODUCT.replace("matmul %x, %x", "matmul %w, %w"))
    assert not summed(PRODUCT.replace("600", "300"))


def test_with_collectives_in_order_nothing_moves() -> None:
    leaves(partial(overlap_reductions, target=USUAL.with_exchange(IN_ORDER, 1)), PRODUCT)


def test_sums_that_others_read_are_stored() -> None:
    text = """
        func @f(%x: f64[600,600]) -> (f64[600,600], f64[600,600]) {
          %a: f64[600,600] = matmul %x, %x
          %c: f64[600,600] = all_reduce %a
          %d: f64[600,600] = fuse {
            %e: f64[600,600] = mul %c, 0.5
            yield %e
          }
          return %c, %d
        }
        """
    leaves(overlap_reductions, text)
    leaves(overlap_reductions, text.replace("return %c, %d", "%h: f64[600,600] = matmul %c, %x\n          return %h, %d"))


def test_a_region_makes_one_of_the_sums_that_it_reads() -> None:
    text = """
        func @f(%x: f64[600,600], %y: f64[600,600]) -> f64[600,600] {
          %a: f64[600,600] = all_reduce %x
          %b: f64[600,600] = all_reduce %y
          %d: f64[600,600] = fuse {
            %e: f64[600,600] = mul %a, %b
            yield %e
          }
          return %d
        }
        """
    out = str(overlap_reductions(parse_func(dedent(text))))
    assert out.count("sum_deferred") == out.count("defer_all_reduce") == out.count("= all_reduce") == 1


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
