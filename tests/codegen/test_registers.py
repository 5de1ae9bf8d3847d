"""Loops on scalars and small vectors: their machine code has no call, no allocation and no copy in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import adjit as aj

P = np.array([1.5, 1.0, 3.0, 1.0])


def predator_and_prey(p: Any) -> Any:
    x, y, h, steps = 1.0, 1.0, 0.01, 0
    for _ in aj.range(1000):
        k, m = slope(x, y, p)
        k, m = slope(x + 0.5 * h * k, y + 0.5 * h * m, p)
        x, y, steps = x + h * k, y + h * m, steps + 1
    return x * y * steps


def slope(x: Any, y: Any, p: Any) -> Any:
    return p[0] * x - p[1] * x * y, p[3] * x * y - p[2] * y


def as_a_vector(p: Any) -> Any:
    state = np.array([1.0, 1.0]) * p[0]
    for _ in aj.range(1000):
        state = state + 0.01 * np.array([p[0] * state[0], -p[1] * state[1] * state[0]])
    return state.sum()


def until_small(p: Any) -> Any:
    x = p[0]
    while x > 1e-3:
        x = x - 0.01 * p[1] * x / (1.0 + x * x)
    return x


def loops_of(llvm: str) -> Iterator[list[str]]:
    """The lines of each loop of kernels, without those of the runtime's routines."""
    for name, body in re.findall(r"^define [^@]*@([\w.]+)\(.*?\{\n(.*?)^\}", llvm, re.M | re.S):
        if not re.fullmatch(r"k\d+", name):
            continue
        parts = re.split(r"^([\w.]+):\n", body, flags=re.M)
        blocks = dict(zip(parts[1::2], parts[2::2], strict=True))
        follow = {label: re.findall(r"label %([\w.]+)", text) for label, text in blocks.items()}
        for label in blocks:
            inside = [other for other in reached(follow, label) if label in reached(follow, other)]
            if inside:
                yield [line for other in inside for line in blocks[other].splitlines()]


def reached(follow: dict[str, list[str]], start: str) -> set[str]:
    out: set[str] = set()
    pending = list(follow[start])
    while pending:
        label = pending.pop()
        if label not in out:
            out.add(label)
            pending += follow[label]
    return out


@pytest.mark.parametrize("form", [aj.function, lambda f: aj.function(aj.value_and_grad(f))], ids=["forward", "gradient"])
@pytest.mark.parametrize("fn", [predator_and_prey, as_a_vector, until_small])
@pytest.mark.one_size("small arrays of known sizes are kept in registers")
def test_nothing_is_called_or_copied(fn: Callable[..., Any], form: Callable[..., Any]) -> None:
    found = list(loops_of(form(fn).inspect(P).llvm))
    assert found
    for lines in found:
        called = {name for line in lines for name in re.findall(r"call .*?@([\w.]+)\(", line)}
        # signals are checked every few thousand iterations; a `while` grows its stack when that is full
        assert {name for name in called if not name.startswith("llvm.f")} <= {"adjit_interrupted", "adjit_reserve", "adjit_push"}
        assert not any("alloca" in line for line in lines)


@pytest.mark.parametrize("fn", [predator_and_prey, as_a_vector, until_small])
def test_the_state_is_in_registers(fn: Callable[..., Any]) -> None:
    """A forward loop that is not differentiated reads and writes no memory; values that no iteration changes are not even carried."""
    for lines in loops_of(aj.function(fn).inspect(P).llvm):
        assert not any(re.search(r"\b(store|load)\b", line) for line in lines)
        assert sum(" phi " in line for line in lines) <= 4


def test_a_gradient_keeps_one_number_a_trip_and_variable() -> None:
    loops = list(loops_of(aj.function(aj.grad(predator_and_prey)).inspect(P).llvm))
    assert max(sum(" store " in f" {line}" for line in lines) for lines in loops) == 2
