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
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from adjit.ir.cost import assumed_type
from adjit.ir.errors import NotGeneral
from adjit.ir.expr import hint_of, is_static
from adjit.ir.func import Block, Func, Stmt
from adjit.ir.ops.reduce import Sum
from adjit.ir.target import Target
from adjit.ir.types import DTYPE_NAMES, I64, DType, TensorType, row_major

from ..interrupts.stopping import PIECE, brief, leave_if_stopped
from ..kernels.window import Hosted, Private, Window
from ..llvm.counted import only_if
from ..llvm.lanes import Reg
from ..llvm.words import N, Word, branch, spelled
from ..loops.ir import Access, Area, Call, Chunk, Reduction
from ..loops.nest import NestSpec
from ..sizes import upper
from ..threads import library
from . import choice, cutting, gemm, tuning
from .choice import PARALLEL, packs_factor, reads_in_place
from .epilogue import epilogue
from .strips import PLAIN, call_blas, leading

if TYPE_CHECKING:
    from ..kernels.loop_kernel import LoopKernel

SHORT = 4  # operations after a product, up to which they are emitted for every vector of a tile
CUT = 32  # parts of a product that is computed in place, on all threads
STRIP, LONG_STRIP = 64, 512  # rows or columns of a product that a thread computes alone; from here on, two such strips for each thread
PACKED = 384  # columns: from here on, rows of a are packed even if they are contiguous
TURNED = 4  # products in a sum for each row of a: from here on, packing a transposed b costs more than transposing the result
MULTIPLIED = 8  # approximate number of multiplications per instruction
BYTE = np.dtype("u1")


class Strips(NamedTuple):
    """How one side of a product is cut: into how many parts, and whether they are of its columns or of its rows."""

    number: int
    columns: bool


def matrix_product(kernel: LoopKernel, target: Window, a: Window, b: Window, accumulate: bool, *work: Window) -> None:
    """target[m,n] = (or +=) a[m,k] @ b[k,n]. `work` is its scratch memory, if the caller has allocated it."""
    if target.type.size == 0:
        return
    if a.type.shape[1] == 0:
        if not accumulate:
            kernel.fill(target, 0)
    elif not accumulate and not _has_tiles(a, b):
        _loops(kernel, target, a, b)
    elif not is_static(*a.type.shape, *b.type.shape):
        _sized_product(kernel, target, a, b, accumulate, *work)
    else:
        work = work or tuple(map(kernel.scratch, room(kernel, target, a, b)))
        if not accumulate and _is_turned(kernel, target, a, b):
            _turned(kernel, target, a, b, work[0])
            return
        product = _sums(kernel, target, _apart(kernel, target, a, b), *work) if _follows(kernel, target, a, b) else target
        if _is_contraction(target, a, b):
            _contract(kernel, product, a, b, accumulate)
        elif _takes_blas(kernel, target, a, b):
            call_blas(kernel, product, a, b, accumulate, _threads(kernel, a, b) > 1)
        elif _strips(kernel, a, b):
            _in_strips(kernel, product, a, b, accumulate, work[0])
        else:
            _call_gemm(kernel, product, a, b, accumulate, work[0])
        _follow(kernel, target, product)


def _sized_product(kernel: LoopKernel, target: Window, a: Window, b: Window, accumulate: bool, *work: Window) -> None:
    """The same if a size is known only at run time, when it is decided between a contraction and the routine."""
    if target.strides[1] != 1 and not isinstance(target, Hosted):
        if target.strides[0] != 1:
            raise NotGeneral("a product that is written with gaps between its elements")
        target, a, b = target.transposed(1, 0), b.transposed(1, 0), a.transposed(1, 0)
    work = work or tuple(map(kernel.scratch, room(kernel, target, a, b)))

    is_in_place, may_be_large = choice.is_in_place_when_run(kernel.text, target, a, b)

    def in_place() -> None:
        product = _sums(kernel, target, _long_region(target, a, b), *work) if target.ops > SHORT else target
        with nullcontext() if may_be_large else brief(kernel.text):  # fewer than PARALLEL multiplications
            (_contract if may_be_large else _whole)(kernel, product, a, b, accumulate)
        _follow(kernel, target, product)

    def by_routine() -> None:
        product = _sums(kernel, target, _apart(kernel, target, a, b), *work) if _follows(kernel, target, a, b) else target
        if _strips(kernel, a, b):
            _in_strips(kernel, product, a, b, accumulate, work[0])
        else:
            _call_gemm(kernel, product, a, b, accumulate, work[0])
        _follow(kernel, target, product)

    branch(is_in_place, in_place, by_routine)


def _long_region(target: Window, a: Window, b: Window) -> tuple[int, int]:
    """Shape of a temporary matrix for the sums of a contraction that is followed by a long region."""
    needs = isinstance(target, Hosted) and target.spare is None and target.ops > SHORT
    return (a.type.shape[0], b.type.shape[1]) if needs else (0, 0)


def brief_product(kernel: LoopKernel, target: Window, a: Window, b: Window, accumulate: bool) -> None:
    """The same by a shared routine if possible, whatever the size: this keeps the code small for kernels with many shapes."""
    if not is_static(*a.type.shape, *b.type.shape):
        matrix_product(kernel, target, a, b, accumulate)
        return
    if 0 in (target.type.size, a.type.size) or not _has_tiles(a, b) or target.strides[1] != 1 or isinstance(target, Hosted):
        matrix_product(kernel, target, a, b, accumulate)
    elif _takes_blas(kernel, target, a, b):
        call_blas(kernel, target, a, b, accumulate, _threads(kernel, a, b) > 1)
    else:
        _call_gemm(kernel, target, a, b, accumulate, kernel.scratch(TensorType(BYTE, (_packing_bytes(kernel, a, b),))))


def sized_product(
    kernel: LoopKernel, target: Window, a: Window, b: Window, sizes: tuple[Reg | None, Reg | None, Reg | None], accumulate: bool
) -> None:
    """The same by the shared routine, for the first rows and columns of the windows: m, n and k are registers, or None for all of them."""
    (m, k), n = a.type.shape, b.type.shape[1]
    if not is_static(m, n, k):
        raise NotGeneral("a product of parts of matrices whose sizes are known only at run time")
    if 0 in (m, n, k):
        return
    names = [str(whole) if size is None else size.name for size, whole in zip(sizes, (m, n, k), strict=True)]
    work = kernel.scratch(TensorType(BYTE, (_packing_bytes(kernel, a, b),)))
    with only_if(kernel.text, _all_positive(kernel, sizes)):
        _call_gemm(kernel, target, a, b, accumulate, work, (names[0], names[1], names[2]))


def _all_positive(kernel: LoopKernel, sizes: Sequence[Reg | None]) -> str:
    condition = "true"
    for size in sizes:
        if size is not None:
            condition = kernel.text.define(f"and i1 {condition}, {kernel.text.define(f'icmp sgt i64 {size.name}, 0')}")
    return condition


def matrix_products(kernel: LoopKernel, target: Window, a: Window, b: Window, accumulate: bool) -> None:
    """A batch of products: one after the other on all threads if they are large, otherwise several at the same time."""
    counts = target.type.shape[:-2]
    count, size = math.prod(counts), target.type.size * a.type.shape[-1]
    first = [w.at(*[Reg("0", I64)] * len(counts)) for w in (target, a, b)]
    is_large = hint_of(size) >= PARALLEL * hint_of(count) and not _is_contraction(*first)
    work = map(kernel.private, room(kernel, *first))

    def one(i: Reg, target: Window, a: Window, b: Window, *work: Window) -> None:
        index: list[Reg] = []
        for n in reversed(counts):
            of = kernel.scalar.const(I64, n)
            index.insert(0, kernel.scalar.irem(i, of))
            i = kernel.scalar.idiv(i, of)
        matrix_product(kernel, target.at(*index), a.at(*index), b.at(*index), accumulate, *work)

    kernel.each(count, 0.0 if is_large else 2.0 * size, one, target, a, b, *work)


def _whole(kernel: LoopKernel, target: Window, a: Window, b: Window, accumulate: bool) -> None:
    kernel.contract("mn,mk,kn", target, a, b, accumulate)


def _contract(kernel: LoopKernel, target: Window, a: Window, b: Window, accumulate: bool) -> None:
    """A product that is computed in place: in parts of the longer side of the result, or of its rows if their number is known only at run
    time, on several threads if it is large enough. An element is the same sum in any part.
    """
    (m, k), n, width = a.type.shape, b.type.shape[1], kernel.tile_width(a.type.dtype)
    side = 0 if not is_static(m) or m >= n else 1
    size = (m, n)[side]
    step = -(-size // (CUT * width)) * width if is_static(size) else STRIP
    count = size // step
    if _threads(kernel, a, b) == 1 or (is_static(count) and count < 2):
        _whole(kernel, target, a, b, accumulate)
        return
    windows = [target, b if side else a]
    parts = [w.slice(side, 0, count * step).sliding(side, count, step, step) for w in windows]
    if side:
        parts = [w.transposed(1, 0, 2) for w in parts]

    def part(i: Reg, target: Window, cut: Window, other: Window) -> None:
        _whole(kernel, target.at(i), *((other, cut.at(i)) if side else (cut.at(i), other)), accumulate)

    kernel.each(count, m * n * k, part, *parts, a if side else b, parallel_from=PARALLEL)
    rest = [w.slice(side, count * step, size - count * step) for w in windows]
    _whole(kernel, rest[0], *((a, rest[1]) if side else (rest[1], b)), accumulate)


def _has_tiles(a: Window, b: Window) -> bool:
    """Whether this is a product of float matrices, rather than of vectors or integers."""
    return a.type.dtype.kind == "f" and 1 not in (a.type.shape[0], b.type.shape[1])


def _is_contraction(target: Window, a: Window, b: Window) -> bool:
    """Whether a product is always computed in place; with a size that is known only at run time, the kernel decides."""
    if not is_static(*a.type.shape, *b.type.shape):
        return False
    if not packs_factor(a.type, b.type, b.strides) or reads_in_place(a.type, b.type, b.strides):
        return True
    return target.strides[1] != 1 and not isinstance(target, Hosted)


def _threads(kernel: LoopKernel, a: Window, b: Window) -> int:
    """The number of threads that a product uses."""
    size = a.type.size * b.type.shape[1]
    return kernel.threads if not is_static(size) or size >= PARALLEL else 1


def _takes_blas(kernel: LoopKernel, target: Window, a: Window, b: Window) -> bool:
    """Whether OpenBLAS computes a product: it supports the layouts, no loop has packed a factor, and it is faster."""
    if not kernel.target.hosted or not is_static(*a.type.shape, *b.type.shape):
        return False
    layouts, is_plain = [leading(x) for x in (a, b)], isinstance(target, Hosted) or (leading(target) or (0,))[0] == PLAIN
    if not all(layouts) or not is_plain:
        return False
    layout = "".join("n" if x and x[0] == PLAIN else "t" for x in layouts)
    (m, k), n, name = a.type.shape, b.type.shape[1], DTYPE_NAMES[a.type.dtype]
    return tuning.takes_blas(kernel.target, name, layout, _threads(kernel, a, b), m, n, k) and kernel.packed_pointer(b) is None


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


def room(kernel: LoopKernel, target: Window, a: Window, b: Window) -> list[TensorType]:
    """Scratch memory that a product needs for packing and for intermediate sums; an empty list if none."""
    if not is_static(*a.type.shape, *b.type.shape):
        if not _has_tiles(a, b):
            return []
        sums = upper(math.prod(_apart(kernel, target, a, b)), math.prod(_long_region(target, a, b))) * a.type.dtype.itemsize
        packed = _packing_bytes(kernel, a, b)
        if _strips(kernel, a, b):
            packed = cast(int, upper(packed, kernel.threads * _strip_bytes(kernel, target, a, b)))
        return [TensorType(BYTE, (-(-packed // 64) * 64 + cast(int, sums),))]
    if _is_turned(kernel, target, a, b):
        nbytes = -(-_packing_bytes(kernel, *_swapped(a, b)) // 64) * 64 + target.type.size * a.type.dtype.itemsize
        return [TensorType(BYTE, (max(nbytes, _packing_bytes(kernel, a, b)),))]
    nbytes = math.prod(_apart(kernel, target, a, b)) * a.type.dtype.itemsize
    if not _is_contraction(target, a, b) and not _takes_blas(kernel, target, a, b):
        if not _strips(kernel, a, b):
            nbytes += _packing_bytes(kernel, a, b)
        elif _follows(kernel, target, a, b):
            nbytes += kernel.threads * _strip_bytes(kernel, Window(kernel.text, target.pointer, target.type, target.strides), a, b)
        else:  # every strip has its own sums
            nbytes = kernel.threads * _strip_bytes(kernel, target, a, b)
    return [TensorType(BYTE, (nbytes,))] if nbytes else []


def _strips(kernel: LoopKernel, a: Window, b: Window) -> Strips | None:
    """Equal strips of one side of a product, each of which is computed by one thread alone; None if there are none.

    A thread packs the whole other factor for itself then, which costs little if its strip is long. In return it reads only what it has
    packed, from its own cache, and no thread waits for another. An element is the same sum in any strip. The longer side is cut, or the one
    whose size is known before the product runs.
    """
    (m, k), n = a.type.shape, b.type.shape[1]
    threads, is_sized = _threads(kernel, a, b), not is_static(m, k, n)
    if threads == 1 or kernel.packed_pointer(b) is not None or not (is_static(m) or is_static(n)):
        return None
    columns = is_static(n) and (not is_static(m) or n >= m)
    whole = n if columns else m
    for count, least in ((2 * threads, LONG_STRIP), (threads, STRIP)):
        size = whole // count
        if whole % count or size < least:
            continue
        left, right = (TensorType(x.type.dtype, shape) for x, shape in ((a, (m if columns else size, k)), (b, (k, size if columns else n))))
        if is_sized or (packs_factor(left, right, b.strides) and not reads_in_place(left, right, b.strides)):
            return Strips(count, columns)
    return None


def _in_strips(kernel: LoopKernel, target: Window, a: Window, b: Window, accumulate: bool, work: Window) -> None:
    (m, k), n, strips, per = a.type.shape, b.type.shape[1], _strips(kernel, a, b), _strip_bytes(kernel, target, a, b)
    assert strips is not None
    room = Private(kernel.text, work.pointer, TensorType(BYTE, (kernel.threads, per)), (per, 1))

    def strip(i: Reg, target: Window, cut: Window, other: Window, room: Window) -> None:
        _call_gemm(kernel, target.at(i), *((other, cut.at(i)) if strips.columns else (cut.at(i), other)), accumulate, room)

    parts = [_cut_side(w, strips) for w in (target, b if strips.columns else a)]
    kernel.each(strips.number, m * n * k, strip, *parts, a if strips.columns else b, room, parallel_from=PARALLEL)


def _strip_bytes(kernel: LoopKernel, target: Window, a: Window, b: Window) -> int:
    """Scratch memory of a strip."""
    strips, first = _strips(kernel, a, b), Reg("0", I64)
    assert strips is not None
    to = _cut_side(target, strips).at(first)
    left, right = (a, _cut_side(b, strips).at(first)) if strips.columns else (_cut_side(a, strips).at(first), b)
    with kernel.writing(kernel.text, 1):
        sums = math.prod(_apart(kernel, to, left, right)) * a.type.dtype.itemsize
        return -(-(sums + _packing_bytes(kernel, left, right)) // 64) * 64


def _cut_side(window: Window, strips: Strips) -> Window:
    """A matrix as a stack of strips of its rows or columns."""
    size = window.type.shape[strips.columns] // strips.number
    stack = window.sliding(int(strips.columns), strips.number, size, size)
    return stack.transposed(1, 0, 2) if strips.columns else stack


def _is_turned(kernel: LoopKernel, target: Window, a: Window, b: Window) -> bool:
    """Whether (bᵀ aᵀ)ᵀ is computed instead: a large b that is the transpose of a row-major matrix is then read in place rather than packed,
    and only the smaller result is transposed.
    """
    (m, k), n, dtype = a.type.shape, b.type.shape[1], a.type.dtype
    if b.strides[0] != 1 or b.strides[1] == 1 or _is_contraction(target, a, b) or _takes_blas(kernel, target, a, b):
        return False
    is_full = m % cutting.tile_columns(dtype, kernel.vector_bytes) == 0 and m <= cutting.MAX_ROWS  # whole tiles, of one block
    is_large = k >= TURNED * m and k * n * dtype.itemsize > kernel.target.caches[1]
    return is_full and is_large and kernel.packed_pointer(b) is None


def _swapped(a: Window, b: Window) -> tuple[Window, Window]:
    """The factors of the transposed product."""
    return b.transposed(1, 0), a.transposed(1, 0)


def _turned(kernel: LoopKernel, target: Window, a: Window, b: Window, work: Window) -> None:
    """The transposed product, at the end of `work`, and its transpose in the target."""
    m, n = target.type.shape
    type = TensorType(a.type.dtype, (n, m))
    pointer = kernel.text.define(f"getelementptr i8, ptr {work.pointer}, i64 {work.type.size - type.nbytes}")
    product = Window(kernel.text, pointer, type, row_major(type.shape))
    _call_gemm(kernel, product, *_swapped(a, b), False, work)
    kernel.copy(target, product.transposed(1, 0))


def _packing_bytes(kernel: LoopKernel, a: Window, b: Window) -> int:
    (m, k), n, threads = a.type.shape, b.type.shape[1], _threads(kernel, a, b)
    return cutting.work_bytes(n, k, cutting.most_rows(m, threads, kernel.target), threads, a.type.dtype, kernel.vector_bytes)


def _apart(kernel: LoopKernel, target: Window, a: Window, b: Window) -> tuple[int, int]:
    """Shape of a temporary matrix for the sums of a product that hosts a region; (0, 0) if none is needed.

    It holds the blocks that the threads finish at once for a product of one panel, and the whole product otherwise, unless one of the
    region's results can hold the sums.
    """
    (m, k), n, dtype = a.type.shape, b.type.shape[1], a.type.dtype
    if not isinstance(target, Hosted) or target.spare is not None:
        return 0, 0
    follows = _follows(kernel, target, a, b)
    if _is_contraction(target, a, b):
        return (m, n) if follows else (0, 0)
    if follows or not is_static(k) or k > cutting.KC:
        return m, n
    threads = _threads(kernel, a, b)
    return threads * cutting.most_rows(m, threads, kernel.target), cutting.most_columns(n, dtype, kernel.vector_bytes)


def _sums(kernel: LoopKernel, target: Window, shape: tuple[int, int], *work: Window) -> Window:
    """The matrix that a product is written to: the target, one of a region's results, or one of this shape at the end of `work`."""
    if not isinstance(target, Hosted):
        return target
    if 0 in shape:
        assert target.spare is not None
        return target.outputs[target.spare]
    type = target.type.with_shape(shape)
    (room,) = work
    pointer = kernel.text.define(f"getelementptr i8, ptr {room.pointer}, i64 {room.type.size - type.nbytes}")
    return Window(kernel.text, pointer, type, row_major(shape))


def _follows(kernel: LoopKernel, target: Window, a: Window, b: Window) -> bool:
    """Whether the hosted region is computed after the whole product, in the same kernel.

    This is the case if the region is too long to be emitted for every tile of a contraction, whose result is in the cache anyway; if panels
    are accumulated into a large result, where alternating between product and region would evict more from the caches than it keeps in
    them; and for OpenBLAS.
    """
    if not isinstance(target, Hosted):
        return False
    if _is_contraction(target, a, b):
        return target.ops > SHORT
    is_large = hint_of(target.type.size) * target.type.dtype.itemsize > kernel.target.caches[1]
    return (hint_of(a.type.shape[1]) > cutting.KC and is_large) or _takes_blas(kernel, target, a, b)


def _follow(kernel: LoopKernel, target: Window, product: Window) -> None:
    """Compute the region that a product hosts, unless that was done with the product."""
    if not isinstance(target, Hosted) or product is target:
        return
    size = target.type.size * target.ops
    work = float(size) if is_static(size) else size
    if not is_static(size) or kernel.is_large(work):
        kernel.each(target.type.shape[0], work, lambda i, to, made: kernel.copy(to.at(i), made.at(i)), target, product)
    else:
        kernel.copy(target, product)


def _call_gemm(
    kernel: LoopKernel, target: Window, a: Window, b: Window, accumulate: bool, work: Window, sizes: tuple[str, str, str] | None = None
) -> None:
    """Call the routine, for the sizes of the windows unless others are given."""
    (m, k), n, dtype = a.type.shape, b.type.shape[1], a.type.dtype
    threads, is_sized = _threads(kernel, a, b), not is_static(m, k, n)
    if is_sized:
        sizes = f"{m}", f"{n}", f"{k}"
        rows, groups, span = _cut(kernel, Word(kernel.text, sizes[0]), Word(kernel.text, sizes[1]), threads, dtype)
    else:
        rows, groups, span = _cut(kernel, m, n, threads, dtype)
    run = _runner(kernel, threads, sizes)
    packed = kernel.packed_pointer(b)
    name = (library.NAMES if packed is None else library.PACKED_NAMES)[dtype]
    kernel.imports.add(name)
    apart = _apart(kernel, target, a, b)
    sums, (finish, pointers) = _sums(kernel, target, apart, work), epilogue(kernel, target)
    packs = a.strides[1] != 1 or hint_of(n) >= PACKED
    is_apart = all(apart) and (is_static(k) and k <= cutting.KC)
    work_size = hint_of(m * n * k)
    looks = kernel.text.may_look and (is_sized or work_size // MULTIPLIED >= PIECE)
    values = (
        *(sizes or (m, n, k)), a.pointer, *a.strides, packed or b.pointer, *b.strides, sums.pointer, sums.strides[0], work.pointer,
        rows, groups, int(accumulate), int(packs), finish, pointers, span, int(is_apart), "%error" if looks else "null", "null",
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


def _cut(kernel: LoopKernel, m: N, n: N, threads: int, dtype: DType) -> tuple[str, str, str]:
    """How the routine cuts a product: the rows of a block of a, groups of columns, and the tiles that are finished at once."""
    span, rows = cutting.span_tiles(n, dtype, kernel.vector_bytes), cutting.block_rows(m, threads, kernel.target)
    return spelled(rows), spelled(cutting.column_groups(m, n, rows, threads, dtype, kernel.vector_bytes)), spelled(span)


def area(window: Window) -> Area:
    return Area(window.access, window.type.shape)


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


def _loops(kernel: LoopKernel, target: Window, a: Window, b: Window) -> None:
    """Emit the product as a loop nest over (m, n, k) that sums over k."""
    (m, k), n = a.type.shape, b.type.shape[1]
    left = Access(a.pointer, (a.strides[0], 0, a.strides[1]), a.type.dtype)
    right = Access(b.pointer, (0, b.strides[1], b.strides[0]), b.type.dtype)
    out = Access(target.pointer, (*target.strides, 0), target.type.dtype)

    def body(chunk: Chunk) -> None:
        chunk.reduce(0, chunk.emit.mul(chunk.load(0), chunk.load(1)))

    kernel.nest(NestSpec((m, n, k), [left, right], [], [Reduction(Sum((2,)), (2,), out)], body, ops=2))
