"""The native entry: it takes the calls that it may take, and gives Python all others, with the same results."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.entry import available
from adjit.ir.gate import gate

pytestmark = pytest.mark.skipif(not available(), reason="this Python lays out its objects in another way: calls go through Python")


def is_native(f: object) -> bool:
    return type(type(f).__call__).__name__ == "builtin_function_or_method"


def test_small_functions_get_an_entry_and_everything_else_still_works() -> None:
    f = aj.function(lambda x: 2.0 * x + 1.0, reduce_retracing=True)
    x = np.arange(8, dtype="f4")
    assert not is_native(f)
    first = f(x)
    assert is_native(f)
    for argument in (x, aj.tensor(x), x[::-1], x[::2], x.astype("f8"), x.reshape(2, 4), 3.0, 3, np.float32(2)):
        np.testing.assert_allclose(f(argument).numpy(), 2.0 * np.asarray(argument) + 1.0)
    assert isinstance(f(x), aj.Tensor)
    assert f(x).type == first.type
    np.testing.assert_array_equal(f(x=x).numpy(), first.numpy())


def test_results_as_the_function_gives_them() -> None:
    pair = aj.function(lambda x, s: (x * s, x.sum()))
    x = np.arange(3.0)
    for _ in range(3):
        scaled, total = pair(x, 2.0)
        np.testing.assert_array_equal(scaled.numpy(), [0.0, 2.0, 4.0])
        assert float(total) == 3.0
    named = aj.function(lambda x: {"y": x + 1.0})
    for _ in range(3):
        np.testing.assert_array_equal(named(x)["y"].numpy(), x + 1.0)
    assert aj.function(lambda x: None)(x) is None


def test_variables_are_updated_in_place_unless_somebody_holds_their_value() -> None:
    w = aj.Variable(np.zeros(3))

    @aj.function
    def step(d):
        w.assign_add(d)

    d = np.ones(3)
    for k in range(1, 4):
        assert step(d) is None
        np.testing.assert_array_equal(w.numpy(), k * d)
    held = w.value()
    step(d)
    np.testing.assert_array_equal(held.numpy(), 3 * d)
    np.testing.assert_array_equal(w.numpy(), 4 * d)


def test_errors_of_native_code_come_with_the_users_line_and_change_nothing() -> None:
    w = aj.Variable(np.zeros(4))

    @aj.function
    def step(x, i):
        w.assign_add(x)
        return x[i]

    x = np.arange(4.0)
    step(x, np.array(1))
    for _ in range(2):
        with pytest.raises(IndexError, match="out of bounds") as caught:
            step(x, np.array(7))
        assert "test_shortcut.py" in str(caught.value)
    np.testing.assert_array_equal(w.numpy(), x)


def test_tapes_eager_runs_and_traces_close_the_gate() -> None:
    f = aj.function(lambda x: x * x)
    x = aj.tensor(np.arange(3.0))
    f(x)
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [0.0, 2.0, 4.0])
    outer = aj.function(lambda x: f(x) + 1.0)
    np.testing.assert_array_equal(outer(x).numpy(), [1.0, 2.0, 5.0])
    with pytest.raises(ValueError, match="broadcast"):
        aj.function(lambda x: f(x) + np.ones(7))(x)
    assert gate.reasons == 0


def test_a_function_and_what_it_compiled_can_be_forgotten() -> None:
    f = aj.function(lambda x: x + 1.0)
    f(np.arange(3.0))
    assert is_native(f)
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None


def halved(x):
    """A loop: the entry releases the GIL while it runs."""
    total = x.sum()
    while total > 1.0:
        total = total / 2.0
    return total


@pytest.mark.parametrize(("fn", "expected"), [(lambda x: (x * 3.0).sum(), 14850.0), (halved, 4950 / 8192)], ids=["quick", "loop"])
def test_threads_share_an_entry(fn: Callable[..., Any], expected: float) -> None:
    f = aj.function(fn)
    x = np.arange(100.0)
    assert float(f(x)) == expected
    assert is_native(f)
    wrong = []

    def run() -> None:
        wrong.extend(1 for _ in range(300) if float(f(x)) != expected)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
