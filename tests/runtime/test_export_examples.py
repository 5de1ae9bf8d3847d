"""The functions that the examples compile, exported and called from C, with the bits of Python; the page that trains in a browser."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adjit.codegen.export import targets
from adjit.ir.errors import UnsupportedError
from adjit.ir.ops.base import Array
from adjit.runtime.concrete import ConcreteFunction
from adjit.runtime.config import config
from adjit.runtime.export import Outside, outside
from adjit.runtime.signature import Signature
from tests.codegen.export_harness import EVERYTHING, Batch, browser, need, shown

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FUNCTIONS = 6 if EVERYTHING else 1  # of each example
QUICK = ("inspect_ir", "linear_regression", "newton", "ode_fit", "rnn", "seeds_train_step", "series_lstm", "train_mlp")
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if EVERYTHING or path.stem in QUICK)


class Done(BaseException):
    """Enough of the example has run."""


class Recorded:
    """The functions that an example compiles, with the arguments and variables of their first calls."""

    def __init__(self) -> None:
        self.found: list[tuple[Outside, list[Array], list[Array], Any]] = []

    def __call__(self, concrete: ConcreteFunction, signature: Signature) -> None:
        with contextlib.suppress(UnsupportedError):  # it prints
            made = outside(concrete.program, targets.named("host", 1), f"f{len(self.found)}")
            given = [np.array(a) for a in signature.arrays]
            values = concrete.convention.copies([np.array(a) for a in given], signature.stores, every=True)
            self.found.append((made, given, values, concrete.executable.native))
        if len(self.found) >= FUNCTIONS:
            raise Done


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    out = Recorded()
    monkeypatch.setattr("adjit.runtime.function.observers", [out])
    monkeypatch.setattr(config, "dynamic", False)  # what is exported is compiled for one size
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])
    yield out
    for name in NAMES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", NAMES)
def test_examples_give_the_same_bits(name: str, recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [name])
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(Done), contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    if not recorded.found:
        pytest.skip("it compiles nothing that can be exported")
    batch = Batch(tmp_path)
    for made, given, _, _ in recorded.found:
        batch._add(made, [given])
    for outcome, (made, _, values, native) in zip(batch.run(), recorded.found, strict=True):
        results = native(values)
        variables = [a for a in values[len(made.interface.arguments) :][: len(made.interface.state)] if a.size]
        assert outcome.codes == [0]
        assert [a.tobytes() for a in outcome.results[0]] == [a.tobytes() for a in results]
        assert [a.tobytes() for a in outcome.state] == [a.tobytes() for a in variables]


# ---- the browser


def test_the_page_learns_in_a_browser(tmp_path: Path) -> None:
    browser()
    subprocess.run([sys.executable, EXAMPLES / "export_moons.py", "--output", tmp_path], check=True, capture_output=True)
    for milliseconds in (3_000, 10_000, 30_000):  # how many frames there are depends on how busy the machine is
        text = shown(tmp_path / "moons.html", "#steps=40", milliseconds)
        found = re.search(r'<body data-step="(\d+)" data-loss="([\d.e-]+)" data-accuracy="([\d.]+)"', text)
        if found is not None:
            break
    assert found is not None
    assert int(found[1]) >= 40
    assert float(found[2]) < 0.2
    assert float(found[3]) > 0.9


def test_the_page_computes_what_python_does(tmp_path: Path) -> None:
    """The same module, the same points, in Node."""
    need("node")
    sys.path.insert(0, str(EXAMPLES))
    try:
        import export_moons
    finally:
        sys.path.remove(str(EXAMPLES))
    points, labels = np.zeros((export_moons.POINTS, 2), "f4"), np.zeros(export_moons.POINTS, "f4")
    points[:200], labels[:200] = export_moons.moons(np.random.default_rng(1), 200)
    counts = (np.arange(export_moons.POINTS) < 200).astype("f4")
    frame = export_moons.trained_field()
    call = [points, labels, counts, np.int64(20), np.float64(0.01)]
    batch = Batch(tmp_path, "wasm32")
    batch.add(frame, [call], (points, labels, counts, 20, 0.01))
    (outcome,) = batch.run()
    wanted = frame(points, labels, counts, 20, 0.01)
    for got, name in zip(outcome.results[0], wanted, strict=True):
        np.testing.assert_allclose(got, np.asarray(wanted[name]), rtol=2e-4, atol=2e-4)
