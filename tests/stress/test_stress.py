"""The stress program, for a while: `ADJIT_STRESS=1800` runs it for so many seconds. It prints its seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stress.stress import patience

ROOT = Path(__file__).parents[2]
SECONDS = float(os.environ.get("ADJIT_STRESS", "15"))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read the way Linux shows it, and the program forks")
def test_threads_forks_and_interrupts_together(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.stress.stress", "--seconds", str(SECONDS)], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "ADJIT_CACHE_DIR": str(tmp_path / "cache")}, timeout=SECONDS * 2 + patience(400),
    )  # fmt: skip
    print(run.stdout)
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr[-20_000:]}"
