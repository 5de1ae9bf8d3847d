"""Looks for NaN beside a maximum or minimum, rather than in every step of it.

An instruction for the larger of two numbers loses a NaN that it was given before. To keep it takes a comparison and a selection for each
vector, each of which waits for the one before. Here a loop carries the maximum of the numbers, and for each lane of a register whether
all elements were numbers; one comparison serves two registers. In the end a lane that met NaN is NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adjit.ir.ops.reduce import Reduce
from adjit.ir.types import BOOL, DType

from ..llvm.lanes import LLVM_TYPE, Lanes, Reg, Text

if TYPE_CHECKING:
    from ..llvm.counted import CountedLoop

MASKED = 64  # bytes of vectors whose comparisons result in masks of bits; others result in lanes as wide as theirs


def watch(text: Text, counter: CountedLoop, op: Reduce, dtype: DType, width: int) -> NanWatch | None:
    """What `counter` carries in addition to a reduction of `width` lanes; None if every step keeps NaN."""
    lanes = text.target.vector_bytes // dtype.itemsize
    if dtype.kind != "f" or not op.loses_nan or lanes == 0 or width % lanes:
        return None
    return NanWatch(text, counter, dtype, width, lanes)


class NanWatch:
    """Whether each lane has met numbers only, in one loop."""

    def __init__(self, text: Text, counter: CountedLoop, dtype: DType, width: int, lanes: int) -> None:
        self.text, self.dtype, self.width, self.lanes = text, dtype, width, lanes
        self.mask = "i1" if text.target.vector_bytes == MASKED else f"i{8 * dtype.itemsize}"
        self.type = f"<{lanes} x {self.mask}>"
        self.carried = self.numbers = counter.carry(self.type, f"splat ({self.mask} {'true' if self.mask == 'i1' else -1})")

    def see(self, value: Reg) -> None:
        """Look at the next vector."""
        part = f"<{self.lanes} x {LLVM_TYPE[self.dtype]}>"
        registers = [self._register(value, first) for first in range(0, self.width, self.lanes)]
        known = ""
        for a, b in zip(registers[::2], [*registers[1::2], registers[-1]], strict=False):
            both = self.text.define(f"fcmp ord {part} {a}, {b}")
            if self.mask != "i1":
                both = self.text.define(f"sext <{self.lanes} x i1> {both} to {self.type}")
            known = self.text.define(f"and {self.type} {known}, {both}") if known else both
        self.numbers = self.text.define(f"and {self.type} {self.numbers}, {known}")

    def _register(self, value: Reg, first: int) -> str:
        vector = f"<{self.width} x {LLVM_TYPE[self.dtype]}>"
        order = ", ".join(f"i32 {k}" for k in range(first, first + self.lanes))
        return self.text.define(f"shufflevector {vector} {value.name}, {vector} poison, <{self.lanes} x i32> <{order}>")

    def result(self, total: Reg) -> Reg:
        """The reduction after the loop."""
        emit = Lanes(self.text, self.width)
        numbers, narrow = self.numbers, f"<{self.lanes} x i1>"
        if self.mask != "i1":
            numbers = self.text.define(f"icmp ne {self.type} {numbers}, zeroinitializer")
        order = ", ".join(f"i32 {k % self.lanes}" for k in range(self.width))
        wide = self.text.define(f"shufflevector {narrow} {numbers}, {narrow} poison, <{self.width} x i32> <{order}>")
        return emit.select(Reg(wide, BOOL), total, emit.const(self.dtype, np.nan))
