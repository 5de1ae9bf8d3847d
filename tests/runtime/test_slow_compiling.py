"""A first call that takes seconds gives one warning, with the line of an unrolled loop and what to write instead."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.runtime import slow_compiling


def unrolled(x: Any) -> Any:
    for scale in np.linspace(1.0, 2.0, 40).tolist():
        x = np.sin(x) * scale  # traced again and again
    return x


def test_the_line_of_an_unrolled_loop_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_compiling, "SLOW", 0.0)
    f = aj.function(unrolled)
    with pytest.warns(aj.SlowCompilationWarning) as caught:
        f(np.ones(3))
    text = str(caught[0].message)
    assert caught[0].filename == __file__
    assert text.startswith("unrolled took ")
    assert "80 of them from one line" in text
    assert "aj.range(n)" in text
    assert "test_slow_compiling.py:17" in text
    assert "x = np.sin(x) * scale" in text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(np.ones(4))  # compiled again, but the warning was given already


def test_without_a_loop_there_is_nothing_to_rewrite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_compiling, "SLOW", 0.0)
    with pytest.warns(aj.SlowCompilationWarning, match="It has 2 statements. The disk cache"):
        aj.function(lambda x: np.sin(x) + 1.0)(np.ones(3))


def test_usual_calls_give_no_warning() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        aj.function(lambda x: np.cos(x) + 1.0)(np.ones(3))
    assert not [w for w in caught if issubclass(w.category, aj.SlowCompilationWarning)]


def test_waiting_for_a_busy_machine_is_not_slow_compilation() -> None:
    f = aj.function(lambda x: x + 1.0)
    f(1.0)
    (concrete,) = f._cache.values()
    concrete.executable.seconds["compile"] = 60.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not slow_compiling.warn_if_slow("f", concrete, 0.1)
    with pytest.warns(aj.SlowCompilationWarning):
        assert slow_compiling.warn_if_slow("f", concrete, 3.0)
