"""A `rows` region as one kernel: for each row, the loop nests of its members, one after the other.

Intermediate values of the members are kept on the stack, one row each; everything else is read and written at the row's place in its
buffer.
"""

from __future__ import annotations

import math
from dataclasses import replace

from adjit.ir.func import Stmt
from adjit.ir.operand import Operand
from adjit.ir.ops.control import Fuse

from ..llvm import memory
from ..llvm.counted import Loop
from ..llvm.lanes import Text
from ..llvm.memory import Access
from .kernels import Context, Kernel, Parts, parts_of
from .nest import Nest
from .parallel import CHUNKS, in_chunks, parallel_from


def rows_kernel(stmt: Stmt, context: Context) -> Kernel:
    kernel = Kernel(context)
    slots: dict[int, tuple[str, int]] = {}  # root -> name and size in bytes of its row

    def access(value: Operand) -> Access:
        window = context.plan.windows[id(value)]
        root, layout = window
        if id(root) not in context.plan.rows:
            return kernel.access(value)
        size = root.type.nbytes // root.type.shape[0]
        name, _ = slots.setdefault(id(root), (f"%row{len(slots)}", size))
        inside = layout.offset % max(1, size // root.type.dtype.itemsize)
        pointer = name if inside == 0 else f"{name}+{inside}"
        return Access(pointer, (0, *layout.strides[1:]), value.type.dtype)

    members = [parts_of(s, access) for s in stmt.blocks[0].stmts if isinstance(s.op, Fuse)]
    rows = members[0].domain[0]

    def walk(text: Text, start: str, stop: str) -> None:
        for name, size in slots.values():
            text.slots.append(f"{name} = alloca [{size} x i8], align 64")
        with Loop(text, start, stop) as loop:
            for parts in members:
                _member(text, context.target.vector_bytes, parts, loop.index)

    work = sum(parts.ops * math.prod(parts.domain) for parts in members)
    if work < parallel_from(kernel):
        walk(kernel.text, "0", str(rows))
    else:
        in_chunks(kernel, rows, -(-rows // min(rows, CHUNKS)), walk)
    return kernel


def _member(text: Text, vector_bytes: int, parts: Parts, row: str) -> None:
    """Emit the nest of one member for one row."""

    def at_row(access: Access) -> Access:
        pointer, _, offset = access.pointer.partition("+")
        first, *rest = access.strides
        if offset:
            pointer = memory.element(text, pointer, access.dtype, offset)
        if first:
            pointer = memory.element(text, pointer, access.dtype, memory.scaled(text, row, first))
        return Access(pointer, tuple(rest), access.dtype)

    reductions = [replace(r, axes=tuple(a - 1 for a in r.axes), output=at_row(r.output)) for r in parts.reductions]
    inputs, outputs = [at_row(a) for a in parts.inputs], [at_row(a) for a in parts.outputs]
    indexed = frozenset(axis - 1 for axis in parts.indexed if axis)
    Nest(text, vector_bytes, parts.domain[1:], inputs, outputs, reductions, parts.body, parts.ops, indexed, parts.aliased, row).emit()
