"""Sorts of which only a small part is used become selections, with the same elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import adjit as aj
from adjit.ir import ops
from adjit.passes.simplify.selections import select_parts
from adjit.tracer.convert import to_operand
from tests.passes.checks import leaves, rewrites

RNG = np.random.default_rng(0)
N = 3000
ROWS: dict[str, np.ndarray[Any, Any]] = {
    "normal": RNG.normal(size=N),
    "rising": np.arange(float(N)),
    "falling": -np.arange(N, dtype="f4"),
    "equal": np.zeros(N),
    "few values": RNG.integers(0, 3, N).astype("i4"),
    "not numbers": np.where(RNG.random(N) < 0.4, np.nan, RNG.integers(-2, 2, N)).astype("f4"),
    "signed zeros and infinities": np.where(RNG.random(N) < 0.01, np.inf, np.copysign(0.0, RNG.normal(size=N))),
    "bytes": RNG.integers(0, 256, N).astype("u1"),
    "bools": RNG.random(N) < 0.01,
    "long": RNG.integers(-(2**62), 2**62, N),
}
PARTS: dict[str, Callable[[Any], Any]] = {
    "the largest": lambda x: np.sort(x)[-40:],
    "the smallest": lambda x: np.sort(x)[:7],
    "one": lambda x: np.sort(x)[-1:],
    "positions of the largest": lambda x: np.argsort(x, kind="stable")[-40:],
    "positions of the smallest": lambda x: np.argsort(x, kind="stable")[:40],
    "both": lambda x: (np.sort(x)[-9:], np.argsort(x, kind="stable")[-9:]),
}
WHOLES: dict[str, Callable[[Any], Any]] = {
    "all": np.sort,
    "the middle": lambda x: np.sort(x)[1000:1010],
    "two parts": lambda x: (np.sort(x)[:5], np.sort(x)[-5:]),
    "more": lambda x: (np.sort(x)[-5:], np.sort(x)[1]),
    "every other": lambda x: np.sort(x)[:10:2],
    "most": lambda x: np.sort(x)[:2000],
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("part", PARTS)
def test_parts(part: str, name: str) -> None:
    f, x = PARTS[part], ROWS[name]
    for ours, wanted in zip(np.atleast_1d(aj.function(f)(x)), np.atleast_1d(f(x)), strict=True):
        assert_array_equal(ours, wanted)


@pytest.mark.parametrize("name", [*PARTS, *WHOLES])
def test_only_parts_are_selected(name: str) -> None:
    text = str(aj.function({**PARTS, **WHOLES}[name]).inspect(ROWS["normal"]).optimized)
    assert (" = select " in text, " = argsort " in text) == (name in PARTS, name in WHOLES)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("last", [False, True])
def test_axes(axis: int, last: bool) -> None:
    shape = [2, 3, 2]
    shape[axis] = 1100
    x = RNG.integers(0, 50, shape).astype("f4")
    part = tuple(slice(None) if a != axis else slice(-6, None) if last else slice(6) for a in range(3))
    f = aj.function(lambda x: (np.sort(x, axis)[part], np.argsort(x, axis, kind="stable")[part]))
    assert " = argsort " not in str(f.inspect(x).optimized)
    assert_array_equal(f(x)[0], np.sort(x, axis)[part])
    assert_array_equal(f(x)[1], np.argsort(x, axis, kind="stable")[part])


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("last", [False, True])
def test_descending(name: str, last: bool) -> None:
    x = ROWS[name]
    select = lambda x: ops.select(to_operand(x), 33, last=last, descending=True)  # noqa: E731
    whole = aj.argsort(x, descending=True).numpy()
    assert_array_equal(aj.function(select)(x), whole[-33:] if last else whole[:33])


def test_top_k_and_its_gradient() -> None:
    x = RNG.normal(size=(2, 2000)).astype("f4")
    values, indices = aj.function(lambda x: aj.top_k(x, 10))(x)
    assert_array_equal(values, -np.sort(-x)[:, :10])
    assert_array_equal(indices, np.argsort(-x, kind="stable")[:, :10])
    gradient = aj.function(aj.grad(lambda x: np.sum(aj.top_k(x, 10).values * np.arange(10.0))))(x).numpy()
    assert_array_equal(np.take_along_axis(gradient, np.asarray(indices), 1), np.broadcast_to(np.arange(10.0), (2, 10)))
    assert np.count_nonzero(gradient) == 18


def test_the_same_for_any_number_of_threads() -> None:
    x = RNG.normal(size=400_000)
    one, three = (aj.function(lambda x: np.argsort(x)[-50:], threads=n)(x) for n in (1, 3))
    assert_array_equal(one, three)


def test_the_text_of_a_selection() -> None:
    rewrites(
        select_parts,
        """
        func @f(%x: f64[50]) -> f64[2] {
          %0: i64[50] = argsort %x {axis=0}
          %1: f64[50] = gather %x, %0
          %2: f64[2] = slice %1 {starts=[48], stops=[50], steps=[1]}
          return %2
        }
        """,
        """
        func @f(%x: f64[50]) -> f64[2] {
          %0: i64[2] = select %x {axis=0, count=2, last=true}
          %1: f64[2] = gather %x, %0
          return %1
        }
        """,
    )


def test_rows_are_selected_with_what_is_gathered_from_them() -> None:
    rewrites(
        select_parts,
        """
        func @f(%x: f64[4,100], %y: f64[4,100]) -> f64[4,5] {
          %o: i64[4,100] = argsort %x {axis=1}
          %i: i64[4,100] = iota {axis=0}
          %g: f64[4,100] = gather %y, %i, %o
          %s: f64[4,5] = slice %g {starts=[0, 0], stops=[4, 5], steps=[1, 1]}
          return %s
        }
        """,
        """
        func @f(%x: f64[4,100], %y: f64[4,100]) -> f64[4,5] {
          %o: i64[4,5] = select %x {axis=1, count=5}
          %i: i64[4,100] = iota {axis=0}
          %0: i64[4,5] = iota {axis=0}
          %g: f64[4,5] = gather %y, %0, %o
          return %g
        }
        """,
    )


def test_columns_are_selected_with_what_is_gathered_from_them() -> None:
    rewrites(
        select_parts,
        """
        func @f(%x: f64[100,4], %y: f64[100,4]) -> f64[5,4] {
          %o: i64[100,4] = argsort %x {axis=0}
          %i: i64[100,4] = iota {axis=1}
          %g: f64[100,4] = gather %y, %o, %i
          %s: f64[5,4] = slice %g {starts=[95, 0], stops=[100, 4], steps=[1, 1]}
          return %s
        }
        """,
        """
        func @f(%x: f64[100,4], %y: f64[100,4]) -> f64[5,4] {
          %o: i64[5,4] = select %x {axis=0, count=5, last=true}
          %i: i64[100,4] = iota {axis=1}
          %0: i64[5,4] = iota {axis=1}
          %g: f64[5,4] = gather %y, %o, %0
          return %g
        }
        """,
    )


def test_elements_of_other_rows_are_gathered_by_the_whole_order() -> None:
    leaves(
        select_parts,
        """
        func @f(%x: f64[4,100], %y: f64[4,100], %i: i64[4,100]) -> (f64[4,5], f64[4,5]) {
          %o: i64[4,100] = argsort %x {axis=1}
          %g: f64[4,100] = gather %y, %i, %o
          %s: f64[4,5] = slice %g {starts=[0, 0], stops=[4, 5], steps=[1, 1]}
          %p: i64[4,100] = argsort %y {axis=1}
          %c: i64[4,100] = iota {axis=1}
          %h: f64[4,100] = gather %x, %c, %p
          %t: f64[4,5] = slice %h {starts=[0, 0], stops=[4, 5], steps=[1, 1]}
          return %s, %t
        }
        """,
    )


def test_selections_inside_branches() -> None:
    rewrites(
        select_parts,
        """
        func @f(%x: f64[100], %p: bool[]) -> i64[5] {
          %r: i64[5] = if %p {
            %o: i64[100] = argsort %x {axis=0}
            %s: i64[5] = slice %o {starts=[0], stops=[5], steps=[1]}
            yield %s
          } else {
            %c: i64[5] = fill {value=0}
            yield %c
          }
          return %r
        }
        """,
        """
        func @f(%x: f64[100], %p: bool[]) -> i64[5] {
          %r: i64[5] = if %p {
            %o: i64[5] = select %x {axis=0, count=5}
            yield %o
          } else {
            %c: i64[5] = fill {value=0}
            yield %c
          }
          return %r
        }
        """,
    )
