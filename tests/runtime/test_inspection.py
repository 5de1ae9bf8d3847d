"""The output of inspect and ADJIT_DUMP."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj

W = aj.Variable(np.ones((3, 2), "f4"), name="W")


@aj.function
def step(x: Any) -> Any:
    with aj.GradientTape() as tape:
        loss = np.mean(np.tanh(x @ W) ** 2)
    W.assign_sub(0.1 * tape.gradient(loss, W))
    return loss


@aj.function
def branching(x: Any) -> Any:
    return x if x.sum() > 0 else -x


X = np.ones((4, 3), "f4")


@pytest.mark.one_size("compares texts")
def test_stages() -> None:
    before = W.numpy().tolist()
    seen = step.inspect(X)
    assert seen.traced.startswith("func @step(%x: f32[4,3], %W: f32[3,2])")
    assert "saving" in seen.forward.splitlines()[0]
    assert "tanh" in seen.forward
    assert seen.backward.startswith("func @step.bwd(")
    assert "updating %W" in seen.backward
    assert "%W.bar" in seen.backward
    assert "fuse" in seen.optimized
    assert "ag__.if_exp" in branching.inspect(X).autograph
    assert "define" in seen.llvm
    assert seen.asm
    assert seen.arena_bytes >= 0
    assert set(seen.seconds) == {"trace", "optimize", "compile"}
    assert W.numpy().tolist() == before


def test_passes_have_texts_and_counts() -> None:
    passes = step.inspect(X).passes
    assert passes[0].name == "traced"
    assert passes[-1].text == step.inspect(X).optimized
    assert all(isinstance(p.ops, int) and p.text.startswith("func @step") for p in passes)
    assert passes[-1].ops <= passes[0].ops


def test_summary_is_readable() -> None:
    text = str(step.inspect(X))
    assert re.search(r"traced +\d+ ops", text)
    assert "forward:\nfunc @step.fwd" in text
    assert "backward:\nfunc @step.bwd" in text


def test_a_function_without_gradient_has_no_backward_part() -> None:
    seen = aj.function(lambda x: x + 1.0).inspect(X)
    assert seen.backward == ""
    assert "no backward part" in str(seen)


def test_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aj.config, "dump", "all")
    monkeypatch.setattr(aj.config, "dump_directory", str(tmp_path))
    aj.function(lambda x: x + 1.0, name="all")(1.0)
    monkeypatch.setattr(aj.config, "dump", "fuse")
    aj.function(lambda x: x + 1.0, name="one")(1.0)
    everything, one = sorted(tmp_path.iterdir(), key=lambda p: p.name)
    names = sorted(p.name for p in everything.iterdir())
    assert names[0] == "00.traced.ir"
    assert len(names) > 3
    (only,) = one.iterdir()
    assert only.name.endswith(".fuse.ir")
    assert only.read_text().startswith("func @one(")
    monkeypatch.setattr(aj.config, "dump", "fsue")
    with pytest.raises(ValueError, match=r"there is no pass 'fsue' .* choose one of all, traced, .*fuse"):
        aj.function(lambda x: x + 1.0, name="none")(1.0)


def test_autograph_gives_the_reason_for_tracing_without_conversion() -> None:
    made: dict[str, Any] = {}
    exec(compile(ast.parse(" ".join(["def", "f(x):", "return", "x", "+", "1"])), "<made>", "exec"), made)  # its text is nowhere
    assert aj.function(made["f"]).inspect(X).autograph.startswith("# f is not converted: its source is not available")
    assert aj.function(np.sin).inspect(X).autograph == "# to_code takes a Python function, not ufunc\n"


def test_gradients_keep_the_names_of_parameters() -> None:
    def loss(weights: Any, x: Any, *, scale: Any = 1.0) -> Any:
        return np.sum(np.tanh(weights["w"] * x)) * scale

    for transform in (aj.grad, aj.value_and_grad):
        found = aj.function(transform(loss)).inspect({"w": np.ones(3)}, np.ones(3), scale=2.0)
        assert "(%weights.w: f64[3], %x: f64[3], %scale: f64[])" in re.sub(r",\n +", ", ", found.forward)
        assert "%weights.w.bar" in found.backward


def test_effects_before_the_gradient_belong_to_the_forward_part() -> None:
    @aj.function
    def step(x):
        with aj.GradientTape() as tape:
            tape.watch(x)
            print("x is", x)
            y = x * x
        slope = tape.gradient(y, x)
        print("slope is", slope)
        return slope

    seen = step.inspect(3.0)
    assert "x is" in seen.forward
    assert "slope is" not in seen.forward
    assert "slope is" in seen.backward
    assert "x is" not in seen.backward
