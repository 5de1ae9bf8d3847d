"""Large loop nests on all cores.

The outermost axis is cut into chunks by size alone, so results do not depend on the number of threads. A reduction over that axis stores
one partial result per chunk in scratch memory; the partial results are combined in order at the end. A nest with a single axis is processed
as rows of a fixed length, with the remainder as one more chunk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from adjit.ir.types import Shape

from ..interrupts.stopping import PIECE, leave_if_stopped
from ..llvm import memory
from ..llvm.lanes import Text
from ..llvm.memory import Access
from ..threads import library
from .nest import Body, Nest, Reduction
from .tiles import across, pieces

if TYPE_CHECKING:
    from .kernels import Kernel

PARALLEL = 200_000  # operations: below this, waking another thread costs more than it gains
AWAKE = 50_000  # the same in loops whose matrix products keep the other threads awake
CHUNK = 20_000  # minimum operations per chunk: claiming one costs a fraction of a microsecond
CHUNKS = 32  # enough to keep every thread busy, few enough to combine cheaply
ROW = 8192  # length of the rows that a single axis is cut into
MAX_PARTIALS = 1 << 20  # size limit of the partial results, in bytes


def emit_nest(
    kernel: Kernel,
    domain: Shape,
    inputs: Sequence[Access],
    outputs: Sequence[Access],
    reductions: Sequence[Reduction],
    body: Body,
    ops: int,
    indexed: frozenset[int],
    aliased: frozenset[int],
) -> None:
    """Emit a nest as the body of a kernel, in tiles if its accesses run in different directions."""
    whole = Nest(kernel.text, kernel.vector_bytes, domain, inputs, outputs, reductions, body, ops, indexed, aliased)
    accesses = [*inputs, *outputs]
    crossed = across(whole, accesses) if not (whole.empty or reductions or indexed or aliased) else None
    if crossed is None:
        _emit_whole(kernel, whole, body, ops, indexed, aliased)
        return
    for piece in pieces(whole, accesses, crossed):
        moved = [
            Access(kernel.shifted(a.pointer, memory.memory_type(a.dtype), offset), strides, a.dtype)
            for a, strides, offset in zip(accesses, piece.strides, piece.offsets, strict=True)
        ]
        part = Nest(kernel.text, kernel.vector_bytes, piece.domain, moved[: len(inputs)], moved[len(inputs) :], [], body, ops)
        _emit_whole(kernel, part, body, ops, indexed, aliased)


def _emit_whole(kernel: Kernel, whole: Nest, body: Body, ops: int, indexed: frozenset[int], aliased: frozenset[int]) -> None:
    """Emit a nest on one thread if it is small, in chunks otherwise."""
    size = math.prod(whole.sizes)
    if whole.empty or size * ops < parallel_from(kernel) or (len(whole.order) == 1 and (indexed or size < 2 * ROW)):
        whole.emit()
        return
    cut = _Cut(kernel, whole, body, ops, indexed, aliased)
    if cut.count < 2 or cut.partial_bytes > MAX_PARTIALS:
        whole.emit()
    else:
        cut.emit()


def parallel_from(kernel: Kernel) -> int:
    """The number of operations from which several threads pay off."""
    return AWAKE if kernel.awake else PARALLEL


def in_chunks(kernel: Kernel, total: int, rows: int, walk: Callable[[Text, str, str], None]) -> None:
    """Call `walk` for `rows` of `total` rows at a time, on all threads. It becomes a separate function that gets the kernel's pointers."""
    pointers = [*kernel.pointers.values(), *kernel.shifts.values(), *(["%work"] if kernel.work_bytes else [])]
    outlined(kernel, total, rows, pointers, pointers, walk)


def outlined(
    kernel: Kernel,
    total: int,
    rows: int,
    outside: Sequence[str],
    inside: Sequence[str],
    walk: Callable[[Text, str, str], None],
    leaves: bool = True,
) -> None:
    """Like `in_chunks` with chosen pointers: their names in the kernel and in the function. `leaves`: return at once when interrupted."""
    text, run = kernel.text, library.runner(kernel.threads)
    kernel.imports.add(run)
    text.declares.add(f"declare void @{run}({library.RUNNER})")
    inner = kernel.helper_text(may_look=True)
    for k, pointer in enumerate(inside):
        inner.put(f"{pointer}.at = getelementptr ptr, ptr %pointers, i64 {k}")
        inner.put(f"{pointer} = load ptr, ptr {pointer}.at")
    start = inner.define(f"mul i64 %chunk, {rows}")
    after = inner.define(f"add i64 {start}, {rows}")
    within = inner.define(f"icmp slt i64 {after}, {total}")
    walk(inner, start, inner.define(f"select i1 {within}, i64 {after}, i64 {total}"))
    chunks = -(-total // rows)
    looks = inner.looks or (text.may_look and chunks * inner.work >= PIECE)
    if inner.looks:
        inner.lines[:0] = [f"%error.at = getelementptr ptr, ptr %pointers, i64 {len(outside)}", "%error = load ptr, ptr %error.at"]
        outside = [*outside, "%error"]
    name = kernel.add_helper("chunk", "ptr %pointers, i64 %chunk, i64 %worker", inner)
    stop = "%error" if looks else "null"
    text.put(f"call void @{run}(ptr {name}, ptr {memory.table(text, outside)}, i64 {chunks}, ptr {stop}, i64 {kernel.threads})")
    text.charge(chunks * inner.work, looks)
    if looks and leaves:
        leave_if_stopped(text)


class _Cut:
    def __init__(self, kernel: Kernel, whole: Nest, body: Body, ops: int, indexed: frozenset[int], aliased: frozenset[int]) -> None:
        self.kernel = kernel
        self.settings = (body, ops, indexed, aliased)
        self.domain, self.inputs, self.outputs, self.reductions = whole.domain, whole.inputs, whole.outputs, whole.reductions
        if len(whole.order) == 1:
            self._as_rows(whole)
        self.nest = self._nest(kernel.text, self.inputs, self.outputs, self.reductions)
        rows = self.nest.sizes[0]
        wanted = max(2, min(rows, CHUNKS, math.prod(self.nest.sizes) * ops // CHUNK))
        self.rows = -(-rows // wanted)  # per chunk
        self.count = -(-rows // self.rows)
        self.total = rows
        axis = self.nest.order[0]
        self.partial = [k for k, r in enumerate(self.reductions) if axis in r.axes]
        self.sizes = {k: self._output_size(self.reductions[k]) for k in self.partial}
        slots = self.count + bool(self.rest_size)
        self.offsets: dict[int, int] = {}
        self.partial_bytes = 0
        for k in self.partial:
            self.offsets[k] = self.partial_bytes
            self.partial_bytes += -(-slots * self.sizes[k] * self.reductions[k].output.dtype.itemsize // 64) * 64

    def _nest(self, text: Text, inputs: Sequence[Access], outputs: Sequence[Access], reductions: Sequence[Reduction]) -> Nest:
        body, ops, indexed, aliased = self.settings
        barrier = indexed if self.rest_size is None else indexed | {0}  # keeps the rows from being merged into one axis again
        return Nest(text, self.kernel.vector_bytes, self.domain, inputs, outputs, reductions, body, ops, barrier, aliased)

    rest_size: int | None = None  # elements after the last whole row; None for a nest of several axes

    def _as_rows(self, whole: Nest) -> None:
        """Treat a single axis of n elements as n // ROW rows; the remainder is a separate nest."""
        (axis,), (n,) = whole.order, whole.sizes
        rows, left = divmod(n, ROW)

        def rowed(access: Access) -> Access:
            stride = access.strides[axis]
            return access._replace(strides=(stride * ROW, stride))

        self.rest_size = left
        self.domain = (rows, ROW)
        self.inputs, self.outputs = [rowed(a) for a in whole.inputs], [rowed(a) for a in whole.outputs]
        self.reductions = [replace(r, axes=(0, 1) if axis in r.axes else (), output=rowed(r.output)) for r in whole.reductions]

    def _output_size(self, r: Reduction) -> int:
        return math.prod(n for axis, n in enumerate(self.domain) if axis not in r.axes)

    # ---- emission

    def emit(self) -> None:
        kernel = self.kernel
        if self.partial_bytes:
            kernel.work_bytes = max(kernel.work_bytes, self.partial_bytes)
        self.nest.prefill(self.nest.prefilled - set(self.partial))
        in_chunks(kernel, self.total, self.rows, self._walk)
        if self.rest_size:
            self._emit_rest()
        for k in self.partial:
            self._combine(k)

    def _walk(self, text: Text, start: str, stop: str) -> None:
        """Emit one chunk."""
        nest = self._nest(text, self.inputs, self.outputs, self._with_partials(text, "%chunk"))
        nest.prefill(self.partial)
        nest.walk((start, stop))

    def _with_partials(self, text: Text, slot: str) -> list[Reduction]:
        """The reductions, with those over the cut axis redirected to their partial results number `slot`."""
        out = list(self.reductions)
        for k in self.partial:
            r = self.reductions[k]
            base = text.define(f"getelementptr i8, ptr %work, i64 {self.offsets[k]}")
            index = memory.scaled(text, slot, self.sizes[k])
            partial = r.output._replace(pointer=memory.element(text, base, r.output.dtype, index))
            out[k] = replace(r, output=partial, adding=False)
        return out

    def _emit_rest(self) -> None:
        """Emit the elements after the last whole row, reducing into the last partial results."""
        body, ops, _, aliased = self.settings
        text, done = self.kernel.text, self.total * ROW

        def moved(access: Access) -> Access:
            stride = access.strides[1]
            pointer = memory.element(text, access.pointer, access.dtype, str(done * stride)) if stride else access.pointer
            return Access(pointer, (stride,), access.dtype)

        reductions = [
            replace(r, axes=(0,) if r.axes else (), output=moved(r.output)) for r in self._with_partials(text, str(self.count))
        ]
        inputs, outputs = [moved(a) for a in self.inputs], [moved(a) for a in self.outputs]
        assert self.rest_size
        Nest(text, self.kernel.vector_bytes, (self.rest_size,), inputs, outputs, reductions, body, ops, frozenset(), aliased).emit()

    def _combine(self, k: int) -> None:
        """Combine partial results in order into the output of the reduction."""
        text, r, size = self.kernel.text, self.reductions[k], self.sizes[k]
        base = text.define(f"getelementptr i8, ptr %work, i64 {self.offsets[k]}")
        slots = self.count + bool(self.rest_size)
        partials = Access(base, (size, 1), r.output.dtype)
        output = Access(r.output.pointer, (0, 1), r.output.dtype)
        combined = Reduction(type(r.op)((0,)), (0,), output, r.adding)
        Nest(text, self.kernel.vector_bytes, (slots, size), [partials], [], [combined], lambda c: c.reduce(0, c.load(0))).emit()
