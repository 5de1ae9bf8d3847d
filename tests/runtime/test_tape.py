"""GradientTape's rules: the table of tape_cases.py, eagerly and inside compiled functions, and errors and warnings."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import GradientError, TraceError
from tests.runtime.tape_cases import CASES, Case


def plain(result: Any) -> Any:
    return aj.tree_map(lambda x: x if isinstance(x, str) else x.tolist(), result)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("case", CASES, ids=[c.fn.__name__ for c in CASES])
def test_table(case: Case, compiled: bool) -> None:
    run = aj.function(case.fn) if compiled else case.fn
    for _ in range(2):
        assert plain(run(*map(aj.tensor, case.args))) == case.gives


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_integer_sources_and_targets_warn_and_give_none(compiled: bool) -> None:
    def fn(n: Any) -> Any:
        with aj.GradientTape(persistent=True) as tape:
            with pytest.warns(UserWarning, match="watched tensor must be floating"):
                tape.watch(n)
            y = n * 2.0
            z = n * 2
        with pytest.warns(UserWarning, match="source tensor must be floating"):
            first = tape.gradient(y, n)
        with pytest.warns(UserWarning, match="target tensor must be floating"):
            second = tape.gradient(z, W)
        return first, second

    W = aj.Variable(1.0)
    assert (aj.function(fn) if compiled else fn)(aj.tensor(3)) == (None, None)


def test_bad_questions() -> None:
    x = aj.tensor([1.0, 2.0])
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(TypeError, match="Argument `target`"):
        tape.gradient(None, x)
    with pytest.raises(ValueError, match="unconnected_gradients"):
        tape.gradient(y, x, unconnected_gradients="maybe")  # type: ignore[arg-type]
    with pytest.raises(GradientError, match=r"f64\[3\].*f64\[2\]"):
        tape.gradient(y, x, output_gradients=np.ones(3))
    with pytest.raises(GradientError, match="structure"):
        tape.gradient([y, y], x, output_gradients=[None])
    with pytest.raises(GradientError, match="source"):
        tape.gradient(y, np.ones(2))
    with pytest.raises(GradientError, match="target"):
        tape.gradient(3.0, x)
    with pytest.raises(TypeError, match="watch takes tensors"):
        tape.watch(np.ones(2))
    with pytest.raises(RuntimeError, match="not recording"), tape.stop_recording():
        pass
    assert tape.gradient(y, x).tolist() == [2.0, 4.0]


def test_an_exception_inside_leaves_the_tape_closed() -> None:
    with pytest.raises(ZeroDivisionError), aj.GradientTape():
        1 / 0
    from adjit.runtime.recording import listening

    assert listening.recorders == ()


def test_a_tape_of_a_trace_is_of_no_use_outside() -> None:
    kept: list[aj.GradientTape] = []

    @aj.function
    def fn(x: Any) -> Any:
        with aj.GradientTape(persistent=True) as tape:
            tape.watch(x)
        kept.append(tape)
        return x

    x = fn(1.0)
    with pytest.raises(TraceError, match="outside"):
        kept[0].gradient(x, x)


def test_user_arrays_may_be_written_to_after_recording() -> None:
    w = aj.Variable([1.0, 1.0])
    data = np.array([2.0, 3.0])
    with aj.GradientTape() as tape:
        y = (w * data).sum()
    data[:] = 0.0
    assert tape.gradient(y, w).tolist() == [2.0, 3.0]


def test_a_used_tape_frees_its_record() -> None:
    w = aj.Variable([1.0, 1.0])
    with aj.GradientTape() as tape:
        y = w * 2.0
        gone = weakref.ref(y)
        z = y.sum()
        del y
    tape.gradient(z, w)
    gc.collect()
    assert gone() is None


def test_tapes_of_other_threads_record_nothing() -> None:
    w = aj.Variable(2.0)
    found: list[Any] = []
    with aj.GradientTape() as tape:
        thread = threading.Thread(target=lambda: found.append(w * w))
        thread.start()
        thread.join()
    assert tape.gradient(found[0], w) is None


# ---- compiled functions under eager tapes


def test_a_compiled_call_is_recorded() -> None:
    w = aj.Variable([1.0, 2.0])
    big = np.arange(40.0).reshape(20, 2)

    @aj.function
    def loss(x: Any, scale: float) -> Any:
        return {"loss": ((x * w) ** 2).sum() * scale, "seen": (big @ w).sum()}

    x = aj.tensor([3.0, 4.0])
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(x)
        out = loss(x, 0.5)
    assert tape.gradient(out["loss"], w).tolist() == [9.0, 32.0]
    assert tape.gradient(out["loss"], x).tolist() == [3.0, 16.0]
    assert tape.gradient(out["seen"], w).tolist() == big.sum(0).tolist()
    assert tape.gradient(out["seen"], x) is None
    assert tape.watched_variables() == (w,)


def test_a_compiled_call_differentiates_to_any_order() -> None:
    cube = aj.function(lambda x: x * x * x)
    x = aj.tensor(2.0)
    with aj.GradientTape() as outer:
        outer.watch(x)
        with aj.GradientTape() as inner:
            inner.watch(x)
            y = cube(x)
        first = inner.gradient(y, x)
    assert (first.item(), outer.gradient(first, x).item()) == (12.0, 12.0)


def test_a_compiled_call_that_updates_its_variables_is_recorded() -> None:
    w, count = aj.Variable(2.0), aj.Variable(0.0, trainable=False)

    @aj.function
    def fn(x: Any) -> Any:
        count.assign_add(1.0)
        y = x * w
        w.assign_add(1.0)
        return y

    with aj.GradientTape() as tape:
        y = fn(5.0) + fn(7.0)
    assert (y.item(), tape.gradient(y, w).item(), w.item(), count.item()) == (31.0, 12.0, 4.0, 2.0)


def test_a_call_that_no_tape_watches_keeps_its_results_unconnected() -> None:
    double = aj.function(lambda x: 2.0 * x)
    x = aj.tensor(1.0)
    with aj.GradientTape() as tape:
        y = double(x)
    assert tape.gradient(y, x) is None


@pytest.mark.parametrize("make", [lambda: aj.ones(3), lambda: aj.zeros(3), lambda: aj.full((3,), 2.0), lambda: aj.ones(3) * 4])
def test_constants_made_in_a_function_are_watched(make):
    def first(scale):
        x = make()
        with aj.GradientTape() as tape:
            tape.watch(x)
            y = x * x * scale + x
        return tape.gradient(y, x)

    def second():
        x = make()
        with aj.GradientTape() as outer:
            outer.watch(x)
            with aj.GradientTape() as tape:
                tape.watch(x)
                y = np.sum(x**3)
            g = tape.gradient(y, x)
        return outer.gradient(g, x)

    np.testing.assert_allclose(aj.function(first)(2.0), first(2.0))
    np.testing.assert_allclose(aj.function(second)(), second())
