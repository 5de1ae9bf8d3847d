"""Exceptions that a program catches, around traced branches and loops: the handler, and the code after it, behave as in Python.

Every program is one of some hundred: where it raises, what binds the name before, how it is caught, and what the handler reads.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from textwrap import dedent, indent
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.interpreter import run
from tests.programs.check import traced

INPUTS = [np.array([1.0, 0.5]), np.array([-1.0, 0.25])]
RAISES = "{}['n']"

BINDINGS = {
    "if": "if np.sum(x) > 0:\n    y = x * 2\nelse:\n    y = x * 3",
    "one side": "if np.sum(x) > 0:\n    y = x * 2",
    "for": "for j in aj.range(2):\n    y = y * 2 + x",
    "while": "while np.sum(y) < 9:\n    y = y + 4",
    "item": "d['y'] = x\nif np.sum(x) > 0:\n    d['y'] = x * 2\ny = d['y'] + y",
}

HANDLERS = {"reads": "y = y + 1", "reads another": "y = z + 1", "binds": "y = x * 5", "passes": "pass"}

CATCHES = {
    "except": "try:\n    BODY\nexcept KeyError:\n    HANDLER",
    "else": "try:\n    BODY\nexcept KeyError:\n    HANDLER\nelse:\n    y = y * 7\n    z = y",
    "finally": "try:\n    BODY\nexcept KeyError:\n    HANDLER\nfinally:\n    z = z + y\n    y = y * 11",
    "other error": "try:\n    try:\n        BODY\n    except ValueError:\n        y = x * 13\nexcept KeyError:\n    HANDLER",
    "finally inside": "try:\n    try:\n        BODY\n    finally:\n        z = y\n        y = x * 17\nexcept KeyError:\n    HANDLER",
    "suppress": "with suppress(KeyError):\n    BODY\nHANDLER",
}

AROUND = {
    "straight": "y, z, d = x, x * 19, {}\nCATCH\nreturn y, z",
    "loop": "y, z, k = x, x * 19, 0\nwhile k < np.sum(x):\n    k = k + 1\n    d = {}\n    t = y\n    CATCH_LOOP\nreturn y, z",
}


def bodies(binding: str) -> Iterator[str]:
    """Bodies of `try`: a name is bound, then bound again, with an exception at each position."""
    lines = [BINDINGS[binding], "y = x * 29", "z = y * 23"]
    for place in range(4):
        yield "\n".join([*lines[:place], RAISES, *lines[place:]])
    yield "\n".join(lines)


def put(text: str, name: str, inside: str) -> str:
    """The text with a line replaced by others, with the same indentation."""
    lines = text.splitlines()
    return "\n".join(indent(inside, line[: len(line) - len(line.lstrip())]) if line.strip() == name else line for line in lines)


def function_of(body: str, name: str, silent: Any = None) -> Callable[..., Any]:
    """A function of these lines; `silent` is another context manager instead of `suppress`."""
    body = body.replace("suppress(", "silent(") if silent else body
    source = "def program(x):\n" + indent(body, "    ") + "\n"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names: dict[str, Any] = {"np": np, "aj": aj, "suppress": suppress, "silent": silent}
    exec(compile(source, name, "exec"), names)
    return names["program"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("catch", CATCHES)
@pytest.mark.parametrize("binding", BINDINGS)
def test_handlers_see_what_python_shows_them(binding: str, catch: str, around: str) -> None:
    for k, (body, handler) in enumerate(product(bodies(binding), HANDLERS)):
        caught = put(put(CATCHES[catch], "BODY", body), "HANDLER", HANDLERS[handler])
        text = put(put(AROUND[around], "CATCH", caught), "CATCH_LOOP", caught)
        program = function_of(text, f"<exceptions {binding} {catch} {around} {k}>")
        wanted = [program(x) for x in INPUTS]
        func, _ = traced(program, INPUTS[:1])
        for x, want in zip(INPUTS, wanted, strict=True):
            np.testing.assert_allclose(run(func, x), want, err_msg=text)


class Silent:
    """Suppresses the given exceptions, as `contextlib.suppress` does."""

    def __init__(self, kind: type[Exception]) -> None:
        self.kind = kind

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, kind: Any, *_: object) -> bool:
        return kind is not None and issubclass(kind, self.kind)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("binding", BINDINGS)
def test_other_managers_that_suppress_are_refused_where_it_matters(binding: str, around: str) -> None:
    """Whether a manager suppresses is known only at run time: the values of names that regions of its block bind may be lost by then."""
    refused: list[str] = []
    for k, body in enumerate(bodies(binding)):
        managed = put("with suppress(KeyError):\n    BODY\ny = y + 1", "BODY", body)
        text = put(put(AROUND[around], "CATCH", managed), "CATCH_LOOP", managed)
        program = function_of(text, f"<managers {binding} {around} {k}>", silent=Silent)
        wanted = [program(x) for x in INPUTS]
        try:
            func, _ = traced(program, INPUTS[:1])
        except aj.TraceError as error:
            refused.append(str(error))
            continue
        for x, want in zip(INPUTS, wanted, strict=True):
            np.testing.assert_allclose(run(func, x), want, err_msg=text)
    assert len(refused) <= 4  # without an exception, it runs
    assert all("(Silent) suppresses KeyError here, after which `y" in message for message in refused)


def test_what_an_attempt_binds_is_not_needed_before_a_loop() -> None:
    """Every path through the body binds `t`: a loop without iterations needs no value of it."""

    def program(x: Any) -> Any:
        k = 0
        while k < np.sum(x):
            try:
                t = {"m": x}["n"]
            except KeyError:
                t = x * 0.5
            else:
                t = x * 2.0
            x = t
            k = k + 1
        return x

    for x in (np.array([-1.0, 0.5]), np.array([1.0, 0.5])):
        np.testing.assert_array_equal(aj.function(program)(x), program(x))


@pytest.mark.parametrize("place", range(5))
def test_compiled(place: int) -> None:
    body = list(bodies("if"))[place]
    text = put(AROUND["straight"], "CATCH", put(put(CATCHES["finally"], "BODY", body), "HANDLER", HANDLERS["reads"]))
    program = function_of(dedent(text), f"<exceptions compiled {place}>")
    for x in INPUTS:
        for got, want in zip(aj.function(program)(x), program(x), strict=True):
            np.testing.assert_allclose(got, want)
