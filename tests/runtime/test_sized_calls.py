"""Calls of programs for all sizes through the native entry: it stores the sizes of the last call, and the values computed from them."""

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.entry.entry import available
from adjit.codegen.entry.formulas import DEPTH, Formulas
from adjit.codegen.entry.route import Header
from adjit.ir.expr import SmallerOf, Symbolic
from adjit.ir.sizes import Size, Symbols

pytestmark = pytest.mark.skipif(not available(), reason="this Python lays out its objects in another way: calls go through Python")


def rows(*shape: int) -> Any:
    return np.random.default_rng(shape).normal(size=shape)


def went_natively(f: aj.Function) -> bool:
    """Whether the entry itself ran a call since the last call of this function."""
    return bool(f._shortcut.used())


def primed(fn: Callable[..., Any], *shapes: tuple[tuple[int, ...], ...]) -> aj.Function:
    """A function with a program for each of the first sizes, and one for all."""
    f = aj.function(fn, dynamic="auto", reduce_retracing=True)
    for shape in shapes:
        for _ in range(2):
            f(*(rows(*n) for n in shape))
    assert f.trace_count == 2
    went_natively(f)
    return f


SHAPES: dict[str, tuple[Callable[..., Any], list[tuple[int, int]]]] = {
    "the same": (lambda x: x * 2.0, [(7, 3), (4, 9)]),
    "less": (lambda x: x[1:, :-1], [(7, 3), (4, 9)]),
    "product": (lambda x: np.reshape(x, -1) + 1.0, [(7, 3), (4, 9)]),
    "half": (lambda x: x[::2], [(7, 3), (4, 9)]),
    "half of one less": (lambda x: x[1::2, ::3], [(7, 3), (4, 9)]),
    "square": (lambda x: x @ x.T, [(7, 3), (4, 9)]),
    "sum": (lambda x: np.concatenate([np.reshape(x, -1), x[0], x[:, 0]]), [(7, 3), (4, 9)]),
    "several": (lambda x: {"a": x[::2], "b": (np.reshape(x, -1), [x.T, np.sum(x)]), "c": None}, [(7, 3), (4, 9)]),
    "a guard": (lambda x: x * 2.0 if x.shape[0] != x.shape[1] else x * 3.0, [(7, 3), (4, 9)]),
    "an inequality": (lambda x: x * 2.0 if x.shape[0] < x.shape[1] else x * 3.0, [(7, 3), (9, 4)]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_results_of_all_shapes_are_made_natively(name: str) -> None:
    fn, first = SHAPES[name]
    f = primed(fn, *(((b, t),) for b, t in first))
    natively = 0
    for b, t in itertools.product((9, 2, 3, 8, 40), (5, 6, 2, 13)):
        x = rows(b, t)
        want = aj.tree_leaves(fn(x))
        for _ in range(3):
            traces = f.trace_count
            got = aj.tree_leaves(f(x))
            natively += went_natively(f) and f.trace_count == traces
            for a, e in zip(got, want, strict=True):
                assert a.shape == np.shape(e)
                assert a.type.shape == np.shape(e)
                np.testing.assert_allclose(a, e, rtol=1e-12)
    assert natively >= (60 if "a" not in name.split()[0] else 20), natively


def test_sizes_are_compared_although_the_last_call_had_some_of_them() -> None:
    f = primed(lambda x, y: x + y, ((7, 3), (7, 3)), ((4, 9), (4, 9)))
    x, y = rows(5, 6), rows(5, 6)
    for other in (rows(4, 6), rows(5, 7), rows(6, 5)):
        np.testing.assert_array_equal(f(x, y), x + y)
        with pytest.raises(ValueError, match="5"):
            f(x, other)
        with pytest.raises(ValueError, match="5"):
            f(other, y)
        assert went_natively(f)
    for dtype in ("f4", "i8"):
        np.testing.assert_allclose(f(x.astype(dtype), y.astype(dtype)), x.astype(dtype) + y.astype(dtype))
    np.testing.assert_array_equal(f(x, y), x + y)
    np.testing.assert_array_equal(f(x[::-1], y), x[::-1] + y)
    np.testing.assert_array_equal(f(x.T.copy().T, y), x + y)


def used(f: aj.Function) -> list[bool]:
    """Which routes were used since the last call of this function: of programs for one size, and for all."""
    return [known.convention.is_general for known in f._shortcut.used()]


def test_programs_for_one_size_are_preferred() -> None:
    f = primed(lambda x: np.sin(x) + 1.0, ((7, 3),), ((4, 9),))
    for _ in range(3):
        for shape, is_general in [((7, 3), False), ((6, 3), True), ((7, 3), False), ((4, 9), True), ((2, 2), True), ((2, 2), True)]:
            x = rows(*shape)
            np.testing.assert_allclose(f(x), np.sin(x) + 1.0)
            assert used(f) == [is_general]


def test_a_busy_program_does_not_lose_its_size_to_the_general_one() -> None:
    """While a call of another thread runs without the GIL, others take the next route."""
    f = primed(lambda x: np.sin(x) + 1.0, ((7, 3),), ((4, 9),))
    x = rows(7, 3)
    ((alone, route),) = [each for each in f._shortcut._routes if not each[0].convention.is_general]
    f(rows(5, 5))
    used(f)
    route.words[Header.BUSY] = 1
    for _ in range(2):
        np.testing.assert_allclose(f(x), np.sin(x) + 1.0)
    assert used(f) == [True]
    route.words[Header.BUSY] = 0
    np.testing.assert_allclose(f(x), np.sin(x) + 1.0)
    assert f._shortcut.used() == [alone]


def test_a_program_that_is_dropped_is_not_called_for_the_sizes_of_the_last_call() -> None:
    f = primed(lambda x: np.sin(x) + 1.0, ((7, 3),), ((4, 9),))
    x = rows(5, 5)
    f(x)
    assert used(f) == [True]
    f.clear_cache()
    np.testing.assert_allclose(f(x), np.sin(x) + 1.0)
    assert f.trace_count == 3


def test_structures_and_variables_of_varying_sizes() -> None:
    total = aj.Variable(np.zeros(3))

    def step(batch: Any, scale: Any) -> Any:
        total.assign_add(np.sum(batch["x"], 0) * scale)
        return [batch["x"][1:] * scale, (batch["y"][0] + 1.0, None)]

    f = aj.function(step, dynamic="auto")
    want = np.zeros(3)
    for b in (5, 9, 9, 9, 2, 5, 30, 30, 9, 9):
        x, y = rows(b, 3), rows(b)
        tail, (more, nothing) = f({"x": x, "y": [y]}, 2.0)
        want = want + 2.0 * np.sum(x, 0)
        np.testing.assert_allclose(tail, 2.0 * x[1:])
        np.testing.assert_allclose(more, y + 1.0)
        np.testing.assert_allclose(total.numpy(), want)
        assert nothing is None
    assert f.trace_count == 2


def test_threads_with_sizes_of_their_own() -> None:
    """Long calls release the GIL: another thread changes the sizes of the last call meanwhile."""
    f = primed(lambda x: (np.cumsum(np.sin(np.cos(np.sin(x))), 0), np.reshape(x, -1)), ((7, 400),), ((5, 600),))
    wrong: list[Any] = []

    def run(k: int) -> None:
        for n in range(150):
            x = rows(3 + (n * k) % 40, 90 * k)
            sums, flat = f(x)
            if sums.shape != x.shape or not np.allclose(sums, np.cumsum(np.sin(np.cos(np.sin(x))), 0)) or flat.shape != (x.size,):
                wrong.append(x.shape)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert f.trace_count == 2


def test_sizes_whose_formulas_would_overflow_go_through_python() -> None:
    f = primed(lambda x: np.reshape(x, -1), ((7, 3),), ((4, 9),))
    ((_, route),) = [each for each in f._shortcut._routes if each[0].convention.is_general]
    low, high = 2, 1 << 30
    table = (np.ctypeslib.ctypes.c_int64 * 4).from_address(int(route.words[Header.RANGES]))
    assert all(table[k] == low for k in (0, 2))
    assert all(high <= table[k] < 1 << 32 for k in (1, 3))


def test_formulas_deeper_than_the_stack_are_refused() -> None:
    symbols = Symbols()
    size: Any = symbols.new("B", 64)
    expr = size.expr
    fits = []
    for k in range(2 * DEPTH):
        fits.append(Formulas(list(symbols.table.values()), [(Size(expr, symbols),)], []).fits)
        expr = Symbolic({(SmallerOf(size.expr + k, expr),): 1})
    assert fits == sorted(fits, reverse=True)
    assert fits.count(True) == DEPTH
