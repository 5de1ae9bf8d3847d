"""`adjit.distributed` on one rank, on several under mpiexec, and without mpi4py."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
MISSING = "mpi4py" if importlib.util.find_spec("mpi4py") is None else "mpiexec" if MPIEXEC is None else ""
needs_mpi = pytest.mark.skipif(bool(MISSING), reason=f"{MISSING} is not installed: pip install adjit[mpi]")
CHECKS = ["collectives", "derivatives", "loops", "vmapped"]
PROGRAMS = str(Path(__file__).with_name("ranks.py"))


def environment(**more: str) -> dict[str, str]:
    launched = ("PMI_", "OMPI_", "PMIX_", "MPI_", "HYDRA_")  # of a launcher that started the tests
    kept = {name: value for name, value in os.environ.items() if not name.startswith(launched)}
    return {**kept, "PYTHONPATH": str(ROOT), "ADJIT_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **more}


def on_ranks(count: int, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program on `count` ranks."""
    assert MPIEXEC is not None
    version = subprocess.run([MPIEXEC, "--version"], capture_output=True, text=True).stdout
    more = ["--oversubscribe", "--allow-run-as-root"] if "Open MPI" in version or "OpenRTE" in version else []
    line = [MPIEXEC, *more, "-n", str(count), sys.executable, *command]
    return subprocess.run(line, env=environment(), capture_output=True, text=True, timeout=60)


@needs_mpi
@pytest.mark.parametrize("count", [2, 4])
def test_collectives_and_their_derivatives(count: int) -> None:
    done = on_ranks(count, PROGRAMS, *CHECKS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(re.findall(r"rank \d of \d: done", done.stdout)) == [f"rank {r} of {count}: done" for r in range(count)]


WITHOUT = "import sys; sys.modules['mpi4py'] = None; "


def without_mpi4py(code: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WITHOUT + code], env=environment(**more), capture_output=True, text=True, timeout=60)


def test_one_rank_without_mpi4py() -> None:
    done = without_mpi4py(f"import runpy; sys.argv[1:] = {CHECKS}; runpy.run_path({PROGRAMS!r}, run_name='__main__')")
    assert done.stdout == "rank 0 of 1: done\n", done.stderr


@pytest.mark.parametrize("name", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"])
def test_several_ranks_without_mpi4py_are_an_error(name: str) -> None:
    done = without_mpi4py("import adjit; adjit.distributed.rank()", **{name: "2"})
    assert done.returncode != 0
    assert f"DistributedError: started as one of 2 ranks ({name}), but mpi4py cannot be imported" in done.stderr
    assert "pip install" in done.stderr


def test_import_does_not_load_mpi() -> None:
    code = "import sys, adjit; assert not {'mpi4py', 'adjit.runtime.distributed', 'adjit.ir.ops.collective'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], env=environment(), check=True, timeout=60)


@needs_mpi
@pytest.mark.parametrize("failing", ["1 / 0", "raise KeyboardInterrupt"])
def test_an_error_on_one_rank_ends_the_others(failing: str) -> None:
    """The others wait for it in native code, which no signal of Python's interrupts."""
    program = f"""
import numpy as np, adjit as aj
from adjit import distributed as d
step = aj.function(lambda x: d.all_reduce(x))
step(np.ones(3))
if d.rank() == 1:
    {failing}
step(np.ones(3))
"""
    done = on_ranks(2, "-c", program)
    assert done.returncode != 0
    assert "rank 1 of 2 failed; ending all ranks" in done.stderr
