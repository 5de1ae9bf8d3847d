"""examples/sweep.py with each of its libraries: functions, models and tensors are sent between processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.mpi import ROOT, environment, on_ranks, require_ranks

SWEEP = str(ROOT / "examples" / "sweep.py")


def check(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    assert "best rate: 0.1" in done.stdout


@pytest.mark.parametrize("runner", ["futures", "joblib", "dask"])
def test_processes_of_one_machine(runner: str) -> None:
    if runner != "futures":
        pytest.importorskip(runner)
    check(subprocess.run([sys.executable, SWEEP, runner], env=environment(), capture_output=True, text=True, timeout=240))


def test_ranks() -> None:
    require_ranks()
    check(on_ranks(2, "-m", "mpi4py.futures", SWEEP, "mpi"))
