"""Products that are summed over the ranks of one machine, block by block, while their blocks are in the cache.

A rank computes a block, which the routine also writes to its window (`shared/blocks.py`), and the following one before it adds up the first
over all ranks and applies the region that the product hosts: ranks wait for each other only if one falls behind by the time of a block.
Neither the product nor the sums are stored anywhere else.

Blocks are cut in the same way on all ranks, whatever their vectors. The right factor is packed once, for as many columns as a block has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from adjit.ir.types import DTYPE_NAMES, DType, TensorType

from ..kernels.window import Hosted, Strided
from ..llvm import memory
from ..llvm.counted import CountedLoop, only_if
from ..shared import blocks as shared_blocks
from ..threads import library
from . import cutting, gemm
from .epilogue import epilogue
from .routine import MULTIPLIED, PACKED, edge_names

if TYPE_CHECKING:
    from ..kernels.loop_kernel import LoopKernel

WIDE = 8192  # bytes of a row: variables that the region updates are read and written in long pieces
TILES = 24  # rows: a multiple of those of any tile
ALIGNED = 64  # columns: a multiple of those of any tile


class Cut(NamedTuple):
    """The size of blocks."""

    rows: int
    columns: int


def cut(n: int, dtype: DType) -> Cut:
    columns = min(WIDE // dtype.itemsize, -(-n // ALIGNED) * ALIGNED)
    rows = shared_blocks.BYTES // (columns * dtype.itemsize) // TILES * TILES
    return Cut(rows, columns)


def summed_product(kernel: LoopKernel, target: Strided, a: Strided, b: Strided) -> None:
    """target[m,n] = the sum over all ranks of a[m,k] @ b[k,n]. No rank may leave in between: signals wait."""
    looks, kernel.text.may_look = kernel.text.may_look, False
    hosted = target if isinstance(target, Hosted) else Hosted(kernel.text, target.type.dtype, [target], [], lambda _, x, __: [x], 0, None)
    _Summed(kernel, hosted, a, b).emit()
    kernel.text.may_look = looks


class _Summed:
    def __init__(self, kernel: LoopKernel, target: Hosted, a: Strided, b: Strided) -> None:
        (self.m, self.k), self.n, dtype = a.type.shape, b.type.shape[1], a.type.dtype
        self.kernel, self.text, self.a, self.b, self.dtype = kernel, kernel.text, a, b, dtype
        self.cut = rows, columns = cut(self.n, dtype)
        bytes_ = np.dtype("u1")
        self.packed = kernel.scratch(TensorType(bytes_, (cutting.packed_bytes(columns, self.k, dtype, kernel.vector_bytes),)))
        self.work = kernel.scratch(TensorType(dtype, (cutting.MAX_ROWS * min(self.k, cutting.most_depth(kernel.target)) + 64,)))
        self.blocks = kernel.scratch(TensorType(dtype, (shared_blocks.LATER + 1, rows, columns)))
        self.terms = memory.table(kernel.text, ["null"] * kernel.target.ranks)  # where the blocks of all ranks are
        self.finish, self.pointers = epilogue(kernel, target, kernel.target.ranks)
        self.run = library.runner(1)
        kernel.imports |= {library.PACK_NAMES[dtype], library.PACKED_NAMES[dtype], self.run}
        self.text.declares |= {
            f"declare void @{library.PACK_NAMES[dtype]}({gemm.PACK_TYPES})",
            f"declare void @{library.PACKED_NAMES[dtype]}({gemm.TYPES})",
            f"declare void @{self.run}({library.RUNNER})",
        }

    def emit(self) -> None:
        text, (rows, columns) = self.text, self.cut
        count = -(-self.m // rows)
        self.call("void", shared_blocks.MEET, "")
        with CountedLoop(text, "0", str(self.n), columns) as across:
            left = across.index
            width = self.least(text.define(f"sub i64 {self.n}, {left}"), columns)
            self.pack(left, width)
            with CountedLoop(text, "0", str(count + shared_blocks.LATER)) as blocks:
                top = text.define(f"mul i64 {blocks.index}, {rows}")
                with only_if(text, text.define(f"icmp slt i64 {blocks.index}, {count}")):
                    self.compute(top, left, width)
                with only_if(text, text.define(f"icmp sge i64 {blocks.index}, {shared_blocks.LATER}")):
                    back = self.least(text.define(f"sub i64 {count - 1 + shared_blocks.LATER}, {blocks.index}"), shared_blocks.LATER)
                    self.add(text.define(f"sub i64 {top}, {shared_blocks.LATER * rows}"), left, width, back)
        self.call("void", shared_blocks.MEET, "")
        text.charge(self.m * self.n * self.k / MULTIPLIED, False)

    def call(self, result: str, routine: str, types: str, *values: str) -> str:
        """Call one of the routines of `shared/blocks.py`."""
        name = f"{shared_blocks.PREFIX}{routine}.{DTYPE_NAMES[self.dtype]}"
        self.kernel.imports.add(name)
        self.text.declares.add(f"declare {result} @{name}({types})")
        arguments = ", ".join(f"{type} {value}" for type, value in zip(filter(None, types.split(", ")), values, strict=True))
        line = f"call {result} @{name}({arguments})"
        if result != "void":
            return self.text.define(line)
        self.text.put(line)
        return ""

    def least(self, value: str, most: int) -> str:
        is_less = self.text.define(f"icmp slt i64 {value}, {most}")
        return self.text.define(f"select i1 {is_less}, i64 {value}, i64 {most}")

    def moved(self, window: Strided, index: str, axis: int) -> str:
        """The pointer of a window, moved along an axis."""
        return memory.element(self.text, window.pointer, self.dtype, memory.scaled(self.text, index, window.strides[axis]))

    def block(self, top: str) -> str:
        """Where this rank keeps the block of the product at a row: they take turns."""
        rows, columns = self.cut
        turn = self.text.define(f"urem i64 {self.text.define(f'udiv i64 {top}, {rows}')}, {shared_blocks.LATER + 1}")
        return memory.element(self.text, self.blocks.pointer, self.dtype, memory.scaled(self.text, turn, rows * columns))

    def pack(self, left: str, width: str) -> None:
        row, column = self.b.strides
        values = (width, self.k, self.moved(self.b, left, 1), row, column, self.packed.pointer, 1, f"@{self.run}", "null")
        arguments = ", ".join(f"{type} {value}" for type, value in zip(gemm.PACK_TYPES.split(", "), values, strict=True))
        self.text.put(f"call void @{library.PACK_NAMES[self.dtype]}({arguments})")

    def compute(self, top: str, left: str, width: str) -> None:
        """A block of the product, here and in this rank's window."""
        rows, columns, text = *self.cut, self.text
        height = self.least(text.define(f"sub i64 {self.m}, {top}"), rows)
        packs = self.a.strides[1] != 1 or self.n >= PACKED
        self.kernel.imports |= edge_names(self.kernel, self.m, self.n, self.dtype)
        values = (
            height, width, self.k, self.moved(self.a, top, 0), *self.a.strides, self.packed.pointer, 0, 0, self.block(top), columns,
            self.work.pointer, cutting.MAX_ROWS, 1, 0, int(packs), "null", "null",
            cutting.span_tiles(columns, self.dtype, self.kernel.vector_bytes), 0, "null", self.call("ptr", shared_blocks.ROOM, ""),
            1, f"@{self.run}",
        )  # fmt: skip
        arguments = ", ".join(f"{type} {value}" for type, value in zip(gemm.TYPES.split(", "), values, strict=True))
        text.put(f"call void @{library.PACKED_NAMES[self.dtype]}({arguments})")
        self.call("void", shared_blocks.SEND, "")

    def add(self, top: str, left: str, width: str, back: str) -> None:
        """The region of the sums of a block."""
        text, (rows, columns) = self.text, self.cut
        height = self.least(text.define(f"sub i64 {self.m}, {top}"), rows)
        self.call("void", shared_blocks.WAIT, "ptr, ptr, i64", self.terms, self.block(top), back)
        place = f"ptr {self.pointers}, i64 {top}, i64 {left}, i64 {height}, i64 {width}"
        blocks = self.terms if self.kernel.target.ranks > 1 else self.block(top)
        text.put(f"call void {self.finish}({place}, ptr {blocks}, i64 {columns})")
