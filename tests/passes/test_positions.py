"""Positions as reductions: ties, NaN, all dtypes and axes, and the resulting IR."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.passes.fusion.positions import reduce_positions
from tests.passes.checks import rewrites

RNG = np.random.default_rng(0)
NAN = float("nan")
ARRAYS: dict[str, Any] = {
    "ties": np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [0.0, -0.0, 0.0]]),
    "nan": np.array([[1.0, NAN, 3.0], [NAN, NAN, 0.0], [np.inf, 1.0, NAN]]),
    "infinities": np.array([[-np.inf, -np.inf], [np.inf, np.inf]], "f4"),
    "integers": RNG.integers(-5, 5, (7, 9)),
    "small integers": RNG.integers(0, 255, (4, 300)).astype("u1"),
    "bools": RNG.random((5, 6)) > 0.7,
    "three axes": RNG.standard_normal((3, 4, 5)),
    "rows": RNG.standard_normal((40, 1000)).astype("f4"),
    "one": np.array([[7.0]]),
}


@pytest.mark.parametrize("find", [np.argmax, np.argmin])
@pytest.mark.parametrize("x", ARRAYS.values(), ids=ARRAYS)
def test_positions_are_numpys(x: Any, find: Any) -> None:
    for axis in (None, *range(-x.ndim, x.ndim)):
        got = aj.function(lambda x, axis=axis: find(x, axis=axis))(x).numpy()
        want = find(x, axis=axis)
        assert got.dtype == np.int64
        np.testing.assert_array_equal(got, want)


def test_one_region_reads_the_rows_once() -> None:
    def chosen(x):
        return np.argmax(x * 2.0, axis=1)

    text = aj.function(chosen).inspect(ARRAYS["rows"]).optimized
    assert "argmax" not in text
    assert "rows" in text


def test_inside_of_branches_and_loops() -> None:
    @aj.function
    def walk(x):
        at = np.argmax(x)
        for _ in range(3):
            x = x - np.where(np.arange(6) == np.argmax(x), 10.0, 0.0)
        if x[0] > 0.0:
            at = at + np.argmin(x)
        return at, x

    x = np.array([5.0, 9.0, 1.0, 7.0, 2.0, 3.0])
    at, rest = walk(x)
    want = x.copy()
    for _ in range(3):
        want[np.argmax(want)] -= 10.0
    np.testing.assert_array_equal(rest.numpy(), want)
    assert int(at) == 1 + (np.argmin(want) if want[0] > 0 else 0)


def test_batches() -> None:
    x = RNG.standard_normal((6, 4, 3))
    np.testing.assert_array_equal(aj.function(aj.vmap(lambda x: np.argmax(x, 0)))(x).numpy(), np.argmax(x, 1))


def test_the_text_of_a_position() -> None:
    rewrites(
        reduce_positions,
        """
        func @f(%x: f64[4,5]) -> i64[4] {
          %0: i64[4] = arg_max %x {axis=1}
          return %0
        }
        """,
        """
        func @f(%x: f64[4,5]) -> i64[4] {
          %0: f64[4] = max %x {axes=[1]}
          %1: f64[4,1] = reshape %0
          %2: f64[4,5] = broadcast %1
          %3: bool[4,5] = equal %x, %2
          %4: bool[4,5] = not_equal %x, %x
          %5: bool[4,5] = bitwise_or %3, %4
          %6: i32[4,5] = iota {axis=1}
          %7: i32[4,5] = where %5, %6, 5
          %8: i32[4] = min %7 {axes=[1]}
          %9: i64[4] = cast %8
          return %9
        }
        """,
    )
