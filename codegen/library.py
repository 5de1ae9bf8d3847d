"""Native routines that all compiled functions share: the thread pool and the matrix products.

Compiled when the first function needs them.
"""

from __future__ import annotations

import ctypes
import os
import threading
from functools import lru_cache

from . import gemm, llvm
from .pool import has_threads, pool_ir

MAX_THREADS = 256
_lock = threading.Lock()


def threads() -> int:
    """How many threads large kernels use unless told otherwise: ADJIT_NUM_THREADS, or the cores that this process may run on."""
    given = os.environ.get("ADJIT_NUM_THREADS", "")
    if given.isdigit() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def runner(threads: int) -> str:
    """The routine that runs chunks: on all threads, or on the only one. The chunks are the same."""
    return "adjit_parallel" if threads > 1 else "adjit_serial"


def addresses(threads: int) -> dict[str, int]:
    """Addresses of the shared routines, by name; the pool has workers for so many threads."""
    with _lock:
        found = _addresses(llvm.host())
        if threads > 1 and has_threads(llvm.host().triple):
            ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(found["adjit_pool_start"])(min(threads, MAX_THREADS) - 1)
        return found


@lru_cache(maxsize=4)
def _addresses(target: llvm.Target) -> dict[str, int]:
    text = pool_ir(target.triple) + gemm.gemm_ir(target.vector_bytes)
    names = [*gemm.NAMES.values(), "adjit_parallel", "adjit_serial", "adjit_pool_start"]
    loaded = llvm.Library(llvm.assemble(text, target), names, {})
    _keep.append(loaded)
    return loaded.address


_keep: list[llvm.Library] = []
