"""The memory that ranks of one machine share: a window for each, which it writes and all others read.

`prepare` maps the windows; all ranks call it at the same time, and measure from which size on sums through them are faster than those of
MPI. Routines that were linked before read the outcome from `MemoryTable`. Between machines, and before, they call MPI.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import math
import mmap
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from adjit.ir.world import REPORTING, World, world

SMALL = 1 << 13  # bytes that each rank adds up alone
CHUNK = 1 << 20  # bytes
MOST_RANKS = 16
NEVER = 2**63 - 1
SLICE = CHUNK // 2 + 4096  # bytes: the largest part of a chunk that one rank sums, on two ranks
ENDED = 64  # offsets in a window: after the number of an exchange, whether the rank has ended, two small buffers, two chunks, and sums
FEW = 128
INPUT = FEW + 2 * SMALL
OUTPUT = INPUT + 2 * CHUNK
WINDOW = -(-(OUTPUT + 2 * SLICE) // 4096) * 4096  # whole pages
FOLDER = "/dev/shm"  # files in memory
SIZES = (1 << 10, 1 << 14, 1 << 18, 1 << 22)  # bytes that are measured
ROUNDS, AGAIN = 4, 4
LOCAL_SIZES = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE")  # set by the launchers of MPICH and Intel MPI, and of Open MPI


class MemoryTable(ctypes.Structure):
    """The memory that the routines read and write."""

    _fields_ = (
        ("least", ctypes.c_int64),  # size in bytes from which on windows are used
        ("number", ctypes.c_int64),  # of the last exchange
        ("past", ctypes.c_int64),  # writes that are still to go past the caches before others are tried again: see `writing`
        ("streamed", ctypes.c_int64),  # nanoseconds a MB of the fastest of these
        ("slow", ctypes.c_int64),  # writes through the caches, one after the other, that took much longer
        ("windows", ctypes.c_void_p * MOST_RANKS),
    )


FIRST = 8  # writes past the caches, to compare others with
UNKNOWN = 2**40  # nanoseconds
table = MemoryTable(NEVER, 0, FIRST, UNKNOWN, 0)
_kept: list[Any] = []  # the windows, which live as long as the process


def field(name: str) -> str:
    """A field of the table, as an operand of LLVM's."""
    return f"ptr inttoptr (i64 {ctypes.addressof(table) + getattr(MemoryTable, name).offset} to ptr)"


def is_possible(ranks: World) -> bool:
    return 1 < ranks.size <= MOST_RANKS and hasattr(os, "sched_yield")


def is_used() -> bool:
    """Whether large arrays are summed here."""
    return bool(table.least < NEVER)


def is_expected(ranks: World, environment: Mapping[str, str]) -> bool:
    """Whether they will be, as far as one rank can tell: before `prepare`, by the number of ranks on the machine that the launcher sets."""
    if _kept or not is_possible(ranks):
        return is_used()
    return str(ranks.size) in (environment.get(name) for name in LOCAL_SIZES)


def prepare(ranks: World, sums: Callable[[int, int, int], int]) -> None:
    """Map the windows, and choose the sizes that are summed through them. `sums(to, from, elements)` adds up float32."""
    if _kept or not is_possible(ranks):
        return
    node = ranks.comm.Split_type(ranks.mpi.COMM_TYPE_SHARED)
    _kept.append(node)
    if ranks.comm.allreduce(node.size, ranks.mpi.MIN) < ranks.size:
        return
    memory = _shared_memory(node, ranks.size * WINDOW)
    if not ranks.comm.allreduce(memory is not None, ranks.mpi.LAND) or memory is None:
        return
    _kept.append(memory)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for rank in range(ranks.size):
        table.windows[rank] = base + rank * WINDOW
    atexit.register(_end, base + ranks.rank * WINDOW + ENDED)
    ranks.comm.Barrier()
    table.least = measured(ranks, sums)


def _end(flag: int) -> None:
    """Tell the other ranks that this one takes part in no more exchanges: see `lost`."""
    ctypes.c_int64.from_address(flag).value = 1


def _lost(rank: int) -> None:
    """Called by native code when it waits for a rank that has ended, for whatever reason: it would wait forever."""
    ranks = world()
    print(f"adjit: rank {ranks.rank} waits for rank {rank}, which has ended; ending all ranks", file=sys.stderr, flush=True)
    time.sleep(REPORTING)
    ranks.comm.Abort(1)
    os._exit(1)  # some libraries return, and leave the rest to the launcher


lost = ctypes.CFUNCTYPE(None, ctypes.c_int64)(_lost)


def _shared_memory(node: Any, size: int) -> mmap.mmap | None:
    """Memory of zeros that all ranks of a machine share; None if the first cannot make any."""
    path = node.bcast(_file_in_memory(size) if node.rank == 0 else "")
    if not path:
        return None
    memory = None
    with contextlib.suppress(OSError), open(path, "r+b") as file:
        memory = mmap.mmap(file.fileno(), size)
    node.Barrier()
    if node.rank == 0:
        os.unlink(path)
    return memory


def _file_in_memory(size: int) -> str:
    """The path of a new file whose memory has been allocated in full; "" if that is not possible."""
    if not os.path.isdir(FOLDER):
        return ""
    try:
        import tempfile  # noqa: PLC0415 - slow to import, and few programs run on several ranks

        handle, path = tempfile.mkstemp(prefix="adjit.", dir=FOLDER)
    except OSError:
        return ""
    try:
        os.posix_fallocate(handle, 0, size)
    except OSError:
        os.unlink(path)
        return ""
    finally:
        os.close(handle)
    return path


def measured(ranks: World, sums: Callable[[int, int, int], int]) -> int:
    """The size from which on sums through the windows are faster than those of MPI, the same on all ranks."""
    data = np.zeros(SIZES[-1] // 4, np.float32)
    at = data.ctypes.data
    times = {(size, least): np.inf for size in SIZES for least in (0, NEVER)}  # the best of several: others use the machine too
    for size, least in [*times] * ROUNDS:
        table.least = least
        for _ in range(AGAIN):  # what MPI has read is in the cache of another core, which delays the first sum through windows
            ranks.comm.Barrier()
            started = time.perf_counter()
            sums(at, at, size // 4)
            times[size, least] = min(times[size, least], time.perf_counter() - started)
    slowest = {key: ranks.comm.allreduce(each, ranks.mpi.MAX) for key, each in times.items()}
    return int(ranks.comm.bcast(chosen(slowest)))


def chosen(times: Mapping[tuple[int, int], float]) -> int:
    """The threshold with the least product of the times of all sizes: one measurement that was disturbed does not decide."""

    def cost(least: int) -> float:
        return sum(math.log(times[size, NEVER if size < least else 0]) for size in SIZES)

    return min((0, *SIZES[1:], NEVER), key=cost)
