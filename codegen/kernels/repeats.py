"""Detects statements with identical kernels: in large programs, only the first of them is emitted.

Two statements are identical if they compute the same from the same pointers, as numbered by the kernel. Constants that are read from the
table (`literals.py`) are ignored.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from adjit.ir.func import Block
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.base import Op

from ..loops.nest import NestSpec
from .literals import NO_LITERALS, Taken

if TYPE_CHECKING:
    from .window import Strided


def look(block: Block, spec: NestSpec, numbers: Taken) -> Hashable:
    """A key of everything that determines the text of a region's kernel, except its borders."""
    reductions = tuple((type(r.op), r.axes, r.output) for r in spec.reductions)
    return spec.domain, tuple(spec.inputs), tuple(spec.outputs), reductions, numbers.pointer, _words(block, numbers)


def lowered_look(op: Op, windows: Sequence[Strided], region: Block | None = None) -> Hashable:
    """The same for an op that lowers itself, on its own or as the host of a region; the windows are all that its kernel accesses."""
    return op_word(op), tuple((w.pointer, w.type, w.strides) for w in windows), None if region is None else _words(region, NO_LITERALS)


def _words(block: Block, numbers: Taken) -> Hashable:
    """The ops of a region and the values that they read and make, which are numbered in order."""
    known: dict[int, int] = {}
    words: list[object] = []

    def number(x: Operand) -> int:
        return known.setdefault(id(x), len(known))

    for stmt in block.stmts:
        words.append(op_word(stmt.op))
        for k, x in enumerate(stmt.args):
            if not isinstance(x, Literal):
                words.append(number(x))
            else:
                words.append("table" if (id(stmt), k) in numbers.slots else (x.type.dtype, x.value.tobytes()))
        words.append(number(stmt.result))
    return (*words, *map(number, block.results))


def op_word(op: Op) -> object:
    """The op's type and the text of its attributes, which distinguishes 0.0 from -0.0."""
    return (type(op), *map(repr, op.__dict__.values())) if op.__dict__ else type(op)
