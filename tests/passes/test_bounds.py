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


@pytest.mark.parametrize(
    ("start", "stop", "wanted"),
    [
        ("2", "9", Interval(2, 8)),
        ("%a", "%b", Interval(0, 5)),
        ("%a", "9", Interval(0, 8)),
        ("1", "%b", Interval(1, 5)),
        ("%n", "%b", None),
        ("%a", "%n", None),
    ],
)
def test_range_of_a_counter(start: str, stop: str, wanted: Interval | None) -> None:
    """%a is 0 to 2 and %b is 0 to 6; the counter ends before the largest %b."""
    func = parse_func(
        "func @f(%n: i64[]) -> i64[] {\n  %a: i64[] = remainder %n, 3\n  %b: i64[] = remainder %n, 7\n"
        f"  %r: i64[] = for %k in {start}..{stop} carry (%c: i64[] = 0) {{\n    %d: i64[] = add %c, %k\n    yield %d\n  }}\n"
        "  return %r\n}\n"
    )
    assert Bounds(func).of(func.stmts[-1].blocks[0].params[0]) == wanted
