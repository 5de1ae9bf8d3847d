"""Matrix products inside a kernel.

Large ones of floats call the routine of `gemm.py` (or OpenBLAS with ADJIT_BLAS=openblas), smaller ones are contractions, written for their
shape, and those of vectors or integers loop nests. The routine is ours by default because it is as fast, takes any strides, shares our
thread pool, and does not depend on threads that keep spinning: on a busy machine OpenBLAS's collapse (docs/adr/0002).
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

import numpy as np

from adjit.ir.func import Func, Stmt
from adjit.ir.ops.linalg import Matmul, MatmulAdd
from adjit.ir.ops.reduce import Sum
from adjit.ir.types import I64, TensorType

from . import blas, gemm, library
from .lanes import LLVM_TYPE, Reg, constant
from .memory import Access
from .nest import Chunk, Nest, Reduction

if TYPE_CHECKING:
    from .kernels import LoopKernel
    from .window import Window

SMALL = 14_000  # multiplications: up to here, packing costs more than it saves, whatever the strides
PARALLEL = 1_000_000  # multiplications: from here on, waking the other threads pays
NEAR = 1 << 16  # bytes of b that need not be packed: they stay close by as they lie
PACKED = 384  # columns: from here on, rows of a are packed even if they are consecutive in memory
BYTE = np.dtype("u1")
ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112


def matrix_product(kernel: LoopKernel, target: Window, a: Window, b: Window, accumulate: bool, work: Window | None = None) -> None:
    """target[m,n] = (or +=) a[m,k] @ b[k,n]. `work` is room for the routine, if it is there already."""
    if target.type.size == 0:
        return
    if a.type.shape[1] == 0:
        if not accumulate:
            kernel.fill(target, 0)
    elif not accumulate and not _has_tiles(a, b):
        _loops(kernel, target, a, b)
    elif not _has_tiles(a, b) or _is_contraction(target, a, b):
        kernel.contract("mn,mk,kn", target, a, b, accumulate)
    elif not accumulate and os.environ.get("ADJIT_BLAS") == "openblas" and blas.find() is not None and _leading(a) and _leading(b):
        _call_blas(kernel, target, a, b)
    else:
        _call_gemm(kernel, target, a, b, accumulate, work or kernel.scratch(room(kernel, target, a, kernel.threads)))


def matrix_products(kernel: LoopKernel, target: Window, a: Window, b: Window, accumulate: bool) -> None:
    """A stack of products: one after the other, each on all threads, if they are large, else several at the same time."""
    counts = target.type.shape[:-2]
    count, size = math.prod(counts), target.type.size * a.type.shape[-1]
    first = [w.at(*[Reg("0", I64)] * len(counts)) for w in (target, a, b)]
    packs = _has_tiles(*first[1:]) and not _is_contraction(*first)
    is_large = packs and size >= PARALLEL * count
    work = [kernel.private(room(kernel, target, a, kernel.threads if is_large else 1))] if packs else []

    def one(i: Reg, target: Window, a: Window, b: Window, *work: Window) -> None:
        index: list[Reg] = []
        for n in reversed(counts):
            of = kernel.scalar.const(I64, n)
            index.insert(0, kernel.scalar.irem(i, of))
            i = kernel.scalar.idiv(i, of)
        matrix_product(kernel, target.at(*index), a.at(*index), b.at(*index), accumulate, *work)

    kernel.each(count, 0.0 if is_large else 2.0 * size, one, target, a, b, *work)


def _has_tiles(a: Window, b: Window) -> bool:
    """Whether the product is one of matrices of floats, not of vectors or integers."""
    return a.type.dtype.kind == "f" and 1 not in (a.type.shape[0], b.type.shape[1])


def _is_contraction(target: Window, a: Window, b: Window) -> bool:
    return not packs_factor(a.type, b.type, b.strides) or target.strides[1] != 1


def packs_factor(a: TensorType, b: TensorType, strides: tuple[int, ...]) -> bool:
    """Whether the right factor, with these strides, and the whole product are large enough for packing to pay."""
    (m, k), n = a.shape, b.shape[1]
    is_near = m * n * k < PARALLEL and strides[1] == 1 and k * n * b.dtype.itemsize <= NEAR
    return a.dtype.kind == "f" and 1 not in (m, n) and not is_near and m * n * k > SMALL


def is_parallel(stmt: Stmt) -> bool:
    """Whether it is a product that takes all threads."""
    if not isinstance(stmt.op, Matmul | MatmulAdd) or not stmt.result.type.is_float:
        return False
    return stmt.result.type.size * stmt.args[-2].type.shape[-1] >= PARALLEL


def foresee(func: Func) -> None:
    """Have the routine compiled that large products of a Func will call, while it is still being optimised."""
    large = {stmt.result.type.dtype for stmt in func.stmts if is_parallel(stmt)}
    library.start(library.NAMES[dtype] for dtype in large)


def room(kernel: LoopKernel, target: Window, a: Window, threads: int) -> TensorType:
    """What the routine needs for packing."""
    m, n, k = *target.type.shape[-2:], a.type.shape[-1]
    return TensorType(BYTE, (gemm.work_bytes(n, k, gemm.block_rows(m, threads), threads, a.type.dtype, kernel.vector_bytes),))


def _call_gemm(kernel: LoopKernel, target: Window, a: Window, b: Window, accumulate: bool, work: Window) -> None:
    (m, k), n, dtype = a.type.shape, b.type.shape[1], a.type.dtype
    threads = kernel.threads if m * n * k >= PARALLEL else 1
    rows = gemm.block_rows(m, threads)
    groups = gemm.column_groups(m, n, rows, threads, dtype, kernel.vector_bytes)
    run = library.runner(threads)
    packed = kernel.packed_pointer(b)
    name = (library.NAMES if packed is None else library.PACKED_NAMES)[dtype]
    kernel.text.declares |= {f"declare void @{name}({gemm.TYPES})", f"declare void @{run}({library.RUNNER})"}
    kernel.imports |= {name, run}
    where = [(f"ptr {p}", f"i64 {w.strides[0]}", f"i64 {w.strides[1]}") for p, w in ((a.pointer, a), (packed or b.pointer, b))]
    sizes = f"i64 {m}, i64 {n}, i64 {k}"
    matrices = ", ".join([*where[0], *where[1], f"ptr {target.pointer}", f"i64 {target.strides[0]}"])
    packs = int(a.strides[1] != 1 or n >= PACKED)
    how = f"i64 {rows}, i64 {groups}, i64 {int(accumulate)}, i64 {packs}, i64 {threads}, ptr @{run}"
    kernel.text.put(f"call void @{name}({sizes}, {matrices}, ptr {work.pointer}, {how})")


def _loops(kernel: LoopKernel, target: Window, a: Window, b: Window) -> None:
    """The product as a nest over (m, n, k), summed over k."""
    (m, k), n = a.type.shape, b.type.shape[1]
    left = Access(a.pointer, (a.strides[0], 0, a.strides[1]), a.type.dtype)
    right = Access(b.pointer, (0, b.strides[1], b.strides[0]), b.type.dtype)
    out = Access(target.pointer, (*target.strides, 0), target.type.dtype)

    def body(chunk: Chunk) -> None:
        chunk.reduce(0, chunk.emit.mul(chunk.load(0), chunk.load(1)))

    Nest(kernel.text, kernel.vector_bytes, (m, n, k), [left, right], [], [Reduction(Sum((2,)), (2,), out)], body, ops=2).emit()


# ---- OpenBLAS, on demand


def _leading(x: Window) -> tuple[int, int] | None:
    """How BLAS can read a matrix as it lies: plain or transposed, and its leading dimension."""
    (m, n), (rows, columns) = x.type.shape, x.strides
    if (columns == 1 or n == 1) and (rows >= n or m == 1):
        return PLAIN, rows if m > 1 else n
    if (rows == 1 or m == 1) and (columns >= m or n == 1):
        return TRANSPOSED, columns if n > 1 else m
    return None


def _call_blas(kernel: LoopKernel, target: Window, a: Window, b: Window) -> None:
    library_ = blas.find()
    assert library_ is not None
    dtype, i = a.type.dtype, library_.index_type
    f, name = LLVM_TYPE[dtype], blas.symbol(dtype)
    (m, k), n = a.type.shape, b.type.shape[1]
    (ta, lda), (tb, ldb) = (_leading(x) or (0, 0) for x in (a, b))
    types = f"i32, i32, i32, {i}, {i}, {i}, {f}, ptr, {i}, ptr, {i}, {f}, ptr, {i}"
    kernel.text.declares.add(f"declare void @{name}({types})")
    kernel.imports.add(name)
    one, zero = constant(dtype, 1), constant(dtype, 0)
    kernel.text.put(
        f"call void @{name}(i32 {ROW_MAJOR}, i32 {ta}, i32 {tb}, {i} {m}, {i} {n}, {i} {k}, {f} {one}, "
        f"ptr {a.pointer}, {i} {lda}, ptr {b.pointer}, {i} {ldb}, {f} {zero}, ptr {target.pointer}, {i} {max(target.strides[0], n)})"
    )
