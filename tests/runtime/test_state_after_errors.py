"""A call that raises has changed no variable, and a call prints its output once, also if it is differentiated."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import adjit as aj

W = aj.Variable(np.ones(4))
X = np.arange(5.0)


def in_branch(x: Any, i: Any, flag: Any) -> Any:
    W.assign(W * 2.0)
    if flag > 0:
        y = x[i]
    else:
        y = 0.0
    return y


def array_in_branch(x: Any, i: Any, flag: Any) -> Any:
    W.assign(W * 2.0)
    if flag > 0:
        y = np.outer(x, x)[i]
    else:
        y = x
    return y


def in_loop(x: Any, i: Any, flag: Any) -> Any:
    W.assign(W * 2.0)
    s = 0.0
    for k in range(i, i + 2):
        s = s + x[k]
    return s


def in_branch_in_loop(x: Any, i: Any, flag: Any) -> Any:
    W.assign(W * 2.0)
    s = 0.0
    for k in range(i, i + 2):
        if flag > 0:
            s = s + x[k]
    return s


def in_while(x: Any, i: Any, flag: Any) -> Any:
    W.assign(W * 2.0)
    s, k = 0.0, i
    while x[k] < 3.0:
        s, k = s + x[k], k + 1
    return s


def in_checkpoint(x: Any, i: Any, flag: Any) -> Any:
    W.assign(W * 2.0)
    return aj.checkpoint(lambda x: np.sin(x[i]))(x)


def assertion_in_branch(x: Any, i: Any, flag: Any) -> Any:
    W.assign(W * 2.0)
    if flag > 0:
        assert i < 50, "too large"
    return x[0]


def unused(x: Any, i: Any, flag: Any) -> Any:
    W.assign(W * 2.0)
    if flag > 0:
        y = x[i]  # noqa: F841 - that nobody reads it is the case
    return x[0]


def assigned_between(x: Any, i: Any, flag: Any) -> Any:
    y = x[0]
    if flag > 0:
        W.assign(W * 2.0)
        y = x[i]
        W.assign(W * 2.0)
    return y


CASES = [
    in_branch, array_in_branch, in_loop, in_branch_in_loop, in_while, in_checkpoint, assertion_in_branch, unused, assigned_between,
]  # fmt: skip


@contextlib.contextmanager
def eager() -> Iterator[None]:
    before, aj.config.eager = aj.config.eager, True
    try:
        yield
    finally:
        aj.config.eager = before


def recorded(f: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, i: Any, flag: Any) -> Any:
        x = aj.tensor(x)
        with aj.GradientTape() as tape:
            tape.watch(x)
            return f(x, i, flag)

    return call


@pytest.mark.parametrize("way", ["compiled", "recorded", "eager", "eager recorded"])
@pytest.mark.parametrize("case", CASES, ids=[c.__name__ for c in CASES])
def test_a_call_that_raises_changes_no_variable(case: Callable[..., Any], way: str) -> None:
    f: Callable[..., Any] = aj.function(case)
    call = recorded(f) if "recorded" in way else f
    with eager() if "eager" in way else contextlib.nullcontext():
        W.assign(np.ones(4))
        call(X, np.array(1), np.array(1))
        assert not np.array_equal(W.numpy(), np.ones(4))
        before = W.numpy().copy()
        for _ in range(3):  # by the way through Python, and by the native entry
            with pytest.raises((IndexError, AssertionError)):
                call(X, np.array(99), np.array(1))
            np.testing.assert_array_equal(W.numpy(), before)
        call(X, np.array(1), np.array(1))
        assert not np.array_equal(W.numpy(), before)


def test_an_eager_call_inside_of_another_is_undone_alone() -> None:
    inner = aj.function(in_branch)

    @aj.function
    def outer(x: Any) -> Any:
        W.assign(W + 1.0)
        with contextlib.suppress(IndexError):
            inner(x, np.array(99), np.array(1))
        return W.value()

    with eager():
        W.assign(np.ones(4))
        outer(X)
        np.testing.assert_array_equal(W.numpy(), 2 * np.ones(4))

        @aj.function
        def failing(x: Any) -> Any:
            inner(x, np.array(1), np.array(1))
            return x[np.array(99)]

        with pytest.raises(IndexError):
            failing(X)
        np.testing.assert_array_equal(W.numpy(), 2 * np.ones(4))


# ---- printing


def print_in_branch(x: Any) -> Any:
    if x > 0:
        print("seen")
        y = x * x
    else:
        y = -x
    return y


def print_in_loop(x: Any) -> Any:
    y = x
    while y < 5.0:
        print("seen")
        y = y * y
    return y


def print_in_checkpoint(x: Any) -> Any:
    def part(x: Any) -> Any:
        print("seen")
        return np.sin(x) * x

    return aj.checkpoint(part)(x)


def print_first(x: Any) -> Any:
    print("seen", x)
    return x * x


PRINTING = [print_first, print_in_branch, print_in_loop, print_in_checkpoint]


def gradient(f: Callable[..., Any], x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def second_gradient(f: Callable[..., Any], x: Any) -> Any:
    with aj.GradientTape() as outer:
        outer.watch(x)
        d = gradient(f, x)
    return outer.gradient(d, x)


WAYS: dict[str, Callable[[Callable[..., Any], Any], Any]] = {
    "call": lambda f, x: f(x),
    "tape": gradient,
    "tape of a tape": second_gradient,
    "grad": lambda f, x: aj.grad(f)(x),
    "jvp": lambda f, x: aj.jvp(f, (x,), (x,)),
    "vjp": lambda f, x: aj.vjp(f, x)[1](x),
    "tape in a function": lambda f, x: aj.function(lambda x: gradient(f, x))(x),
    "jvp in a function": lambda f, x: aj.function(lambda x: aj.jvp(f, (x,), (x,)))(x),
    "vjp in a function": lambda f, x: aj.function(lambda x: aj.vjp(f, x)[1](x))(x),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", ["compiled", "eager"])
@pytest.mark.parametrize("case", PRINTING, ids=[c.__name__ for c in PRINTING])
def test_what_is_printed_is_printed_once(case: Callable[..., Any], mode: str, way: str) -> None:
    f = aj.function(case)
    out = io.StringIO()
    with eager() if mode == "eager" else contextlib.nullcontext():
        WAYS[way](f, aj.tensor(3.0))  # traced: Python's own printing is over
        with contextlib.redirect_stdout(out):
            WAYS[way](f, aj.tensor(3.0))
    assert out.getvalue().count("seen") == 1


def test_what_a_stream_raises_is_raised_and_changes_nothing() -> None:
    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError("the pipe is broken")

    @aj.function
    def f(x: Any) -> Any:
        W.assign(W * 2.0)
        if x > 0:
            print("seen")
        return x

    W.assign(np.ones(4))
    f(-1.0)
    for _ in range(2):
        with pytest.raises(OSError, match="the pipe is broken"), contextlib.redirect_stdout(Broken()):
            f(1.0)
        np.testing.assert_array_equal(W.numpy(), 2 * np.ones(4))
