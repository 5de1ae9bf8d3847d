"""Rarely used syntax, with traced values: Python's results."""

# ruff: noqa: B007, B012, PERF401, SIM - as users write

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import adjit as aj

X = np.array([2.0, -1.0, 3.0, 0.5])


@contextlib.contextmanager
def nothing() -> Iterator[float]:
    yield 1.0


def with_that_returns(x: Any, n: int) -> Any:
    total = 0.0
    for v in x:
        with nothing() as one:
            if v < 0.0:
                return total
            total = total + v * one
    return total


def with_that_breaks(x: Any, n: int) -> Any:
    total = 0.0
    k = 0
    while k < n:
        with nothing() as one:
            total = total + one * x[k]
            if total > 3.0:
                break
        k = k + 1
    return total, k


def with_that_always_leaves(x: Any, n: int) -> Any:
    for v in x:
        with nothing() as one:
            return v + one
    return x[0]


def match_with_alternatives(x: Any, n: int) -> Any:
    kind = ("pair", 1.0) if len(x) > 2 else "none"
    match kind:
        case ("triple", _) | ("pair", _):
            out = x[0]
        case _ as other:
            out = x[1] + len(other)
    return out * n


def match_of_a_mapping(x: Any, n: int) -> Any:
    given = {"a": x[0], "b": x[1], "c": n}
    match given:
        case {"a": first, **rest}:
            total = first
            for key in rest:
                total = total + rest[key]
            return total
    return x[0]


def match_of_a_value(x: Any, n: int) -> Any:
    match n:
        case 1 | 2:
            return x * 2.0
        case 3:
            return x * 3.0
        case _:
            return x


def match_in_a_loop(x: Any, n: int) -> Any:
    total = 0.0
    for k in range(4):
        match k:
            case 0 | 2:
                total = total + x[k]
            case _:
                total = total - x[k]
    return total * n


def finally_after_a_return(x: Any, n: int) -> Any:
    total = 0.0
    for v in x:
        try:
            if v < 0.0:
                total = total - v
            else:
                total = total + v
        finally:
            total = total + 1.0
    return total * n


def grouped_exceptions(x: Any, n: int) -> Any:
    try:
        out = x * n
    except* ValueError:
        out = x
    return out


def conditional_that_binds(x: Any, n: int) -> Any:
    y = (z := x * 2.0) if n > 1 else (z := x * 3.0)
    return y + z


def while_that_binds(x: Any, n: int) -> Any:
    total, k = 0.0, 0
    while (v := x[k]) > -5.0:
        total = total + v
        k = k + 1
        if k == 4:
            break
    else:
        total = total + 100.0
    return total, v


def evaluated_text(x: Any, n: int) -> Any:
    scale = 2.0
    return x * eval("scale + 1.0") + len(dir()) - len(locals())


def formats(x: Any, n: int) -> Any:
    width, digits = 8, 2
    text = f"{3.14159:{width}.{digits}f} {'a'!r:>4}"
    return x * len(text)


def generator_with_functions(x: Any, n: int) -> Any:
    def items(values: Any) -> Any:
        def twice(v: Any) -> Any:
            return v * 2.0

        class Scale:
            factor = 3.0

        for k in range(3):
            yield twice(values[k]) * Scale.factor

    total = 0.0
    for item in items(x):
        total = total + item
    return total * n


class Slotted:
    __slots__ = ("rate", "unused")

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def scaled(self, x: Any) -> Any:
        return x * self.rate


def bound_methods_and_partials(x: Any, n: int) -> Any:
    method, half = Slotted(3.0).scaled, partial(np.multiply, 0.5)
    total = x
    for _ in range(3):
        if np.sum(total) > n:
            total = half(total)
        else:
            total = method(total)
    return total


def membership(x: Any, n: int) -> Any:
    inside = 3.0 in x
    found = n in (1, 3) and n not in [7, 8]
    return inside, found, x[0] in {2.0, 5.0}, 0.0 < x[0] <= 2.0 < x[2], n is not None


def queue(x: Any, n: int) -> Any:
    waiting = deque([x[0], x[1]])
    if x[0] > 0.0:
        waiting.append(x[2])
        waiting.popleft()
    else:
        waiting.append(x[3])
        waiting.popleft()
    return waiting[0] + 2.0 * waiting[1] * n


def bytes_in_a_branch(x: Any, n: int) -> Any:
    codes = bytearray(b"abc")
    if x[0] > 0.0:
        y = x * codes[0]
    else:
        y = x * codes[1]
    return y


def annotated(x: Any, n: int) -> Any:
    y: Any = x
    z: Any = y
    if n > 2:
        z = z * 2.0
    return y, z


def deleted(x: Any, n: int) -> Any:
    if n > 2:
        y = x * 2.0
        z = y + 1.0
        del y
    else:
        z = x
    return z


def method_of_a_number(x: Any, n: int) -> Any:
    return x * (1.0).real + (2).real


def chained_fields(x: Any, n: int) -> Any:
    state = {"a": [x[0], {"b": x[1]}]}
    for k in range(n):
        state["a"][1]["b"] = state["a"][1]["b"] * 2.0
        if state["a"][0] > 0.0:
            state["a"][0] = state["a"][0] - 1.0
    return state["a"][0], state["a"][1]["b"]


# ---- match


class Point:
    __match_args__ = ("x", "y")

    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y


def match_of_a_pair(x: Any, n: int) -> Any:
    match (x[0], n):
        case (2.0, 4):
            return x * 10.0
        case (2.0, 3 | 5):
            return x * 20.0
        case (first, _):
            return x * first


def match_of_a_class(x: Any, n: int) -> Any:
    match Point(x[0], n):
        case Point(1.0, y=_):
            return x
        case Point(px, y=3):
            return x * px * 5.0
        case _:
            return -x


def match_of_nothing(x: Any, n: int) -> Any:
    match None if n is None else x[1]:
        case None:
            return x
        case 7.0 | None:
            return x * 7.0
        case -1.0:
            return x * 2.0
    return x * 3.0


def match_with_guards(x: Any, n: int) -> Any:
    match x[2]:
        case v if v > 5.0:
            y = x * 2.0
        case v if v > 2.0:
            y = x * 3.0
        case 0.5 | 0.25:
            y = x * 4.0
        case _:
            y = x
    return y * n


def match_with_a_guard_that_falls_through(x: Any, n: int) -> Any:
    y = x
    match x[2]:
        case v if v > 5.0:
            y = x * 2.0
    return y


def match_of_text(x: Any, n: int) -> Any:
    match "mean" if n is not None else b"sum":
        case "sum" | "total":
            return np.sum(x)
        case "mean" as name:
            return np.mean(x) + len(name)


# ---- joined lists


def joined_rows(x: Any, n: int) -> Any:
    rows = []
    for k in aj.range(3):
        rows.append(x[:2] * k)
    return np.concatenate(rows), np.stack(rows, 1), np.array(rows)


def joined_columns(x: Any, n: int) -> Any:
    rows = []
    for k in aj.range(3):
        rows.append(np.outer(x[:2], x[:2]) * k)
    return np.concatenate(rows, 1), np.concatenate(rows, axis=0), rows[1:], rows[:1]


def one_function_for_each(x: Any, n: int) -> Any:
    def one(v: Any) -> Any:
        return v * 2.0 if v > 0.0 else v

    return np.vectorize(one)(x), np.vectorize(one)(3.0) + 0.0 * x[0]


# ---- contents that branches change


def arrays_and_queues_in_branches(x: Any, n: int) -> Any:
    waiting, table, seen = deque([1.0, 2.0]), np.zeros(2), {1, 2}
    if x[0] > 0.0:
        waiting.append(x[1])
        y = x * 2.0
    else:
        waiting.append(x[2])
        y = x
    for k in range(3):
        if x[k] > 0.0:
            table[0] += x[k]
        else:
            table[1] += x[k]
    return y, waiting[2], table, len(seen)


def definitions_in_loops(x: Any, n: int) -> Any:
    total = 0.0
    k = 0
    while k < n:

        def scaled(v: Any, by: Any = k) -> Any:
            for _ in range(2):
                if v > 100.0:
                    break
                v = v * 1.5
            return v + by

        with nothing() as one, contextlib.suppress(KeyError):
            inner = scaled(x[k]) * one
            total = total + inner
        k = k + 1
    return total


def chosen_and_bound(x: Any, n: int) -> Any:
    if n > 9:
        return x
    return (y := x * 2.0) + y if x[0] > 0.0 else (y := x * 3.0) - y


PROGRAMS: list[Callable[..., Any]] = [
    value for value in list(globals().values()) if getattr(value, "__annotations__", {}).get("n") == "int" and callable(value)
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_syntax_means_what_it_means_in_python(program: Callable[..., Any]) -> None:
    wanted = aj.tree_leaves(program(X, 3))
    got = aj.tree_leaves(aj.function(program)(X, 3))
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, rtol=1e-15)


def test_a_jump_in_finally_after_another_is_left_to_python() -> None:
    def f(x: Any, n: int) -> Any:
        total = 0.0
        for v in range(3):
            try:
                if n > 2:
                    continue
                total = total + v
            finally:
                if total >= 0.0:
                    break
        return total + x

    np.testing.assert_allclose(np.asarray(aj.function(f, static=("n",))(X, 3)), X)


def test_a_traced_value_is_not_an_object_to_match() -> None:
    def f(x: Any, n: int) -> Any:
        match x[0] > 0.0:
            case True:
                return x
            case _:
                return -x

    def g(x: Any, n: int) -> Any:
        return x if (x[0] > 0.0) is not False else -x

    for program in (f, g):
        with pytest.raises(aj.TraceError, match="with True or False: a traced value is known only when the function runs"):
            aj.function(program)(X, 3)
