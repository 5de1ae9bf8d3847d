"""Programs that print, assign and fail, at any depth, behave the same however they are run.

A call that raises has changed no variable, and has printed what eager code prints before it raises, once. One that does not has assigned
what eager code assigns. `ADJIT_PROGRAMS=2000` runs
a fifteenth as many, from `ADJIT_PROGRAMS_SEED`, for each is run in many ways; the default keeps the suite quick.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import adjit as aj
from tests.programs.running import FIRST
from tests.runtime.effect_programs import SITES, arguments, source

COUNT = int(os.environ.get("ADJIT_PROGRAMS", "150")) // 15


class Outcome(NamedTuple):
    error: str | None
    printed: str
    results: list[Any]
    state: list[Any]


class Program:
    """A program with new variables."""

    def __init__(self, seed: int) -> None:
        self.V, self.S = aj.Variable(np.ones(3)), aj.Variable(1.0)
        text, file = source(seed), f"<effects {seed}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        names: dict[str, Any] = {"np": np, "V": self.V, "S": self.S}
        exec(compile(text, file, "exec"), names)
        self.call: Callable[..., Any] = names["program"]

    def outcome(self, call: Callable[..., Any], args: list[Any]) -> Outcome:
        self.V.assign(np.array([1.0, -0.5, 0.25]))
        self.S.assign(1.0)
        error, results, out = None, [], io.StringIO()
        with contextlib.redirect_stdout(out):
            try:
                results = [np.asarray(r) for r in call(*args)]
            except (IndexError, AssertionError, np.linalg.LinAlgError) as caught:
                error = next(c.__name__ for c in (IndexError, AssertionError, np.linalg.LinAlgError) if isinstance(caught, c))
        tags = [line.split()[0] for line in out.getvalue().splitlines()]
        return Outcome(error, " ".join(tags), results, [self.V.numpy().copy(), self.S.numpy().copy()])

    def eager(self, call: Callable[..., Any], args: list[Any]) -> Outcome:
        aj.config.eager = True
        try:
            return self.outcome(call, args)
        finally:
            aj.config.eager = False


def taped(f: Callable[..., Any]) -> Callable[..., Any]:
    """The same with a gradient, which recomputes the values that it needs."""

    def call(x: Any, *rest: Any) -> Any:
        x = aj.tensor(x)
        with aj.GradientTape() as tape:
            tape.watch(x)
            s, y = f(x, *rest)
        d = tape.gradient(s, x, unconnected_gradients="zero")
        return s, y, d

    return call


def pushed(f: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, *rest: Any) -> Any:
        (s, y), _ = aj.jvp(lambda x: f(x, *rest), (aj.tensor(x),), (aj.tensor(np.ones(4)),))
        return s, y

    return call


def same(got: Outcome, wanted: Outcome) -> None:
    assert got.error == wanted.error
    assert got.printed == wanted.printed
    for a, b in zip([*got.results, *got.state], [*wanted.results, *wanted.state], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_effects_are_the_same_however_a_program_is_run(seed: int) -> None:
    program = Program(seed)
    f = aj.function(program.call)
    ways = {"compiled": f, "recorded": taped(f), "pushed": pushed(f), "inside": aj.function(taped(program.call))}
    for failing in (None, *range(SITES)):
        args = arguments(seed, failing)
        eager = program.eager(f, args)
        assert failing is not None or eager.error is None
        if eager.error is not None:
            np.testing.assert_array_equal(eager.state[0], [1.0, -0.5, 0.25])
            np.testing.assert_array_equal(eager.state[1], 1.0)
        for name, way in ways.items():
            got = program.outcome(way, args)
            try:
                same(got._replace(results=got.results[:2]), eager)
            except AssertionError as error:
                error.add_note(f"{name}, failing at {failing}, of\n{source(seed)}")
                raise
