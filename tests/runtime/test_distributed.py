"""`adjit.distributed` on one rank, on several under mpiexec, and without mpi4py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import distributed as d
from adjit.codegen.shared import windows
from adjit.ir.world import SIZES, World
from tests.mpi import environment, on_ranks, require_ranks

CHECKS = ["collectives", "derivatives", "loops", "vmapped", "sums", "uneven", "parts", "overlapped", "deferred", "different", "profiled"]
PROGRAMS = str(Path(__file__).with_name("ranks.py"))


@pytest.fixture
def ranks() -> None:
    require_ranks()


@pytest.mark.usefixtures("ranks")
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.one_size("looks for deferred sums in the text of a program")
def test_collectives_and_their_derivatives(count: int, tmp_path: Path) -> None:
    done = on_ranks(count, PROGRAMS, *CHECKS, ADJIT_NOTES=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"done.{r}" for r in range(count)]


@pytest.mark.usefixtures("ranks")
@pytest.mark.parametrize("count", [2, 3])
def test_products_that_are_summed_block_by_block(count: int, tmp_path: Path) -> None:
    done = on_ranks(count, PROGRAMS, "products", ADJIT_NOTES=str(tmp_path), ADJIT_NUM_THREADS="1")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.usefixtures("ranks")
@pytest.mark.one_size("looks for deferred sums in the text of a program")
def test_ranks_that_cannot_share_memory(tmp_path: Path) -> None:
    done = on_ranks(2, PROGRAMS, "without_windows", ADJIT_NOTES=str(tmp_path), ADJIT_NUM_THREADS="1")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.usefixtures("ranks")
def test_deferred_sums_on_several_threads(tmp_path: Path) -> None:
    done = on_ranks(2, PROGRAMS, "deferred", ADJIT_NOTES=str(tmp_path), ADJIT_NUM_THREADS="2")
    assert done.returncode == 0, done.stdout + done.stderr


WITHOUT = "import sys; sys.modules['mpi4py'] = None; "


def without_mpi4py(code: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WITHOUT + code], env=environment(**more), capture_output=True, text=True, timeout=240)


def test_one_rank_without_mpi4py(tmp_path: Path) -> None:
    program = f"import runpy; sys.argv[1:] = {CHECKS}; runpy.run_path({PROGRAMS!r}, run_name='__main__')"
    done = without_mpi4py(program, ADJIT_NOTES=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["done.0"]


NO_LIBRARY = """
import sys, types
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "mpi4py.MPI":
            raise RuntimeError("cannot load MPI library\\nlibmpi.so: cannot open shared object file")
sys.modules["mpi4py"] = types.ModuleType("mpi4py")
sys.modules["mpi4py"].__path__ = []
sys.meta_path.insert(0, Finder())
import adjit
print(adjit.distributed.rank(), adjit.distributed.size())
"""


def test_mpi4py_without_a_library() -> None:
    """As after `pip install mpi4py` alone."""
    run = [sys.executable, "-c", NO_LIBRARY]
    alone = {name: value for name, value in environment().items() if name not in SIZES}
    done = subprocess.run(run, env=alone, capture_output=True, text=True, timeout=240)
    assert done.stdout == "0 1\n", done.stderr
    done = subprocess.run(run, env={**alone, "PMI_SIZE": "2"}, capture_output=True, text=True, timeout=240)
    assert (
        "DistributedError: this process is one of 2 ranks (PMI_SIZE), but mpi4py cannot be imported (cannot load MPI library)"
        in done.stderr
    )


@pytest.mark.parametrize("name", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"])
def test_several_ranks_without_mpi4py_are_an_error(name: str) -> None:
    done = without_mpi4py("import adjit; adjit.distributed.rank()", **{name: "2"})
    assert done.returncode != 0
    assert f"DistributedError: this process is one of 2 ranks ({name}), but mpi4py cannot be imported" in done.stderr
    assert "pip install" in done.stderr


def test_import_does_not_load_mpi() -> None:
    code = "import sys, adjit; assert not {'mpi4py', 'adjit.runtime.distributed', 'adjit.ir.ops.collective'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], env=environment(), check=True, timeout=240)


@pytest.mark.usefixtures("ranks")
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


@pytest.mark.usefixtures("ranks")
def test_shards_give_the_same_bits_on_any_number_of_ranks(tmp_path: Path) -> None:
    hashes = []
    for count in (1, 2, 4):
        notes = tmp_path / str(count)
        notes.mkdir()
        run = on_ranks(count, PROGRAMS, "same_bits", ADJIT_NOTES=str(notes))
        assert run.returncode == 0, run.stderr
        hashes += [path.read_text(encoding="utf-8") for path in notes.glob("hash.*")]
    assert len(hashes) == 7
    assert len(set(hashes)) == 1


STEPS = os.environ.get("ADJIT_STEPS", "4")  # 200 on all of 1, 2 and 4 ranks with 1 and 2 threads take minutes
RUNS = [(1, 1), (1, 2), (2, 1), (4, 2)] if STEPS == "4" else [(ranks, threads) for ranks in (1, 2, 4) for threads in (1, 2)]


@pytest.mark.usefixtures("ranks")
def test_networks_have_the_same_weights_for_any_number_of_ranks_and_threads(tmp_path: Path) -> None:
    hashes: dict[str, set[str]] = {"mlp": set(), "lenet": set()}
    for count, threads in RUNS:
        notes = tmp_path / f"{count}.{threads}"
        notes.mkdir()
        run = on_ranks(count, PROGRAMS, "networks", ADJIT_NOTES=str(notes), ADJIT_NUM_THREADS=str(threads), ADJIT_STEPS=STEPS)
        assert run.returncode == 0, run.stderr
        for name, found in hashes.items():
            found.update(path.read_text(encoding="utf-8") for path in notes.glob(f"{name}.*"))
    assert {name: len(found) for name, found in hashes.items()} == {"mlp": 1, "lenet": 1}


def test_the_choice_between_shared_memory_and_mpi() -> None:
    times = {(size, least): 1.0 for size in windows.SIZES for least in (0, windows.NEVER)}
    faster = {key: 0.5 if key[1] == 0 and key[0] > windows.SIZES[1] else t for key, t in times.items()}
    assert windows.chosen(faster | {(windows.SIZES[0], 0): 3.0, (windows.SIZES[1], 0): 2.0}) == windows.SIZES[2]
    assert windows.chosen({key: 1.0 + (key[1] == 0) for key in times}) == windows.NEVER
    assert windows.chosen({key: 1.0 + (key[1] != 0) for key in times}) == 0


def test_the_first_sum_after_another_way_does_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """MPI leaves operands in the caches of other cores, which delays the following sum through windows."""
    table, clock, before = windows.MemoryTable(), [0.0], [-1]

    def sums(to: int, source: int, count: int) -> int:
        is_first, before[0] = table.least != before[0], table.least
        clock[0] += 2.0 if table.least else 9.0 if is_first else 1.0
        return 0

    comm = SimpleNamespace(Barrier=lambda: None, allreduce=lambda x, op: x, bcast=lambda x: x)
    monkeypatch.setattr(windows, "table", table)
    monkeypatch.setattr(windows, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    assert windows.measured(World(0, 2, SimpleNamespace(COMM_WORLD=comm, MAX=max)), sums) == 0


def test_shards_must_fit() -> None:
    with pytest.raises(ValueError, match="shards=6 must be a power of two and a multiple of the number of ranks, 1"):
        d.data_parallel(lambda x: x, shards=6)
    with pytest.raises(aj.ShapeError, match="a batch of 7 examples cannot be cut into 2 equal parts"):
        d.part(np.zeros(7), 2, 0)
    with pytest.raises(aj.ShapeError, match="cannot be cut into 4 equal parts"):
        d.data_parallel(lambda x: aj.mean(x), shards=4)(np.ones(6))


def test_shards_inside_of_a_compiled_function() -> None:
    """The state that a function assigns is that of one batch: floats are averaged over the parts."""
    x = np.arange(8.0)
    mean, calls = aj.Variable(0.0), aj.Variable(np.int64(0))

    def noted(x: Any) -> Any:
        mean.assign(0.5 * mean + 0.5 * aj.mean(x))
        calls.assign_add(1)
        return aj.mean(x**2), {"x": x[0]}

    for run in (d.data_parallel(noted), d.data_parallel(noted, 4), aj.function(d.data_parallel(noted, 4)), aj.function(noted)):
        mean.assign(1.0)
        calls.assign(0)
        square, first = run(x)
        assert (float(square), float(mean), int(calls)) == (17.5, 2.25, 1)
        assert float(first["x"]) in (0.0, 3.0)
