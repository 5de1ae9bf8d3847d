"""Checks in advance that LLVM can get the memory it will need, because it aborts the process if an allocation fails.

A mapping that is never touched costs only address space, so limits on address space (`ulimit -v`, a batch system, a machine that does not
overcommit) are detected in time. Memory that the system promises but does not have is not detected.
"""

from __future__ import annotations

import mmap

MEGABYTE = 1 << 20
LOADING = 384 * MEGABYTE  # LLVM itself, including its static constructors
COMPILING = 96 * MEGABYTE  # a module: LLVM's memory, and the stack and heap of its thread
LINKING = 64 * MEGABYTE
PER_BYTE = 200  # bytes per byte of a module's text


def require(size: int, what: str) -> None:
    """Raise MemoryError unless this much address space is available."""
    try:
        mmap.mmap(-1, size, **PRIVATE).close()
    except (OSError, ValueError) as error:
        raise MemoryError(f"{what} may take {size // MEGABYTE} MB of address space, which is not available ({error})") from None


PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}
