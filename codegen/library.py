"""Native routines that all compiled functions share: the thread pool and the matrix products.

Each is compiled when the first function needs it, and for itself: a program that adds large arrays waits for no matrix product.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable
from functools import lru_cache

from . import gemm, llvm
from .pool import has_threads, pool_ir

MAX_THREADS = 256
POOL = "pool"
RUNNER = "ptr, ptr, i64, i64"  # what a runner takes: a function, its argument, the number of chunks and that of threads
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


def addresses(names: Iterable[str], threads: int) -> dict[str, int]:
    """Where shared routines are. Those that run chunks have workers for so many threads."""
    with _lock:
        found = {name: _part(_part_of(name), llvm.host())[name] for name in names}
        if threads > 1 and has_threads(llvm.host().triple) and "adjit_parallel" in found:
            start = _part(POOL, llvm.host())["adjit_pool_start"]
            ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(start)(min(threads, MAX_THREADS) - 1)
        return found


def _part_of(name: str) -> str:
    return (gemm.PACKED_NAMES if name in gemm.PACKED else gemm.NAMES)[gemm.DTYPES[name]] if name in gemm.DTYPES else POOL


@lru_cache(maxsize=16)
def _part(part: str, target: llvm.Target) -> dict[str, int]:
    """Addresses of what a part exports: the pool, or the products of one dtype. Each is compiled when something first needs it."""
    if part == POOL:
        exports = ["adjit_parallel", "adjit_serial", "adjit_pool_start"]
        code = llvm.assemble(pool_ir(target.triple), target, level=0)  # it waits and hands out: what takes time is in the chunks
    else:
        dtype, is_packed = gemm.DTYPES[part], part in gemm.PACKED
        exports = [part, gemm.PACK_NAMES[dtype]] if is_packed else [part]
        code = llvm.assemble(gemm.gemm_ir(dtype, target.vector_bytes, is_packed), target)
    loaded = llvm.Library(code, exports, {})
    _keep.append(loaded)
    return loaded.address


_keep: list[llvm.Library] = []
