"""Names and results of the routines of native code that callers refer to, for modules that run programs without compiling any."""

from __future__ import annotations

MPI = "adjit_mpi_"  # prefix of routines that call MPI
RELEASE = "adjit_release"  # frees the stacks of an arena
OUT_OF_MEMORY = -1  # returned if a stack cannot grow


def is_of_mpi(name: str) -> bool:
    return name.startswith(MPI)
