"""The table of programs and random ones, compiled: values, gradients and second derivatives against eager runs and finite differences.

`ADJIT_PROGRAMS=1000` runs a fifth as many random programs, for each is compiled with its gradient at several points.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.tracer.pytree import flatten
from tests.autograph.programs import PROGRAMS, Program
from tests.autograph.test_random import INPUTS, ListWriter, Writer
from tests.autograph.test_random import compiled as executed

COUNT = int(os.environ.get("ADJIT_PROGRAMS", "150")) // 5  # of random programs
SMOOTH = [p for p in PROGRAMS if p.differentiable]

# these put numbers into NumPy arrays: run eagerly, that is where a tape loses them
IN_PLACE = {
    "arrays_of_lists", "item_written_in_branch", "list_of_pairs_of_rolled", "rows_written", "items_written_in_dynamic_order",
    "prefix_sums", "bubble_sort", "masked_writes", "masked_rows", "writes_to_copies", "view_that_is_not_read_again",
    "arrays_of_traced_values", "lists_as_arrays", "divided_where_possible",
    "joined_with_brackets",
}  # fmt: skip


def is_float(x: Any) -> bool:
    return isinstance(x, float) or getattr(getattr(x, "dtype", None), "kind", "") == "f"


def float_positions(args: Sequence[Any]) -> tuple[int, ...]:
    return tuple(i for i, x in enumerate(args) if is_float(x))


def scalar_of(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function to differentiate: a weighted sum of the floats in the result of `fn`."""

    def loss(*args):
        leaves = [x for x in flatten(fn(*args))[0] if is_float(x)]
        total = 0.0
        for k, x in enumerate(leaves):
            total = total + (0.75 + k) * np.sum(np.asarray(x) if isinstance(x, float) else x)
        return total

    return loss


def gradient_of(fn: Callable[..., Any], at: tuple[int, ...]) -> Callable[..., Any]:
    return aj.grad(scalar_of(fn), at)


def slope_of(fn: Callable[..., Any], at: tuple[int, ...]) -> Callable[..., Any]:
    """A scalar that depends on every element of the gradient."""
    gradient = gradient_of(fn, at)

    def slope(*args):
        total = 0.0
        for k, d in enumerate(gradient(*args)):
            total = total + (0.5 + k) * np.sum(d)
        return total

    return slope


def differences(fn: Callable[..., Any], args: Sequence[Any], at: Sequence[int], step: float) -> list[Any]:
    """Central differences of a scalar function, by every element of the arguments at `at`."""
    out = []
    for i in at:
        x = np.asarray(args[i])
        slope = np.zeros(x.shape)
        h = step if x.dtype == np.float64 else 1e-2
        for place in np.ndindex(x.shape):
            ends = []
            for sign in (1, -1):
                moved = x.copy()
                moved[place] += sign * h
                ends.append(float(fn(*args[:i], moved if x.shape else float(moved), *args[i + 1 :])))
            slope[place] = (ends[0] - ends[1]) / (2 * h)
        out.append(slope)
    return out


def assert_close(got: Sequence[Any], want: Sequence[Any], tolerance: float) -> None:
    assert len(got) == len(want)
    for x, y in zip(got, want, strict=True):
        y = np.asarray(y)
        if isinstance(x, bool | str | type(None)):
            assert x == y
            continue
        scale = tolerance * max(1.0, float(np.abs(np.asarray(y, float)).max(initial=0.0)))
        np.testing.assert_allclose(np.asarray(x), y, rtol=tolerance, atol=scale)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_values(program: Program) -> None:
    compiled = aj.function(program.fn)
    for args in program.calls:
        (got, tree), (want, expected) = flatten(compiled(*args)), flatten(program.fn(*args))
        assert tree == expected
        assert_close(got, want, 1e-12)


@pytest.mark.parametrize("program", SMOOTH, ids=lambda p: p.name)
def test_gradient(program: Program) -> None:
    whole = aj.function(program.fn)
    for args in program.calls:
        at = float_positions(args)
        gradient = gradient_of(program.fn, at)
        compiled = aj.function(gradient)(*args)
        single = any(np.asarray(args[i]).dtype == np.float32 for i in at)
        assert_close(compiled, differences(scalar_of(program.fn), args, at, 1e-6), 1e-3 if single else 1e-6)
        assert_close(gradient_of(whole, at)(*args), compiled, 1e-6 if single else 1e-10)
        if program.name not in IN_PLACE:
            assert_close(gradient(*args), compiled, 1e-6 if single else 1e-10)


@pytest.mark.parametrize("program", SMOOTH, ids=lambda p: p.name)
def test_second_order(program: Program) -> None:
    for args in program.calls:
        at = float_positions(args)
        slope = slope_of(program.fn, at)
        second = aj.grad(slope, at)
        compiled = aj.function(second)(*args)
        single = any(np.asarray(args[i]).dtype == np.float32 for i in at)
        assert_close(compiled, differences(aj.function(slope), args, at, 1e-5), 1e-3 if single else 1e-5)
        if program.name not in IN_PLACE:
            assert_close(second(*args), compiled, 1e-6 if single else 1e-9)


# ---- random programs


def agreed_differences(fn: Callable[..., Any], args: Sequence[Any], at: Sequence[int]) -> list[Any] | None:
    """Central differences, or None where the function jumps or bends so close by that they mean nothing."""
    fine, coarse = (differences(fn, args, at, step) for step in (1e-6, 4e-6))
    value = float(fn(*args))
    bends = [
        abs(float(fn(*args[:i], args[i] + 1e-6, *args[i + 1 :])) + float(fn(*args[:i], args[i] - 1e-6, *args[i + 1 :])) - 2 * value) > 1e-9
        for i in at
    ]
    return None if any(bends) or not np.allclose(fine, coarse, rtol=1e-6, atol=1e-6) else fine


def check_random(seed: int, writer: type[Writer] = Writer) -> int:
    """Check that a program has the same results however it is run; return the number of gradients compared with finite differences."""
    source = writer(seed).function()
    fn, at, checked = executed(source, seed), (0, 1, 2), 0
    gradient, second = gradient_of(fn, at), aj.grad(slope_of(fn, at), at)
    compiled = [aj.function(f) for f in (fn, gradient, second)]
    for inputs in INPUTS:
        args = (*inputs, seed % 2 == 1)
        try:
            assert_close(compiled[0](*args), fn(*args), 1e-10)
            found = compiled[1](*args)
            assert_close(found, gradient(*args), 1e-10)
            assert_close(compiled[2](*args), second(*args), 1e-9)
            expected = agreed_differences(scalar_of(fn), args, at)
            if expected is not None:
                assert_close(found, expected, 1e-5)
                checked += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}, arguments {args}:\n{source}") from error
    return checked


@pytest.mark.parametrize("first", range(0, COUNT, 10))
def test_random_programs(first: int) -> None:
    checked = [check_random(seed) for seed in range(first, first + 10)]
    assert sum(checked) > 5


@pytest.mark.parametrize("first", range(0, COUNT, 10))
def test_random_programs_with_lists(first: int) -> None:
    checked = [check_random(seed, ListWriter) for seed in range(first, first + 10)]
    assert sum(checked) > 3
