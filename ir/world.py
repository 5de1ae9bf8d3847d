"""The ranks of an MPI program, through mpi4py. It is imported, and MPI initialised, by the first collective or question about ranks.

Without mpi4py there is one rank, whose collectives are copies; a process that a launcher started as one of several raises instead.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from .errors import DistributedError
from .locks import once
from .records import NamedTuple

SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS")  # set by the launchers of Open MPI, MPICH and Intel MPI
REPORTING = 0.5  # seconds
INSTALL = 'pip install "adjit[mpi]"'


class World(NamedTuple):
    rank: int
    size: int
    mpi: Any  # the module mpi4py.MPI; None without it

    @property
    def comm(self) -> Any:
        return self.mpi.COMM_WORLD


@once
def world() -> World:
    try:
        from mpi4py import MPI  # noqa: PLC0415 - initialises MPI, which few programs need
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py is there, but no MPI library
        return alone(os.environ, error)
    found = World(MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size(), MPI)
    if found.size > 1:
        abort_on_errors(MPI.COMM_WORLD)
    return found


def alone(environment: Mapping[str, str], reason: Exception) -> World:
    """The world of a process without mpi4py, or without an MPI library."""
    for name in SIZES:
        size = environment.get(name, "")
        if size.isdigit() and int(size) > 1:
            why = str(reason).partition("\n")[0]
            raise DistributedError(f"this process is one of {size} ranks ({name}), but mpi4py cannot be imported ({why}): {INSTALL}")
    return World(0, 1, None)


def abort_on_errors(comm: Any) -> None:
    """End all ranks if an exception ends this one: the others would wait for it forever."""
    report = sys.excepthook

    def abort(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        report(kind, error, traceback)
        print(f"adjit: rank {comm.Get_rank()} of {comm.Get_size()} failed; ending all ranks", file=sys.stderr, flush=True)
        time.sleep(REPORTING)  # the launcher forwards what was printed, and stops doing so when it is told to end all ranks
        comm.Abort(130 if issubclass(kind, KeyboardInterrupt) else 1)

    sys.excepthook = abort
