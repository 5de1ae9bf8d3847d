"""Which values derivatives pass through: in loops with zero iterations, through carries that feed others, in branches, saved by loops."""

from __future__ import annotations

from textwrap import dedent
from typing import NamedTuple

import numpy as np
import pytest

from adjit.ir.func import Func, Value
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.verifier import verify
from adjit.passes.autodiff.activity import extend_wanted, mark, reached
from adjit.passes.autodiff.adjoint import value_and_grad_func
from adjit.passes.autodiff.forward import jvp_func
from adjit.passes.rewrite import walk


class Example(NamedTuple):
    reached: str  # from %x
    wanted: str  # by %r
    text: str


EXAMPLES = {
    "statements": Example(
        "x a b r",
        "x y b c r",
        """
        func @f(%x: f64[], %y: f64[]) -> f64[] {
          %a: f64[] = sin %x
          %p: bool[] = less %x, %y
          %b: f64[] = mul %x, %y
          %c: f64[] = exp %y
          %r: f64[] = add %b, %c
          return %r
        }
        """,
    ),
    "a loop that may not run": Example(
        "x c r",
        "x y s r",
        """
        func @f(%x: f64[], %y: f64[], %n: i64[]) -> f64[] {
          %r: f64[] = for %k in 0..%n carry (%c: f64[] = %x) {
            %s: f64[] = sin %y
            yield %s
          }
          return %r
        }
        """,
    ),
    "a carry that feeds another": Example(
        "x a b s q r",
        "x y a s r",
        """
        func @f(%x: f64[], %y: f64[], %n: i64[]) -> f64[] {
          %q: f64[], %r: f64[], %z: f64[] = for %k in 0..%n carry (%a: f64[] = %x, %b: f64[] = %y, %c: f64[] = %y) {
            %s: f64[] = sin %a
            %t: f64[] = cos %c
            yield %a, %s, %t
          }
          return %r
        }
        """,
    ),
    "a while loop": Example(
        "x a b s q r",
        "x y a s r",
        """
        func @f(%x: f64[], %y: f64[]) -> f64[] {
          %q: f64[], %r: f64[] = while carry (%a: f64[] = %x, %b: f64[] = %y) {
            %p: bool[] = less %a, %b
            cond %p
          } do {
            %s: f64[] = sin %a
            yield %a, %s
          }
          return %r
        }
        """,
    ),
    "branches": Example(
        "x a r q",
        "x y a b r",
        """
        func @f(%x: f64[], %y: f64[], %p: bool[]) -> f64[] {
          %r: f64[], %q: f64[], %z: f64[] = if %p {
            %a: f64[] = sin %x
            yield %a, %y, %y
          } else {
            %b: f64[] = cos %y
            yield %b, %x, %b
          }
          return %r
        }
        """,
    ),
    "saved by a loop": Example(
        "x c s q l r",
        "x c s l r",
        """
        func @f(%x: f64[], %y: f64[], %n: i64[]) -> f64[] {
          %q: f64[], %l: stack<f64[]>, %m: stack<f64[]> = for %k in 0..%n carry (%c: f64[] = %x) {
            %s: f64[] = sin %c
            yield %s saving %c, %y
          }
          %r: f64[] = stack_read %l, 0:i64[]
          return %r
        }
        """,
    ),
}


def parsed(example: Example) -> Func:
    return verify(parse_func(dedent(example.text)))


def names(func: Func, ids: set[int]) -> set[str]:
    values = [*func.params, *(v for s in walk(func.block) for v in (*s.results, *(p for b in s.blocks for p in b.params)))]
    return {v.name or "" for v in values if isinstance(v, Value) and id(v) in ids}


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_reached_and_wanted(example: Example) -> None:
    func = parsed(example)
    assert names(func, reached(func.block.stmts, func.params[:1])) == {*example.reached.split()}
    wanted: set[int] = set()
    mark(wanted, func.results)
    extend_wanted(func.block.stmts, wanted)
    assert names(func, wanted) == {*example.wanted.split()}


@pytest.mark.parametrize(("trips", "slope"), [(0, 1.0), (3, 0.0)])
def test_derivatives_of_a_loop_that_may_not_run(trips: int, slope: float) -> None:
    func = parsed(EXAMPLES["a loop that may not run"])
    arrays = [np.array(0.3), np.array(0.7), np.array(trips)]
    assert float(run(value_and_grad_func(func), *arrays)[1]) == slope
    assert float(run(jvp_func(func), *arrays, np.array(1.0), np.array(0.0))[1]) == slope
