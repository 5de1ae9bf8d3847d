"""Factors that a loop multiplies by are packed once."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.codegen.native import Native
from adjit.codegen.products import choice
from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.passes.pipeline import OPTIMIZE


@pytest.fixture(autouse=True)
def _far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "NEAR_ROWS", -1)  # factors of this size would be read in place


def check(text: str, *arrays: Any, rtol: float = 1e-9) -> Native:
    func = parse_func(dedent(text))
    native = compile_func(OPTIMIZE(func))
    for got, want in zip(native([np.asarray(a) for a in arrays]), run(func, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)
    return native


def packs(native: Native) -> int:
    return native.llvm.count("call void @adjit_pack_")


def numbers(dtype: str, *shape: int) -> Any:
    return (np.random.default_rng(sum(shape)).standard_normal(shape) / shape[-1] ** 0.5).astype(dtype)


@pytest.mark.parametrize("size", [130, 300])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_factor_from_outside_is_packed_before_the_loop(size: int, dtype: str, turned: bool) -> None:
    w = f"%w: {dtype}[{size},{size}]" if not turned else f"%v: {dtype}[{size},{size}]"
    first = f"%w: {dtype}[{size},{size}] = transpose %v {{axes=[1, 0]}}" if turned else ""
    native = check(
        f"""
        func @f(%x: {dtype}[7,{size}], {w}) -> {dtype}[7,{size}] {{
          {first}
          %r: {dtype}[7,{size}] = for %k in 0..3 carry (%c: {dtype}[7,{size}] = %x) {{
            %p: {dtype}[7,{size}] = matmul %c, %w
            %n: {dtype}[7,{size}] = tanh %p
            yield %n
          }}
          return %r
        }}
        """,
        numbers(dtype.replace("f32", "f4").replace("f64", "f8"), 7, size),
        numbers(dtype.replace("f32", "f4").replace("f64", "f8"), size, size),
        rtol=1e-9 if dtype == "f64" else 1e-4,
    )
    assert packs(native) == 1


def test_the_outermost_loop_packs_what_it_does_not_change() -> None:
    native = check(
        """
        func @f(%x: f64[100,100], %w: f64[100,100], %trips: i64[]) -> f64[100,100] {
          %r: f64[100,100] = for %k in 0..2 carry (%c: f64[100,100] = %x) {
            %i: f64[100,100] = for %j in 0..%trips carry (%d: f64[100,100] = %c) {
              %p: f64[100,100] = matmul %d, %w
              %q: f64[100,100] = matmul %p, %c
              %n: f64[100,100] = tanh %q
              yield %n
            }
            %s: f64[100,100] = matmul %i, %w
            yield %s
          }
          return %r
        }
        """,
        numbers("f8", 100, 100),
        numbers("f8", 100, 100) * 0.9,
        np.int64(3),
    )
    assert packs(native) == 2  # w before both loops, c before the inner one


def test_other_factors_are_not() -> None:
    native = check(
        """
        func @f(%x: f64[100,100], %w: f64[100,100]) -> f64[100,100] {
          %r: f64[100,100] = for %k in 0..2 carry (%c: f64[100,100] = %x) {
            %p: f64[100,100] = matmul %w, %c
            %n: f64[100,100] = tanh %p
            yield %n
          }
          %s: f64[100,100] = matmul %r, %w
          return %s
        }
        """,
        numbers("f8", 100, 100),
        numbers("f8", 100, 100) * 0.9,
    )
    assert packs(native) == 0


def test_what_is_added_to_a_total_is_multiplied_by_a_packed_factor_too() -> None:
    native = check(
        """
        func @f(%x: f64[9,100], %w: f64[100,140]) -> (f64[9,140], f64[9,100]) {
          %t: f64[9,140], %r: f64[9,100], %i: i64[] = while carry (%total: f64[9,140] = 0.0, %c: f64[9,100] = %x, %k: i64[] = 0) {
            %more: bool[] = less %k, 4
            cond %more
          } do {
            %p: f64[9,140] = matmul %c, %w
            %n: f64[9,140] = add %total, %p
            %d: f64[9,100] = tanh %c
            %j: i64[] = add %k, 1
            yield %n, %d, %j
          }
          return %t, %r
        }
        """,
        numbers("f8", 9, 100),
        numbers("f8", 100, 140),
    )
    assert packs(native) == 1
