"""`function.source`: users' functions, the survey, the examples and random programs, as text that needs only NumPy."""

from __future__ import annotations

import importlib
import io
import linecache
import os
import subprocess
import sys
import traceback
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj
from tests.examples import EXAMPLES, captured
from tests.ir.source_checks import assert_same_bits, check_halves, check_native
from tests.ir.test_source import formatted, save
from tests.programs.check import traced
from tests.programs.grammar import program_of
from tests.programs.reference import adjit_side

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = int(os.environ.get("ADJIT_SOURCE_PROGRAMS", "50"))
FIRST = int(os.environ.get("ADJIT_SOURCE_SEED", "0"))  # NumPy rounds some sums otherwise in another layout: not all seeds give equal bits
SHARE = 1 if PROGRAMS >= 1000 else 8  # one of so many is compared with native code, too: compiling takes most of the time


# ---- the step of the README

W = aj.Variable(np.zeros((3, 1), "f4"), name="W")
b = aj.Variable(np.zeros(1, "f4"), name="b")


@aj.function
def train_step(x: Any, y: Any) -> Any:
    with aj.GradientTape() as tape:
        loss = np.mean((x @ W + b - y) ** 2)
    dW, db = tape.gradient(loss, [W, b])
    W.assign_sub(0.01 * dW)
    b.assign_sub(0.01 * db)
    return loss


X = np.random.default_rng(0).normal(size=(64, 3)).astype("f4")
Y = X @ np.array([[1.0], [2.0], [3.0]], "f4") + np.float32(0.5)


def test_a_training_step_is_short_and_readable() -> None:
    text = train_step.inspect(X, Y).source
    written = [line for line in text.splitlines() if line.strip()]
    assert len(written) <= 25
    assert "    t0 = x @ W + b - y\n" in text
    assert "    dW = x.T @ t1\n" in text
    assert "    W_new = W - 0.01 * dW\n" in text
    assert ": W.assign_sub(0.01 * dW)\n" in text


def test_functions_run_and_agree_with_native_code() -> None:
    source = train_step.source(X, Y)
    assert source.text == train_step.inspect(X, Y).source
    before = W.numpy().copy()
    loss, new_w, new_b = source()
    np.testing.assert_array_equal(W.numpy(), before)
    kept = [a.copy() for a in source.arguments]
    np.testing.assert_allclose(train_step(X, Y), loss, rtol=1e-5)
    np.testing.assert_allclose(W.numpy(), new_w, rtol=1e-5)
    np.testing.assert_allclose(b.numpy(), new_b, rtol=1e-5)
    loss, saved = source.forward(*kept)
    assert source.backward is not None
    x, _, w, bias = kept
    np.testing.assert_array_equal(source.backward(x, w, bias, saved)[0], new_w)


def test_methods_have_sources() -> None:
    class Model:
        def __init__(self) -> None:
            self.scale = aj.Variable(2.0, name="scale")

        @aj.function
        def loss(self, x: Any) -> Any:
            return np.sum(x * self.scale)

    source = Model().loss.source(np.arange(3.0))
    assert source() == 6.0
    assert "def loss(x, scale):" in source.text


@pytest.mark.parametrize("transform", [aj.grad, aj.value_and_grad])
def test_transforms_keep_the_names_of_parameters(transform: Any) -> None:
    @aj.function
    @transform
    def f(weights: Any, data: dict[str, Any]) -> Any:
        return np.sum(np.tanh(weights * data["inputs"]))

    text = f.source(np.ones(3), {"inputs": np.ones(3)}).text
    assert "(weights, data_inputs" in text
    assert "dweights" in text


# ---- debuggers and tracebacks


def test_tracebacks_show_the_lines() -> None:
    source = aj.function(lambda x, i: np.sum(np.sin(x)[i]))
    f = source.source(np.ones(3), np.array([0, 1]))
    with pytest.raises(IndexError) as caught:
        f(np.ones(3), np.array([0, 7]))
    assert "np.sin(x)" in "".join(traceback.format_exception(caught.value))
    linecache.checkcache()
    assert linecache.getline(f.filename, 1).startswith("# written by adjit")


def test_lines_are_forgotten_with_the_functions() -> None:
    source = aj.function(lambda x: x * 2.0).source(np.ones(2))
    name, forward = source.filename, source.forward
    del source
    assert name in linecache.cache
    del forward
    import gc

    gc.collect()
    assert name not in linecache.cache


# ---- files


def test_a_saved_module_needs_numpy_only(tmp_path: Path) -> None:
    table = np.random.default_rng(1).normal(size=(200, 2))

    @aj.function
    @aj.value_and_grad
    def loss(w: Any, i: Any) -> Any:
        y = table[i] @ w
        total = 0.0
        while np.sum(y * y) > 1.0:
            y = y * 0.5
        for k in range(3):
            total = total + np.sum(y[k])
        return total

    w, i = np.array([2.0, 3.0]), np.array([5, 100, 199])
    value, slope = loss(w, i)
    source = loss.source(w, i)
    path = source.save(tmp_path / "loss.py")
    assert (tmp_path / "loss.npz").exists()
    assert "table" not in source.text or "c0" in source.text
    script = f"""
import sys
sys.path[:] = [p for p in sys.path if "site-packages" not in p] + [{str(Path(np.__file__).parents[1])!r}]
import importlib.util
import io
assert importlib.util.find_spec("adjit") is None
sys.path.insert(0, {str(tmp_path)!r})
import numpy as np, loss
value, slope = loss.loss(np.array([2.0, 3.0]), np.array([5, 100, 199]))
assert not any(name.partition(".")[0] in ("adjit", "llvmlite") for name in sys.modules)
print(repr(float(value)), [float(v) for v in slope])
"""
    # without `site`, the editable install of adjit is not on the path, as in an environment that has NumPy alone
    out = subprocess.run([sys.executable, "-S", "-I", "-c", script], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    printed, gradient = out.stdout.split(" ", 1)
    assert float(printed) == pytest.approx(float(value), rel=1e-12)
    np.testing.assert_allclose(eval(gradient), slope, rtol=1e-12)
    assert path.read_text() == source.text


# ---- everything that we have


def survey() -> dict[str, Any]:
    """The functions of the survey, on small arguments of the same kind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "benchmarks")  # where a script finds the modules beside it
        out: dict[str, Any] = importlib.import_module("survey").cases()
    return out


def shrunk(x: Any) -> Any:
    if isinstance(x, dict):
        return {k: shrunk(v) for k, v in x.items()}
    if isinstance(x, tuple | list):
        return type(x)(shrunk(v) for v in x)
    if not isinstance(x, np.ndarray) or x.size <= 4096:
        return x
    small = np.ascontiguousarray(x[tuple(slice(min(n, 16)) for n in x.shape)])
    return small % 16 if small.dtype.kind in "iu" else small


def test_the_survey(tmp_path: Path) -> None:
    done = 0
    for name, case in survey().items():

        def f(*args: Any, case: Any = case) -> Any:
            return case.function(np, *args)

        for args in (shrunk(case.args), case.args):
            try:
                with np.errstate(all="ignore"):
                    case.function(np, *args)
                break
            except (ValueError, IndexError):  # sizes that do not fit any more
                continue
        func, arrays = traced(aj.value_and_grad(f, case.wrt) if case.wrt else f, args)
        with np.errstate(all="ignore"):
            source = check_halves(func, arrays)
            if done % SHARE == 0:
                check_native(func, arrays, source)
        save(tmp_path, name, source.text)
        done += 1
    assert done > 50
    assert formatted(tmp_path) == ""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples(example: Path, tmp_path: Path) -> None:
    found = captured(example).functions
    assert found
    for number, (concrete, arrays) in enumerate(found):
        with np.errstate(all="ignore"):
            source = check_halves(concrete.program.func, arrays)
            check_native(concrete.program.func, arrays, source, concrete.executable.native)
        save(tmp_path, f"{example.stem}_{number}", source.text)
    assert formatted(tmp_path) == ""


def test_complex_numbers_are_written_as_such() -> None:
    z = np.array([1 + 2j, 3.0, -0.5j])
    f = aj.function(lambda z: np.sum(np.abs(np.exp(z) * z) ** 2))
    assert "np.exp(z)" in f.source(z).text
    np.testing.assert_allclose(f.source(z)(z), f(z), rtol=1e-12)
    slope = aj.function(aj.grad(lambda z: np.sum(np.abs(np.fft.fft(z)) ** 2)))
    np.testing.assert_allclose(slope.source(z)(z), slope(z), rtol=1e-12)


def test_a_loop_inside_of_a_loop_starts_from_the_same_value_each_time() -> None:
    def f(x: Any) -> Any:
        start, total = np.sin(x), x
        for _ in aj.range(3):
            inner = start
            while np.sum(inner * inner) > 0.5:
                inner = inner * 0.6
            total = total * 0.5 + inner
        return np.sum(total)

    x = np.linspace(0.5, 1.5, 4)
    for function in (f, aj.grad(f)):
        np.testing.assert_allclose(aj.function(function).source(x)(), aj.function(function)(x), rtol=1e-12)


def test_random_programs(tmp_path: Path) -> None:
    """Programs with control flow. `ADJIT_SOURCE_PROGRAMS=1000` runs as many, all of them natively, too."""
    drawn = (program_of(seed) for seed in count(FIRST))
    flowing = (program for program in drawn if any(inner.parts for node in program.body for inner in node.walk()))
    flow = 0
    for number, program in enumerate(islice(flowing, PROGRAMS)):
        functions = program.functions(adjit_side(program.variables))
        at = program.differentiated
        f = aj.value_and_grad(functions["loss"], tuple(at)) if at else functions["program"]
        with np.errstate(all="ignore"):
            func, arrays = traced(f, list(program.inputs.values()))
            source = check_halves(func, arrays)
            if number % SHARE == 0:
                check_native(func, arrays, source)
        save(tmp_path, f"p{program.seed}", source.text)
        flow += any(word in source.text for word in ("    if ", "    for ", "    while "))
    assert flow > PROGRAMS // 2  # Python decides the rest, which leaves no trace
    assert formatted(tmp_path) == ""


def test_assert_same_bits_sees_a_sign() -> None:
    with pytest.raises(AssertionError):
        assert_same_bits((np.float64(0.0),), [np.asarray(-0.0)], "")
    with pytest.raises(AssertionError):
        assert_same_bits((np.float32(0.0),), [np.asarray(0.0)], "")


# ---- the page of the documentation


def test_the_recorded_session_is_what_pdb_shows() -> None:
    page = (ROOT / "docs" / "source.md").read_text(encoding="utf-8")
    code, text = page.split("```python\n", 1)[1].split("```\n", 1)[0], page.split("```output\n", 1)[1].split("```\n", 1)[0]
    names: dict[str, Any] = {}
    linecache.cache["model.py"] = (len(code), None, code.splitlines(keepends=True), "model.py")
    exec(compile(code.replace("print(source)\n", ""), "model.py", "exec"), names)
    source = names["source"]
    assert source.text == text
    session = page.split("```pdb\n", 1)[1].split("```\n", 1)[0].splitlines()[1:]
    commands = [line.removeprefix("(Pdb) ") for line in session if line.startswith("(Pdb) ")]
    out = io.StringIO()
    source.debug(stdin=io.StringIO("\n".join(commands) + "\n"), stdout=out)
    shown = out.getvalue().replace("(Pdb) ", "").replace(source.filename, "<adjit source of root>").splitlines()
    recorded = [line for line in session if not line.startswith("(Pdb) ")]
    assert [line for line in shown if "breakpoint" not in line] == recorded


def test_debugging_leaves_the_trace_function_alone() -> None:
    """Coverage measures with one: without it, nothing after a debugged program would be counted."""
    source = aj.function(lambda x: np.sin(x) * 2.0).source(np.ones(3))

    def trace(frame: Any, event: str, argument: Any) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        source.debug(stdin=io.StringIO("continue\n"), stdout=io.StringIO())
        after = sys.gettrace()
    finally:
        sys.settrace(before)
    assert after is trace
