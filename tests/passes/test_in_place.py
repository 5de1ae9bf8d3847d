"""Stacks: native code changes them in place, without visible effect; lengths, and zeros of another type."""

from __future__ import annotations

from textwrap import dedent
from typing import NamedTuple

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.ir.verifier import verify
from adjit.passes.batch import batch_func
from adjit.passes.memory.in_place import make_stacks_private
from adjit.passes.pipeline import OPTIMIZE
from tests.passes.checks import rewrites

TWO_CARRIES = """
    func @f(%x: f64[{n}], %n: i64[]) -> (f64[{n}], f64[{n}]) {{
      %last: f64[{n}], %s: stack<f64[{n}]> = for %k in 0..%n carry (%c: f64[{n}] = %x) {{
        %y: f64[{n}] = sin %c
        yield %y saving %c
      }}
      %zeros: stack<f64[{n}]> = stack_zeros %s
      %one: stack<f64[{n}]>, %two: stack<f64[{n}]> = for %k.1 in 0..%n carry (%a: stack<f64[{n}]> = %zeros, %b: stack<f64[{n}]> = %zeros) {{
        %r: f64[{n}] = stack_read %s, %k.1
        %a.1: stack<f64[{n}]> = stack_accumulate %a, %k.1, %r
        %r.1: f64[{n}] = mul %r, 10.0
        %b.1: stack<f64[{n}]> = stack_accumulate %b, %k.1, %r.1
        yield %a.1, %b.1
      }}
      %p: f64[{n}] = stack_read %one, 1:i64[]
      %q: f64[{n}] = stack_read %two, 1:i64[]
      return %p, %q
    }}
    """

LENGTHS = """
    func @f(%x: f64[3], %n: i64[]) -> (i64[], f32[2]) {
      %last: f64[3], %s: stack<f64[3]> = for %k in 0..%n carry (%c: f64[3] = %x) {
        %y: f64[3] = sin %c
        yield %y saving %c
      }
      %count: i64[] = stack_length %s
      %z: stack<f32[2]> = stack_zeros %s {element=f32[2]}
      %one: f32[2] = fill {value=1.0}
      %z.1: stack<f32[2]> = stack_accumulate %z, 2:i64[], %one
      %r: f32[2] = stack_read %z.1, 2:i64[]
      return %count, %r
    }
    """


class Change(NamedTuple):
    """A function that changes a stack; and the lines of it that read a copy, before and after."""

    results: str
    body: str
    line: str = ""
    copied: str = ""


STACK = """  %last: f64[2], %s: stack<f64[2]> = for %k in 0..%n carry (%c: f64[2] = %x) {
    %y: f64[2] = sin %c
    yield %y saving %c
  }"""

CHANGES = {
    "read later": Change(
        "(f64[2], f64[2])",
        """
  %t: stack<f64[2]> = stack_accumulate %s, 0:i64[], %x
  %a: f64[2] = stack_read %s, 0:i64[]
  %b: f64[2] = stack_read %t, 0:i64[]
  return %a, %b
""",
        """
  %t: stack<f64[2]> = stack_accumulate %s, 0:i64[], %x
""",
        """
  %s.1: stack<f64[2]> = stack_copy %s
  %t: stack<f64[2]> = stack_accumulate %s.1, 0:i64[], %x
""",
    ),
    "read before only": Change(
        "(f64[2], f64[2])",
        """
  %a: f64[2] = stack_read %s, 0:i64[]
  %t: stack<f64[2]> = stack_accumulate %s, 0:i64[], %x
  %b: f64[2] = stack_read %t, 0:i64[]
  return %a, %b
""",
    ),
    "read in the other branch": Change(
        "f64[2]",
        """
  %r: f64[2] = if %p {
    %t: stack<f64[2]> = stack_accumulate %s, 0:i64[], %x
    %b: f64[2] = stack_read %t, 0:i64[]
    yield %b
  } else {
    %a: f64[2] = stack_read %s, 0:i64[]
    yield %a
  }
  return %r
""",
    ),
    "read after the branches": Change(
        "(f64[2], f64[2])",
        """
  %r: f64[2] = if %p {
    %t: stack<f64[2]> = stack_accumulate %s, 0:i64[], %x
    %b: f64[2] = stack_read %t, 0:i64[]
    yield %b
  } else {
    yield %x
  }
  %a: f64[2] = stack_read %s, 0:i64[]
  return %r, %a
""",
        """
    %t: stack<f64[2]> = stack_accumulate %s, 0:i64[], %x
""",
        """
    %s.1: stack<f64[2]> = stack_copy %s
    %t: stack<f64[2]> = stack_accumulate %s.1, 0:i64[], %x
""",
    ),
    "read in the next iteration": Change(
        "f64[2]",
        """
  %r: f64[2] = for %j in 0..%n carry (%d: f64[2] = %x) {
    %a: f64[2] = stack_read %s, 0:i64[]
    %t: stack<f64[2]> = stack_accumulate %s, 0:i64[], %x
    %b: f64[2] = stack_read %t, 0:i64[]
    %e: f64[2] = add %d, %b
    %f: f64[2] = add %e, %a
    yield %f
  }
  return %r
""",
        """
    %t: stack<f64[2]> = stack_accumulate %s, 0:i64[], %x
""",
        """
    %s.1: stack<f64[2]> = stack_copy %s
    %t: stack<f64[2]> = stack_accumulate %s.1, 0:i64[], %x
""",
    ),
    "carried": Change(
        "f64[2]",
        """
  %r: stack<f64[2]> = for %j in 0..%n carry (%d: stack<f64[2]> = %s) {
    %t: stack<f64[2]> = stack_accumulate %d, 0:i64[], %x
    yield %t
  }
  %a: f64[2] = stack_read %r, 0:i64[]
  return %a
""",
    ),
    "carried, and read later": Change(
        "(f64[2], f64[2])",
        """
  %r: stack<f64[2]> = for %j in 0..%n carry (%d: stack<f64[2]> = %s) {
    %t: stack<f64[2]> = stack_accumulate %d, 0:i64[], %x
    yield %t
  }
  %a: f64[2] = stack_read %r, 0:i64[]
  %b: f64[2] = stack_read %s, 0:i64[]
  return %a, %b
""",
        """
  %r: stack<f64[2]> = for %j in 0..%n carry (%d: stack<f64[2]> = %s) {
""",
        """
  %s.1: stack<f64[2]> = stack_copy %s
  %r: stack<f64[2]> = for %j in 0..%n carry (%d: stack<f64[2]> = %s.1) {
""",
    ),
    "carried as it is": Change(
        "(f64[2], f64[2])",
        """
  %r: stack<f64[2]>, %q: f64[2] = for %j in 0..%n carry (%d: stack<f64[2]> = %s, %e: f64[2] = %x) {
    %t: f64[2] = stack_read %d, %j
    yield %d, %t
  }
  %b: f64[2] = stack_read %s, 0:i64[]
  return %q, %b
""",
    ),
    "exchanged": Change(
        "(f64[2], f64[2])",
        """
  %z: stack<f64[2]> = stack_zeros %s
  %r: stack<f64[2]>, %q: stack<f64[2]> = for %j in 0..%n carry (%d: stack<f64[2]> = %s, %e: stack<f64[2]> = %z) {
    yield %e, %d
  }
  %a: f64[2] = stack_read %r, 0:i64[]
  %b: f64[2] = stack_read %q, 0:i64[]
  return %a, %b
""",
        """
    yield %e, %d
""",
        """
    %e.1: stack<f64[2]> = stack_copy %e
    %d.1: stack<f64[2]> = stack_copy %d
    yield %e.1, %d.1
""",
    ),
    "one start of two carries": Change(
        "(f64[2], f64[2])",
        """
  %z: stack<f64[2]> = stack_zeros %s
  %r: stack<f64[2]>, %q: stack<f64[2]> = for %j in 0..%n carry (%d: stack<f64[2]> = %z, %e: stack<f64[2]> = %z) {
    %t: stack<f64[2]> = stack_accumulate %d, %j, %x
    yield %t, %e
  }
  %a: f64[2] = stack_read %r, 0:i64[]
  %b: f64[2] = stack_read %q, 0:i64[]
  return %a, %b
""",
        """
  %r: stack<f64[2]>, %q: stack<f64[2]> = for %j in 0..%n carry (%d: stack<f64[2]> = %z, %e: stack<f64[2]> = %z) {
""",
        """
  %z.1: stack<f64[2]> = stack_copy %z
  %r: stack<f64[2]>, %q: stack<f64[2]> = for %j in 0..%n carry (%d: stack<f64[2]> = %z, %e: stack<f64[2]> = %z.1) {
""",
    ),
    "read by the name that branches gave it": Change(
        "(f64[2], f64[2])",
        """
  %r: stack<f64[2]> = if %p {
    yield %s
  } else {
    yield %s
  }
  %t: stack<f64[2]> = stack_accumulate %r, 0:i64[], %x
  %a: f64[2] = stack_read %s, 0:i64[]
  %b: f64[2] = stack_read %t, 0:i64[]
  return %a, %b
""",
        """
  %t: stack<f64[2]> = stack_accumulate %r, 0:i64[], %x
""",
        """
  %r.1: stack<f64[2]> = stack_copy %r
  %t: stack<f64[2]> = stack_accumulate %r.1, 0:i64[], %x
""",
    ),
    "one of two, by a branch": Change(
        "(f64[2], f64[2], f64[2])",
        """
  %z: stack<f64[2]> = stack_zeros %s
  %r: stack<f64[2]> = if %p {
    yield %s
  } else {
    yield %z
  }
  %t: stack<f64[2]> = stack_accumulate %r, 0:i64[], %x
  %a: f64[2] = stack_read %s, 0:i64[]
  %b: f64[2] = stack_read %t, 0:i64[]
  %d: f64[2] = stack_read %z, 0:i64[]
  return %a, %b, %d
""",
    ),
    "read by a loop before": Change(
        "(f64[2], f64[2])",
        """
  %q: f64[2] = for %j in 0..%n carry (%e: f64[2] = %x) {
    %g: f64[2] = stack_read %s, %j
    %h: f64[2] = mul %e, %g
    yield %h
  }
  %t: stack<f64[2]> = stack_accumulate %s, 0:i64[], %x
  %b: f64[2] = stack_read %t, 0:i64[]
  return %q, %b
""",
    ),
    "carried by a loop with a condition": Change(
        "(f64[2], f64[2])",
        """
  %r: stack<f64[2]>, %q: i64[] = while carry (%d: stack<f64[2]> = %s, %e: i64[] = 0) {
    %g: bool[] = less %e, %n
    cond %g
  } do {
    %t: stack<f64[2]> = stack_accumulate %d, %e, %x
    %h: i64[] = add %e, 1
    yield %t, %h
  }
  %a: f64[2] = stack_read %r, 0:i64[]
  %b: f64[2] = stack_read %s, 0:i64[]
  return %a, %b
""",
        """
  %r: stack<f64[2]>, %q: i64[] = while carry (%d: stack<f64[2]> = %s, %e: i64[] = 0) {
""",
        """
  %s.1: stack<f64[2]> = stack_copy %s
  %r: stack<f64[2]>, %q: i64[] = while carry (%d: stack<f64[2]> = %s.1, %e: i64[] = 0) {
""",
    ),
    "read by the name that a checkpoint gave it": Change(
        "(f64[2], f64[2])",
        """
  %r: stack<f64[2]> = checkpoint {
    yield %s
  }
  %t: stack<f64[2]> = stack_accumulate %r, 0:i64[], %x
  %a: f64[2] = stack_read %s, 0:i64[]
  %b: f64[2] = stack_read %t, 0:i64[]
  return %a, %b
""",
        """
  %t: stack<f64[2]> = stack_accumulate %r, 0:i64[], %x
""",
        """
  %r.1: stack<f64[2]> = stack_copy %r
  %t: stack<f64[2]> = stack_accumulate %r.1, 0:i64[], %x
""",
    ),
    "yielded after the change": Change(
        "(f64[2], f64[2])",
        """
  %z: stack<f64[2]> = stack_zeros %s
  %r: stack<f64[2]>, %q: f64[2] = for %j in 0..%n carry (%d: stack<f64[2]> = %z, %e: f64[2] = %x) {
    %t: stack<f64[2]> = stack_accumulate %d, %j, %x
    %u: f64[2] = stack_read %t, %j
    yield %d, %u
  }
  %a: f64[2] = stack_read %r, 0:i64[]
  return %a, %q
""",
        """
    %t: stack<f64[2]> = stack_accumulate %d, %j, %x
""",
        """
    %d.1: stack<f64[2]> = stack_copy %d
    %t: stack<f64[2]> = stack_accumulate %d.1, %j, %x
""",
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_stack_is_copied_where_a_change_of_it_would_be_seen(change: Change) -> None:
    head = f"func @f(%x: f64[2], %n: i64[], %p: bool[]) -> {change.results} {{\n{STACK}"
    before = f"{head}\n{change.body.strip(chr(10))}\n}}\n"
    rewrites(make_stacks_private, before, before.replace(change.line.strip("\n"), change.copied.strip("\n")) if change.line else before)
    func = parse_func(before)
    arrays = [np.array([0.5, 2.0]), np.array(3), np.array(True)]
    for ours, theirs in zip(compile_func(OPTIMIZE.run(func))(arrays), run(func, *arrays), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("n", [2, 40])
def test_two_carries_that_start_as_one_stack(n: int) -> None:
    func = verify(parse_func(dedent(TWO_CARRIES.format(n=n))))
    arrays = [np.linspace(0.1, 1.0, n), np.array(4)]
    wanted = run(func, *arrays)
    np.testing.assert_allclose(wanted[1], 10 * wanted[0])
    for ours, theirs in zip(compile_func(OPTIMIZE.run(func))(arrays), wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_lengths_and_zeros_of_another_type() -> None:
    text = dedent(LENGTHS).lstrip()
    func = verify(parse_func(text))
    assert print_func(func) == text
    arrays = [np.ones(3), np.array(5)]
    for results in (run(func, *arrays), compile_func(OPTIMIZE.run(func))(arrays)):
        assert int(results[0]) == 5
        assert results[1].tolist() == [1.0, 1.0]
    batched = verify(batch_func(func, [True, False], 2))
    count, rows = run(batched, np.ones((2, 3)), np.array(5))
    assert count.tolist() == [5, 5]
    assert rows.tolist() == [[1.0, 1.0]] * 2
