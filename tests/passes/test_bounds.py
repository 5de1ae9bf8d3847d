"""Ranges of integers: which indices need no check."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest

import adjit as aj
from adjit.ir.parser import parse_func
from adjit.passes.simplify.bounds import Bounds, Interval, fits


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
@pytest.mark.one_size("the index is compared with a known size")
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


DTYPES = ("i8", "u8", "i16", "u16", "i32", "u32")


@pytest.mark.parametrize("dtype", DTYPES)
def test_ranges_that_a_dtype_represents(dtype: str) -> None:
    value = parse_func(f"func @f(%x: {dtype}[]) -> {dtype}[] {{\n  return %x\n}}\n").params[0]
    low, high = int(np.iinfo(value.type.dtype).min), int(np.iinfo(value.type.dtype).max)
    assert fits(Interval(low, high), value)
    assert not fits(Interval(low - 1, high), value)
    assert not fits(Interval(low, high + 1), value)


def range_of(made: str, dtype: str = "i64") -> Interval | None:
    """The range of an expression of %a, which is 0 to 6, and %b, which is -2 to 2."""
    lines = [
        f"%a: {dtype}[3] = remainder %x, 7",
        f"%c: {dtype}[3] = remainder %y, 5",
        f"%b: {dtype}[3] = sub %c, 2",
        f"%r: {dtype}[3] = {made}",
    ]
    body = "".join(f"  {line}\n" for line in lines)
    func = parse_func(f"func @f(%x: {dtype}[3], %y: {dtype}[3]) -> {dtype}[3] {{\n{body}  return %r\n}}\n")
    return Bounds(func).of(func.results[0])


@pytest.mark.parametrize(
    ("op", "by"),
    [("add", operator.add), ("sub", operator.sub), ("mul", operator.mul), ("minimum", min), ("maximum", max)],
)
def test_ranges_of_arithmetic_are_exact(op: str, by: Callable[[int, int], int]) -> None:
    results = [by(a, b) for a in range(7) for b in range(-2, 3)]
    assert range_of(f"{op} %a, %b") == Interval(min(results), max(results))
    results = [by(b, a) for a in range(7) for b in range(-2, 3)]
    assert range_of(f"{op} %b, %a") == Interval(min(results), max(results))


@pytest.mark.parametrize(
    ("made", "dtype", "wanted"),
    [
        ("mul %a, 21", "i8", Interval(0, 126)),
        ("mul %a, 22", "i8", None),  # wraps around
        ("mul %a, 42", "u8", Interval(0, 252)),
        ("mul %a, 43", "u8", None),
        ("sub %a, 1", "u8", None),
        ("add %a, 2147483641", "i64", Interval(2147483641, 2147483647)),
        ("add %a, 2147483642", "i64", None),  # as far as sums are followed
        ("sub %a, 2147483647", "i64", Interval(-2147483647, -2147483641)),
        ("sub %a, 2147483648", "i64", None),
        ("add %x, 1", "i64", None),
        ("add 1, %x", "i64", None),
        ("flip %a {axes=[0]}", "i64", Interval(0, 6)),
        ("iota {axis=0}", "i64", Interval(0, 2)),
        ("fill {value=5}", "i64", Interval(5, 5)),
        ("constant {data=[4, -3, 2]}", "i64", Interval(-3, 4)),
        ("remainder %x, %a", "i64", None),  # by 0, perhaps
        ("bitwise_and %b, %a", "i64", Interval(0, 6)),
        ("bitwise_and %b, %b", "i64", None),
    ],
)
def test_ranges_end_where_integers_wrap_around(made: str, dtype: str, wanted: Interval | None) -> None:
    assert range_of(made, dtype) == wanted


@pytest.mark.parametrize(
    ("size", "low", "is_safe"), [(7, 0, True), (6, 0, False), (7, 7, True), (7, 8, False), (2, 2, False), (5, 1, False)]
)
def test_indices_within_bounds_cannot_fail(size: int, low: int, is_safe: bool) -> None:
    """The index is -low to 6 - low."""
    func = parse_func(
        f"func @f(%x: f64[{size}], %n: i64[]) -> f64[] {{\n  %a: i64[] = remainder %n, 7\n  %i: i64[] = sub %a, {low}\n"
        "  %y: f64[] = gather %x, %i\n  return %y\n}\n"
    )
    bounds = Bounds(func)
    assert [bounds.cannot_fail(s) for s in func.stmts] == [False, False, is_safe]
