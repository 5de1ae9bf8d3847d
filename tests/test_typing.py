"""The types that a user's type checker infers for adjit, in an ordinary file."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess
import sys
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
made: aj.Tensor = aj.zeros((3, 4)) + aj.ones(4) * aj.arange(4)
read: aj.Tensor = w * 2.0 + aj.exp(w)
spectrum: aj.Tensor = aj.abs(aj.fft.rfft(x)) + aj.special.gammaln(x)[0]
drawn: aj.Tensor = aj.random.normal(aj.random.key(0), (3,))
count: int = aj.sum(x).ndim


def norm(x: aj.Tensor) -> aj.Tensor:
    return aj.sqrt(aj.sum(x * x)) + aj.linalg.norm(x)


def joined(a: aj.Tensor, b: aj.Tensor) -> aj.Tensor:
    return aj.where(a > 0, aj.concatenate([a, b], axis=0), aj.stack([a, b])[0])


def moments(x: aj.Tensor) -> tuple[aj.Tensor, aj.Tensor]:
    return aj.mean(x, axis=0), aj.std(x, axis=0)


def spread(x: aj.Tensor) -> aj.Tensor:
    values, vectors = aj.linalg.eigh(x)
    return aj.max(values) - aj.min(values) + vectors[0, 0]


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
steps: aj.Tensor = aj.vmap(scaled)(aj.ones((2, 3)))
text: str = scaled.inspect(x).forward
again: Callable[[aj.Tensor, float], aj.Tensor] = scaled

scaled("text")  # wrong: arg-type
scaled(x, scale=2.0)  # wrong: call-arg
power(x, 2.5)  # wrong: arg-type
loss(x)  # wrong: call-arg
"""


ROOT = Path(__file__).parents[1]


def test_stubs_are_those_of_the_functions() -> None:
    """`python tests/tools/stubs.py` writes them."""
    tool = runpy.run_path(str(ROOT / "tests/tools/stubs.py"))
    stale = [str(path) for path, text in tool["stubs"]().items() if not path.exists() or path.read_text() != text]
    assert not stale, f"run tests/tools/stubs.py: {stale}"


def test_an_ordinary_file(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    options = ["--strict", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache"), "--no-error-summary"]
    out, errors, _ = api.run([*options, str(path)])
    found = {int(line): kind for line, kind in re.findall(r"program\.py:(\d+): error: .*\[([a-z-]+)\]", out)}
    expected = {n: m[1] for n, line in enumerate(PROGRAM.splitlines(), 1) if (m := re.search(r"# wrong: (\S+)", line))}
    assert found == expected, out + errors


@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is not installed")
def test_an_ordinary_file_with_pyright(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)]}))
    run = subprocess.run(
        ["pyright", "--outputjson", "--pythonpath", sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    found = {d["range"]["start"]["line"] + 1 for d in json.loads(run.stdout)["generalDiagnostics"] if d["severity"] == "error"}
    assert found == {n for n, line in enumerate(PROGRAM.splitlines(), 1) if "# wrong:" in line}, run.stdout
