"""Products of which each thread computes one strip, independently, with the routine of `gemm.py` on one thread.

Each thread packs the whole other factor itself, which costs little if its strip is long. In return it reads only what it has packed, from
its own cache, and no thread waits for another. Every element is computed in the same way in any strip.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING

from adjit.ir.bounds import proven_sign
from adjit.ir.expr import is_static
from adjit.ir.records import NamedTuple
from adjit.ir.types import I64, TensorType

from ..kernels.window import Private, Strided
from ..llvm import memory
from ..llvm.counted import only_if
from ..llvm.lanes import Reg, Text
from ..llvm.words import Truth, Word, chosen, greatest, least, over
from . import cutting
from .choice import PARALLEL, pays_to_pack, reads_in_place
from .routine import BYTE, call_gemm, is_apart, packing_bytes, routine_shape, sums_of, threads_of

if TYPE_CHECKING:
    from ..kernels.loop_kernel import LoopKernel

STRIP, LONG_STRIP = 64, 512  # rows or columns of a strip at least; from here on, there are two for each thread


class Strips(NamedTuple):
    """How one side of a product is cut: into how many parts, and whether they are of its columns or of its rows."""

    number: int
    columns: bool


def strips_of(kernel: LoopKernel, a: Strided, b: Strided) -> Strips | None:
    """Equal strips of the longer side of a product whose sizes are known; None if there are none."""
    (m, k), n, threads = a.type.shape, b.type.shape[1], threads_of(kernel, a, b)
    if threads == 1 or kernel.packed_pointer(b) is not None or not is_static(m, k, n):
        return None
    for number, shortest in ((2 * threads, LONG_STRIP), (threads, STRIP)):
        size = max(m, n) // number
        left, right = (TensorType(x.type.dtype, shape) for x, shape in ((a, (m if n >= m else size, k)), (b, (k, size if n >= m else n))))
        is_packed = pays_to_pack(left, right, b.strides) and not reads_in_place(left, right, b.strides)
        if max(m, n) % number == 0 and size >= shortest and is_packed:
            return Strips(number, n >= m)
    return None


def in_strips(kernel: LoopKernel, target: Strided, a: Strided, b: Strided, accumulate: bool, work: Strided) -> None:
    (m, k), n, strips, per = a.type.shape, b.type.shape[1], strips_of(kernel, a, b), strip_bytes(kernel, target, a, b)
    assert strips is not None
    room = Private(kernel.text, work.pointer, TensorType(BYTE, (kernel.threads, per)), (per, 1))

    def strip(i: Reg, target: Strided, cut: Strided, other: Strided, room: Strided) -> None:
        call_gemm(kernel, target.at(i), *((other, cut.at(i)) if strips.columns else (cut.at(i), other)), accumulate, room)

    parts = [_cut_side(w, strips) for w in (target, b if strips.columns else a)]
    kernel.each(strips.number, 2.0 * m * n * k, strip, *parts, a if strips.columns else b, room)


def strip_bytes(kernel: LoopKernel, target: Strided, a: Strided, b: Strided) -> int:
    """Scratch memory of a strip."""
    strips, first = strips_of(kernel, a, b), Reg("0", I64)
    assert strips is not None
    to = _cut_side(target, strips).at(first)
    left, right = (a, _cut_side(b, strips).at(first)) if strips.columns else (_cut_side(a, strips).at(first), b)
    with kernel.writing(kernel.text, 1):
        sums = math.prod(routine_shape(kernel, to, left, right)) * a.type.dtype.itemsize
        return -(-(sums + packing_bytes(kernel, left, right)) // 64) * 64


def _cut_side(window: Strided, strips: Strips) -> Strided:
    """A matrix as a stack of strips of its rows or columns."""
    size = window.type.shape[strips.columns] // strips.number
    stack = window.sliding(int(strips.columns), strips.number, size, size)
    return stack.transposed(1, 0, 2) if strips.columns else stack


# ---- sizes that are known only at run time


def may_be_cut(kernel: LoopKernel, a: Strided, b: Strided) -> bool | Truth:
    """Whether a side of a product with sizes that are known only at run time is long enough for a strip for each thread."""
    if kernel.threads == 1 or kernel.packed_pointer(b) is not None:
        return False
    sides, shortest, text = (a.type.shape[0], b.type.shape[1]), kernel.threads * STRIP, kernel.text
    if any(proven_sign(size - shortest, or_zero=True) > 0 for size in sides):
        return True
    return functools.reduce(operator.or_, (Truth(text, text.define(f"icmp sge i64 {size}, {shortest}")) for size in sides), False)


def in_sized_strips(kernel: LoopKernel, target: Strided, a: Strided, b: Strided, accumulate: bool, work: Strided) -> None:
    """Strips of the side that is longer when the product runs; a single one if several threads do not pay off."""
    (m, k), n, threads, per = a.type.shape, b.type.shape[1], kernel.threads, sized_strip_bytes(kernel, target, a, b)
    room = Private(kernel.text, work.pointer, TensorType(BYTE, (threads, per)), (per, 1))
    sums = [] if is_apart(kernel, target, a, b) else [sums_of(kernel, target, routine_shape(kernel, target, a, b), work)]

    def strip(i: Reg, target: Strided, a: Strided, b: Strided, room: Strided, *sums: Strided) -> None:
        text = kernel.text
        (rows, columns), (down, across) = _strip_sizes(kernel, a, b, threads)
        top, left = (Word(text, i.name) * step for step in (down, across))
        height, width = least(rows, Word(text, f"{m}") - top), least(columns, Word(text, f"{n}") - left)
        none = Word(text, "0")
        with only_if(text, (none < height).name), only_if(text, (none < width).name):
            to, *others = (_moved(text, w, top.name, left.name) for w in (target, *sums))
            factors = _moved(text, a, top.name, "0"), _moved(text, b, "0", left.name)
            call_gemm(kernel, to, *factors, accumulate, room, (height.name, width.name, f"{k}"), *others)

    kernel.each(2 * threads, m * n * k, strip, target, a, b, room, *sums, parallel_from=PARALLEL)


def sized_strip_bytes(kernel: LoopKernel, target: Strided, a: Strided, b: Strided) -> int:
    """Scratch memory of such a strip, besides sums for the whole product."""
    with kernel.writing(kernel.text, 1):
        sums = math.prod(routine_shape(kernel, target, a, b)) * a.type.dtype.itemsize if is_apart(kernel, target, a, b) else 0
        return -(-(sums + packing_bytes(kernel, a, b)) // 64) * 64


def _strip_sizes(kernel: LoopKernel, a: Strided, b: Strided, threads: int) -> tuple[tuple[Word, Word], tuple[Word, Word]]:
    """Rows and columns of a strip, and the rows and columns between one and the next: whole tiles."""
    text, dtype = kernel.text, a.type.dtype
    m, n, k = (Word(text, f"{size}") for size in (*a.type.shape[:1], b.type.shape[1], a.type.shape[1]))
    none, is_wide, longest = Word(text, "0"), m <= n, greatest(m, n)
    number = chosen(longest < 2 * threads * LONG_STRIP, Word(text, f"{threads}"), 2 * threads)
    tile = chosen(is_wide, Word(text, f"{cutting.tile_columns(dtype, kernel.vector_bytes)}"), cutting.tile_rows(kernel.target))
    part = chosen(m * n * k < PARALLEL, longest, over(over(longest, number), tile) * tile)
    return (chosen(is_wide, m, part), chosen(is_wide, part, n)), (chosen(is_wide, none, part), chosen(is_wide, part, none))


def _moved(text: Text, window: Strided, top: str, left: str) -> Strided:
    """A matrix from another element on."""
    pointers = []
    for member in window.windows:
        pointer = member.pointer
        for index, stride in zip((top, left), member.strides, strict=True):
            if index != "0":
                pointer = memory.element(text, pointer, member.type.dtype, memory.scaled(text, index, stride))
        pointers.append(pointer)
    return window.inside(text, pointers)
