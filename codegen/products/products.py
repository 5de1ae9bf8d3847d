"""Matrix products inside a kernel.

Large float products call the routine of `gemm.py`, or OpenBLAS if a measured table says so (`tuning.py`). Smaller ones are contractions
specialised for their shape, and products of vectors or integers are loop nests. adjit's own routine is the default because it is as fast,
takes any strides, applies the elementwise operations after a product, and does not depend on spinning threads: on a busy machine the
performance of OpenBLAS's threads collapses (docs/adr/0002).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, cast

from adjit.ir.cost import assumed_type
from adjit.ir.errors import NotGeneral
from adjit.ir.expr import hint_of, is_static
from adjit.ir.func import Block, Func, Stmt
from adjit.ir.ops.reduce import Sum
from adjit.ir.target import Target
from adjit.ir.types import I64, TensorType, row_major

from ..interrupts.stopping import brief
from ..kernels.window import Hosted, Strided
from ..llvm.counted import only_if
from ..llvm.lanes import Reg
from ..llvm.words import branch
from ..loops.ir import Access, Chunk, Reduction
from ..loops.nest import NestSpec
from ..sizes import upper
from ..threads import library
from . import choice, cutting
from .alone import in_sized_strips, in_strips, may_be_cut, sized_strip_bytes, strip_bytes, strips_of
from .choice import PARALLEL
from .routine import (
    BYTE,
    SHORT,
    apart_shape,
    call_gemm,
    follows_product,
    has_tiles,
    is_contraction,
    packing_bytes,
    sums_of,
    takes_blas,
    threads_of,
)
from .strips import call_blas

if TYPE_CHECKING:
    from ..kernels.loop_kernel import LoopKernel

PARTS = 4  # for each thread at least, if rows are divided whose number is known only at run time
PART = 16  # rows of such a part if their number is known only at run time
TURNED = 4  # products in a sum for each row of a: from here on, packing a transposed b costs more than transposing the result


def matrix_product(kernel: LoopKernel, target: Strided, a: Strided, b: Strided, accumulate: bool, *work: Strided) -> None:
    """target[m,n] = (or +=) a[m,k] @ b[k,n]. `work` is its scratch memory, if the caller has allocated it."""
    if target.type.size == 0:
        return
    if a.type.shape[1] == 0:
        if not accumulate:
            kernel.fill(target, 0)
    elif not accumulate and not has_tiles(a, b):
        _loops(kernel, target, a, b)
    elif not is_static(*a.type.shape, *b.type.shape):
        _sized_product(kernel, target, a, b, accumulate, *work)
    else:
        work = work or tuple(map(kernel.scratch, room(kernel, target, a, b)))
        if not accumulate and _is_turned(kernel, target, a, b):
            _turned(kernel, target, a, b, work[0])
            return
        product = sums_of(kernel, target, apart_shape(kernel, target, a, b), *work) if follows_product(kernel, target, a, b) else target
        if is_contraction(kernel, target, a, b):
            _contract(kernel, product, a, b, accumulate)
        elif takes_blas(kernel, target, a, b):
            call_blas(kernel, product, a, b, accumulate, threads_of(kernel, a, b) > 1)
        elif depth := _near_depth(kernel, product, a, b):
            _in_panels(kernel, product, a, b, accumulate, depth)
        elif strips_of(kernel, a, b):
            in_strips(kernel, product, a, b, accumulate, work[0])
        else:
            call_gemm(kernel, product, a, b, accumulate, work[0])
        _follow(kernel, target, product)


def _near_depth(kernel: LoopKernel, product: Strided, a: Strided, b: Strided) -> int:
    """Rows of panels of b that are read in place, one after the other; 0 if b is packed."""
    if isinstance(product, Hosted) or product.strides[1] != 1:
        return 0
    return choice.near_depth(a.type, b.type, b.strides, kernel.target)


def _in_panels(kernel: LoopKernel, target: Strided, a: Strided, b: Strided, accumulate: bool, depth: int) -> None:
    """A product with a long sum, by panels of b that stay in the cache."""
    k = a.type.shape[1]
    for start in range(0, k, depth):
        size = min(depth, k - start)
        _contract(kernel, target, a.slice(1, start, size), b.slice(0, start, size), accumulate or start > 0)


def _sized_product(kernel: LoopKernel, target: Strided, a: Strided, b: Strided, accumulate: bool, *work: Strided) -> None:
    """The same if a size is known only at run time, when it is decided between a contraction and the routine."""
    if target.strides[1] != 1 and not isinstance(target, Hosted):
        if target.strides[0] != 1:
            raise NotGeneral("a product that is written with gaps between its elements")
        target, a, b = target.transposed(1, 0), b.transposed(1, 0), a.transposed(1, 0)
    work = work or tuple(map(kernel.scratch, room(kernel, target, a, b)))

    is_in_place, may_be_large = choice.is_in_place_when_run(kernel.text, target, a, b)

    def in_place() -> None:
        product = sums_of(kernel, target, _long_region(target, a, b), *work) if target.ops > SHORT else target
        with nullcontext() if may_be_large else brief(kernel.text):  # fewer than PARALLEL multiplications
            (_contract if may_be_large else _whole)(kernel, product, a, b, accumulate)
        _follow(kernel, target, product)

    def by_routine() -> None:
        product = sums_of(kernel, target, apart_shape(kernel, target, a, b), *work) if follows_product(kernel, target, a, b) else target
        branch(
            may_be_cut(kernel, a, b),
            lambda: in_sized_strips(kernel, product, a, b, accumulate, work[0]),
            lambda: call_gemm(kernel, product, a, b, accumulate, work[0]),
        )
        _follow(kernel, target, product)

    branch(is_in_place, in_place, by_routine)


def _long_region(target: Strided, a: Strided, b: Strided) -> tuple[int, int]:
    """Shape of a temporary matrix for the sums of a contraction that is followed by a long region."""
    needs = isinstance(target, Hosted) and target.spare is None and target.ops > SHORT
    return (a.type.shape[0], b.type.shape[1]) if needs else (0, 0)


def brief_product(kernel: LoopKernel, target: Strided, a: Strided, b: Strided, accumulate: bool) -> None:
    """The same by a shared routine if possible, whatever the size: this keeps the code small for kernels with many shapes."""
    if not is_static(*a.type.shape, *b.type.shape):
        matrix_product(kernel, target, a, b, accumulate)
        return
    if 0 in (target.type.size, a.type.size) or not has_tiles(a, b) or target.strides[1] != 1 or isinstance(target, Hosted):
        matrix_product(kernel, target, a, b, accumulate)
    elif takes_blas(kernel, target, a, b):
        call_blas(kernel, target, a, b, accumulate, threads_of(kernel, a, b) > 1)
    else:
        call_gemm(kernel, target, a, b, accumulate, kernel.scratch(TensorType(BYTE, (packing_bytes(kernel, a, b),))))


def sized_product(
    kernel: LoopKernel, target: Strided, a: Strided, b: Strided, sizes: tuple[Reg | None, Reg | None, Reg | None], accumulate: bool
) -> None:
    """The same by the shared routine, for the first rows and columns of the windows: m, n and k are registers, or None for all of them."""
    (m, k), n = a.type.shape, b.type.shape[1]
    if not is_static(m, n, k):
        raise NotGeneral("a product of parts of matrices whose sizes are known only at run time")
    if 0 in (m, n, k):
        return
    names = [str(whole) if size is None else size.name for size, whole in zip(sizes, (m, n, k), strict=True)]
    work = kernel.scratch(TensorType(BYTE, (packing_bytes(kernel, a, b),)))
    with only_if(kernel.text, _all_positive(kernel, sizes)):
        call_gemm(kernel, target, a, b, accumulate, work, (names[0], names[1], names[2]))


def _all_positive(kernel: LoopKernel, sizes: Sequence[Reg | None]) -> str:
    condition = "true"
    for size in sizes:
        if size is not None:
            condition = kernel.text.define(f"and i1 {condition}, {kernel.text.define(f'icmp sgt i64 {size.name}, 0')}")
    return condition


def matrix_products(kernel: LoopKernel, target: Strided, a: Strided, b: Strided, accumulate: bool) -> None:
    """A batch of products: one after the other on all threads if they are large, otherwise several at the same time."""
    counts = target.type.shape[:-2]
    count, size = math.prod(counts), target.type.size * a.type.shape[-1]
    first = [w.at(*[Reg("0", I64)] * len(counts)) for w in (target, a, b)]
    is_large = hint_of(size) >= PARALLEL * hint_of(count) and not is_contraction(kernel, *first)
    work = map(kernel.private, room(kernel, *first))

    def one(i: Reg, target: Strided, a: Strided, b: Strided, *work: Strided) -> None:
        index: list[Reg] = []
        for n in reversed(counts):
            of = kernel.scalar.const(I64, n)
            index.insert(0, kernel.scalar.irem(i, of))
            i = kernel.scalar.idiv(i, of)
        matrix_product(kernel, target.at(*index), a.at(*index), b.at(*index), accumulate, *work)

    kernel.each(count, 0.0 if is_large else 2.0 * size, one, target, a, b, *work)


def _whole(kernel: LoopKernel, target: Strided, a: Strided, b: Strided, accumulate: bool) -> None:
    kernel.contract("mn,mk,kn", target, a, b, accumulate)


def _contract(kernel: LoopKernel, target: Strided, a: Strided, b: Strided, accumulate: bool) -> None:
    """A product that is computed in place: in parts of the longer side of the result on several threads, if it is large enough. An element
    is the same sum in any part.
    """
    (m, k), n, width = a.type.shape, b.type.shape[1], kernel.tile_width(a.type.dtype)
    side = int(m < n if is_static(m) else not has_many_rows(n, k, kernel.threads) and n >= kernel.threads * width)
    size = (m, n)[side]
    step = cutting.part_size(size, width if side else 1, kernel.threads) if is_static(size) else PART
    count = size // step
    if threads_of(kernel, a, b) == 1 or (is_static(count) and count < 2):
        _whole(kernel, target, a, b, accumulate)
        return
    windows = [target, b if side else a]
    parts = [w.slice(side, 0, count * step).sliding(side, count, step, step) for w in windows]
    if side:
        parts = [w.transposed(1, 0, 2) for w in parts]

    def part(i: Reg, target: Strided, cut: Strided, other: Strided) -> None:
        _whole(kernel, target.at(i), *((other, cut.at(i)) if side else (cut.at(i), other)), accumulate)

    kernel.each(count, m * n * k, part, *parts, a if side else b, parallel_from=PARALLEL)
    rest = [w.slice(side, count * step, size - count * step) for w in windows]
    _whole(kernel, rest[0], *((a, rest[1]) if side else (rest[1], b)), accumulate)


def has_many_rows(n: int, k: int, threads: int) -> bool:
    """Whether a product large enough for several threads has more rows than columns, and several parts for each thread, however many.

    Otherwise the number of rows, which is known only at run time, may be small: then the columns are divided, if every thread gets some.
    Which threads have written which rows matters to what reads them next.
    """
    return is_static(n, k) and n * k * max(n, PARTS * PART * threads) <= PARALLEL


def is_parallel(block: Block) -> bool:
    """Whether one of the statements, alone or as the host of a region, is a product that uses all threads."""
    return any(_is_large(s) for stmt in block.stmts for s in (stmt.blocks[0].stmts if stmt.op.is_nest else [stmt]))


def _is_large(stmt: Stmt) -> bool:
    factors = stmt.op.factors(stmt.args)
    if factors is None or not stmt.result.type.is_float:
        return False
    return assumed_type(stmt.result.type).size * assumed_type(factors[0].type).shape[-1] >= PARALLEL


def foresee(func: Func, target: Target) -> None:
    """Start compiling the routine that large products of a Func will call, while the Func is still being optimised."""
    large = {stmt.result.type.dtype for stmt in func.stmts if _is_large(stmt)}
    library.start((library.NAMES[dtype] for dtype in large), target)


def room(kernel: LoopKernel, target: Strided, a: Strided, b: Strided) -> list[TensorType]:
    """Scratch memory that a product needs for packing and for intermediate sums; an empty list if none."""
    if not is_static(*a.type.shape, *b.type.shape):
        if not has_tiles(a, b):
            return []
        sums = upper(math.prod(apart_shape(kernel, target, a, b)), math.prod(_long_region(target, a, b))) * a.type.dtype.itemsize
        packed = packing_bytes(kernel, a, b)
        if kernel.threads > 1:
            packed = cast(int, upper(packed, kernel.threads * sized_strip_bytes(kernel, target, a, b)))
        return [TensorType(BYTE, (-(-packed // 64) * 64 + cast(int, sums),))]
    if _is_turned(kernel, target, a, b):
        nbytes = -(-packing_bytes(kernel, *_swapped(a, b)) // 64) * 64 + target.type.size * a.type.dtype.itemsize
        return [TensorType(BYTE, (max(nbytes, packing_bytes(kernel, a, b)),))]
    nbytes = math.prod(apart_shape(kernel, target, a, b)) * a.type.dtype.itemsize
    if not is_contraction(kernel, target, a, b) and not takes_blas(kernel, target, a, b):
        if not strips_of(kernel, a, b):
            nbytes += packing_bytes(kernel, a, b)
        elif follows_product(kernel, target, a, b):
            nbytes += kernel.threads * strip_bytes(kernel, Strided(kernel.text, target.pointer, target.type, target.strides), a, b)
        else:  # every strip has its own sums
            nbytes = kernel.threads * strip_bytes(kernel, target, a, b)
    return [TensorType(BYTE, (nbytes,))] if nbytes else []


def _is_turned(kernel: LoopKernel, target: Strided, a: Strided, b: Strided) -> bool:
    """Whether (bᵀ aᵀ)ᵀ is computed instead: a large b that is the transpose of a row-major matrix is then read in place rather than packed,
    and only the smaller result is transposed.
    """
    (m, k), n, dtype = a.type.shape, b.type.shape[1], a.type.dtype
    if b.strides[0] != 1 or b.strides[1] == 1 or is_contraction(kernel, target, a, b) or takes_blas(kernel, target, a, b):
        return False
    is_full = m % cutting.tile_columns(dtype, kernel.vector_bytes) == 0 and m <= cutting.MAX_ROWS  # whole tiles, of one block
    is_large = k >= TURNED * m and k * n * dtype.itemsize > kernel.target.caches[1]
    return is_full and is_large and kernel.packed_pointer(b) is None


def _swapped(a: Strided, b: Strided) -> tuple[Strided, Strided]:
    """The factors of the transposed product."""
    return b.transposed(1, 0), a.transposed(1, 0)


def _turned(kernel: LoopKernel, target: Strided, a: Strided, b: Strided, work: Strided) -> None:
    """The transposed product, at the end of `work`, and its transpose in the target."""
    m, n = target.type.shape
    type = TensorType(a.type.dtype, (n, m))
    pointer = kernel.text.define(f"getelementptr i8, ptr {work.pointer}, i64 {work.type.size - type.nbytes}")
    product = Strided(kernel.text, pointer, type, row_major(type.shape))
    call_gemm(kernel, product, *_swapped(a, b), False, work)
    kernel.copy(target, product.transposed(1, 0))


def _follow(kernel: LoopKernel, target: Strided, product: Strided) -> None:
    """Compute the region that a product hosts, unless that was done with the product."""
    if not isinstance(target, Hosted) or product is target:
        return
    size = target.type.size * target.ops
    work = float(size) if is_static(size) else size
    if not is_static(size) or kernel.is_large(work):
        kernel.each(target.type.shape[0], work, lambda i, to, made: kernel.copy(to.at(i), made.at(i)), target, product)
    else:
        kernel.copy(target, product)


def _loops(kernel: LoopKernel, target: Strided, a: Strided, b: Strided) -> None:
    """Emit the product as a loop nest over (m, n, k) that sums over k."""
    (m, k), n = a.type.shape, b.type.shape[1]
    left = Access(a.pointer, (a.strides[0], 0, a.strides[1]), a.type.dtype)
    right = Access(b.pointer, (0, b.strides[1], b.strides[0]), b.type.dtype)
    out = Access(target.pointer, (*target.strides, 0), target.type.dtype)

    def body(chunk: Chunk) -> None:
        chunk.reduce(0, chunk.emit.mul(chunk.load(0), chunk.load(1)))

    kernel.nest(NestSpec((m, n, k), [left, right], [], [Reduction(Sum((2,)), (2,), out)], body, ops=2))
