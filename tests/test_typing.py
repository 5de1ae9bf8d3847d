"""What a user's type checker sees of adjit, in an ordinary file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

api = pytest.importorskip("mypy.api")

PROGRAM = """
from typing import Any, Callable

import numpy as np

import adjit as aj

x: aj.Tensor = aj.tensor([1.0, 2.0])
y: aj.Tensor = (x * 2 + 1)[0] @ x.T - np.ones(2)
total: float = float(y.sum())
array: np.ndarray[Any, Any] = x.reshape(2, 1).numpy()
shown: float = float(aj.sum(x)) + aj.exp(x).numpy()[0]
w = aj.Variable(np.zeros(3), name="w")


@aj.function
def scaled(x: aj.Tensor, factor: float = 1.0) -> aj.Tensor:
    return x * factor


@aj.function(static=["n"])
def power(x: aj.Tensor, n: int) -> aj.Tensor:
    return x**n


@aj.value_and_grad
def loss(x: aj.Tensor, scale: float) -> aj.Tensor:
    return (x * scale).sum()


with aj.GradientTape() as tape:
    tape.watch(x)
    out: aj.Tensor = scaled(x, factor=2.0)
gradient = tape.gradient(out, x)
value, slope = loss(x, 2.0)
text: str = scaled.inspect(x).forward
again: Callable[[aj.Tensor, float], aj.Tensor] = scaled

scaled("text")  # wrong: arg-type
scaled(x, scale=2.0)  # wrong: call-arg
power(x, 2.5)  # wrong: arg-type
loss(x)  # wrong: call-arg
"""


def test_an_ordinary_file(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    root = Path(__file__).parents[1]
    options = ["--strict", "--config-file", str(root / "pyproject.toml"), "--cache-dir", str(root / ".mypy_cache"), "--no-error-summary"]
    out, errors, _ = api.run([*options, str(path)])
    found = {int(line): kind for line, kind in re.findall(r"program\.py:(\d+): error: .*\[([a-z-]+)\]", out)}
    expected = {n: m[1] for n, line in enumerate(PROGRAM.splitlines(), 1) if (m := re.search(r"# wrong: (\S+)", line))}
    assert found == expected, out + errors
