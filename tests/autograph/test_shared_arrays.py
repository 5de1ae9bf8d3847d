"""Loops and branches with arrays to which several variables refer: the same results as in Python, also after later writes, or an error."""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import numpy as np
import pytest

import adjit as aj

SETUPS = [
    "t = [v, x]; u = v",
    "t = {'a': v, 'b': x}; u = v",
    "t = [[v, x], 1.0]; u = v",
    "w = [x * 1.0, 2.0]; t = [w, x]; u = w",
    "w = {'n': 1.0}; t = [w, x]; u = [w, x]",
    "t = [(v, x), x]; u = v",
    "w = [1.0, x]; t = {'a': w, 'b': x}; u = w",
    "t = [v, v, x]; u = t",
    "t = [v, x]; u = [v, x]",
    "o = Held(); o.v = v; t = [v, x]; u = o.v",
]
CHANGES = [
    "t[-1] = t[-1] * 0.5", "t[0] = x * 2.0", "t['b'] = t['b'] * 0.5", "t['a'] = x * 3.0", "t[0][0] = t[0][0] * 2.0", "t[0][1] = x * 2.0",
    "u[0] = u[0] * 3.0", "t[0]['n'] = t[0]['n'] * 2.0", "t.append(x)", "x = x + 1.0", "t[-1] += 1.0", "t[0] += 1.0", "t['a'] += 1.0",
    "u = u * 2.0", "u += 1.0", "o.v = o.v * 2.0", "o.v += 1.0",
]  # fmt: skip
AFTER = [
    "pass", "v[0] = 7.0", "t[0][0] = 7.0", "t['a'][0] = 7.0", "u[0] = 5.0", "w[0] = 9.0", "w['n'] = 9.0", "t[0][0][0] = 4.0",
    "o.v[0] = 3.0",
]  # fmt: skip
TEXT = """
def f(x):
    v = {made}
    w = o = None
    {setup}
    n = np.sum(x)
    {header}
        {change}
    {after}
    return t, v, w, u, o and o.v
"""
HEADERS = ["for k in iterations(2):", "if n > 0:", "if n < 0:"]
GROWING = """
def f(x):
    v = {made}
    l = {before}
    for k in iterations(2):
        l.append({item})
    {write}
    return np.stack(list(l))
"""
CHOOSING = """
def f(x):
    v = np.zeros(2)
    t = [v]
    u = v
    if np.sum(x) < 0:
        u = {other}
    {write}
    return v, u, t
"""
NOT_A_PROGRAM = (TypeError, KeyError, IndexError, AttributeError, ValueError)
SAMPLE = 4  # every fourth program runs


class Held:
    v: Any


def defined(text: str, iterations: Any) -> Any:
    name = f"<shared {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace = {"np": np, "Held": Held, "iterations": iterations}
    exec(compile(text, name, "exec"), namespace)
    return namespace["f"]


def plain(x: Any) -> Any:
    if isinstance(x, dict):
        return {key: plain(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [plain(value) for value in x]
    return None if x is None else np.asarray(x, float).round(9).tolist()


def programs(header: str, setup: str) -> list[str]:
    made = ["np.zeros(2)", "x * 2.0"]
    changes = [c for c in CHANGES if not (header == "if n < 0:" and c == "t[0][1] = x * 2.0")]  # a number here, an array there
    return [TEXT.format(header=header, setup=setup, made=v, change=c, after=a) for v, c, a in itertools.product(made, changes, AFTER)]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize(("number", "setup"), list(enumerate(SETUPS)), ids=range(len(SETUPS)))
def test_results_are_those_of_python_or_there_are_none(number: int, setup: str, header: str) -> None:
    same = 0
    for text in programs(header, setup)[number % SAMPLE :: SAMPLE]:
        try:
            wanted = plain(defined(text, range)(np.ones(2)))
        except NOT_A_PROGRAM:
            continue
        try:
            got = plain(aj.function(defined(text, aj.range))(np.ones(2)))
        except (aj.AdjitError, *NOT_A_PROGRAM):  # Python does not run the branch that fails
            continue
        assert got == wanted, text
        same += 1
    assert same


@pytest.mark.parametrize(
    ("setup", "change"),
    [
        ("t = [v, x]; u = v", "t[-1] = t[-1] * 0.5"),
        ("t = {'a': v, 'b': x}; u = v", "t['b'] = t['b'] * 0.5"),
        ("t = [(v, x), x]; u = v", "t[-1] = t[-1] * 0.5"),
        ("t = [v, x]; u = [v, x]", "x = x + 1.0"),
    ],
)
@pytest.mark.parametrize("after", ["pass", "v[0] = 7.0"])
def test_what_a_loop_leaves_as_it_was_stays_shared(setup: str, change: str, after: str) -> None:
    text = TEXT.format(header="for k in iterations(2):", setup=setup, made="np.zeros(2)", change=change, after=after)
    assert plain(aj.function(defined(text, aj.range))(np.ones(2))) == plain(defined(text, range)(np.ones(2)))


@pytest.mark.parametrize("other", ["u * 2.0", "x * 2.0", "np.zeros(2)"])
@pytest.mark.parametrize("write", ["v[0] = 7.0", "u[0] = 7.0", "v += 1.0", "t[0][0] = 7.0"])
def test_writes_after_a_branch_that_decides_which_array_a_variable_holds(other: str, write: str) -> None:
    text = CHOOSING.format(other=other, write=write)
    with pytest.raises(aj.TraceError):
        aj.function(defined(text, aj.range))(np.ones(2))


@pytest.mark.parametrize("made", ["np.zeros(2)", "x * 2.0"])
@pytest.mark.parametrize(("before", "item"), [("[]", "v"), ("[v]", "x"), ("[v]", "v")])
@pytest.mark.parametrize("write", ["v[0] = 7.0", "v += 1.0", "v[1] = x[0]"])
def test_writes_to_arrays_that_a_growing_list_holds(made: str, before: str, item: str, write: str) -> None:
    """In Python, the list has the array itself; compiled, it has rows."""
    text = GROWING.format(made=made, before=before, item=item, write=write)
    with pytest.raises(aj.TraceError):
        aj.function(defined(text, aj.range))(np.ones(2))
    copied = text.replace("append(v)", "append(v.copy())").replace("[v]", "[v.copy()]")
    np.testing.assert_allclose(aj.function(defined(copied, aj.range))(np.ones(2)).numpy(), defined(copied, range)(np.ones(2)))
