"""Products that a loop adds up are computed into their sum."""

from __future__ import annotations

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.ir.interpreter import run
from adjit.ir.ops.linalg import Matmul, MatmulAdd
from adjit.ir.parser import parse_func
from adjit.ir.verifier import verify
from adjit.passes.loops.accumulate import accumulate_products
from adjit.passes.pipeline import OPTIMIZE
from adjit.passes.rewrite import walk
from tests.passes.checks import rewrites

PROGRAM = """
func @f(%a: f64[{m},{k}], %b: f64[{k},{n}], %c: f64[{m},{n}]) -> (f64[{m},{n}], f64[{m},{n}]) {{
  %r: f64[{m},{n}], %s: f64[{m},{n}] = for %i in 0..3 carry (%t: f64[{m},{n}] = %c, %u: f64[{m},{n}] = %c) {{
    %p: f64[{m},{n}] = matmul %a, %b
    %v: f64[{m},{n}] = add {order}
    %q: f64[{m},{n}] = matmul %v, {square}
    %w: f64[{m},{n}] = add %u, %q
    yield %v, %w
  }}
  return %r, %s
}}
"""


@pytest.mark.parametrize("order", ["%t, %p", "%p, %t"])
def test_a_sum_of_products_is_one_statement(order: str) -> None:
    size = 20
    func = parse_func(PROGRAM.format(m=size, k=size, n=size, order=order, square="%a"))
    out = accumulate_products(func)
    verify(out)
    assert sum(isinstance(s.op, MatmulAdd) for s in walk(out.block)) == 2
    assert not any(isinstance(s.op, Matmul) for s in walk(out.block))
    arrays = [np.random.default_rng(k).standard_normal((size, size)) for k in range(3)]
    want = run(func, *arrays)
    for result in (run(out, *arrays), compile_func(OPTIMIZE(func))(arrays)):
        for a, b in zip(result, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-8)


def test_what_is_read_elsewhere_or_small_stays() -> None:
    small = parse_func(PROGRAM.format(m=3, k=3, n=3, order="%t, %p", square="%a"))
    assert not any(isinstance(s.op, MatmulAdd) for s in walk(accumulate_products(small).block))
    text = PROGRAM.format(m=20, k=20, n=20, order="%t, %p", square="%a").replace("matmul %v, %a", "matmul %t, %a")
    read_twice = accumulate_products(parse_func(text))
    assert sum(isinstance(s.op, MatmulAdd) for s in walk(read_twice.block)) == 1


def test_the_text_of_a_sum_of_products() -> None:
    rewrites(
        accumulate_products,
        """
        func @f(%a: f64[20,20], %c: f64[20,20]) -> f64[20,20] {
          %r: f64[20,20] = for %i in 0..3 carry (%t: f64[20,20] = %c) {
            %p: f64[20,20] = matmul %a, %a
            %v: f64[20,20] = add %t, %p
            yield %v
          }
          return %r
        }
        """,
        """
        func @f(%a: f64[20,20], %c: f64[20,20]) -> f64[20,20] {
          %r: f64[20,20] = for %i in 0..3 carry (%t: f64[20,20] = %c) {
            %v: f64[20,20] = matmul_add %t, %a, %a
            yield %v
          }
          return %r
        }
        """,
    )
