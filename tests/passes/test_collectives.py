"""Collectives are neither removed, repeated, merged, moved out of loops nor reordered."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import distributed as d

X = np.arange(4.0)


def collectives(fn: Callable[..., Any], *args: Any) -> list[str]:
    """The collectives of the optimised function, in order."""
    known = {"all_reduce", "broadcast_from", "all_gather", "reduce_scatter", "all_to_all", "reduce_to"}
    text = str(aj.function(fn).inspect(*args).optimized)
    return [word for line in text.splitlines() for word in line.split() if word in known]


def test_an_unused_one_is_kept() -> None:
    def f(x: Any) -> Any:
        d.all_gather(x)
        return x + 1.0

    assert collectives(f, X) == ["all_gather"]


def test_one_of_a_constant_is_not_folded() -> None:
    assert collectives(lambda x: x + d.all_reduce(np.ones(4)), X) == ["all_reduce"]


def test_equal_ones_are_not_merged() -> None:
    assert collectives(lambda x: d.all_reduce(x) + d.all_reduce(x), X) == ["all_reduce"] * 2


def test_the_order_is_that_of_the_program() -> None:
    def f(x: Any) -> Any:
        a, b, c = d.all_reduce(x), d.broadcast(x), d.all_gather(x)
        return c, b, a

    assert collectives(f, X) == ["all_reduce", "broadcast_from", "all_gather"]


def test_one_in_a_loop_stays_there() -> None:
    def f(x: Any) -> Any:
        total = aj.zeros(4)
        for _ in aj.range(3):
            total = total + d.all_reduce(x)
        return total

    text = str(aj.function(f).inspect(X).optimized)
    assert "for " in text.partition("all_reduce")[0]
    np.testing.assert_array_equal(aj.function(f)(X), 3 * X)


@pytest.mark.one_size("looks for a type in the text of a program")
def test_a_loop_that_sums_and_scales_its_carry_works_in_one_buffer() -> None:
    def f(x: Any, n: Any) -> Any:
        for _ in aj.range(n):
            x = aj.tanh(d.all_reduce(x)) * 0.5
        return x

    x = np.linspace(-1.0, 1.0, 5000)
    text = str(aj.function(f).inspect(x, 3).optimized)
    assert re.search(r"%0: f64\[5000\] @result\+0 = all_reduce", text), text
    assert int(re.search(r"arena (\d+)", text)[1]) < x.nbytes  # type: ignore[index]
    np.testing.assert_allclose(aj.function(f)(x, 3), f(x, 3), rtol=1e-14)


def test_but_not_if_the_carry_or_the_sum_is_needed_later() -> None:
    def carry_later(x: Any, n: Any) -> Any:
        for _ in aj.range(n):
            x = d.all_reduce(x * 1.5) * 0.5 + x
        return x

    def reversed_later(x: Any, n: Any) -> Any:
        for _ in aj.range(n):
            x = d.all_reduce(x)[::-1] * 0.5
        return x

    def sum_later(x: Any, n: Any) -> Any:
        total = aj.zeros(5000)
        for _ in aj.range(n):
            y = d.all_reduce(x)
            x = y * 0.5
            total = total + aj.cumsum(y)
        return x, total

    x = np.linspace(-1.0, 1.0, 5000)
    for f in (carry_later, reversed_later, sum_later):
        for got, wanted in zip(aj.tree_leaves(aj.function(f)(x, 3)), aj.tree_leaves(f(x, 3)), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)


def test_reverse_mode_through_a_loop_stores_the_results() -> None:
    def f(x: Any) -> Any:
        for _ in aj.range(3):
            x = d.all_reduce(x) * x
        return aj.sum(x)

    np.testing.assert_allclose(aj.function(aj.grad(f))(X), 8 * X**7)
    text = str(aj.function(aj.grad(f)).inspect(X).traced)
    assert text.count("all_reduce") == 2  # one forward, one backward


@pytest.mark.parametrize("compile", [aj.function, lambda fn: fn], ids=["compiled", "eager"])
def test_checkpoint_raises_if_it_cannot_repeat_a_call(compile: Callable[..., Any]) -> None:
    with pytest.raises(aj.UnsupportedError, match="all_reduce: a derivative would have to repeat it"):
        compile(aj.grad(lambda x: aj.sum(aj.checkpoint(lambda y: d.all_reduce(y * y) ** 2)(x))))(X)


def test_a_tape_around_a_compiled_function_explains_it_too() -> None:
    f = aj.function(lambda x: aj.sum(d.all_reduce(x) ** 2))
    x = aj.tensor(X)
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    with pytest.raises(aj.UnsupportedError, match="inside the compiled function"):
        tape.gradient(y, x)


def test_vmap() -> None:
    x = np.arange(12.0).reshape(3, 1, 4)
    for fn, wanted in ((d.all_reduce, x), (d.all_gather, x[:, None]), (d.reduce_scatter, x[:, 0]), (d.all_to_all, x)):
        np.testing.assert_array_equal(aj.function(aj.vmap(fn))(x), wanted)


def test_vmap_of_a_branch_that_examples_do_not_share() -> None:
    with pytest.raises(aj.UnsupportedError, match="some examples of a vmap"):
        aj.function(aj.vmap(lambda x: aj.cond(aj.sum(x) > 1.0, lambda: d.all_reduce(x), lambda: x)))(np.eye(2))


def test_export_refuses() -> None:
    with pytest.raises(aj.UnsupportedError, match="export: all_reduce needs an MPI program"):
        aj.function(lambda x: d.all_reduce(x)).export("unused.o", X)


def test_types() -> None:
    with pytest.raises(aj.DTypeError, match="all_reduce: does not take bool"):
        d.all_reduce(np.ones(2, bool))
    with pytest.raises(aj.ShapeError, match="reduce_scatter: the first axis"):
        d.reduce_scatter(np.ones((7, 2)))
    with pytest.raises(aj.ShapeError, match="there is no rank 5"):
        d.broadcast(X, 5)
