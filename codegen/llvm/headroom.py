"""Memory that LLVM is going to need, asked for beforehand: it ends the process when it gets none.

A mapping that nobody touches costs address space, and nothing else: what limits that (`ulimit -v`, a batch system, a machine that does not
overcommit) is found out in time. Memory that the system promises and does not have is not.
"""

from __future__ import annotations

import mmap

MEGABYTE = 1 << 20
LOADING = 384 * MEGABYTE  # LLVM itself, with what its constructors want
COMPILING = 96 * MEGABYTE  # a module: what LLVM takes, and the stack and the heap of a thread of its own
LINKING = 64 * MEGABYTE
PER_BYTE = 200  # of a module's text


def require(size: int, what: str) -> None:
    """Raise MemoryError unless so much address space is to be had."""
    try:
        mmap.mmap(-1, size, **PRIVATE).close()
    except (OSError, ValueError) as error:
        raise MemoryError(f"{what} may take {size // MEGABYTE} MB of address space, which are not to be had ({error})") from None


PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}
