"""The user's frame is found, and its bytecode read, for every way to call and to assign."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from adjit.ir.location import Location
from adjit.tracer.frames import code_of, definition, recurs_at, user_location, user_site
from tests.tracer.running import trace

X = np.arange(3.0)
ASSIGNMENTS: dict[str, str | None] = {
    "y = x * 2.0": "y",
    "y = x @ x": "y",
    "y = -x": "y",
    "y = x[1:]": "y",
    "y = x > 0": "y",
    "y = np.tanh(x)": "y",
    "y = np.sum(x, axis=0)": "y",
    "y = x.sum()": "y",
    "x += 1.0": "x",
    "y: float = x + 1.0": "y",
    "(y := x + 1.0)": None,
    "y = [x + 1.0]": None,
    "x + 1.0": None,
    "global z; z = x + 1.0": "z",
    "y = x + 1.0\n    def g(): return y": "y",
}


@pytest.mark.parametrize("statement", ASSIGNMENTS)
def test_assigned_names(statement: str) -> None:
    space: dict[str, Any] = {"np": np}
    exec(f"def f(x):\n    {statement}\n    return x", space)
    last = trace(space["f"], X).func.stmts[-1]
    assert last.location is not None
    assert (last.location.file, last.location.line) == ("<string>", 2)
    assert last.results[0].name == ASSIGNMENTS[statement]  # type: ignore[attr-defined]


def test_names_past_the_reach_of_one_instruction() -> None:
    locals_ = "\n".join(f"    a{i} = 0" for i in range(300))
    space: dict[str, Any] = {}
    exec(f"def f(x):\n{locals_}\n    far = x * 2.0\n    return far", space)
    assert trace(space["f"], X).func.stmts[0].results[0].name == "far"  # type: ignore[attr-defined]


def test_code_behind_callables() -> None:
    def f(x: Any) -> Any:
        return x

    class Model:
        def __call__(self, x: Any) -> Any:
            return x

        def method(self, x: Any) -> Any:
            return x

    @functools.wraps(f)
    def wrapped(*args: Any) -> Any:
        return f(*args)

    assert code_of(f) is f.__code__
    assert code_of(functools.partial(functools.partial(f), 1)) is f.__code__
    assert code_of(Model().method) is Model.method.__code__
    assert code_of(Model()) is Model.__call__.__code__
    assert code_of(wrapped) is wrapped.__code__
    assert code_of(len) is None
    assert definition(f) == Location(__file__, f.__code__.co_firstlineno, 1, "f")
    assert definition(len) is None


def test_the_running_line_is_the_tests() -> None:
    here = user_location()
    assert here is not None
    assert (here.file, here.function) == (__file__, "test_the_running_line_is_the_tests")
    site = user_site()
    assert site is not None
    assert site.name == "site"


def test_a_recursion_is_shown_where_it_repeats_and_not_where_it_was_stopped() -> None:
    def library(n: int) -> int:
        raise RecursionError

    def again(n: int) -> int:
        return again(n - 1) if n else library(n)

    with pytest.raises(RecursionError) as caught:
        again(20)
    location = recurs_at(caught.tb)
    assert location is not None
    assert location.function == "again"
    assert location.line == again.__code__.co_firstlineno + 1
    assert recurs_at(None) is None
