"""SciPy and scikit-learn compute with tensors under array API dispatch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("library", ["scipy", "sklearn"])
def test_libraries_compute_with_tensors(library: str) -> None:
    pytest.importorskip(library, exc_type=ImportError)
    pytest.importorskip("array_api_compat")
    script = Path(__file__).with_name("array_consumers.py")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, str(script), library], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
