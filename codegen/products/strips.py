"""Products by OpenBLAS, in strips that each run on one thread of adjit's own pool.

Strips are cut by size alone, so that results are bitwise independent of the number of threads. `blas.py` limits OpenBLAS to one thread,
and `tuning.py` decides which products are computed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..kernels.window import Strided
from ..llvm import memory
from ..llvm.lanes import LLVM_TYPE, Reg, constant
from ..loops.ir import Area, Call
from . import blas

if TYPE_CHECKING:
    from ..kernels.loop_kernel import LoopKernel

ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112
STRIPS, STRIP = 8, 64  # number of strips per product, and minimum rows of a strip


def leading(x: Strided) -> tuple[int, int] | None:
    """How BLAS can read a matrix without a copy: plain or transposed, and its leading dimension; None if it cannot."""
    (m, n), (rows, columns) = x.type.shape, x.strides
    if (columns == 1 or n == 1) and (rows >= n or m == 1):
        return PLAIN, rows if m > 1 else n
    if (rows == 1 or m == 1) and (columns >= m or n == 1):
        return TRANSPOSED, columns if n > 1 else m
    return None


def call_blas(kernel: LoopKernel, target: Strided, a: Strided, b: Strided, accumulate: bool, is_parallel: bool) -> None:
    """target = (or +=) a @ b; BLAS can read all of them without a copy, and the target is not transposed."""
    axis = int(target.type.shape[1] > target.type.shape[0])
    size = target.type.shape[axis]
    rows = max(STRIP, -(-size // STRIPS))
    work = 2.0 * target.type.size * a.type.shape[1] if is_parallel else 0.0

    def strip(i: Reg, target: Strided, a: Strided, b: Strided) -> None:
        text, factor = kernel.text, (a, b)[axis]
        start = text.define(f"mul i64 {i.name}, {rows}")
        text.declares.add("declare i64 @llvm.smin.i64(i64, i64)")
        count = text.define(f"call i64 @llvm.smin.i64(i64 {text.define(f'sub i64 {size}, {start}')}, i64 {rows})")
        moved = [memory.element(text, w.pointer, w.type.dtype, memory.scaled(text, start, w.strides[axis])) for w in (target, factor)]
        pointers = [moved[0], *((moved[1], b.pointer) if axis == 0 else (a.pointer, moved[1]))]
        _gemm_call(kernel, pointers, (target, a, b), (count, None)[axis], (None, count)[axis], accumulate)

    kernel.text.declares |= {f"declare void @{blas.ENTER}()", f"declare void @{blas.LEAVE}()"}
    kernel.imports |= {blas.ENTER, blas.LEAVE}
    kernel.text.put(f"call void @{blas.ENTER}()")
    kernel.each(-(-size // rows), work, strip, target, a, b)
    kernel.text.put(f"call void @{blas.LEAVE}()")


def _gemm_call(
    kernel: LoopKernel, pointers: list[str], windows: tuple[Strided, Strided, Strided], m: str | None, n: str | None, accumulate: bool
) -> None:
    """Emit a call of cblas_?gemm; `m` and `n` are registers, or None for the full size."""
    found, (target, a, b) = blas.find(), windows
    assert found is not None
    text, dtype, i = kernel.text, a.type.dtype, found.index_type
    f, name = LLVM_TYPE[dtype], blas.symbol(dtype)
    rows, inner, columns = m or str(a.type.shape[0]), str(a.type.shape[1]), n or str(b.type.shape[1])
    if i != "i64":
        rows, columns = (x if x.isdigit() else text.define(f"trunc i64 {x} to {i}") for x in (rows, columns))
    (ta, lda), (tb, ldb), (_, ldc) = (leading(x) or (0, 0) for x in (a, b, target))
    kernel.imports.add(name)
    one, kept = constant(dtype, 1), constant(dtype, int(accumulate))
    arguments = (
        ("i32", ROW_MAJOR), ("i32", ta), ("i32", tb), (i, rows), (i, columns), (i, inner), (f, one), ("ptr", pointers[1]), (i, lda),
        ("ptr", pointers[2]), (i, ldb), (f, kept), ("ptr", pointers[0]), (i, ldc),
    )  # fmt: skip
    written, *read = (Area(w.access._replace(pointer=p), w.type.shape) for w, p in zip(windows, pointers, strict=True))
    kernel.run_node(Call(name, arguments, reads=tuple(read), writes=(written,)))
