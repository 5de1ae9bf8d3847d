"""Compiled functions in several threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FIRST_CALLS = """
import threading, numpy as np, adjit as aj

barrier = threading.Barrier(4)
found = {}

def work(k):
    f = aj.function(lambda x: np.sum(np.sin(x) * k) + np.sum(x @ x.T))
    barrier.wait()
    for _ in range(20):
        found[k] = f(np.ones((10 + int(k), 3)))

threads = [threading.Thread(target=work, args=(float(k),)) for k in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for k, y in found.items():
    assert np.isclose(y, np.sin(1.0) * k * (10 + k) * 3 + 3 * (10 + k) ** 2), (k, y)
assert len(found) == 4
"""


def test_first_calls_of_several_threads_at_once(tmp_path: Path) -> None:
    """All that is made at the first call of a process (LLVM, the linker, the entry, products, the pool) is made by four threads at once."""
    for _ in range(2):  # with an empty disk cache, and with a full one
        run = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", FIRST_CALLS],
            env={"PATH": "", "ADJIT_CACHE_DIR": str(tmp_path / "cache")}, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
