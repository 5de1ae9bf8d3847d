"""Matrix products inside a kernel: a call of BLAS for floats, generated loops for everything else and where there is no BLAS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adjit.ir.ops.reduce import Sum
from adjit.ir.types import DType

from . import blas
from .lanes import LLVM_TYPE, constant
from .memory import Access
from .nest import Chunk, Nest, Reduction

if TYPE_CHECKING:
    from .kernels import LoopKernel, Window

ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112


def symbol(dtype: DType) -> str:
    return "adjit_blas_sgemm" if dtype.itemsize == 4 else "adjit_blas_dgemm"


def matrix_product(kernel: LoopKernel, target: Window, a: Window, b: Window) -> None:
    """target[m,n] = a[m,k] @ b[k,n]."""
    if target.type.size == 0:
        return
    if a.type.shape[1] == 0:
        kernel.fill(target, 0)
        return
    library = blas.find() if a.type.dtype.kind == "f" else None
    ways = [_leading(a), _leading(b), _leading(target)]
    if library is not None and all(w is not None for w in ways) and ways[2] == (PLAIN, ways[2][1]):  # type: ignore[index]
        _call_blas(kernel, library, target, a, b)
    else:
        _loops(kernel, target, a, b)


def _leading(x: Window) -> tuple[int, int] | None:
    """How BLAS can read a matrix as it lies: plain or transposed, and its leading dimension."""
    (m, n), (rows, columns) = x.type.shape, x.strides
    if (columns == 1 or n == 1) and (rows >= n or m == 1):
        return PLAIN, rows if m > 1 else n
    if (rows == 1 or m == 1) and (columns >= m or n == 1):
        return TRANSPOSED, columns if n > 1 else m
    return None


def _call_blas(kernel: LoopKernel, library: blas.Blas, target: Window, a: Window, b: Window) -> None:
    dtype, i = a.type.dtype, library.index_type
    f, name = LLVM_TYPE[dtype], symbol(dtype)
    (m, k), n = a.type.shape, b.type.shape[1]
    (ta, lda), (tb, ldb), (_, ldc) = (_leading(x) or (0, 0) for x in (a, b, target))
    types = f"i32, i32, i32, {i}, {i}, {i}, {f}, ptr, {i}, ptr, {i}, {f}, ptr, {i}"
    kernel.text.declares.add(f"declare void @{name}({types})")
    kernel.imports.add(name)
    one, zero = constant(dtype, 1), constant(dtype, 0)
    kernel.text.put(
        f"call void @{name}(i32 {ROW_MAJOR}, i32 {ta}, i32 {tb}, {i} {m}, {i} {n}, {i} {k}, {f} {one}, "
        f"ptr {a.pointer}, {i} {lda}, ptr {b.pointer}, {i} {ldb}, {f} {zero}, ptr {target.pointer}, {i} {ldc})"
    )


def _loops(kernel: LoopKernel, target: Window, a: Window, b: Window) -> None:
    """The product as a nest over (m, n, k), summed over k."""
    (m, k), n = a.type.shape, b.type.shape[1]
    left = Access(a.pointer, (a.strides[0], 0, a.strides[1]), a.type.dtype)
    right = Access(b.pointer, (0, b.strides[1], b.strides[0]), b.type.dtype)
    out = Access(target.pointer, (*target.strides, 0), target.type.dtype)

    def body(chunk: Chunk) -> None:
        chunk.reduce(0, chunk.emit.mul(chunk.load(0), chunk.load(1)))

    Nest(kernel.text, kernel.vector_bytes, (m, n, k), [left, right], [], [Reduction(Sum((2,)), (2,), out)], body, ops=2).emit()
