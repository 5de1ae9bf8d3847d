"""Ranges of integers: which indices need no check."""

from __future__ import annotations

import numpy as np
import pytest

import adjit as aj
from adjit.ir.parser import parse_func
from adjit.passes.simplify.bounds import Bounds, Interval


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        ("remainder %x, 7", Interval(0, 6)),
        ("remainder %x, -7", None),
        ("remainder %x, 0", None),
        ("remainder %x, %x", None),
        ("bitwise_and %x, 63", Interval(0, 63)),
        ("bitwise_and 63, %x", Interval(0, 63)),
        ("bitwise_and %x, -64", None),
    ],
)
def test_range_of_an_unknown_operand(made: str, wanted: Interval | None) -> None:
    func = parse_func(f"func @f(%x: i64[3]) -> i64[3] {{\n  %a: i64[3] = {made}\n  return %a\n}}\n")
    assert Bounds(func).of(func.results[0]) == wanted


@pytest.mark.parametrize("n", [7, 8])
def test_periodic_indices_are_not_checked(n: int) -> None:
    f, x, i = aj.function(lambda x, i: x[i % n]), np.arange(float(n)), np.array([-9, 0, 5, 64])
    assert "checked=true" in f.inspect(x, i).optimized
    np.testing.assert_array_equal(f(x, i), x[i % n])


@pytest.mark.parametrize("n", [7, 9])
def test_indices_that_may_be_out_of_bounds_are_checked(n: int) -> None:
    f, x = aj.function(lambda x, i: x[i % n]), np.arange(6.0)
    assert "checked=true" not in f.inspect(x, np.array([0])).optimized
    with pytest.raises(IndexError):
        f(x, np.array([6]))
