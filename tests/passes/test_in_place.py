"""Stacks: native code changes them in place, and nobody sees it; lengths, and zeros of another type."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.ir.verifier import verify
from adjit.passes.batch import batch_func
from adjit.passes.pipeline import OPTIMIZE

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
