"""Constant folding."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjit.ir.operand import Literal
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.passes.simplify.fold import MAX_OPERAND, MAX_RESULT, fold, uniform
from tests.passes.checks import QUICK, keeps_meaning, leaves, rewrites


def test_literals_of_any_size_fold() -> None:
    rewrites(
        fold,
        """
        func @f(%x: f64[1000000]) -> f64[1000000] {
          %a: f64[1000000] = broadcast 2.0:f64[]
          %b: f64[1000000] = add %a, 1.0
          %c: f64[1000000] = mul %x, %b
          return %c
        }
        """,
        """
        func @f(%x: f64[1000000]) -> f64[1000000] {
          %c: f64[1000000] = mul %x, 3.0
          return %c
        }
        """,
    )


def test_small_constants_fold_and_uniform_ones_become_literals() -> None:
    rewrites(
        fold,
        """
        func @f(%x: f64[3]) -> (f64[3], f64[]) {
          %a: f64[3] = constant {data=[1.0, 2.0, 3.0]}
          %b: f64[3] = mul %a, 2.0
          %c: f64[] = sum %a {axes=[0]}
          %d: f64[3] = add %x, %b
          return %d, %c
        }
        """,
        """
        func @f(%x: f64[3]) -> (f64[3], f64[]) {
          %a: f64[3] = constant {data=[1.0, 2.0, 3.0]}
          %b: f64[3] = constant {data=[2.0, 4.0, 6.0]}
          %d: f64[3] = add %x, %b
          return %d, 6.0
        }
        """,
    )


def test_no_large_array_is_created() -> None:
    leaves(
        fold,
        """
        func @f() -> f64[100,3] {
          %a: f64[3] = constant {data=[1.0, 2.0, 3.0]}
          %b: f64[100,3] = broadcast %a
          return %b
        }
        """,
    )


def test_a_known_branch_takes_the_place_of_its_if() -> None:
    rewrites(
        fold,
        """
        func @f(%x: f64[]) -> f64[] {
          %p: bool[] = less 1.0:f64[], 2.0:f64[]
          %y: f64[] = if %p {
            %a: f64[] = exp %x
            yield %a
          } else {
            yield %x
          }
          %z: f64[] = neg %y
          return %z
        }
        """,
        """
        func @f(%x: f64[]) -> f64[] {
          %a: f64[] = exp %x
          %z: f64[] = neg %a
          return %z
        }
        """,
    )


def test_failing_statements_are_not_folded() -> None:
    leaves(
        fold,
        """
        func @f() -> f64[2] {
          %x: f64[3] = constant {data=[1.0, 2.0, 3.0]}
          %i: i64[2] = constant {data=[0, 7]}
          %a: f64[2] = gather %x, %i
          return %a
        }
        """,
    )


@QUICK
@given(st.randoms(use_true_random=False))
def test_meaning_is_kept(random: Random) -> None:
    keeps_meaning(fold, random)


@pytest.mark.parametrize(("size", "folds"), [(MAX_RESULT, True), (MAX_RESULT + 1, False)])
def test_constants_up_to_the_size_that_is_printed(size: int, folds: bool) -> None:
    numbers = ", ".join(f"{k}.0" for k in range(size))
    func = parse_func(
        f"func @f() -> f64[{size}] {{\n  %a: f64[{size}] = constant {{data=[{numbers}]}}\n  %b: f64[{size}] = neg %a\n  return %b\n}}\n"
    )
    assert ("neg" not in print_func(fold(func))) == folds


@pytest.mark.parametrize(("size", "folds"), [(MAX_OPERAND // 2, True), (MAX_OPERAND // 2 + 1, False)])
def test_operands_up_to_a_size_that_is_computed_quickly(size: int, folds: bool) -> None:
    """All operands of a statement together."""
    numbers = ", ".join(f"{k}.0" for k in range(size))
    lines = [f"%{name}: f64[{size}] = constant {{data=[{numbers}]}}" for name in "ab"]
    body = "".join(f"  {line}\n" for line in [*lines, "%c: f64[] = matmul %a, %b"])
    assert ("matmul" not in print_func(fold(parse_func(f"func @f() -> f64[] {{\n{body}  return %c\n}}\n")))) == folds


@pytest.mark.parametrize("dtype", ["bool", "i8", "u16", "f16", "f32", "f64", "c64", "c128"])
def test_constants_of_every_dtype_fold_to_numbers_or_arrays(dtype: str) -> None:
    (value,) = parse_func(f"func @f(%x: {dtype}[3]) -> {dtype}[3] {{\n  return %x\n}}\n").params
    ones, several = np.ones(3, value.type.dtype), np.array([1, 0, 1], value.type.dtype)
    number = uniform(ones)
    assert isinstance(number, Literal)
    assert (number.type, number.value) == (value.type, 1)
    assert uniform(several) is several
    assert isinstance(uniform(ones[0]), Literal)
    assert isinstance(uniform(several[::2]), Literal)
    assert not isinstance(uniform(ones[:0]), Literal)


def test_zeros_of_both_signs_are_not_one_number() -> None:
    assert not isinstance(uniform(np.array([0.0, -0.0])), Literal)
