"""Batching: every row of the op table against a loop over examples, text before and after, and regions whose examples diverge."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import dedent

import numpy as np
import pytest

from adjit.ir.errors import OutOfBoundsError, UnsupportedError
from adjit.ir.func import Func
from adjit.ir.interpreter import run
from adjit.ir.ops.base import Array
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.ir.types import DTYPES
from adjit.ir.verifier import verify
from adjit.passes.autodiff.adjoint import value_and_grad_func
from adjit.passes.batch import batch_func
from tests.ops.cases import CASES, Case
from tests.ops.cases_convolution import CASES as CONVOLUTION
from tests.ops.cases_structure import CASES as STRUCTURE
from tests.ops.harness import assert_close, func_of
from tests.passes.loop_programs import PROGRAMS

SIZE = 3


def by_loop(func: Func, arrays: Sequence[Array], batched: Sequence[bool]) -> list[Array]:
    rows = [run(func, *(a[k] if has else a for a, has in zip(arrays, batched, strict=True))) for k in range(SIZE)]
    return [np.stack(column) for column in zip(*rows, strict=True)]


def check(func: Func, arrays: Sequence[Array], batched: Sequence[bool]) -> Func:
    out = verify(batch_func(func, batched, SIZE))
    assert_close(run(out, *arrays), by_loop(func, arrays, batched), absolute=1)
    return out


@pytest.mark.parametrize("case", [*CASES, *STRUCTURE, *CONVOLUTION], ids=repr)
def test_every_row_against_a_loop(case: Case) -> None:
    for dtype in (case.dtypes[0], case.dtypes[-1]):
        draws = [case.draw(DTYPES[dtype], seed=seed) for seed in range(SIZE)]
        func = func_of(case.call, draws[0])
        count = len(draws[0])
        masks = {tuple([True] * count), *(tuple(i == k for i in range(count)) for k in range(count))}
        for mask in masks:
            arrays = [np.stack(column) if has else column[0] for column, has in zip(zip(*draws, strict=True), mask, strict=True)]
            check(func, arrays, mask)


def batched_text(before: str, batched: Sequence[bool]) -> str:
    return print_func(verify(batch_func(verify(parse_func(dedent(before))), batched, SIZE)))


def test_text() -> None:
    before = """
        func @f(%w: f64[4,2], %x: f64[4]) -> f64[] {
          %h: f64[2] = matmul %x, %w
          %y: f64[2] = tanh %h
          %s: f64[] = sum %y {axes=[0]}
          return %s
        }
        """
    after = """
        func @f.vmap(%w: f64[4,2], %x: f64[3,4]) -> f64[3] {
          %h: f64[3,2] = matmul %x, %w
          %y: f64[3,2] = tanh %h
          %s: f64[3] = sum %y {axes=[1]}
          return %s
        }
        """
    assert batched_text(before, [False, True]) == dedent(after).lstrip("\n")


def test_what_examples_share_is_computed_once() -> None:
    before = """
        func @f(%x: f64[4], %y: f64[4]) -> f64[4] {
          %e: f64[4] = exp %x
          %z: f64[4] = mul %e, %y
          return %z
        }
        """
    assert "%e: f64[4] = exp %x" in batched_text(before, [False, True])


X = np.array([-2.0, 0.5, 3.0])
N = np.array([0, 2, 5])
TABLE = np.arange(5.0)

IF = """
    func @f(%x: f64[], %t: f64[5], %i: i64[]) -> f64[] {
      %p: bool[] = greater %x, 0.0
      %r: f64[] = if %p {
        %v: f64[] = gather %t, %i
        %a: f64[] = mul %v, %x
        yield %a
      } else {
        yield 7.0
      }
      return %r
    }
    """


def parsed(text: str) -> Func:
    return verify(parse_func(dedent(text)))


def test_if_with_a_shared_predicate_stays_one() -> None:
    func = parsed(IF)
    out = check(func, [np.array(1.0), TABLE, N % 5], [False, False, True])
    assert " if " in print_func(out)


def test_if_that_examples_decide_differently() -> None:
    func = parsed(IF)
    out = check(func, [X, TABLE, N % 5], [True, False, True])
    assert " if " not in print_func(out)


def test_a_branch_not_taken_does_not_fail() -> None:
    func = parsed(IF)
    check(func, [X, TABLE, np.array([99, 1, 2])], [True, False, True])
    with pytest.raises(OutOfBoundsError):
        run(batch_func(func, [True, False, True], SIZE), X, TABLE, np.array([0, 99, 0]))


FOR = """
    func @f(%start: i64[], %stop: i64[], %x: f64[]) -> (f64[], f64[]) {
      %r: f64[], %s: f64[] = for %k in %start..%stop carry (%c: f64[] = 1.0, %d: f64[] = 0.0) {
        %kf: f64[] = cast %k {dtype=f64}
        %n: f64[] = mul %c, %x
        %m: f64[] = add %d, %kf
        yield %n, %m
      }
      return %r, %s
    }
    """


@pytest.mark.parametrize("mask", [(False, False, True), (False, True, False), (True, False, True), (True, True, True)])
def test_for(mask: tuple[bool, ...]) -> None:
    func = parsed(FOR)
    full = [np.array([1, 0, 4]), N, X]
    check(func, [a if has else a[2] for a, has in zip(full, mask, strict=True)], mask)


def test_for_in_a_branch_that_some_examples_take() -> None:
    """Examples that do not take the branch have bounds as well."""
    body = "".join(f"    {line}\n" for line in dedent(FOR).strip().splitlines()[1:-2])
    text = f"""
func @f(%start: i64[], %stop: i64[], %x: f64[], %p: bool[]) -> (f64[], f64[]) {{
  %y: f64[], %z: f64[] = if %p {{
{body}    yield %r, %s
  }} else {{
    yield %x, 2.0
  }}
  return %y, %z
}}
"""
    check(parsed(text), [np.array([1, 2, 4]), np.array([3, 9, 7]), X, np.array([True, False, True])], [True] * 4)


WHILE = """
    func @f(%x: f64[], %limit: f64[]) -> (f64[], i64[]) {
      %r: f64[], %n: i64[] = while carry (%c: f64[] = %x, %i: i64[] = 0) {
        %p: bool[] = less %c, %limit
        cond %p
      } do {
        %q: f64[] = mul %c, 1.5
        %d: f64[] = add %q, 1.0
        %j: i64[] = add %i, 1
        yield %d, %j
      }
      return %r, %n
    }
    """


@pytest.mark.parametrize("mask", [(True, False), (False, True), (True, True)])
def test_while(mask: tuple[bool, ...]) -> None:
    full = [np.array([0.0, 1.0, 50.0]), np.array([10.0, 20.0, 5.0])]
    check(parsed(WHILE), [a if has else a[1] for a, has in zip(full, mask, strict=True)], mask)


def test_while_with_a_shared_condition_stays_one() -> None:
    """The carry starts as one number for all examples, and differs after the first iteration; the counter does not."""
    text = """
        func @f(%x: f64[], %n: i64[]) -> (f64[], i64[]) {
          %r: f64[], %j: i64[] = while carry (%c: f64[] = 1.0, %i: i64[] = 0) {
            %p: bool[] = less %i, %n
            cond %p
          } do {
            %d: f64[] = mul %c, %x
            %k: i64[] = add %i, 1
            yield %d, %k
          }
          return %r, %j
        }
        """
    out = check(parsed(text), [X, np.array(3)], [True, False])
    assert "%i: i64[]" in print_func(out)


def test_while_in_a_branch_that_no_example_takes() -> None:
    """Its condition would hold forever."""
    text = """
        func @f(%x: f64[], %go: bool[]) -> f64[] {
          %p: bool[] = greater %x, 100.0
          %r: f64[] = if %p {
            %w: f64[] = while carry (%c: f64[] = 0.0) {
              cond %go
            } do {
              %d: f64[] = add %c, 1.0
              yield %d
            }
            yield %w
          } else {
            yield %x
          }
          return %r
        }
        """
    check(parsed(text), [X, np.array(True)], [True, False])


def test_assignments_are_refused() -> None:
    func = parsed(WHILE)
    with pytest.raises(UnsupportedError, match="assigns a variable"):
        batch_func(func.replace(updates=[(func.params[0], func.results[0])]), [True, False], SIZE)


def test_no_examples() -> None:
    out = verify(batch_func(parsed(WHILE), [True, True], 0))
    assert [a.shape for a in run(out, np.zeros(0), np.zeros(0))] == [(0,), (0,)]


GRADIENTS = {
    "traced_bounds": [(True, True, True, True), (False, False, True, True), (True, False, False, True)],
    "until_small": [(True, False), (False, True), (True, True)],
    "branch_in_loop": [(True, False), (True, True)],
    "vectors": [(True, False), (False, True)],
}


@pytest.mark.parametrize(("name", "mask"), [(name, mask) for name, masks in GRADIENTS.items() for mask in masks])
def test_gradients_whose_loops_save_other_values_for_each_example(name: str, mask: tuple[bool, ...]) -> None:
    program = PROGRAMS[name]
    steps = [np.arange(SIZE).reshape(SIZE, *[1] * np.ndim(a)) * (1 if a.dtype.kind == "i" else 0.05) for a in program.arrays]
    arrays = [(a + step).astype(a.dtype) if has else a for a, step, has in zip(program.arrays, steps, mask, strict=True)]
    check(value_and_grad_func(program.func()), arrays, mask)
