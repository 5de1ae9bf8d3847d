"""Products leave loops: which rows are collected, from which row on, and conditions that keep a product, a sum or a row inside."""

from __future__ import annotations

from textwrap import dedent

import pytest

from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.passes.loops.lift import lift_products
from tests.passes.checks import leaves, rewrites


def test_products_leave_loops_inside_of_others() -> None:
    rewrites(
        lift_products,
        """
        func @f(%x: f64[4,2,3], %w: f64[3,5], %p: bool[], %y: f64[2,5]) -> f64[2,5] {
          %z: f64[2,5] = if %p {
            %r: f64[2,5] = for %k in 0..4 carry (%c: f64[2,5] = 0.0) {
              %row: f64[2,3] = gather %x, %k
              %q: f64[2,5] = matmul %row, %w
              %t: f64[2,5] = tanh %q
              %n: f64[2,5] = add %t, %c
              yield %n
            }
            yield %r
          } else {
            yield %y
          }
          return %z
        }
        """,
        """
        func @f(%x: f64[4,2,3], %w: f64[3,5], %p: bool[], %y: f64[2,5]) -> f64[2,5] {
          %z: f64[2,5] = if %p {
            %0: f64[8,3] = reshape %x
            %1: f64[8,5] = matmul %0, %w
            %2: f64[4,2,5] = reshape %1
            %r: f64[2,5] = for %k in 0..4 carry (%c: f64[2,5] = 0.0) {
              %q: f64[2,5] = gather %2, %k
              %t: f64[2,5] = tanh %q
              %n: f64[2,5] = add %t, %c
              yield %n
            }
            yield %r
          } else {
            yield %y
          }
          return %z
        }
        """,
    )


def test_rows_of_a_stack_that_an_earlier_loop_built_are_one_array() -> None:
    rewrites(
        lift_products,
        """
        func @f(%x: f64[2,3], %v: f64[3,3], %w: f64[3,5]) -> f64[2,5] {
          %l: f64[2,3], %s: stack<f64[2,3]> = for %k in 0..4 carry (%c: f64[2,3] = %x) {
            %n: f64[2,3] = matmul %c, %v
            yield %n saving %c
          }
          %r: f64[2,5] = for %j in 0..4 carry (%d: f64[2,5] = 0.0) {
            %row: f64[2,3] = stack_read %s, %j
            %q: f64[2,5] = matmul %row, %w
            %t: f64[2,5] = tanh %q
            %m: f64[2,5] = add %t, %d
            yield %m
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[2,3], %v: f64[3,3], %w: f64[3,5]) -> f64[2,5] {
          %l: f64[2,3], %s: stack<f64[2,3]> = for %k in 0..4 carry (%c: f64[2,3] = %x) {
            %n: f64[2,3] = matmul %c, %v
            yield %n saving %c
          }
          %0: f64[4,2,3] = stack_array %s {count=4}
          %1: f64[8,3] = reshape %0
          %2: f64[8,5] = matmul %1, %w
          %3: f64[4,2,5] = reshape %2
          %r: f64[2,5] = for %j in 0..4 carry (%d: f64[2,5] = 0.0) {
            %row: f64[2,3] = stack_read %s, %j
            %q: f64[2,5] = gather %3, %j
            %t: f64[2,5] = tanh %q
            %m: f64[2,5] = add %t, %d
            yield %m
          }
          return %r
        }
        """,
    )


def test_rows_that_are_added_to_zeros_are_set() -> None:
    """The second of the carries; the first starts with ones, the third with another number of rows, the fourth is passed on."""
    rewrites(
        lift_products,
        """
        func @f(%x: f64[4,3], %y: f64[4,3]) -> (f64[4,3], f64[4,3], f64[5,3], f64[4,3]) {
          %a: f64[4,3], %b: f64[4,3], %c: f64[5,3], %d: f64[4,3] = for %k in 0..4 carry (%e: f64[4,3] = 1.0, %g: f64[4,3] = 0.0,
              %h: f64[5,3] = 0.0, %i: f64[4,3] = %y) {
            %row: f64[3] = gather %x, %k
            %t: f64[3] = tanh %row
            %e1: f64[4,3] = scatter_add %e, %t, %k
            %g1: f64[4,3] = scatter_add %g, %t, %k
            %h1: f64[5,3] = scatter_add %h, %t, %k
            yield %e1, %g1, %h1, %i
          }
          return %a, %b, %c, %d
        }
        """,
        """
        func @f(%x: f64[4,3], %y: f64[4,3]) -> (f64[4,3], f64[4,3], f64[5,3], f64[4,3]) {
          %a: f64[4,3], %b: f64[4,3], %c: f64[5,3], %d: f64[4,3] = for %k in 0..4 carry (%e: f64[4,3] = 1.0, %g: f64[4,3] = 0.0,
              %h: f64[5,3] = 0.0, %i: f64[4,3] = %y) {
            %row: f64[3] = gather %x, %k
            %t: f64[3] = tanh %row
            %e1: f64[4,3] = scatter_add %e, %t, %k
            %g1: f64[4,3] = scatter_set %g, %t, %k
            %h1: f64[5,3] = scatter_add %h, %t, %k
            yield %e1, %g1, %h1, %i
          }
          return %a, %b, %c, %d
        }
        """,
    )


def test_rows_that_the_loop_collects_anyway_are_multiplied() -> None:
    rewrites(
        lift_products,
        """
        func @f(%x: f64[4,2,3], %w: f64[2,5]) -> (f64[3,5], f64[4,2,5]) {
          %r: f64[3,5], %s: f64[2,5], %u: f64[4,2,5] = for %k in 0..4 carry (%total: f64[3,5] = 0.0, %c: f64[2,5] = %w, %all: f64[4,2,5] = 0.0) {
            %row: f64[2,3] = gather %x, %k
            %n: f64[2,5] = tanh %c
            %t: f64[3,2] = transpose %row {axes=[1, 0]}
            %p: f64[3,5] = matmul %t, %n
            %next: f64[3,5] = add %total, %p
            %more: f64[4,2,5] = scatter_set %all, %n, %k
            yield %next, %n, %more
          }
          return %r, %u
        }
        """,  # noqa: E501
        """
        func @f(%x: f64[4,2,3], %w: f64[2,5]) -> (f64[3,5], f64[4,2,5]) {
          %s: f64[2,5], %u: f64[4,2,5] = for %k in 0..4 carry (%c: f64[2,5] = %w, %all: f64[4,2,5] = 0.0) {
            %n: f64[2,5] = tanh %c
            %more: f64[4,2,5] = scatter_set %all, %n, %k
            yield %n, %more
          }
          %0: f64[8,3] = reshape %x
          %1: f64[8,5] = reshape %u
          %2: f64[3,8] = transpose %0 {axes=[1, 0]}
          %r: f64[3,5] = matmul %2, %1
          return %r, %u
        }
        """,
    )


def test_rows_that_the_loop_collects_elsewhere_are_stored_again() -> None:
    """It has five rows, and four of them are written."""
    rewrites(
        lift_products,
        """
        func @f(%x: f64[4,2,3], %w: f64[2,5]) -> (f64[3,5], f64[5,2,5]) {
          %r: f64[3,5], %s: f64[2,5], %u: f64[5,2,5] = for %k in 0..4 carry (%total: f64[3,5] = 0.0, %c: f64[2,5] = %w, %all: f64[5,2,5] = 0.0) {
            %row: f64[2,3] = gather %x, %k
            %n: f64[2,5] = tanh %c
            %t: f64[3,2] = transpose %row {axes=[1, 0]}
            %p: f64[3,5] = matmul %t, %n
            %next: f64[3,5] = add %total, %p
            %more: f64[5,2,5] = scatter_set %all, %n, %k
            yield %next, %n, %more
          }
          return %r, %u
        }
        """,  # noqa: E501
        """
        func @f(%x: f64[4,2,3], %w: f64[2,5]) -> (f64[3,5], f64[5,2,5]) {
          %s: f64[2,5], %u: f64[5,2,5], %n: f64[4,2,5] = for %k in 0..4 carry (%c: f64[2,5] = %w, %all: f64[5,2,5] = 0.0, %n.1: f64[4,2,5] = 0.0) {
            %n.2: f64[2,5] = tanh %c
            %more: f64[5,2,5] = scatter_set %all, %n.2, %k
            %n.3: f64[4,2,5] = scatter_set %n.1, %n.2, %k
            yield %n.2, %more, %n.3
          }
          %0: f64[8,3] = reshape %x
          %1: f64[8,5] = reshape %n
          %2: f64[3,8] = transpose %0 {axes=[1, 0]}
          %r: f64[3,5] = matmul %2, %1
          return %r, %u
        }
        """,  # noqa: E501
    )


def test_both_factors_are_stored_by_a_loop_that_starts_anywhere() -> None:
    rewrites(
        lift_products,
        """
        func @f(%v: f64[2,3], %w: f64[2,5]) -> f64[3,5] {
          %r: f64[3,5], %s: f64[2,5], %u: f64[2,3] = for %k in 2..6 carry (%total: f64[3,5] = 0.5, %c: f64[2,5] = %w, %d: f64[2,3] = %v) {
            %i: i64[] = sub %k, 2
            %n: f64[2,5] = tanh %c
            %m: f64[2,3] = exp %d
            %t: f64[3,2] = transpose %m {axes=[1, 0]}
            %p: f64[3,5] = matmul %t, %n
            %next: f64[3,5] = add %total, %p
            yield %next, %n, %m
          }
          return %r
        }
        """,
        """
        func @f(%v: f64[2,3], %w: f64[2,5]) -> f64[3,5] {
          %s: f64[2,5], %u: f64[2,3], %m: f64[4,2,3], %n: f64[4,2,5] = for %k in 2..6 carry (%c: f64[2,5] = %w, %d: f64[2,3] = %v,
              %m.1: f64[4,2,3] = 0.0, %n.1: f64[4,2,5] = 0.0) {
            %i: i64[] = sub %k, 2
            %n.2: f64[2,5] = tanh %c
            %m.2: f64[2,3] = exp %d
            %m.3: f64[4,2,3] = scatter_set %m.1, %m.2, %i
            %n.3: f64[4,2,5] = scatter_set %n.1, %n.2, %i
            yield %n.2, %m.2, %m.3, %n.3
          }
          %0: f64[8,3] = reshape %m
          %1: f64[8,5] = reshape %n
          %2: f64[3,8] = transpose %0 {axes=[1, 0]}
          %3: f64[3,5] = matmul %2, %1
          %r: f64[3,5] = add 0.5, %3
          return %r
        }
        """,
    )


def test_sums_of_rows_are_one_sum() -> None:
    """Of rows that are read; those that are computed stay where they are."""
    rewrites(
        lift_products,
        """
        func @f(%x: f64[4,2,3], %y: f64[3]) -> (f64[3], f64[3]) {
          %r: f64[3], %s: f64[3] = for %k in 0..4 carry (%c: f64[3] = %y, %d: f64[3] = 0.0) {
            %row: f64[2,3] = gather %x, %k
            %p: f64[3] = sum %row {axes=[0]}
            %n: f64[3] = add %c, %p
            %t: f64[2,3] = tanh %row
            %q: f64[3] = sum %t {axes=[0]}
            %m: f64[3] = add %d, %q
            yield %n, %m
          }
          return %r, %s
        }
        """,
        """
        func @f(%x: f64[4,2,3], %y: f64[3]) -> (f64[3], f64[3]) {
          %s: f64[3] = for %k in 0..4 carry (%d: f64[3] = 0.0) {
            %row: f64[2,3] = gather %x, %k
            %t: f64[2,3] = tanh %row
            %q: f64[3] = sum %t {axes=[0]}
            %m: f64[3] = add %d, %q
            yield %m
          }
          %0: f64[3] = sum %x {axes=[0, 1]}
          %r: f64[3] = add %y, %0
          return %r, %s
        }
        """,
    )


PRODUCT = """
    func @f(%x: f64[4,2,3], %w: f64[2,5], %v: f64[3,2]) -> (f64[3,5], f64[3,5]) {
      %r: f64[3,5], %s: f64[2,5], %u: f64[3,5] = for %k in 0..4 carry (%total: f64[3,5] = 0.0, %c: f64[2,5] = %w, %d: f64[3,5] = 0.0) {
        %row: f64[2,3] = gather %x, %k
        %n: f64[2,5] = tanh %c
        %t: f64[3,2] = transpose %row {axes=[1, 0]}
        %p: f64[3,5] = matmul %t, %n
        %e: f64[3,5] = tanh %d
        %next: f64[3,5] = add %total, %p
        yield %next, %n, %e
      }
      return %r, %u
    }
    """


def test_a_product_that_is_summed_leaves_the_loop() -> None:
    """The program that the tests below modify."""
    assert "scatter_set" in print_func(lift_products(parse_func(dedent(PRODUCT))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("add %total, %p", "sub %total, %p"),
        ("add %total, %p", "add %d, %p"),  # another carry
        ("tanh %d", "tanh %total"),  # the total is read
        ("tanh %d", "tanh %p"),  # the product is read
        ("yield %next, %n, %e", "yield %next, %n, %next"),  # the next total is read
        ("matmul %t, %n", "matmul %v, %n"),  # the same factor each time
    ],
)
def test_a_product_that_is_not_only_added_up_stays(old: str, new: str) -> None:
    assert old in PRODUCT
    leaves(lift_products, PRODUCT.replace(old, new))


def test_a_product_by_a_vector_stays() -> None:
    leaves(
        lift_products,
        """
        func @f(%x: f64[4,2,3], %w: f64[2]) -> f64[3] {
          %r: f64[3], %s: f64[2] = for %k in 0..4 carry (%total: f64[3] = 0.0, %c: f64[2] = %w) {
            %row: f64[2,3] = gather %x, %k
            %n: f64[2] = tanh %c
            %t: f64[3,2] = transpose %row {axes=[1, 0]}
            %p: f64[3] = matmul %t, %n
            %next: f64[3] = add %total, %p
            yield %next, %n
          }
          return %r
        }
        """,
    )


def test_a_product_of_what_comes_from_outside_is_not_collected() -> None:
    leaves(
        lift_products,
        """
        func @f(%x: f64[3], %w: f64[3,5]) -> f64[4,5] {
          %r: f64[4,5] = for %k in 0..4 carry (%c: f64[4,5] = 0.0) {
            %p: f64[5] = matmul %x, %w
            %n: f64[4,5] = scatter_set %c, %p, %k
            yield %n
          }
          return %r
        }
        """,
    )


ROWS = """
    func @f(%x: f64[4,4], %y: f64[4]) -> f64[4] {
      %r: f64[4], %left: f64[4,4], %z: f64[] = for %k in 0..4 carry (%c: f64[4] = 0.0, %d: f64[4,4] = %x, %o: f64[] = 0.0) {
        %row: f64[4] = gather %d, %k
        %n: f64[4] = mul %c, 0.5
        %m: f64[4] = add %n, %row
        %e: f64[4,4] = scatter_set %d, %m, %k
        %q: f64[] = exp %o
        yield %m, %e, %q
      }
      return %r
    }
    """


def test_rows_that_are_read_before_they_are_written_come_from_the_first_value() -> None:
    """The program that the tests below modify."""
    assert "scatter_set" not in print_func(lift_products(parse_func(dedent(ROWS))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%d: f64[4,4] = %x", "%d: f64[4,4] = 1.0"),  # no array to read
        ("%row: f64[4] = gather %d, %k", "%row: f64[4] = sum %d {axes=[0]}"),
        ("%q: f64[] = exp %o", "%q: f64[] = sum %d {axes=[0, 1]}"),  # all rows are read
        ("%q: f64[] = exp %o", "%q: f64[] = sum %e {axes=[0, 1]}"),
        ("%q: f64[] = exp %o", "%q: f64[] = gather %d, %k, %k"),
        ("scatter_set %d, %m, %k", "scatter_set %d, %o, %k, %k"),
        ("%q: f64[] = exp %o", "%q: f64[] = exp %o\n        %g: f64[4,4] = mul %e, 2.0"),
        ("return %r", "return %left"),
    ],
)
def test_rows_of_a_carry_that_is_read_otherwise_stay(old: str, new: str) -> None:
    assert old in ROWS
    text = ROWS.replace(old, new)
    if "%g" in new:
        text = text.replace("yield %m, %e", "yield %m, %g")
    if "%left" in new:
        text = text.replace("-> f64[4] {", "-> f64[4,4] {")
    leaves(lift_products, text)


def test_what_is_not_read_stays_where_nothing_leaves() -> None:
    leaves(
        lift_products,
        """
        func @f(%x: f64[4]) -> f64[4] {
          %r: f64[4] = for %k in 0..4 carry (%c: f64[4] = %x) {
            %n: f64[4] = tanh %c
            %m: f64[4] = exp %c
            yield %n
          }
          return %r
        }
        """,
    )
