"""tape.explain: one line that explains why a gradient is None, eagerly and inside a compiled function."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

W = aj.Variable(3.0, name="w")
STATE = aj.Variable(1.0, name="state")
FROZEN = aj.Variable(1.0, trainable=False, name="frozen")

Case = Callable[[Any, Any], tuple[Any, Any]]  # computed inside the tape: (target, source)


def squared(tape: Any, x: Any) -> Any:
    tape.watch(x)
    return x * x, x


def unwatched(tape: Any, x: Any) -> Any:
    return x * x, x


def cast_to_integers(tape: Any, x: Any) -> Any:
    tape.watch(x)
    n = x.astype("i64")
    return n * 2.0, x


def rounded(tape: Any, x: Any) -> Any:
    tape.watch(x)
    return np.floor(x * 2.0) + 1.0, x


def stopped(tape: Any, x: Any) -> Any:
    tape.watch(x)
    y = aj.stop_gradient(x * 2.0)
    return y * 3.0, x


def compared(tape: Any, x: Any) -> Any:
    tape.watch(x)
    return np.where(x > 0.0, 1.0, 2.0), x


def state(tape: Any, x: Any) -> Any:
    tape.watch(x)
    STATE.assign(x * 2.0)
    return STATE * STATE, x


def apart(tape: Any, x: Any) -> Any:
    tape.watch(x)
    return W * 2.0, x


def of_integers(tape: Any, x: Any) -> Any:
    tape.watch(x)
    return x.astype("i64"), x


def not_trainable(tape: Any, x: Any) -> Any:
    return FROZEN * x, FROZEN


def not_read(tape: Any, x: Any) -> Any:
    return x * 2.0, W


def by_the_sign(tape: Any, x: Any) -> Any:
    tape.watch(x)
    return np.copysign(aj.tensor(2.0), x), x


def one_way_of_two(tape: Any, x: Any) -> Any:
    tape.watch(x)
    return np.floor(x) + x, x


def watched_late(tape: Any, x: Any) -> Any:
    y = x * x
    tape.watch(x)
    return y, x


TABLE: list[tuple[Any, str]] = [
    (squared, "connected: derivatives pass through 1 recorded op, "),
    (one_way_of_two, "connected: derivatives pass"),
    (unwatched, "the source is not watched: call tape.watch"),
    (cast_to_integers, r"it is cast to i64 at line \d+ of test_explain.py: integers"),
    (rounded, r"`floor` at line \d+ of test_explain.py is not differentiable"),
    (stopped, r"stop_gradient at line \d+ of test_explain.py cuts"),
    (compared, r"`greater` at line \d+ of test_explain.py is not differentiable"),
    (state, r"the state of variable 'state', assigned at line \d+ of test_explain.py"),
    (apart, "not connected: no recorded op leads"),
    (of_integers, r"the target is i64\[\]: only floats"),
    (not_trainable, "variable 'frozen' is not trainable"),
    (not_read, "variable 'w' was not read"),
    (by_the_sign, "`copysign`.* is not differentiable with respect to the argument"),
    (watched_late, "before it was watched|not connected"),
]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(("case", "words"), TABLE, ids=[row[0].__name__ for row in TABLE])
def test_table(case: Case, words: str, compiled: bool) -> None:
    said: list[str] = []

    def fn(x: Any) -> Any:
        with aj.GradientTape(persistent=True) as tape:
            target, source = case(tape, x)
        said.append(tape.explain(target, source))
        if target.dtype.kind == "f":
            assert (tape.gradient(target, source) is not None) == said[0].startswith("connected")
        return x

    (aj.function(fn) if compiled else fn)(aj.tensor(1.5))
    assert len(said) == 1
    assert "\n" not in said[0]

    assert re.search(words, said[0]), said[0]


def test_left_through_numpy() -> None:
    x = aj.tensor(2.0)
    with aj.GradientTape() as tape:
        tape.watch(x)
        kept = (x * x).numpy()
        y = aj.tensor(np.sin(kept))
    assert "it was converted to NumPy or Python at line" in tape.explain(y, x)


def test_a_spent_tape() -> None:
    x = aj.tensor(2.0)
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    assert "the tape is not persistent" in tape.explain(y, x)


def test_after_a_gradient_that_is_none() -> None:
    x = aj.tensor(2.0)
    with aj.GradientTape() as tape:
        y = x * x
    assert tape.gradient(y, x) is None
    assert "not watched" in tape.explain(y, x)
    with pytest.raises(RuntimeError, match="can only be used"):
        tape.gradient(y, x)
    tape.reset()
    assert "the tape is not persistent" in tape.explain(y, x)


def test_computed_outside() -> None:
    x = aj.tensor(2.0)
    with aj.GradientTape() as tape:
        tape.watch(x)
    assert "the target was not computed by anything that the tape recorded" in tape.explain(x * x, x)


def test_requests_that_cannot_be_explained() -> None:
    with aj.GradientTape() as tape:
        y = W * W
    with pytest.raises(ValueError, match="the source must be a tensor"):
        tape.explain(y, 3.0)
