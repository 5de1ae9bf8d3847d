"""profile: kernels with the user's lines, their costs by types, memory, and the export. No test depends on times."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.compile import Timed
from adjit.codegen.llvm.target import current
from adjit.codegen.peaks import peaks
from adjit.ir.ops.convolution import conv
from adjit.ir.types import F32, F64
from adjit.runtime.profile import Profile
from adjit.tracer.control import fori_loop, while_loop

M, K, N = 40, 48, 56
X = np.linspace(-1, 1, M * K).reshape(M, K).astype("f4")


def make() -> tuple[aj.Variable, Any]:
    w = aj.Variable(np.linspace(-1, 1, K * N).reshape(K, N).astype("f4"), name="w")

    @aj.function
    def step(x: Any) -> Any:
        with aj.GradientTape() as tape:
            hidden = x @ w
            loss = np.sum(np.tanh(hidden) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    return w, step


@pytest.fixture(scope="module")
def profiled() -> Profile:
    profile: Profile = make()[1].profile(X, repeat=3)
    return profile


@pytest.mark.one_size("compares bits with a program for one size")
def test_it_trains_nothing() -> None:
    w, step = make()
    before = w.numpy().copy()
    step.profile(X, repeat=2)
    assert (w.numpy() == before).all()
    assert step.trace_count == 1
    expected = float(step(X))
    fresh, other = make()
    assert float(other(X)) == expected
    assert (w.numpy() == fresh.numpy()).all()


@pytest.mark.one_size("counts traces")
def test_a_function_that_runs_for_all_sizes_is_profiled_for_one() -> None:
    f = aj.function(lambda x: np.sum(np.sin(x) * x))
    for n in (100, 1000, 2000):
        f(np.ones(n))
    assert f.trace_count == 2
    profile = f.profile(np.ones(3000), repeat=3)
    assert profile.memory.arguments == 8 * 3000
    assert "24.00 kB" in str(profile)


def test_kernels_know_their_lines_and_phases(profiled: Profile) -> None:
    products = [k for k in profiled.kernels if "matmul" in k.name]
    assert {k.phase for k in products} == {"forward", "backward"}
    line = next(k for k, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "hidden = x @ w" in text)
    for kernel in products:  # the update of w is computed with its gradient
        lines = [(Path(p.file).name, p.line) for p in kernel.locations]
        assert lines == [(Path(__file__).name, at) for at in ((line, line + 2) if "fuse" in kernel.name else (line,))]
    assert any("tanh" in k.name for k in profiled.kernels)
    assert all(k.calls == 1 and k.seconds >= 0 for k in profiled.kernels)


def test_costs_follow_from_types(profiled: Profile) -> None:
    kernel = next(k for k in profiled.kernels if k.name == f"matmul f32[{M},{K}] f32[{K},{N}]")
    assert kernel.operations == 2 * M * K * N
    assert kernel.bytes == 4 * (M * K + K * N + M * N)
    assert kernel.dtype == F32
    halved = kernel._replace(seconds=1.0)
    assert halved.gflops == pytest.approx(2e-9 * M * K * N)
    assert kernel._replace(seconds=0.0).gflops is None


def test_broadcasts_cost_as_much_as_their_operands() -> None:
    found = aj.function(lambda x, b: np.maximum(x + b, 0.0)).profile(np.ones((100, 32)), np.ones(32), repeat=1)
    (kernel,) = found.kernels
    assert kernel.bytes == 8 * (2 * 100 * 32 + 32)
    assert kernel.operations == (1 + 4) * 100 * 32  # an addition; two comparisons and two choices, which let NaN through
    assert kernel.dtype == F64


def test_memory(profiled: Profile) -> None:
    memory = profiled.memory
    assert memory.arguments == 4 * (M * K + K * N)
    assert memory.results == 4
    assert 4 * M * N <= memory.live <= memory.arena
    assert memory.stacks == 0
    assert memory.peak == memory.arguments + memory.results + memory.arena


def test_loops_count_their_iterations_and_saved_values() -> None:
    @aj.function
    def iterate(x: Any, n: Any) -> Any:
        with aj.GradientTape() as tape:
            tape.watch(x)
            y, _ = while_loop(lambda s: s[1] < n, lambda s: (np.tanh(s[0] @ s[0]) + x, s[1] + 1), (x, 0))
            loss = np.sum(y)
        return tape.gradient(loss, x)

    found = iterate.profile(aj.tensor(np.eye(24) * 0.1), 7, repeat=2)
    assert {k.calls for k in found.kernels if k.name.startswith("matmul")} == {7}
    assert found.memory.stacks >= 7 * 24 * 24 * 8


def test_loops_in_registers() -> None:
    known = aj.function(lambda y: fori_loop(0, 1000, lambda i, y: y + 0.5 * y, y)).profile(np.float64(1.0), repeat=1)
    (kernel,) = known.kernels
    assert kernel.operations == 2000
    unknown = aj.function(lambda y: while_loop(lambda y: y < 10.0, lambda y: y + 0.5 * y, y)).profile(np.float64(1.0), repeat=1)
    assert [k.operations for k in unknown.kernels] == [None]
    assert "while" in str(unknown)


def test_the_twin_computes_the_same() -> None:
    _, step = make()
    executable = step._concrete(_signature(step)).executable
    given = [X, np.ones((K, N), "f4")]
    plain, timed = ([a.copy() for a in given] for _ in range(2))
    assert executable.native(plain)[0] == Timed(executable.optimized, executable.target)(timed)[0]
    assert (plain[1] == timed[1]).all()


def _signature(step: Any) -> Any:
    from adjit.runtime.signature import take_apart

    return take_apart((X,), {}, step._static)


def test_table(profiled: Profile) -> None:
    text = str(profiled)
    head, machine, memory, _, columns, *rows = text.splitlines()
    assert head.startswith("@step: ")
    assert "GFLOP/s in f32" in machine
    assert memory.startswith("memory: ")
    assert columns.split() == ["time", "share", "calls", "GFLOP/s", "peak", "GB/s", "peak", "phase", "kernel", "lines"]
    assert len(rows) == len(profiled.kernels)
    assert any("test_profile.py:" in row and "hidden = x @ w" in row for row in rows)
    assert "@step" in repr(profiled)


def test_long_tables_are_cut() -> None:
    def chain(x: Any) -> Any:
        for _ in range(40):
            x = x @ x
        return x

    assert "more kernels" in str(aj.function(chain).profile(np.eye(8), repeat=1))


def test_export(profiled: Profile, tmp_path: Path) -> None:
    profiled.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    (whole,) = [e for e in slices if e["cat"] == "call"]
    kernels = [e for e in slices if e is not whole]
    assert sorted(e["name"] for e in kernels) == sorted(k.name for k in profiled.kernels)
    for one, following in pairwise(kernels):
        assert one["ts"] + one["dur"] <= following["ts"] + 1e-6
    assert all(e["ts"] >= 0 and e["ts"] + e["dur"] <= whole["dur"] + 1e-6 for e in kernels)
    assert any("hidden = x @ w" in line for e in kernels for line in e["args"]["lines"])
    assert max(e["args"]["bytes"] for e in events if e["ph"] == "C") == profiled.memory.live


def test_functions_with_little_to_run() -> None:
    assert len(aj.function(lambda x: x).profile(np.ones(3), repeat=1).kernels) == 1
    assert str(aj.function(lambda: np.float32(1.0)).profile(repeat=1))


def test_methods_and_keywords() -> None:
    class Model:
        scale = 3.0

        @aj.function
        def call(self, x: Any, shift: Any) -> Any:
            return self.scale * x + shift

    assert Model().call.profile(np.ones(3), shift=1.0, repeat=1).kernels


def test_errors() -> None:
    pick = aj.function(lambda x, i: x[i])
    with pytest.raises(ValueError, match="repeat must be at least 1"):
        pick.profile(np.ones(3), np.array([1]), repeat=0)
    with pytest.raises(IndexError, match="9"):
        pick.profile(np.ones(3), np.array([9]), repeat=1)
    assert pick.profile(np.ones(3), np.array([1]), repeat=4).repeat == 4


def test_peaks_are_measured_once() -> None:
    found = peaks(current())
    assert found is peaks(current())
    assert min(found.operations.values()) > 0
    assert found.bytes > 0
    assert found.threads >= 1


def test_convolutions_cost_the_same_in_all_three_directions() -> None:
    def loss(x: Any, w: Any) -> Any:
        return np.sum(conv(x, w) ** 2)

    x, w = np.ones((2, 9, 9, 4), "f4"), np.ones((3, 3, 4, 8), "f4")
    found = aj.function(aj.grad(loss, (0, 1))).profile(x, w, repeat=1)
    costs = {k.name.split()[k.name.startswith("fuse")]: k.operations for k in found.kernels if "convolve" in k.name}
    once = 2 * (2 * 7 * 7 * 8) * (3 * 3 * 4)
    assert costs == {"convolve": once + 2 * 7 * 7 * 8, "convolve_input": once, "convolve_filter": once}  # the first is fused with 2 * y
