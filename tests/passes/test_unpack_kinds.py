"""Small arrays in loops become scalars: stacks, parts and rows of them."""

from __future__ import annotations

import pytest

from adjit.passes.loops.unpack import unpack_small_arrays
from tests.passes.checks import leaves, rewrites


def test_stacks_of_small_arrays_are_stacks_of_scalars() -> None:
    """Outside of loops too: zeros like a stack, and its length."""
    rewrites(
        unpack_small_arrays,
        """
        func @f(%x: f64[2], %n: i64[]) -> (f64[2], i64[]) {
          %l: f64[2], %s: stack<f64[2]> = for %k in 0..%n carry (%c: f64[2] = %x) {
            %d: f64[2] = sin %c
            yield %d saving %c
          }
          %m: i64[] = stack_length %s
          %z: stack<f64[2]> = stack_zeros %s
          %r: f64[2], %t: stack<f64[2]> = for %j in 0..%m carry (%e: f64[2] = %l, %u: stack<f64[2]> = %z) {
            %g: f64[2] = stack_read %s, %j
            %h: f64[2] = mul %e, %g
            %v: stack<f64[2]> = stack_accumulate %u, %j, %h
            yield %h, %v
          }
          %q: f64[2] = for %o in 0..%m carry (%w: f64[2] = %r) {
            %y: f64[2] = stack_read %t, %o
            %a: f64[2] = add %w, %y
            yield %a
          }
          return %q, %m
        }
        """,
        """
        func @f(%x: f64[2], %n: i64[]) -> (f64[2], i64[]) {
          %0: f64[1] = slice %x {starts=[0], stops=[1], steps=[1]}
          %1: f64[] = reshape %0
          %2: f64[1] = slice %x {starts=[1], stops=[2], steps=[1]}
          %3: f64[] = reshape %2
          %l: f64[], %l.1: f64[], %s: stack<f64[]>, %s.1: stack<f64[]> = for %k in 0..%n carry (%c: f64[] = %1, %c.1: f64[] = %3) {
            %4: f64[] = sin %c
            %5: f64[] = sin %c.1
            yield %4, %5 saving %c, %c.1
          }
          %6: f64[1] = reshape %l
          %7: f64[1] = reshape %l.1
          %l.2: f64[2] = concatenate %6, %7 {axis=0}
          %m: i64[] = stack_length %s
          %8: stack<f64[]> = stack_zeros %s
          %9: stack<f64[]> = stack_zeros %s.1
          %10: f64[1] = slice %l.2 {starts=[0], stops=[1], steps=[1]}
          %11: f64[] = reshape %10
          %12: f64[1] = slice %l.2 {starts=[1], stops=[2], steps=[1]}
          %13: f64[] = reshape %12
          %r: f64[], %r.1: f64[], %t: stack<f64[]>, %t.1: stack<f64[]> = for %j in 0..%m carry (%e: f64[] = %11, %e.1: f64[] = %13,
              %u: stack<f64[]> = %8, %u.1: stack<f64[]> = %9) {
            %14: f64[] = stack_read %s, %j
            %15: f64[] = stack_read %s.1, %j
            %16: f64[] = mul %e, %14
            %17: f64[] = mul %e.1, %15
            %18: stack<f64[]> = stack_accumulate %u, %j, %16
            %19: stack<f64[]> = stack_accumulate %u.1, %j, %17
            yield %16, %17, %18, %19
          }
          %20: f64[1] = reshape %r
          %21: f64[1] = reshape %r.1
          %r.2: f64[2] = concatenate %20, %21 {axis=0}
          %22: f64[1] = slice %r.2 {starts=[0], stops=[1], steps=[1]}
          %23: f64[] = reshape %22
          %24: f64[1] = slice %r.2 {starts=[1], stops=[2], steps=[1]}
          %25: f64[] = reshape %24
          %q: f64[], %q.1: f64[] = for %o in 0..%m carry (%w: f64[] = %23, %w.1: f64[] = %25) {
            %26: f64[] = stack_read %t, %o
            %27: f64[] = stack_read %t.1, %o
            %28: f64[] = add %w, %26
            %29: f64[] = add %w.1, %27
            yield %28, %29
          }
          %30: f64[1] = reshape %q
          %31: f64[1] = reshape %q.1
          %q.2: f64[2] = concatenate %30, %31 {axis=0}
          return %q.2, %m
        }
        """,
    )


def test_zeros_of_another_type_and_lengths_inside_of_loops() -> None:
    rewrites(
        unpack_small_arrays,
        """
        func @f(%x: f64[2], %n: i64[]) -> f64[3] {
          %l: f64[2], %s: stack<f64[2]> = for %k in 0..%n carry (%c: f64[2] = %x) {
            %d: f64[2] = sin %c
            yield %d saving %c
          }
          %r: f64[3] = for %j in 0..4 carry (%e: f64[3] = 1.0) {
            %z: stack<f64[3]> = stack_zeros %s {element=f64[3]}
            %m: i64[] = stack_length %s
            %i: i64[] = sub %m, 1
            %v: stack<f64[3]> = stack_accumulate %z, %i, %e
            %g: f64[3] = stack_read %v, %i
            %h: f64[3] = sin %g
            yield %h
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[2], %n: i64[]) -> f64[3] {
          %0: f64[1] = slice %x {starts=[0], stops=[1], steps=[1]}
          %1: f64[] = reshape %0
          %l: f64[], %s: stack<f64[]> = for %k in 0..%n carry (%c: f64[] = %1) {
            %2: f64[] = sin %c
            yield %2 saving %c
          }
          %r: f64[], %r.1: f64[], %r.2: f64[] = for %j in 0..4 carry (%e: f64[] = 1.0, %e.1: f64[] = 1.0, %e.2: f64[] = 1.0) {
            %3: stack<f64[]> = stack_zeros %s {element=f64[]}
            %4: i64[] = stack_length %s
            %i: i64[] = sub %4, 1
            %5: stack<f64[]> = stack_accumulate %3, %i, %e
            %6: stack<f64[]> = stack_accumulate %3, %i, %e.1
            %7: stack<f64[]> = stack_accumulate %3, %i, %e.2
            %8: f64[] = stack_read %5, %i
            %9: f64[] = stack_read %6, %i
            %10: f64[] = stack_read %7, %i
            %11: f64[] = sin %8
            %12: f64[] = sin %9
            %13: f64[] = sin %10
            yield %11, %12, %13
          }
          %14: f64[1] = reshape %r
          %15: f64[1] = reshape %r.1
          %16: f64[1] = reshape %r.2
          %r.3: f64[3] = concatenate %14, %15, %16 {axis=0}
          return %r.3
        }
        """,
    )


def test_arrays_of_one_element_are_not_concatenated() -> None:
    rewrites(
        unpack_small_arrays,
        """
        func @f(%x: f64[1,1]) -> f64[1,1] {
          %r: f64[1,1] = for %k in 0..9 carry (%c: f64[1,1] = %x) {
            %d: f64[1,1] = sin %c
            yield %d
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[1,1]) -> f64[1,1] {
          %0: f64[] = reshape %x
          %r: f64[] = for %k in 0..9 carry (%c: f64[] = %0) {
            %1: f64[] = sin %c
            yield %1
          }
          %r.1: f64[1,1] = reshape %r
          return %r.1
        }
        """,
    )


def test_parts_of_several_sizes_are_distinguished() -> None:
    rewrites(
        unpack_small_arrays,
        """
        func @f(%x: f64[2], %y: f64[1], %z: f64[3]) -> (f64[2], f64[1], f64[3]) {
          %r: f64[2], %s: f64[1], %t: f64[3] = for %k in 0..9 carry (%a: f64[2] = %x, %b: f64[1] = %y, %c: f64[3] = %z) {
            %j: f64[6] = concatenate %a, %b, %c {axis=0}
            %d: f64[6] = flip %j {axes=[0]}
            %e: f64[2] = slice %d {starts=[0], stops=[2], steps=[1]}
            %g: f64[1] = slice %d {starts=[2], stops=[3], steps=[1]}
            %h: f64[3] = slice %d {starts=[3], stops=[6], steps=[1]}
            yield %e, %g, %h
          }
          return %r, %s, %t
        }
        """,
        """
        func @f(%x: f64[2], %y: f64[1], %z: f64[3]) -> (f64[2], f64[1], f64[3]) {
          %0: f64[1] = slice %x {starts=[0], stops=[1], steps=[1]}
          %1: f64[] = reshape %0
          %2: f64[1] = slice %x {starts=[1], stops=[2], steps=[1]}
          %3: f64[] = reshape %2
          %4: f64[] = reshape %y
          %5: f64[1] = slice %z {starts=[0], stops=[1], steps=[1]}
          %6: f64[] = reshape %5
          %7: f64[1] = slice %z {starts=[1], stops=[2], steps=[1]}
          %8: f64[] = reshape %7
          %9: f64[1] = slice %z {starts=[2], stops=[3], steps=[1]}
          %10: f64[] = reshape %9
          %r: f64[], %r.1: f64[], %s: f64[], %t: f64[], %t.1: f64[], %t.2: f64[] = for %k in 0..9 carry (%a: f64[] = %1, %a.1: f64[] = %3,
              %b: f64[] = %4, %c: f64[] = %6, %c.1: f64[] = %8, %c.2: f64[] = %10) {
            yield %c.2, %c.1, %c, %b, %a.1, %a
          }
          %11: f64[1] = reshape %r
          %12: f64[1] = reshape %r.1
          %r.2: f64[2] = concatenate %11, %12 {axis=0}
          %s.1: f64[1] = reshape %s
          %13: f64[1] = reshape %t
          %14: f64[1] = reshape %t.1
          %15: f64[1] = reshape %t.2
          %t.3: f64[3] = concatenate %13, %14, %15 {axis=0}
          return %r.2, %s.1, %t.3
        }
        """,
    )


def test_rows_of_a_table_are_read_element_by_element() -> None:
    """The table stays an array, and so does the carry that it is assigned to."""
    rewrites(
        unpack_small_arrays,
        """
        func @f(%x: f64[2], %t: f64[3,2]) -> (f64[2], f64[3,2]) {
          %r: f64[2], %u: f64[3,2] = for %k in 0..3 carry (%c: f64[2] = %x, %d: f64[3,2] = %t) {
            %row: f64[2] = gather %d, %k
            %m: f64[2] = mul %c, %row
            %n: f64[3,2] = scatter_set %d, %m, %k
            yield %m, %n
          }
          return %r, %u
        }
        """,
        """
        func @f(%x: f64[2], %t: f64[3,2]) -> (f64[2], f64[3,2]) {
          %0: f64[1] = slice %x {starts=[0], stops=[1], steps=[1]}
          %1: f64[] = reshape %0
          %2: f64[1] = slice %x {starts=[1], stops=[2], steps=[1]}
          %3: f64[] = reshape %2
          %r: f64[], %r.1: f64[], %u: f64[3,2] = for %k in 0..3 carry (%c: f64[] = %1, %c.1: f64[] = %3, %d: f64[3,2] = %t) {
            %4: f64[] = gather %d, %k, 0:i64[]
            %5: f64[] = gather %d, %k, 1:i64[]
            %6: f64[] = mul %c, %4
            %7: f64[] = mul %c.1, %5
            %8: f64[3,2] = scatter_set %d, %6, %k, 0:i64[]
            %9: f64[3,2] = scatter_set %8, %7, %k, 1:i64[]
            yield %6, %7, %9
          }
          %10: f64[1] = reshape %r
          %11: f64[1] = reshape %r.1
          %r.2: f64[2] = concatenate %10, %11 {axis=0}
          return %r.2, %u
        }
        """,
    )


def test_loops_inside_of_branches_are_unpacked() -> None:
    rewrites(
        unpack_small_arrays,
        """
        func @f(%x: f64[2], %p: bool[]) -> f64[2] {
          %y: f64[2] = if %p {
            %r: f64[2] = for %k in 0..9 carry (%c: f64[2] = %x) {
              %d: f64[2] = sin %c
              yield %d
            }
            yield %r
          } else {
            yield %x
          }
          return %y
        }
        """,
        """
        func @f(%x: f64[2], %p: bool[]) -> f64[2] {
          %y: f64[2] = if %p {
            %0: f64[1] = slice %x {starts=[0], stops=[1], steps=[1]}
            %1: f64[] = reshape %0
            %2: f64[1] = slice %x {starts=[1], stops=[2], steps=[1]}
            %3: f64[] = reshape %2
            %r: f64[], %r.1: f64[] = for %k in 0..9 carry (%c: f64[] = %1, %c.1: f64[] = %3) {
              %4: f64[] = sin %c
              %5: f64[] = sin %c.1
              yield %4, %5
            }
            %6: f64[1] = reshape %r
            %7: f64[1] = reshape %r.1
            %r.2: f64[2] = concatenate %6, %7 {axis=0}
            yield %r.2
          } else {
            yield %x
          }
          return %y
        }
        """,
    )


@pytest.mark.parametrize(
    ("shapes", "body"),
    [
        (("f64[2]", "f64[0]"), ["%n: f64[2] = sin %c", "%o: f64[0] = sin %d", "yield %n, %o"]),  # no elements
        (("f64[2]", "f64[1,2,2]"), ["%n: f64[2] = sin %c", "%o: f64[1,2,2] = matmul %d, %d", "yield %n, %o"]),  # of batches
        (("f64[2]", "f64[3]"), ["%n: f64[2] = sin %c", "%o: f64[3] = cumsum %d {axis=0}", "yield %n, %o"]),
        (("f64[2]", "f64[17]"), ["%n: f64[2] = sin %c", "%o: f64[17] = sin %d", "yield %n, %o"]),  # one element too many
    ],
)
def test_loops_with_other_arrays_stay(shapes: tuple[str, str], body: list[str]) -> None:
    first, second = shapes
    lines = "\n".join(f"    {line}" for line in body)
    leaves(
        unpack_small_arrays,
        f"""func @f(%x: {first}, %y: {second}) -> ({first}, {second}) {{
  %r: {first}, %s: {second} = for %k in 0..9 carry (%c: {first} = %x, %d: {second} = %y) {{
{lines}
  }}
  return %r, %s
}}
""",
    )
