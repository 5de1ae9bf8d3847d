"""Detects fused regions with identical kernels: in large programs, only the first of them is emitted.

Two regions are identical if they compute the same from the same pointers, as numbered by the kernel. Constants that are read from the table
(`literals.py`) are ignored.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from adjit.ir.func import Block
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.base import Op

from .literals import Taken

if TYPE_CHECKING:
    from .kernels import Parts


def look(block: Block, parts: Parts, numbers: Taken) -> Hashable:
    """A key of everything that determines the text of a region's kernel, except its borders."""
    known: dict[int, int] = {}  # every value that it reads or makes, numbered in order
    words: list[object] = []

    def number(x: Operand) -> int:
        return known.setdefault(id(x), len(known))

    for stmt in block.stmts:
        words.append(_op_word(stmt.op))
        for k, x in enumerate(stmt.args):
            if not isinstance(x, Literal):
                words.append(number(x))
            else:
                words.append("table" if (id(stmt), k) in numbers.slots else (x.type.dtype, x.value.tobytes()))
        words.append(number(stmt.result))
    reductions = tuple((type(r.op), r.axes, r.output) for r in parts.reductions)
    words += map(number, block.results)
    return parts.domain, tuple(parts.inputs), tuple(parts.outputs), reductions, numbers.pointer, tuple(words)


def _op_word(op: Op) -> object:
    """The op's type and the text of its attributes, which distinguishes 0.0 from -0.0."""
    return (type(op), *map(repr, op.__dict__.values())) if op.__dict__ else type(op)
