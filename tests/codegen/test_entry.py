"""A Python that the native entry does not know: every call goes through Python, with the same results."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from collections import namedtuple
import numpy as np
import adjit as aj
from adjit.codegen.entry import entry

Version = namedtuple("Version", "major minor micro releaselevel serial")
sys.version_info = Version(*{version})
assert not entry.available()
W = aj.Variable(np.ones((3, 1)))

@aj.function
def step(x, y):
    with aj.GradientTape() as tape:
        loss = np.mean((x @ W - y) ** 2)
    W.assign_sub(0.1 * tape.gradient(loss, W))
    return loss

x, y = np.eye(3), np.zeros((3, 1))
losses = [float(step(x, y)) for _ in range(50)]
np.testing.assert_allclose(losses, [(14 / 15) ** (2 * k) for k in range(50)], rtol=1e-12)
np.testing.assert_allclose(W.numpy(), np.full((3, 1), (14 / 15) ** 50), rtol=1e-12)
assert step.trace_count == 1
"""


@pytest.mark.parametrize("version", [(3, 14, 0, "final", 0), (3, 10, 0, "final", 0), (4, 0, 0, "final", 0)], ids=str)
def test_an_unknown_python_calls_through_python(version: tuple[object, ...]) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(version=version)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
