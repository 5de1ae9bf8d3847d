"""The documents that this project started from: their code runs with only the import changed, eagerly and compiled, with the right output.

They are next to the repository, not in it; if they are absent, these tests are skipped.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adjit import tf

SEEDS = Path(__file__).resolve().parent.parent.parent / "shared" / "seeds"
SEED = 7

pytestmark = pytest.mark.skipif(not SEEDS.is_dir(), reason=f"the seed documents are not here ({SEEDS})")


# ---- finding the code


def code_blocks(text: str) -> list[str]:
    """Blocks between fences; in a document without fences, the longest runs of paragraphs that are Python."""
    fenced = re.findall(r"```(?:python)?\n(.*?)```", text, re.DOTALL)
    return fenced or list(bare_blocks(text))


def bare_blocks(text: str) -> Iterator[str]:
    block = ""
    for paragraph in (p for p in re.split(r"\n[ \t]*\n", text) if p.strip()):
        longer = f"{block}\n\n{paragraph}" if block else paragraph
        if is_python(longer) and (block or looks_like_code(paragraph)):
            block = longer
            continue
        if block:
            yield block
        block = paragraph if looks_like_code(paragraph) else ""
    if block:
        yield block


def looks_like_code(paragraph: str) -> bool:
    return is_python(paragraph) and any(mark in paragraph for mark in ("import ", " = ", "def ", "print("))


def is_python(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def with_our_import(block: str) -> str:
    changed, count = re.subn(r"^import tensorflow as tf$", "from adjit import tf", block, flags=re.MULTILINE)
    changed = re.sub(r"^from tensorflow import keras$", "from adjit.tf import keras", changed, flags=re.MULTILINE)
    return changed if count else f"from adjit import tf\n{block}"  # a block that continues an earlier one


def seed_blocks() -> dict[str, str]:
    if not SEEDS.is_dir():
        return {}
    found = {}
    for path in sorted(SEEDS.glob("*.txt")):
        for n, block in enumerate(code_blocks(path.read_text(encoding="utf-8")), 1):
            found[f"{path.name[:3]}-{n}"] = block
    return found


BLOCKS = seed_blocks()
WITHOUT_KERAS = {name: block for name, block in BLOCKS.items() if "keras" not in block}


# ---- the same code with the computation under tf.function


class UnderFunction(ast.NodeTransformer):
    """Moves each tape, and the code that depends on it, into a `tf.function` without arguments; its results become global again."""

    def __init__(self) -> None:
        self.made: list[ast.stmt] = []

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        first = next((i for i, s in enumerate(body) if isinstance(s, ast.With)), None)
        if first is None:
            return body
        last = max(i for i, s in enumerate(body) if i == first or (i > first and is_computation(s)))
        inside = body[first : last + 1]
        names = sorted({n for s in inside for n in assigned(s)})
        name = f"computation_{len(self.made)}"
        source = f"@tf.function\ndef {name}():\n    pass\n    return {{{', '.join(f'{n!r}: {n}' for n in names)}}}"
        (function,) = ast.parse(source).body
        assert isinstance(function, ast.FunctionDef)
        function.body[:1] = inside
        self.made.append(function)
        return [*body[:first], *ast.parse(f"globals().update({name}())").body, *body[last + 1 :]]

    def module(self, tree: ast.Module) -> ast.Module:
        out: list[ast.stmt] = []
        for stmt in self.block(tree.body):
            if isinstance(stmt, ast.For):
                stmt.body = self.block(stmt.body)
            out.append(stmt)
        # functions stand before the first statement that could call one, and behind the import
        return ast.fix_missing_locations(ast.Module([out[0], *self.made, *out[1:]], []))


def is_computation(stmt: ast.stmt) -> bool:
    text = ast.unparse(stmt)
    return isinstance(stmt, ast.Delete) or (not isinstance(stmt, ast.If) and any(mark in text for mark in (".gradient(", ".assign_sub(")))


def assigned(stmt: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(stmt) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and not n.id.endswith("tape")}


def under_function(source: str) -> str:
    return ast.unparse(UnderFunction().module(ast.parse(source)))


# ---- running


def run(source: str, folder: Path) -> tuple[str, dict[str, Any]]:
    """The output of a program, and its global names. It is in a file, so that its control flow can be traced."""
    path = folder / "seed.py"
    path.write_text(source, encoding="utf-8")
    names: dict[str, Any] = {"__name__": "seed"}
    tf.random.set_seed(SEED)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source, str(path), "exec"), names)
    return out.getvalue(), names


def drawn(*shapes: list[int]) -> list[np.ndarray]:
    """The random numbers that a program draws, in order."""
    tf.random.set_seed(SEED)
    return [tf.random.normal(shape).numpy().astype(np.float64) for shape in shapes]


# ---- the right output


def prints(*lines: str) -> Callable[[str, dict[str, Any]], None]:
    def check(out: str, names: dict[str, Any]) -> None:
        assert out.splitlines() == list(lines)

    return check


def printed_numbers(out: str) -> np.ndarray:
    return np.array([float(x) for x in re.findall(r"-?\d+\.\d+(?:e[-+]?\d+)?", out)])


def matrix_gradient(out: str, names: dict[str, Any]) -> None:
    (w,) = drawn([2, 1])
    x = np.array([[1.0, 2.0]])
    residual = x @ w - 3.0
    dw, db = 2 * x.T @ residual, 2 * residual[0]
    np.testing.assert_allclose(names["dW"].numpy(), dw, rtol=1e-5)
    matrix, vector = r"\(\n\[\[.*\]\n \[.*\]\], shape=\(2, 1\), dtype=float32\)", r"\(\[.*\], shape=\(1,\), dtype=float32\)"
    assert re.fullmatch(rf"tf\.Tensor{matrix}\ntf\.Tensor{vector}\n", out)
    np.testing.assert_allclose(printed_numbers(out)[-1], db[0], rtol=1e-5)


def doubled_relu(out: str, names: dict[str, Any]) -> None:
    (x,) = drawn([3])
    expected = 2.0 * (x > 0)
    np.testing.assert_array_equal(names["gradients"].numpy(), expected)
    assert out == f"Gradient of z with respect to x:\n {expected.astype('f4')}\n"


def cubic(out: str, names: dict[str, Any]) -> None:
    assert float(names["dy1_dx"]) == float(names["dy2_dx"]) == 48.0
    assert out == ""


def regression(out: str, names: dict[str, Any]) -> None:
    x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 8.0, 11.0, 14.0])
    w = b = 0.0
    lines = []
    for epoch in range(1000):
        e = w * x + b - y
        loss = np.mean(e**2)
        w, b = w - 0.01 * 2 * np.mean(e * x), b - 0.01 * 2 * np.mean(e)
        if epoch % 100 == 0:
            lines.append([loss, w, b])
    assert [line.partition(":")[0] for line in out.splitlines()] == [f"Epoch {n}" for n in range(0, 1000, 100)]
    np.testing.assert_allclose(printed_numbers(out).reshape(-1, 3), lines, rtol=1e-3, atol=2e-4)
    np.testing.assert_allclose([names["W"].numpy(), names["b"].numpy()], [w, b], rtol=1e-4)


def dense_layer(out: str, names: dict[str, Any]) -> None:
    x, z = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0], [0.0]])
    (w,) = drawn([2, 1])
    b = np.zeros(1)
    losses = []
    for epoch in range(200):
        logits = x @ w + b
        loss = np.mean(np.logaddexp(0.0, logits) - z * logits)
        d = (1 / (1 + np.exp(-logits)) - z) / 2
        w, b = w - 0.1 * x.T @ d, b - 0.1 * d.sum(0)
        if epoch % 50 == 0:
            losses.append(loss)
    np.testing.assert_allclose(printed_numbers(out), losses, atol=2e-4)
    np.testing.assert_allclose(names["weights"].numpy(), w, rtol=1e-3)


def hinge(out: str, names: dict[str, Any]) -> None:
    x, z = np.array([[2.0], [-1.5], [0.0]]), np.array([1.0, -1.0, 1.0])
    w, b = np.array([[1.0]]), 0.0
    for _ in range(300):
        margin = 1 - z * (x @ w + b)[:, 0]
        d = np.where(margin > 0, -z, 0.0) / 3
        w, b = w - 0.01 * (x * d[:, None]).sum(0), b - 0.01 * d.sum()
    np.testing.assert_allclose(names["W"].numpy(), w, rtol=1e-4)
    np.testing.assert_allclose(names["b"].numpy(), b, rtol=1e-4)


def policy(out: str, names: dict[str, Any]) -> None:
    theta = np.array([0.5, -0.5])
    p = np.exp(theta) / np.exp(theta).sum()
    reward = np.array([1.0, 2.0])
    expected = theta + 0.1 * p * (reward - p @ reward)
    np.testing.assert_allclose(printed_numbers(out), expected, rtol=1e-6)


def train_step(out: str, names: dict[str, Any]) -> None:
    w, x, y = drawn([3, 1], [10, 3], [10, 1])
    b = np.zeros(1)
    for _ in range(100):
        e = x @ w + b - y
        loss = np.mean(e**2)
        w, b = w - 0.01 * 2 * x.T @ e / 10, b - 0.01 * 2 * e.mean(0)
    assert out.startswith("Loss after training: ")
    np.testing.assert_allclose(printed_numbers(out), [loss], atol=2e-4)
    assert names["train_step"].experimental_get_tracing_count() == 1


def damped_sine(out: str, names: dict[str, Any]) -> None:
    assert out.startswith("dz/dx: ")
    np.testing.assert_allclose(printed_numbers(out), [np.e * (np.sin(1.0) + np.cos(1.0))], rtol=1e-6)


SIX = "tf.Tensor(6.0, shape=(), dtype=float32)"
RIGHT: dict[str, Callable[[str, dict[str, Any]], None]] = {
    "000-1": prints(SIX),
    "000-2": matrix_gradient,
    "001-1": prints("Gradient of z with respect to x: 8.0", "Gradient of z with respect to y: 0.0"),  # the document says -1
    "001-3": doubled_relu,
    "002-1": prints(SIX),
    "002-2": prints(SIX, "tf.Tensor(12.0, shape=(), dtype=float32)"),
    "002-3": prints(SIX, "tf.Tensor(108.0, shape=(), dtype=float32)"),  # the document says 36
    "003-1": prints("27.0"),
    "003-2": prints("4.0"),
    "003-3": prints("10.0", "2.0"),
    "003-4": cubic,
    "003-5": regression,
    "003-6": dense_layer,
    "003-7": hinge,
    "003-8": policy,
    "003-9": train_step,
    "004-1": prints("dy/dx: 6.0"),
    "004-2": prints("dz/dx: 4.0, dz/dy: 27.0"),
    "004-3": damped_sine,
}


def test_every_block_is_found() -> None:
    assert len(BLOCKS) == 21
    assert sorted(WITHOUT_KERAS) == sorted(RIGHT)


@pytest.mark.parametrize("name", WITHOUT_KERAS)
def test_block_runs_eagerly(name: str, tmp_path: Path) -> None:
    RIGHT[name](*run(with_our_import(WITHOUT_KERAS[name]), tmp_path))


@pytest.mark.parametrize("name", [name for name in WITHOUT_KERAS if "@tf.function" not in WITHOUT_KERAS[name]])
def test_block_runs_compiled(name: str, tmp_path: Path) -> None:
    source = under_function(with_our_import(WITHOUT_KERAS[name]))
    assert "@tf.function" in source
    RIGHT[name](*run(source, tmp_path))


@pytest.mark.parametrize("name", sorted(set(BLOCKS) - set(WITHOUT_KERAS)))
def test_block_with_keras_trains(name: str, tmp_path: Path) -> None:
    """The gradients reach every variable of the model, and the step that the block takes with them lowers its loss."""
    check = """
before = float(tf.reduce_mean(loss))
assert len(gradients) == len(model.trainable_variables) and all(g.shape == v.shape for g, v in zip(gradients, model.trainable_variables))
x, y = (x_train, y_train) if "x_train" in globals() else (input_data, labels)
after = float(tf.reduce_mean(tf.square(model(x) - y)))
print("trained:", before, after)
assert after < before
"""
    run(with_our_import(BLOCKS[name]) + check, tmp_path)
