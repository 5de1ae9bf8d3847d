"""A `rows` region as one kernel: for each row, the loop nests of its members, one after the other.

Intermediate values of the members are kept on the stack, one row each; everything else is read and written at the row's place in its
buffer. If the number of rows is known only at run time, and is small then, the members are computed one after the other for all rows: these
do not wait for each other, and all intermediate values are in the cache anyway.
"""

from __future__ import annotations

import math

from adjit.ir.errors import NotGeneral
from adjit.ir.expr import Expr, minimum, variable
from adjit.ir.func import Stmt
from adjit.ir.operand import Operand
from adjit.ir.records import replace

from ..interrupts.stopping import brief
from ..llvm.words import Truth, branch
from ..loops.chunks import CHUNKS, MIN_OPS
from ..loops.ir import CHUNK, ROWS, Access, Local, Loop, LoopProgram, Node, Parallel, Sizing
from ..loops.nest import NestPlan, NestSpec
from ..sizes import native_shape, native_size
from .kernel import Context, Kernel
from .region import region_of

ROW = variable("row")
FEW = 15  # rows: up to here, a program for one size computes its members one by one
SHORT = 1024  # bytes of an intermediate value in one row, up to which such a program is worth its code


def rows_kernel(stmt: Stmt, context: Context) -> Kernel:
    kernel = Kernel(context)
    kernel.come_from(stmt)
    slots: dict[int, Local] = {}  # root -> the buffer of its row

    def access(value: Operand) -> Access:
        root, layout = context.plan.windows[id(value)]
        if id(root) not in context.plan.rows:
            return kernel.access(value)
        elements: Expr = math.prod(native_shape(root.type.shape[1:]))
        slot = slots.get(id(root)) or local(elements * root.type.dtype.itemsize)
        slots[id(root)] = slot
        inside = _inside(native_size(layout.offset), elements)
        return Access(slot.pointer, (0, *native_shape(layout.strides[1:])), value.type.dtype, inside)

    def local(size: Expr) -> Local:
        if isinstance(size, int):
            return Local(f"%row{len(slots)}", size)
        each = -(-size // 64) * 64
        kernel.work_bytes, offset = kernel.work_bytes + each * kernel.threads, kernel.work_bytes
        return Local(f"%row{len(slots)}", each, offset)

    members = [region_of(s, access).spec for s in stmt.blocks[0].stmts if s.op.is_nest]
    rows = members[0].domain[0]

    def walk(start: Expr, stop: Expr) -> list[Node]:
        nests = [node for spec in members for node in _member(kernel.vector_bytes, spec)]
        return [*slots.values(), Loop(ROW, start, stop, 1, nests)]

    def by_member() -> None:
        nodes = _few_rows(kernel, stmt, context, minimum(rows, FEW))
        with brief(kernel.text):
            kernel.run(LoopProgram(nodes))

    work = sum((spec.ops * math.prod(spec.domain) for spec in members), 0)
    least = kernel.limits.parallel_from
    if not isinstance(work, int) or not isinstance(rows, int):
        sized = Sizing(work, least, MIN_OPS, CHUNKS)
        nodes: list[Node] = [Parallel(rows, ROWS, walk(CHUNK * ROWS, minimum(CHUNK * ROWS + ROWS, rows)), sized)]
    elif work < least:
        nodes = walk(0, rows)
    else:
        each = -(-rows // min(rows, CHUNKS))
        nodes = [Parallel(rows, each, walk(CHUNK * each, minimum(CHUNK * each + each, rows)))]
    is_few: bool | Truth = False
    if not isinstance(rows, int) and all(isinstance(slot.nbytes, int) and slot.nbytes <= SHORT for slot in slots.values()):
        is_few = Truth(kernel.text, kernel.text.define(f"icmp sle i64 {rows}, {FEW}"))
    branch(is_few, by_member, lambda: kernel.run(LoopProgram(nodes)))
    return kernel


def _few_rows(kernel: Kernel, stmt: Stmt, context: Context, rows: Expr) -> list[Node]:
    """The nests of the members, each for all rows, with room for FEW rows of the intermediate values."""
    slots: dict[int, Local] = {}

    def access(value: Operand) -> Access:
        root, layout = context.plan.windows[id(value)]
        if id(root) not in context.plan.rows:
            return kernel.access(value)
        elements = math.prod(native_shape(root.type.shape[1:]))
        slot = slots.setdefault(id(root), Local(f"%few{len(slots)}", FEW * elements * root.type.dtype.itemsize))
        return Access(slot.pointer, (elements, *native_shape(layout.strides[1:])), value.type.dtype, native_size(layout.offset) % elements)

    members = [region_of(s, access).spec for s in stmt.blocks[0].stmts if s.op.is_nest]
    nests = [NestPlan(kernel.vector_bytes, replace(spec, domain=(rows, *spec.domain[1:]))).nodes() for spec in members]
    return [*slots.values(), *(node for nest in nests for node in nest)]


def _inside(offset: Expr, elements: Expr) -> Expr:
    """The offset of a window in the buffer of one row."""
    if isinstance(elements, int):
        return offset % max(1, elements)
    if offset != 0:
        raise NotGeneral("a part of a row whose length is known only at run time")
    return 0


def _member(vector_bytes: int, spec: NestSpec) -> list[Node]:
    """The nest of one member for one row."""

    def at_row(access: Access) -> Access:
        first, *rest = access.strides
        return access._replace(strides=tuple(rest), offset=access.offset + ROW * first)

    inner = NestSpec(
        spec.domain[1:],
        [at_row(a) for a in spec.inputs],
        [at_row(a) for a in spec.outputs],
        [replace(r, axes=tuple(a - 1 for a in r.axes), output=at_row(r.output)) for r in spec.reductions],
        spec.body,
        spec.ops,
        frozenset(axis - 1 for axis in spec.indexed if axis),
        spec.aliased,
    )
    return NestPlan(vector_bytes, inner, ROW).nodes()
