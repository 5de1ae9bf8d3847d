"""Exceptions from outside of the traced code propagate: those of signal handlers, lack of memory, bugs in adjit.

Tracing tries things that may fail: a loop with any iteration for all of them, a comparison of the user's objects. Only the failures of the
code that is tried are answered with another way.
"""

from __future__ import annotations

import ast
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.tracer.autograph.convert import to_code
from adjit.tracer.frames import is_from_outside

X = np.linspace(0.0, 1.0, 100)


class TooLongError(Exception):
    pass


class Handlers:
    def method(self, signum: int, frame: Any) -> None:
        raise TooLongError

    def __call__(self, *given: Any) -> None:
        self.inner()

    def inner(self) -> None:
        raise TooLongError


def once(signum: int, frame: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    raise TooLongError


HANDLERS: list[Callable[..., Any]] = [Handlers().method, Handlers(), once]


@pytest.fixture(params=HANDLERS, ids=["method", "object", "once"])
def handler(request: pytest.FixtureRequest) -> Any:
    before = signal.signal(signal.SIGTERM, request.param)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("handler")
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_loop_that_is_tried(tmp_path: Path, dynamic: bool) -> None:
    happened = tmp_path / "happened"  # objects in memory are restored when the loop is tried again

    def interrupted(row: Any) -> Any:
        if not os.path.exists(happened):
            happened.touch()
            signal.raise_signal(signal.SIGTERM)
        return row * 2.0

    def program(x: Any) -> Any:
        total = 0.0
        for row in x:
            total = total + interrupted(row)
        return total

    with pytest.raises(TooLongError):
        aj.function(program, dynamic=dynamic)(X)
    np.testing.assert_allclose(aj.function(program, dynamic=dynamic)(X), 2 * X.sum())


def test_a_body_that_fails_only_when_it_is_tried() -> None:
    """The error is raised by the body itself: each iteration is traced separately."""

    def program(x: Any) -> Any:
        total = 0.0
        for i in range(100):
            if not isinstance(i, int):
                raise TooLongError
            total = total + x[i] * [1.0, 2.0][i % 2]
        return total

    np.testing.assert_allclose(aj.function(program)(X), program(X))


@pytest.mark.parametrize("error", [MemoryError(), aj.InternalError("a bug")], ids=repr)
def test_errors_of_the_machine_and_of_adjit(error: Exception) -> None:
    def fails(row: Any) -> Any:
        raise error

    def program(x: Any) -> Any:
        for row in x:
            fails(row)
        return x

    with pytest.raises(type(error)) as caught:
        aj.function(program)(X)
    assert caught.value is error


class Label:
    """An object of the user's, the same in both branches if it is equal."""

    def __init__(self, action: Callable[[], Any]) -> None:
        self.action = action

    def __eq__(self, other: object) -> bool:
        self.action()
        return True

    __hash__ = None  # type: ignore[assignment]


def of_labels(action: Callable[[], Any]) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        if x > 0:
            label, y = Label(action), x * 2.0
        else:
            label, y = Label(action), x
        return y if label is None else y + 1.0

    return program


@pytest.mark.usefixtures("handler")
def test_a_comparison_of_objects() -> None:
    with pytest.raises(TooLongError):
        aj.function(of_labels(lambda: signal.raise_signal(signal.SIGTERM)))(1.0)


def test_a_comparison_that_fails() -> None:
    def fails() -> None:
        raise TooLongError

    assert float(aj.function(of_labels(lambda: None))(1.0)) == 3.0
    with pytest.raises(aj.TraceError, match="label"):
        aj.function(of_labels(fails))(1.0)


def test_what_is_from_outside() -> None:
    def fails(frame: Any = None) -> None:
        raise TooLongError

    with pytest.raises(TooLongError) as caught:
        fails()
    assert not is_from_outside(caught.value)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit("x")], ids=repr)
def test_a_branch_that_would_end_the_process(error: Any) -> None:
    def program(x: Any) -> Any:
        if x > 0:
            raise error
        return x

    with pytest.raises(aj.TraceError, match="only known when the function runs"):
        aj.function(program)(-1.0)


def sliced(x: Any) -> Any:
    return x[1:2, ::-1] if x[0, 0] > 0 else x[..., None]


def matched(x: Any) -> Any:
    match x.ndim:
        case 1:
            return x
    return -x


@pytest.mark.parametrize("function", [sliced, matched])
def test_the_text_of_newer_syntax(function: Callable[..., Any]) -> None:
    ast.parse(to_code(function))
