"""Products of rows that a loop reads, writes or counts down leave the loop; products of rows that it changes stay."""

from __future__ import annotations

from textwrap import dedent

import pytest

from adjit.ir.parser import parse_func
from adjit.passes.loops.lift import lift_products
from adjit.passes.rewrite import walk
from tests.passes.checks import leaves, rewrites
from tests.passes.test_lift import agrees, numbers, products_in_loops

COUNTED_DOWN = """
    func @f(%x: f64[4,20]) -> f64[20] {
      %r: f64[20], %left: f64[4,20] = for %k in 0..4 carry (%c: f64[20] = 0.0, %d: f64[4,20] = %x) {
        %i: i64[] = sub 3, %k
        %row: f64[20] = gather %d, %i
        %n: f64[20] = mul %c, 0.5
        %m: f64[20] = add %n, %row
        %e: f64[4,20] = scatter_set %d, %m, %i
        yield %m, %e
      }
      return %r
    }
    """


def test_rows_that_no_trip_has_changed_are_read_from_the_first_value() -> None:
    after = """
    func @f(%x: f64[4,20]) -> f64[20] {
      %r: f64[20] = for %k in 0..4 carry (%c: f64[20] = 0.0) {
        %i: i64[] = sub 3, %k
        %row: f64[20] = gather %x, %i
        %n: f64[20] = mul %c, 0.5
        %m: f64[20] = add %n, %row
        yield %m
      }
      return %r
    }
    """
    rewrites(lift_products, COUNTED_DOWN, after)
    agrees(parse_func(dedent(COUNTED_DOWN)), numbers(4, 20))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("scatter_set %d, %m, %i", "scatter_set %d, %m, %k"),  # a later trip reads it
        ("gather %d, %i", "gather %d, 2:i64[]"),
        ("-> f64[20] {\n      %r", "-> f64[4,20] {\n      %r"),  # the rows are read after the loop
    ],
)
def test_rows_that_trips_have_changed_stay(old: str, new: str) -> None:
    text = COUNTED_DOWN.replace(old, new)
    if "f64[4,20] {" in new:
        text = text.replace("return %r", "return %left")
    out = lift_products(parse_func(dedent(text)))
    assert sum(s.op.name == "scatter_set" for s in walk(out.block)) == 1
    agrees(parse_func(dedent(text)), numbers(4, 20))


@pytest.mark.parametrize(("write", "first"), [("scatter_set", "0.5"), ("scatter_set", "0.0"), ("scatter_add", "0.0")])
def test_rows_that_all_iterations_write_replace_the_array(write: str, first: str) -> None:
    func = parse_func(
        dedent(f"""
        func @f(%x: f64[4,3], %w: f64[3,5]) -> f64[4,5] {{
          %r: f64[4,5], %z: f64[3] = for %k in 0..4 carry (%rows: f64[4,5] = {first}, %c: f64[3] = 0.3) {{
            %row: f64[3] = gather %x, %k
            %n: f64[3] = mul %c, %row
            %p: f64[5] = matmul %n, %w
            %next: f64[4,5] = {write} %rows, %p, %k
            yield %next, %n
          }}
          return %r
        }}
        """)
    )
    agrees(func, numbers(4, 3), numbers(3, 5))
    assert products_in_loops(lift_products(func)) == 0


def test_rows_are_added_to_what_was_there() -> None:
    func = parse_func(
        dedent("""
        func @f(%x: f64[4,3], %w: f64[3,5]) -> f64[4,5] {
          %r: f64[4,5], %z: f64[3] = for %k in 0..4 carry (%rows: f64[4,5] = 0.5, %c: f64[3] = 0.3) {
            %row: f64[3] = gather %x, %k
            %n: f64[3] = mul %c, %row
            %p: f64[5] = matmul %n, %w
            %next: f64[4,5] = scatter_add %rows, %p, %k
            yield %next, %n
          }
          return %r
        }
        """)
    )
    agrees(func, numbers(4, 3), numbers(3, 5))


def test_a_scattered_product_by_a_batch_or_by_what_the_loop_makes_stays() -> None:
    leaves(
        lift_products,
        """
        func @f(%x: f64[6,2,3,4], %w: f64[2,4,5], %z: f64[6,4], %v: f64[4,4]) -> (f64[6,2,3,5], f64[6,4]) {
          %r: f64[6,2,3,5], %s: f64[6,4] = for %k in 0..6 carry (%c: f64[6,2,3,5] = 0.0, %d: f64[6,4] = 0.0) {
            %a: f64[2,3,4] = gather %x, %k
            %p: f64[2,3,5] = matmul %a, %w
            %n: f64[6,2,3,5] = scatter_set %c, %p, %k
            %b: f64[4] = gather %z, %k
            %e: f64[4,4] = mul %v, 2.0
            %q: f64[4] = matmul %b, %e
            %m: f64[6,4] = scatter_set %d, %q, %k
            yield %n, %m
          }
          return %r, %s
        }
        """,
    )


def test_rows_of_too_many_bytes_are_not_stored() -> None:
    leaves(
        lift_products,
        """
        func @f(%x: f64[100,16], %w: f64[16,16], %h: f64[100000,16]) -> (f64[16,16], f64[16]) {
          %r: f64[16,16], %s: f64[16] = for %k in 0..1000000 carry (%c: f64[16,16] = 0.0, %d: f64[16] = 1.0) {
            %t: f64[16] = tanh %d
            %a: f64[16,1] = reshape %t
            %b: f64[1,16] = reshape %t
            %p: f64[16,16] = matmul %a, %b
            %n: f64[16,16] = add %c, %p
            yield %n, %t
          }
          return %r, %s
        }
        """,
    )


def test_rows_that_are_written_in_reverse_are_collected_in_reverse() -> None:
    rewrites(
        lift_products,
        """
        func @f(%x: f64[6,4], %w: f64[4,4]) -> f64[6,4] {
          %r: f64[6,4] = for %k in 0..6 carry (%c: f64[6,4] = 0.0) {
            %i: i64[] = sub 5, %k
            %a: f64[4] = gather %x, %k
            %t: f64[4] = tanh %a
            %p: f64[4] = matmul %t, %w
            %n: f64[6,4] = scatter_set %c, %p, %i
            yield %n
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[6,4], %w: f64[4,4]) -> f64[6,4] {
          %t: f64[6,4] = for %k in 0..6 carry (%t.1: f64[6,4] = 0.0) {
            %i: i64[] = sub 5, %k
            %a: f64[4] = gather %x, %k
            %t.2: f64[4] = tanh %a
            %t.3: f64[6,4] = scatter_set %t.1, %t.2, %i
            yield %t.3
          }
          %r: f64[6,4] = matmul %t, %w
          return %r
        }
        """,
    )
