"""Calls of the routine of `gemm.py`: when a product takes it, the memory that it needs, and what follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adjit.ir.expr import hint_of, is_static
from adjit.ir.types import DTYPE_NAMES, DType, row_major

from ..interrupts.stopping import PIECE, leave_if_stopped
from ..kernels.window import Hosted, Strided
from ..llvm.words import N, Word, spelled
from ..loops.ir import Area, Call
from ..threads import library
from . import cutting, gemm, tuning
from .choice import PARALLEL, near_factors, packs_factor, pays_to_pack, reads_in_place
from .epilogue import epilogue
from .strips import PLAIN, leading

if TYPE_CHECKING:
    from ..kernels.loop_kernel import LoopKernel

SHORT = 8  # operations after a product, up to which they are emitted for every vector of a tile: a bias, a rectifier and its mask
PACKED = 384  # columns: from here on, rows of a are packed even if they are contiguous
MULTIPLIED = 8  # approximate number of multiplications per instruction
BYTE = np.dtype("u1")


def has_tiles(a: Strided, b: Strided) -> bool:
    """Whether this is a product of float matrices, rather than of vectors or integers."""
    return a.type.dtype.kind == "f" and 1 not in (a.type.shape[0], b.type.shape[1])


def threads_of(kernel: LoopKernel, a: Strided, b: Strided) -> int:
    """The number of threads that a product uses."""
    size = a.type.size * b.type.shape[1]
    return kernel.threads if not is_static(size) or size >= PARALLEL else 1


def is_contraction(kernel: LoopKernel, target: Strided, a: Strided, b: Strided) -> bool:
    """Whether a product is always computed in place; with a size that is known only at run time, the kernel decides."""
    if not is_static(*a.type.shape, *b.type.shape):
        return False
    if not pays_to_pack(a.type, b.type, b.strides) or reads_in_place(a.type, b.type, b.strides):
        return True
    if target.strides[1] != 1 and not isinstance(target, Hosted):
        return True
    return not packs_factor(a.type, b.type, b.strides, near_factors(kernel.target)) and not takes_blas(kernel, target, a, b)


def takes_blas(kernel: LoopKernel, target: Strided, a: Strided, b: Strided) -> bool:
    """Whether OpenBLAS computes a product: it supports the layouts, no loop has packed a factor, and it is faster."""
    if not kernel.target.hosted or not is_static(*a.type.shape, *b.type.shape):
        return False
    layouts, is_plain = [leading(x) for x in (a, b)], isinstance(target, Hosted) or (leading(target) or (0,))[0] == PLAIN
    if not all(layouts) or not is_plain:
        return False
    layout = "".join("n" if x and x[0] == PLAIN else "t" for x in layouts)
    (m, k), n, name = a.type.shape, b.type.shape[1], DTYPE_NAMES[a.type.dtype]
    return tuning.takes_blas(kernel.target, name, layout, threads_of(kernel, a, b), m, n, k) and kernel.packed_pointer(b) is None


def follows_product(kernel: LoopKernel, target: Strided, a: Strided, b: Strided) -> bool:
    """Whether the hosted region is computed after the whole product, in the same kernel.

    This is the case if the region is too long to be emitted for every tile of a contraction, whose result is in the cache anyway; if panels
    are accumulated into a large result, where alternating between product and region would evict more from the caches than it keeps in
    them; and for OpenBLAS.
    """
    if not isinstance(target, Hosted):
        return False
    if is_contraction(kernel, target, a, b):
        return target.ops > SHORT
    return _follows_routine(kernel, target, a, b)


def _follows_routine(kernel: LoopKernel, target: Strided, a: Strided, b: Strided) -> bool:
    is_large = hint_of(target.type.size) * target.type.dtype.itemsize > kernel.target.caches[1]
    return (hint_of(a.type.shape[1]) > cutting.most_depth(kernel.target) and is_large) or takes_blas(kernel, target, a, b)


def apart_shape(kernel: LoopKernel, target: Strided, a: Strided, b: Strided) -> tuple[int, int]:
    """Shape of a temporary matrix for the sums of a product that hosts a region; (0, 0) if none is needed."""
    if isinstance(target, Hosted) and target.spare is None and is_contraction(kernel, target, a, b):
        return (a.type.shape[0], b.type.shape[1]) if follows_product(kernel, target, a, b) else (0, 0)
    return routine_shape(kernel, target, a, b)


def routine_shape(kernel: LoopKernel, target: Strided, a: Strided, b: Strided) -> tuple[int, int]:
    """The same, of a product that the routine computes. It may be a strip, which would be computed in place if it were a whole product.

    It holds the blocks that the threads finish at once for a product of one panel, and the whole product otherwise, unless one of the
    region's results can hold the sums.
    """
    (m, k), n, dtype = a.type.shape, b.type.shape[1], a.type.dtype
    if not isinstance(target, Hosted) or target.spare is not None:
        return 0, 0
    if not is_static(k) or k > cutting.most_depth(kernel.target) or _follows_routine(kernel, target, a, b):
        return m, n
    threads = threads_of(kernel, a, b)
    return threads * cutting.most_rows(m, threads, kernel.target), cutting.most_columns(n, dtype, kernel.vector_bytes)


def is_apart(kernel: LoopKernel, target: Strided, a: Strided, b: Strided) -> bool:
    """Whether the temporary matrix has blocks of the threads, rather than the whole product."""
    k = a.type.shape[1]
    return all(routine_shape(kernel, target, a, b)) and is_static(k) and k <= cutting.most_depth(kernel.target)


def sums_of(kernel: LoopKernel, target: Strided, shape: tuple[int, int], *work: Strided) -> Strided:
    """The matrix that a product is written to: the target, one of a region's results, or one of this shape at the end of `work`."""
    if not isinstance(target, Hosted):
        return target
    if 0 in shape:
        assert target.spare is not None
        return target.outputs[target.spare]
    type = target.type.with_shape(shape)
    (room,) = work
    pointer = kernel.text.define(f"getelementptr i8, ptr {room.pointer}, i64 {room.type.size - type.nbytes}")
    return Strided(kernel.text, pointer, type, row_major(shape))


def packing_bytes(kernel: LoopKernel, a: Strided, b: Strided) -> int:
    (m, k), n, threads = a.type.shape, b.type.shape[1], threads_of(kernel, a, b)
    return cutting.work_bytes(n, k, cutting.most_rows(m, threads, kernel.target), threads, a.type.dtype, kernel.target)


def call_gemm(
    kernel: LoopKernel,
    target: Strided,
    a: Strided,
    b: Strided,
    accumulate: bool,
    work: Strided,
    sizes: tuple[str, str, str] | None = None,
    sums: Strided | None = None,
) -> None:
    """Call the routine, for the sizes of the windows unless others are given, with sums in `work` or in a matrix like the target."""
    (m, k), n, dtype = a.type.shape, b.type.shape[1], a.type.dtype
    threads, is_sized = threads_of(kernel, a, b), not is_static(m, k, n)
    if is_sized:
        sizes = sizes or (f"{m}", f"{n}", f"{k}")
        rows, groups, span = _cut(kernel, Word(kernel.text, sizes[0]), Word(kernel.text, sizes[1]), threads, dtype)
    else:
        rows, groups, span = _cut(kernel, m, n, threads, dtype)
    run = _runner(kernel, threads, sizes)
    packed = kernel.packed_pointer(b)
    name = (library.NAMES if packed is None else library.PACKED_NAMES)[dtype]
    kernel.imports.add(name)
    has_block = sums is None and is_apart(kernel, target, a, b)
    sums, (finish, pointers) = sums or sums_of(kernel, target, routine_shape(kernel, target, a, b), work), epilogue(kernel, target)
    packs = a.strides[1] != 1 or hint_of(n) >= PACKED
    kernel.imports |= edge_names(kernel, m, n, dtype)
    work_size = hint_of(m * n * k)
    looks = kernel.text.may_look and (is_sized or work_size // MULTIPLIED >= PIECE)
    values = (
        *(sizes or (m, n, k)), a.pointer, *a.strides, packed or b.pointer, *b.strides, sums.pointer, sums.strides[0], work.pointer,
        rows, groups, int(accumulate), int(packs), finish, pointers, span, int(has_block), "%error" if looks else "null", "null",
        threads, run,
    )  # fmt: skip
    finished = target.windows if isinstance(target, Hosted) else [sums]
    kernel.run_node(Call(
        name,
        tuple(zip(gemm.TYPES.split(", "), values, strict=True)),
        reads=(area(a), *([] if packed else [area(b)]), *map(area, finished[target.written :])),
        writes=tuple(map(area, finished[: target.written])),
    ))  # fmt: skip
    kernel.text.charge(work_size / MULTIPLIED, looks)
    if looks:
        leave_if_stopped(kernel.text)


def edge_names(kernel: LoopKernel, m: int, n: int, dtype: DType) -> set[str]:
    """The tiles that the routine needs at the edges of a product, which are compiled for the programs that import them."""
    return {library.EDGE_NAMES[edge] for edge in cutting.edges_of(m, n, dtype, kernel.target)}


def _cut(kernel: LoopKernel, m: N, n: N, threads: int, dtype: DType) -> tuple[str, str, str]:
    """How the routine cuts a product: the rows of a block of a, groups of columns, and the tiles that are finished at once."""
    span, rows = cutting.span_tiles(n, dtype, kernel.vector_bytes), cutting.block_rows(m, threads, kernel.target)
    return spelled(rows), spelled(cutting.column_groups(m, n, rows, threads, dtype, kernel.vector_bytes)), spelled(span)


def _runner(kernel: LoopKernel, threads: int, sizes: tuple[str, str, str] | None) -> str:
    """The routine that runs the chunks of a product: if its sizes are known at run time only, one that suits them."""
    names = {library.runner(threads), library.runner(1 if sizes is not None else threads)}
    kernel.text.declares |= {f"declare void @{name}({library.RUNNER})" for name in names}
    kernel.imports |= names
    if sizes is None or threads == 1:
        return f"@{library.runner(threads)}"
    m, n, k = sizes
    work = kernel.text.define(f"mul i64 {m}, {kernel.text.define(f'mul i64 {n}, {k}')}")
    is_large = kernel.text.define(f"icmp sge i64 {work}, {PARALLEL}")
    return kernel.text.define(f"select i1 {is_large}, ptr @{library.runner(threads)}, ptr @{library.runner(1)}")


def area(window: Strided) -> Area:
    return Area(window.access, window.type.shape)
