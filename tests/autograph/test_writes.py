"""Random programs that write to arrays to which other variables may refer: traced, each returns NumPy's results, or refuses the write."""

from __future__ import annotations

import random
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import TraceError, UnsupportedError
from adjit.tracer.autograph.convert import convert
from tests.tracer.running import run_traced, same

HELPERS = """import numpy as np


class Box:
    def __init__(self, v):
        self.v = v


def grow(v):
    v += 1.0


def grown(v):
    v *= 0.5
    return v
"""

REFUSALS = (
    r"this write would also change|was changed in place|would change an argument|through another reference|on the left of \+=|"
    r"changes in a traced branch or loop, in a way that"
)
START = ["a = np.zeros(4)", "b = np.ones(4)", "c = x * 2.0", "d = np.array([x[0], 1.0, x[1], 2.0])", "s = 0.0"]
PLAIN = [
    ["{v} = np.zeros(4)"], ["{v} = {w}"], ["{v} = {w}.copy()"], ["{v} = np.array({w})"], ["{v} = {w}.astype(float)"],
    ["{v} = {w} * 1.5 + x[{i}]"], ["{v} = {w}[::-1]"], ["{v} = {w}.ravel()"], ["{v}, {w} = {w}, {v}"],
    ["{v}[{i}] = x[{j}]"], ["{v}[1:3] = {w}[:2]"], ["{v}[...] = {w}"], ["{v}[{w} > 0.5] = x[0]"],
    ["{v}[{v} > x[{i}]] += 0.25"], ["{v}[2:] += {w}[:2] * x[1]"], ["{v}[{i}] *= 2.0"],
    ["row = {v}[1:3]", "row[0] = x[{i}]", "s = s + np.sum(row)"],
    ["view = {v}[1:]", "{w}[0] = 3.0", "s = s + np.sum(view)"],
    ["m = {v}.reshape(2, 2)", "m[1, 0] = x[{i}]", "s = s + np.sum(m * x[0])"],
    ["L = [{v}, {w}]", "L[0] = L[0] + 1.0", "s = s + np.sum(L[1])"],
    ["np.put({v}, [0, {i}], x[{j}])"], ["np.put({v}, [{i}], {w}, mode='clip')"], ["np.copyto({v}, {w})"],
    ["np.copyto({v}, x[{i}], where={w} > 0.5)"], ["np.putmask({v}, {w} > 0.5, {v} * 2.0)"], ["np.place({v}, {w} > 0.5, [x[{i}], 4.0])"],
    ["np.add.at({v}, [{i}, {i}, {j}], x[0])"], ["np.multiply.at({v}, [{i}, 1, 1], {w}[:3])"], ["np.maximum.at({v}, [0, 0], {w}[1:3])"],
    ["m = {v}.reshape(2, 2)", "np.fill_diagonal(m, x[{i}])", "s = s + np.sum(m)"],
    ["{v} += {w}"], ["{v} -= x"], ["{v} *= x[{i}]"], ["{v} = grown({w})"], ["grow({v})"], ["{v} = grown({w}.copy())"],
    ["box = Box({v})", "box.v += x[{i}]", "s = s + np.sum(box.v)"], ["box = Box({v})", "{w} -= x", "s = s + np.sum(box.v)"],
    ["held = {{'k': {v}}}", "held['k'] *= 2.0", "{w} = held['k']"],
]  # fmt: skip


def statement(rng: random.Random, nested: bool = False) -> list[str]:
    kind = "plain" if nested else rng.choice(["plain", "plain", "plain", "for", "if", "while"])
    if kind == "plain":
        names = {"v": rng.choice("abcd"), "w": rng.choice("abcd"), "i": rng.randrange(4), "j": rng.randrange(4)}
        return [line.format(**names) for line in rng.choice(PLAIN)]
    inner = [f"    {line}" for line in (*statement(rng, True), *statement(rng, True))]
    if kind == "for":
        return ["for k in range(n):", *inner]
    if kind == "while":
        return ["t = x[0]", "while t < 2.0:", *inner, "    t = t + 0.7"]
    return [f"if x[{rng.randrange(4)}] > 0.3:", *inner, "else:", *(f"    {line}" for line in statement(rng, True))]


def program(seed: int, folder: Path) -> Any:
    rng = random.Random(seed)
    lines = [*START, *(line for _ in range(rng.randrange(3, 9)) for line in statement(rng)), "return s, a, b, c, d"]
    path = folder / f"program_{seed}.py"
    path.write_text(HELPERS + "\n\ndef f(x, n):\n" + "".join(f"    {line}\n" for line in lines))
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


@pytest.mark.parametrize("block", range(4))
def test_numpys_result_or_an_error(block: int, tmp_path: Path) -> None:
    x, refused = np.array([0.6, -0.2, 0.9, 0.1]), 0
    for seed in range(40 * block, 40 * block + 40):
        f = program(seed, tmp_path)
        expected = f(x.copy(), 3)
        try:
            actual = run_traced(convert(f), x.copy(), 3)
        except (TraceError, UnsupportedError) as error:
            if not re.search(REFUSALS, str(error)):
                raise
            refused += 1
            continue
        same(actual, tuple(np.asarray(v, float) for v in expected), f"seed {seed}")
    assert 5 < refused < 38, "most programs of this kind share some arrays, and many do not"


def views_after_a_loop(x: Any, n: int) -> Any:
    a, b = np.zeros(4), np.ones(4)
    for _ in range(n):
        b = a.ravel()
    a[3] = x[1]
    return a, b


def views_after_a_loop_written_in_a_loop(x: Any, n: int) -> Any:
    a, b, t = np.zeros(4), np.ones(4), x[0]
    for _ in range(n):
        b = a[::-1]
    while t < 2.0:
        a[3] = x[1]
        t = t + 0.7
    return a, b


@pytest.mark.parametrize("f", [views_after_a_loop, views_after_a_loop_written_in_a_loop])
def test_a_view_made_in_a_loop_shares_memory(f: Any) -> None:
    """The loop is traced on copies of the arrays: a view of a copy is one of the original."""
    with pytest.raises(TraceError, match="would also change `b`"):
        run_traced(convert(f), np.array([0.6, -0.2, 0.9, 0.1]), 3)


def test_a_copy_of_a_constant_is_another_array() -> None:
    """A gradient that depends on nothing is a constant."""

    def program(x: Any) -> Any:
        first = aj.grad(lambda u: np.sum(x) * 1.0)(x)
        second = first.copy()
        second[::2] = second[::2] + x[::2]
        return first, second

    first, second = aj.function(program)(np.ones(3))
    np.testing.assert_array_equal(first, np.zeros(3))
    np.testing.assert_array_equal(second, [1.0, 0.0, 1.0])
