"""Running Python programs on several ranks under mpiexec; tests that need it are skipped with a reason where it does not run."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
LAUNCHED = ("PMI_", "OMPI_", "PMIX_", "PRTE_", "MPI_", "HYDRA_")  # variables of a launcher that started the tests
LIMIT = 600  # seconds


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHED)}
    return {**kept, "PYTHONPATH": str(ROOT), "ADJIT_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **more}


@functools.cache
def is_open_mpi() -> bool:
    assert MPIEXEC is not None
    version = subprocess.run([MPIEXEC, "--version"], capture_output=True, text=True).stdout
    return "Open MPI" in version or "OpenRTE" in version


def command(count: int, *program: str) -> list[str]:
    """The command that runs a Python program on `count` ranks."""
    assert MPIEXEC is not None
    more = ["--oversubscribe", "--allow-run-as-root"] if is_open_mpi() else []
    return [MPIEXEC, *more, "-n", str(count), sys.executable, *program]


def on_ranks(count: int, *program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program on `count` ranks, with environment variables."""
    return subprocess.run(command(count, *program), env=environment(**variables), capture_output=True, text=True, timeout=LIMIT)


@functools.cache
def reason_to_skip() -> str:
    """Why no ranks can be started: MPI is not installed, or cannot start processes, as in a sandbox without a host name; "" if they can."""
    missing = "mpi4py" if importlib.util.find_spec("mpi4py") is None else "mpiexec" if MPIEXEC is None else ""
    if missing:
        return f"{missing} is not installed: pip install adjit[mpi]"
    tried = on_ranks(2, "-c", "from mpi4py import MPI; assert MPI.COMM_WORLD.Get_size() == 2")
    return f"mpiexec does not run here: {tried.stderr[-500:]}" if tried.returncode else ""


def require_ranks() -> None:
    """Skip the running test if no ranks can be started."""
    reason = reason_to_skip()
    if reason:
        pytest.skip(reason)
