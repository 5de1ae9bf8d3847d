"""Native routines shared by all compiled functions: the thread pool and the matrix products.

Each is compiled separately when a function first needs it, so a program that adds large arrays does not wait for the matrix product.
Compilation starts, on a separate thread, as soon as the need is known (`start`).
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterable
from functools import partial

from adjit.ir.environment import value
from adjit.ir.locks import new_lock, once
from adjit.ir.records import NamedTuple
from adjit.ir.target import Target
from adjit.ir.types import DTYPE_NAMES, F32, F64, DType

from ..cache import image
from ..interrupts import signals
from ..llvm import toolchain as llvm
from ..llvm.workers import Later, cores

MAX_THREADS = 256
POOL, FORKED = "pool", "adjit_pool_forked"
RUNNERS = ("adjit_serial", "adjit_parallel")
SHARED = (*RUNNERS, signals.LOOK)  # routines of the pool that programs import
RUNNER = "ptr, ptr, i64, ptr, i64"  # parameters of a runner: function, its argument, number of chunks, error record or null, threads
NAMES = {dtype: f"adjit_gemm_{DTYPE_NAMES[dtype]}" for dtype in (F32, F64)}
PACKED_NAMES = {dtype: f"adjit_packed_gemm_{DTYPE_NAMES[dtype]}" for dtype in NAMES}
PACK_NAMES = {dtype: f"adjit_pack_{DTYPE_NAMES[dtype]}" for dtype in NAMES}
# what the parts of products share: the functions for chunks of a packing and of a product, and the table of tiles for edges
INNER_NAMES = {dtype: tuple(f"adjit_{inner}_{DTYPE_NAMES[dtype]}" for inner in ("pack_b", "block", "edges")) for dtype in NAMES}


class Edge(NamedTuple):
    """A tile of products for edges with few rows, or with columns of one vector."""

    dtype: DType
    is_low: bool


EDGE_NAMES = {
    Edge(dtype, is_low): f"adjit_{'low' if is_low else 'thin'}_{DTYPE_NAMES[dtype]}" for dtype in NAMES for is_low in (False, True)
}
EDGES = {name: edge for edge, name in EDGE_NAMES.items()}
DTYPES = {name: dtype for names in (NAMES, PACKED_NAMES, PACK_NAMES) for dtype, name in names.items()}
DTYPES |= {name: edge.dtype for name, edge in EDGES.items()}
PACKED = {*PACKED_NAMES.values(), *PACK_NAMES.values()}
_lock = new_lock()


def threads() -> int:
    """The default number of threads of large kernels: ADJIT_NUM_THREADS, or the number of cores that this process may use."""
    given = value("ADJIT_NUM_THREADS")
    if given.isdigit() and int(given) > 0:
        return int(given)
    return cores()


def runner(threads: int) -> str:
    """The routine that runs chunks, on several threads or on one. The chunks are the same."""
    return RUNNERS[threads > 1]


def start(names: Iterable[str], target: Target) -> None:
    """Start compiling routines that will be needed; names of routines that are not shared are ignored."""
    target = target.with_threads(1)  # the routines work for any number of threads
    for part in {_part_of(name) for name in names if name in SHARED or name in DTYPES}:
        if part in DTYPES:
            _codes(NAMES[DTYPES[part]], target)
        _codes(part, target)


def addresses(names: Iterable[str], target: Target) -> dict[str, int]:
    """Addresses of shared routines. If they run chunks, workers are started for the target's number of threads."""
    threads, target = target.threads, target.with_threads(1)
    with _lock:
        found = {name: _part(_part_of(name), target)[name] for name in names}
        if threads > 1 and runner(threads) in found:
            grow = _part(POOL, target)["adjit_pool_start"]
            ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int32)(grow)(min(threads, MAX_THREADS) - 1)
        return found


def _part_of(name: str) -> str:
    if name in SHARED or name in EDGES:
        return POOL if name in SHARED else name
    return (PACKED_NAMES if name in PACKED else NAMES)[DTYPES[name]]


@once
def _part(part: str, target: Target) -> dict[str, int]:
    """Addresses of the exports of a part: the pool, the products of one dtype, those with packed factors, or a tile for edges."""
    exports, imports = _links(part, target)
    loaded = llvm.Library([code.result() for code in _codes(part, target)], exports, imports)
    _keep.append(loaded)
    if part == POOL:
        _prepare_pool(loaded.address)
    elif part in EDGES:
        table = _part(NAMES[DTYPES[part]], target)[INNER_NAMES[DTYPES[part]][-1]]
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(loaded.address[part])(table)
    return loaded.address


def _links(part: str, target: Target) -> tuple[list[str], dict[str, int]]:
    """The exports of a part, and the addresses that it imports."""
    if part == POOL:
        return [*SHARED, "adjit_pool_start", FORKED, signals.SET_MAIN], {}
    if part in EDGES:
        return [part], {}
    dtype, look = DTYPES[part], {signals.LOOK: _part(POOL, target)[signals.LOOK]}
    if part not in PACKED:
        return [part, *INNER_NAMES[dtype]], look
    whole = _part(NAMES[dtype], target)
    return [part, PACK_NAMES[dtype]], look | {name: whole[name] for name in INNER_NAMES[dtype]}


def _prepare_pool(address: dict[str, int]) -> None:
    """Register the main thread, the only one that signals interrupt; after a fork, that is the forking thread, and there are no workers."""
    tell = ctypes.PYFUNCTYPE(None, ctypes.c_int64)(address[signals.SET_MAIN])
    tell(threading.main_thread().ident or 0)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=ctypes.PYFUNCTYPE(None)(address[FORKED]))
        os.register_at_fork(after_in_child=lambda: tell(threading.get_ident()))


@once
def _codes(part: str, target: Target) -> list[Later[llvm.Object]]:
    """The objects of a part: products consist of two, which are compiled at the same time."""
    return [Later(partial(_assembled, part, target, piece)) for piece in range(2 if part in NAMES.values() else 1)]


def _assembled(part: str, target: Target, piece: int) -> llvm.Object:
    level = 0 if part == POOL else llvm.LEVEL  # the pool only schedules: the time is spent in the chunks
    return image.routine(f"{part}.{piece}", lambda: _piece(part, target, piece), target, level)


def _piece(part: str, target: Target, piece: int) -> str:
    from ..products import gemm  # noqa: PLC0415 - not needed for routines that are on disk

    if part == POOL:
        return _text(part, target)
    if part in EDGES:
        return gemm.edge_part(EDGES[part], target)
    return gemm.packed_part(DTYPES[part], target) if part in PACKED else gemm.gemm_parts(DTYPES[part], target)[piece]


def texts(names: Iterable[str], target: Target) -> list[str]:
    """LLVM texts that define these routines, each of which contains the tiles for edges."""
    return [_text(part, target) for part in sorted({_part_of(name) for name in names} - set(EDGES))]


def _text(part: str, target: Target) -> str:
    from ..products import gemm  # noqa: PLC0415 - not needed for routines that are on disk
    from . import pool  # noqa: PLC0415 - as above

    return pool.pool_ir(target) if part == POOL else gemm.gemm_ir(DTYPES[part], target, part in PACKED)


_keep: list[llvm.Library] = []
