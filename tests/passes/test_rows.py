"""Chains of row-wise regions become one equivalent `rows` region."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.ir import ops
from adjit.ir.func import Func
from adjit.ir.interpreter import run
from adjit.ir.ops.base import perform
from adjit.ir.ops.control import Rows
from adjit.ir.ops.create import Iota
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.ir.types import F64
from adjit.ir.verifier import verify
from adjit.passes.fusion.rows import fuse_rows
from adjit.passes.pipeline import OPTIMIZE
from tests.codegen.test_kernels import build, sample
from tests.passes.checks import rewrites


def softmax(x: Any) -> Any:
    e = ops.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def layer_norm(x: Any, g: Any) -> Any:
    n = x.shape[1]
    d = x - x.sum(1, keepdims=True) / n
    return d / ops.sqrt((d * d).sum(1, keepdims=True) / n + 1e-5) * g


def both_ways(x: Any) -> Any:
    """A column sum in between does not fit the rows."""
    p = softmax(x)
    return p - p.sum(0, keepdims=True), p


def leaving_views(x: Any) -> Any:
    m = x.max(1)
    column = m.reshape(-1, 1)
    return (x - column).sum(1), column, m, ops.transpose(x - column)


def weighted_by_positions(x: Any) -> Any:
    """The first axis counts rows, the others the elements of a row."""
    row, group, column = (perform(Iota(F64, x.shape, axis)) for axis in range(3))
    e = ops.exp(x - x.max(2, keepdims=True))
    return (e / e.sum(2, keepdims=True) * (row * 100.0 + group * 10.0 + column)).sum(2)


def turned_rows(x: Any) -> Any:
    """The elements of each row in another order: a view that needs a copy."""
    e = ops.exp(x - x.max(2, keepdims=True))
    p = e / e.sum(2, keepdims=True)
    return p, ops.transpose(p, (0, 2, 1)).reshape(x.shape[0], -1)


def turned_rows_read_inside(x: Any) -> Any:
    p, flat = turned_rows(x)
    return softmax(flat), p


CASES = {
    "turned rows": (turned_rows, [sample(64, 5, 7)], 1),
    "turned rows read inside": (turned_rows_read_inside, [sample(64, 5, 7)], 1),
    "softmax": (softmax, [sample(64, 33)], 1),
    "softmax of a cube": (lambda x: softmax(x.reshape(40, 36)).reshape(40, 6, 6), [sample(40, 6, 6)], 1),
    "layer norm": (layer_norm, [sample(50, 70), sample(70)], 1),
    "both ways": (both_ways, [sample(32, 20)], 1),
    "leaving views": (leaving_views, [sample(32, 40)], 1),
    "positions": (weighted_by_positions, [sample(32, 5, 40)], 1),
    "large": (softmax, [sample(600, 500, dtype="f4")], 1),
    "few rows": (softmax, [sample(4, 50)], 0),
    "long rows": (softmax, [sample(20, 20_000)], 0),
}


def rows_in(func: Func) -> int:
    return sum(isinstance(s.op, Rows) for s in func.stmts)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])
def test_rows_mean_the_same(name: str, gradient: bool) -> None:
    fn, arrays, expected = CASES[name]

    def total(*xs: Any) -> Any:
        made = fn(*xs)
        return ops.tanh(made[0] if isinstance(made, tuple) else made).sum()

    func = build(total if gradient else fn, *arrays, gradient=gradient)
    optimized = OPTIMIZE(func)
    verify(optimized)
    assert print_func(parse_func(print_func(optimized))) == print_func(optimized)
    if expected:
        assert rows_in(optimized) >= expected
    else:
        assert rows_in(optimized) == 0
    want = run(func, *arrays)
    tolerance = 1e-5 if arrays[0].dtype == np.float32 else 1e-11
    for result in (run(optimized, *arrays), compile_func(optimized)(arrays), compile_func(optimized)(arrays)):
        for a, b in zip(result, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_softmax_touches_the_matrix_twice() -> None:
    optimized = OPTIMIZE(build(softmax, sample(64, 1000)))
    assert len([s for s in optimized.stmts if s.blocks]) == 1
    assert compile_func(optimized).arena_bytes == 0


def test_the_text_of_rows() -> None:
    rewrites(
        fuse_rows,
        """
        func @f(%x: f64[64,32]) -> f64[64,32] {
          %0: f64[64] = fuse {
            %1: f64[64] = max %x {axes=[1]}
            yield %1
          }
          %2: f64[64,1] = reshape %0
          %3: f64[64,32] = broadcast %2
          %4: f64[64,32] = fuse {
            %5: f64[64,32] = sub %x, %3
            yield %5
          }
          return %4
        }
        """,
        """
        func @f(%x: f64[64,32]) -> f64[64,32] {
          %0: f64[64,32] = rows {
            %1: f64[64] = fuse {
              %2: f64[64] = max %x {axes=[1]}
              yield %2
            }
            %3: f64[64,1] = reshape %1
            %4: f64[64,32] = broadcast %3
            %5: f64[64,32] = fuse {
              %6: f64[64,32] = sub %x, %4
              yield %6
            }
            yield %5
          }
          return %0
        }
        """,
    )


@pytest.mark.parametrize(("shape", "sizes"), [("B,100", "B=9"), ("40,T", "T=7"), ("B,T", "B=3, T=2")])
def test_rows_of_run_time_sizes_do_not_depend_on_the_traced_call(shape: str, sizes: str) -> None:
    """Which may have been smaller than those that follow."""
    rows = shape.split(",")[0]
    text = f"""
    func @f[{sizes}](%x: f32[{shape}]) -> f32[{shape}] {{
      %m: f32[{rows}] = max %x {{axes=[1]}}
      %c: f32[{rows},1] = reshape %m {{shape=[{rows}, 1]}}
      %b: f32[{shape}] = broadcast %c {{shape=[{shape.replace(",", ", ")}]}}
      %d: f32[{shape}] = sub %x, %b
      %e: f32[{shape}] = exp %d
      return %e
    }}
    """
    assert "rows" in [s.op.name for s in OPTIMIZE(parse_func(text)).stmts]
