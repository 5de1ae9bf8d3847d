"""Combines the lanes of a register that holds partial results of a reduction."""

from __future__ import annotations

from adjit.ir.ops.reduce import Reduce

from ..kernels.emitter import VectorEmitter
from ..llvm.lanes import Reg, Text


def folded(text: Text, op: Reduce, value: Reg, width: int) -> Reg:
    """Combine all lanes: by halves first, then the remaining odd width one by one."""
    while width > 1 and width % 2 == 0:
        half = width // 2
        vector = VectorEmitter(text, width).type(value.dtype)
        take = f"shufflevector {vector} {value.name}, {vector} poison, <{half} x i32>"
        low, high = (Reg(text.define(f"{take} <{_lanes(first, half)}>"), value.dtype) for first in (0, half))
        if half == 1:
            scalar = VectorEmitter(text).type(value.dtype)
            low, high = (Reg(text.define(f"extractelement <1 x {scalar}> {r.name}, i64 0"), r.dtype) for r in (low, high))
        value, width = op.combine(VectorEmitter(text, half), low, high), half
    if width > 1:
        vector = VectorEmitter(text, width).type(value.dtype)
        lanes = [Reg(text.define(f"extractelement {vector} {value.name}, i64 {k}"), value.dtype) for k in range(width)]
        value = lanes[0]
        for lane in lanes[1:]:
            value = op.combine(VectorEmitter(text), value, lane)
    return value


def _lanes(first: int, count: int) -> str:
    return ", ".join(f"i32 {k}" for k in range(first, first + count))
