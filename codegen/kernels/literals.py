"""Numeric constants of large programs, stored in a table: kernels that differ only in their constants become one, compiled once.

An unrolled loop repeats the same statements with different constants. As immediates they would make every repetition a separate kernel,
although a vector constant is loaded from memory anyway. Constants that LLVM treats specially (0, 1, ...) stay immediates.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from adjit.ir.func import Block
from adjit.ir.operand import Literal, Operand
from adjit.ir.plan import Place
from adjit.ir.records import NamedTuple
from adjit.ir.types import F32, F64

from ..llvm import memory
from ..llvm.lanes import Reg
from .emitter import VectorEmitter

MIN_STATEMENTS = 1000  # statements in a program: smaller programs repeat little
TABLE = Place("literals", 0)
SLOT = 8  # bytes
IMMEDIATE = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5)


def is_large(block: Block) -> bool:
    return block.count() >= MIN_STATEMENTS


class Literals:
    """The table of constants of one module."""

    def __init__(self) -> None:
        self.data = bytearray()

    def taken(self, block: Block, pointer_to: Callable[[Place, int], str]) -> Taken:
        """Append the constants of a fused region to the table; `pointer_to` gives the kernel's pointer to a place."""
        start, slots = len(self.data), {}
        for stmt in block.stmts:
            for k, x in enumerate(stmt.args):
                if stmt.op.is_elementwise and isinstance(x, Literal) and x.type.dtype in (F32, F64) and x.value not in IMMEDIATE:
                    slots[id(stmt), k] = (len(self.data) - start) // SLOT
                    packed = struct.pack("<f" if x.type.dtype == F32 else "<d", x.value)
                    self.data += packed.ljust(SLOT, b"\0")
        return Taken(slots, pointer_to(TABLE, start)) if slots else NO_LITERALS

    def definition(self) -> str:
        return memory.constant_bytes("@literals", self.data) if self.data else ""


class Taken(NamedTuple):
    """The table constants of one kernel: maps each operand (statement id, position) to its slot relative to the pointer."""

    slots: dict[tuple[int, int], int]
    pointer: str

    def read(self, emit: VectorEmitter, place: tuple[int, int], x: Operand) -> Reg:
        dtype = x.type.dtype
        index = self.slots[place] * (SLOT // dtype.itemsize)
        return memory.splat(emit.text, memory.load(emit.text, self.pointer, dtype, str(index), 1, 1), emit.width)


NO_LITERALS = Taken({}, "")
