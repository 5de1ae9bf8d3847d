"""docs/subgradients.md against adjit: every row of its tables, eagerly and compiled, by reverse and by forward mode."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj
from tests.ops.test_subgradients import TABLE

PAGE = Path(__file__).parent.parent / "docs" / "subgradients.md"


def rows(columns: int) -> list[list[str]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [[cell.strip("`") for cell in row] for row in cells if len(row) == columns]


def numbers(text: str) -> Any:
    return eval(text, {"inf": np.inf})


def function_of(text: str, at: str) -> tuple[Callable[..., Any], list[np.ndarray[Any, Any]]]:
    names = re.findall(r"(\w+)=", at)
    point = eval(f"dict({at})", {"inf": np.inf})
    scope = {name: getattr(aj, name) for name in aj.__all__}
    return eval(f"lambda {', '.join(names)}: {text}", scope), [np.array(point[n], "f8") for n in names]


@pytest.mark.parametrize("row", rows(4), ids=lambda r: f"{r[0]} at {r[1]}")
def test_gradients(row: list[str]) -> None:
    fn, point = function_of(row[0], row[1])
    wanted = numbers(f"({row[2]},)")

    def gradients(*args: Any) -> Any:
        return aj.grad(fn, argnums=range(len(args)))(*args)

    def slopes(*args: Any) -> Any:
        return aj.jacobian(fn, argnums=range(len(args)), mode="forward")(*args)

    for derivative in (gradients, aj.function(gradients), slopes, aj.function(slopes)):
        for got, want in zip(derivative(*point), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)


@pytest.mark.parametrize("row", rows(2), ids=lambda r: f"{r[0]} at {r[1]}")
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_not_differentiable(row: list[str], compiled: bool) -> None:
    fn, point = function_of(row[0], row[1])
    found: list[Any] = []

    def ask(x: Any) -> Any:
        with aj.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = fn(x)
        found.append((tape.gradient(y, x), tape.explain(y, x)))
        return x

    (aj.function(ask) if compiled else ask)(aj.tensor(point[0]))
    gradient, reason = found[0]
    assert gradient is None
    assert "connected:" not in reason


def test_the_page_and_the_table_of_ops_speak_of_the_same() -> None:
    """Every function at a special point in the ops' own table has its row on the page."""
    spelled = {"abs": "absolute", "atanh": "arctanh", "asin": "arcsin", "atan2": "arctan2", "0": "power", "x": "x**"}
    text = " ".join(row[0] for row in rows(4))
    left_out = {"softplus", "sigmoid", "asinh", "negative", "where"}  # smooth there, or spelled out by rows of their own
    words = {re.split(r"[ ,]", name)[0] for name, *_ in TABLE} - left_out
    assert [w for w in sorted(words) if spelled.get(w, w) not in text] == []
