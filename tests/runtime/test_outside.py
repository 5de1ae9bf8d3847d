"""Names outside of a compiled function: when a name that it reads is bound to another object, the next call uses that object."""

from __future__ import annotations

import gc
import types
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.runtime.outside import MOST_CHANGES

X = np.array([1.0, 2.0])
SCALE: Any = 2.0
UNUSED: Any = 1.0
TABLE = {"rate": 0.5, "other": 1.0}
SETTINGS = types.SimpleNamespace(rate=0.5, inner=types.SimpleNamespace(depth=2))
COUNT = 0


def twice(x: Any) -> Any:
    return x * 2.0


def thrice(x: Any) -> Any:
    return x * 3.0


def calls(f: Any, expected: float) -> None:
    """Call three times: through Python, and then through the native entry."""
    for _ in range(3):
        np.testing.assert_array_equal(f(X), X * expected)


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SCALE", "UNUSED", "twice"):
        monkeypatch.setitem(globals(), name, globals()[name])


def test_globals() -> None:
    global SCALE, UNUSED

    @aj.function
    def f(x: Any) -> Any:
        return x * SCALE

    calls(f, 2.0)
    SCALE = 3.0
    calls(f, 3.0)
    assert f.trace_count == 2
    UNUSED = 2.0
    SCALE = float("3")  # an equal number
    calls(f, 3.0)
    assert f.trace_count == 2
    SCALE = np.array([4.0, 4.0])
    calls(f, 4.0)
    SCALE = np.array([5.0, 5.0])
    calls(f, 5.0)


@pytest.mark.parametrize(("before", "after"), [(0.0, -0.0), (1, True), (1, 1.0), (float("nan"), 1.0)])
def test_numbers_that_differ_without_being_unequal(before: Any, after: Any) -> None:
    global SCALE

    @aj.function
    def f(x: Any) -> Any:
        return np.copysign(x, SCALE), np.asarray(SCALE) + np.zeros(1, "f4")

    SCALE = before
    f(X)
    SCALE = after
    assert [str(t) for t in f(X)] == [str(aj.tensor(t)) for t in f.python_function(X)]


def test_functions_that_are_defined_again() -> None:
    global twice

    @aj.function
    def f(x: Any) -> Any:
        return twice(x)

    calls(f, 2.0)
    twice = thrice
    calls(f, 3.0)


def test_names_read_by_helpers() -> None:
    global SCALE

    def helper(x: Any) -> Any:
        return sum([x * SCALE for _ in range(1)])

    f = aj.function(lambda x: helper(x))
    g = aj.function(aj.grad(lambda x: np.sum(helper(x))))
    calls(f, 2.0)
    np.testing.assert_array_equal(g(X), [2.0, 2.0])
    SCALE = 3.0
    calls(f, 3.0)
    np.testing.assert_array_equal(g(X), [3.0, 3.0])


def test_variables_of_enclosing_functions() -> None:
    factor = 2.0

    @aj.function
    def f(x: Any) -> Any:
        return x * factor

    calls(f, 2.0)
    factor = 3.0
    calls(f, 3.0)


def test_items_of_dicts() -> None:
    f = aj.function(lambda x: x * TABLE["rate"])
    calls(f, 0.5)
    TABLE["other"] = 7.0
    calls(f, 0.5)
    assert f.trace_count == 1
    try:
        TABLE["rate"] = 2.0
        calls(f, 2.0)
    finally:
        TABLE["rate"] = 0.5


def test_attributes_of_objects() -> None:
    f = aj.function(lambda x: x * SETTINGS.rate * SETTINGS.inner.depth)
    calls(f, 1.0)
    SETTINGS.inner.depth = 4
    calls(f, 2.0)
    SETTINGS.inner = types.SimpleNamespace(depth=8)
    calls(f, 4.0)
    SETTINGS.unread = 1
    calls(f, 4.0)
    assert f.trace_count == 3


def test_attributes_of_modules() -> None:
    module = types.ModuleType("settings_of_a_test")
    module.rate = 2.0  # type: ignore[attr-defined]
    f = aj.function(lambda x: x * module.rate)
    calls(f, 2.0)
    module.rate = 3.0  # type: ignore[attr-defined]
    calls(f, 3.0)


class Model:
    def __init__(self) -> None:
        self.rate = 2.0
        self.seen = 0
        self.weights = np.ones(2)

    @aj.function
    def __call__(self, x: Any) -> Any:
        self.seen += 1
        return x * self.rate * self.weights


def test_attributes_of_self() -> None:
    model, other = Model(), Model()
    calls(model, 2.0)
    calls(other, 2.0)
    model.rate = 3.0
    calls(model, 3.0)
    calls(other, 2.0)
    model.weights = np.full(2, 2.0)
    calls(model, 6.0)


def test_objects_are_not_kept_alive() -> None:
    model = Model()
    calls(model, 2.0)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_names_that_the_function_assigns() -> None:
    """A counter of traces, as in TensorFlow's guides, does not cause another one."""

    @aj.function
    def f(x: Any) -> Any:
        global COUNT
        COUNT += 1
        return x * 1.0

    calls(f, 1.0)
    assert f.trace_count == 1


def test_a_name_that_disappears() -> None:
    namespace: dict[str, Any] = {"factor": 2.0}
    f = aj.function(eval("lambda x: x * factor", namespace))
    calls(f, 2.0)
    del namespace["factor"]
    with pytest.raises(NameError, match="factor"):
        f(X)


def test_the_native_entry_follows_a_namespace_that_grows() -> None:
    namespace: dict[str, Any] = {"factor": 2.0}
    f = aj.function(eval("lambda x: x * factor", namespace))
    calls(f, 2.0)
    for i in range(1000):
        namespace[f"name_{i}"] = i
    calls(f, 2.0)
    f._shortcut.used()
    calls(f, 2.0)
    assert f._shortcut.used(), "the native entry has run"
    assert f.trace_count == 1
    namespace["factor"] = 3.0
    calls(f, 3.0)


def test_a_name_that_changes_all_the_time() -> None:
    global SCALE

    @aj.function
    def f(x: Any) -> Any:
        return x * SCALE

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(MOST_CHANGES + 1):
            SCALE = float(i + 2)
            calls(f, i + 2.0)
    assert ["`SCALE`, which it reads, was bound to another value each time" in str(w.message) for w in caught] == [True]
    assert caught[0].filename == __file__
