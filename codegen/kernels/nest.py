"""Loop nests: one pass over a domain that loads inputs, computes a few elements at a time, and stores or reduces the results.

The nest drops and merges axes as far as the strides of all its accesses allow, makes the axis that vectorises best the innermost, and
processes it in vectors: a main loop, then the rest of the row as one or two odd-sized vectors (shapes are static, so no scalar tail loop is
needed).

A reduction over the innermost axis accumulates in vector registers, in blocks, so that long float sums stay accurate; the float32 totals of
blocks are added in float64. A reduction that keeps the innermost axis accumulates in the memory of its output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from adjit.ir.ops.reduce import Reduce, Sum
from adjit.ir.types import BOOL, F32, F64, I64, DType, Shape

from ..llvm import memory
from ..llvm.counted import Loop
from ..llvm.lanes import Reg, Text
from ..llvm.memory import Access
from .emitter import VectorEmitter

ADDITIONS = 64  # per lane before a block is added to the row's total: bounds the error equally for every vector width
LONG_ROW = 1 << 13  # vectors in a row, beyond which the loop is split so that it can check for signals
TOTALS = 8  # vectors of totals held in registers while short rows are summed elementwise
MAX_WRITTEN = 64  # operations in such a row, which is fully unrolled
WIDE_BODY, MEDIUM_BODY = 4, 12  # in ops: up to these, the main loop processes four and two vectors per iteration
SQUARE = 32  # maximum side, in elements, of a square transposed in registers; tiles consist of whole squares
LONG_BODY, DENSE = 40, 6  # in ops: bodies up to this length also use two vectors, if latency-bound (DENSE ops per access)


@dataclass
class Reduction:
    """A reduction over `axes` of the domain, along which the strides of the output are 0."""

    op: Reduce
    axes: tuple[int, ...]
    output: Access
    adding: bool = False  # to the current contents of the output


@dataclass
class Chunk:
    """What the body of a nest sees: `width` elements. `load(k)` reads input k, `put(k, reg)` writes output k."""

    emit: VectorEmitter
    load: Callable[[int], Reg]
    put: Callable[[int, Reg], None]
    reduce: Callable[[int, Reg], None]


Body: TypeAlias = Callable[[Chunk], None]


class Nest:
    """One loop nest; `emit` writes it."""

    def __init__(
        self,
        text: Text,
        vector_bytes: int,
        domain: Shape,
        inputs: Sequence[Access],
        outputs: Sequence[Access],
        reductions: Sequence[Reduction],
        body: Body,
        ops: int = 1,
        indexed: frozenset[int] = frozenset(),
        aliased: frozenset[int] = frozenset(),
        row: str | None = None,
    ) -> None:
        """`indexed`: domain axes whose index the body reads. `aliased`: outputs that share a buffer with an input, which are stored last.

        `row`: the index on an additional first axis, which is looped over by the caller.
        """
        self.text = text
        self.vector_bytes = vector_bytes
        self.inputs, self.outputs, self.reductions = list(inputs), list(outputs), list(reductions)
        self.body = body
        self.ops = ops
        self.aliased = aliased
        self.empty = 0 in domain
        self.domain = domain
        self.row = row
        self.given: dict[int, Reg] = {}  # inputs that are already in registers
        self._simplify_axes(indexed)

    # ---- choice and order of axes

    def _all(self) -> list[Access]:
        return self.inputs + self.outputs + [r.output for r in self.reductions]

    def _simplify_axes(self, indexed: frozenset[int]) -> None:
        """Drop axes of size 1, merge neighbouring axes that are contiguous in every access, and choose the innermost axis."""
        groups: list[list[int]] = []
        accesses = self._all()
        for axis, n in enumerate(self.domain):
            if n == 1:
                continue
            if groups and axis not in indexed and groups[-1][-1] not in indexed:
                last = groups[-1][-1]
                if all(a.strides[last] == a.strides[axis] * n for a in accesses):
                    groups[-1].append(axis)
                    continue
            groups.append([axis])
        sizes = {g[-1]: math.prod(self.domain[a] for a in g) for g in groups}
        order = [g[-1] for g in groups]
        if order:
            inner = max(order, key=lambda a: (self._score(a, sizes[a]), a))
            order = [a for a in order if a != inner] + [inner]
        self.order = order
        self.sizes = [sizes[a] for a in order]
        self._classify_reductions()

    def _score(self, axis: int, size: int) -> float:
        """How well the nest vectorises along an axis."""
        strides = [a.strides[axis] for a in self._all()]
        smooth = sum(1.0 if s in (0, 1) else 0.5 if s == -1 else -1.0 for s in strides) / max(1, len(strides))
        return smooth * min(size, 8)

    # ---- the loops

    def emit(self) -> None:
        """Emit the whole nest for one thread."""
        self.prefill()
        if not self.empty:
            self.walk()

    def _classify_reductions(self) -> None:
        """Decide where the totals of each reduction are kept, and which outputs must be initialised because they accumulate in memory."""
        rank = len(self.order)
        self.prefilled: set[int] = set()
        self.kept_depth: list[int] = []  # per reduction: position of its innermost kept axis, -1 if there is none
        for k, r in enumerate(self.reductions):
            kept = [p for p, axis in enumerate(self.order) if axis not in r.axes]
            depth = kept[-1] if kept else -1
            self.kept_depth.append(depth)
            reduced_outside = any(axis in r.axes for axis in self.order[: max(depth, 0)])
            if self.empty or depth == rank - 1 >= 0 or reduced_outside or r.adding:
                self.prefilled.add(k)

    def walk(self, span: tuple[str, str] | None = None) -> None:
        """Emit the loops; `span` limits the outermost one to a part of its range."""
        rank = len(self.order)
        self.span = span
        self.slots: dict[int, tuple[str, DType]] = {}
        self.inner_axis: int | None = None
        self.row_pointers: dict[tuple[str, tuple[int, ...]], str] = {}
        self.indices: dict[int, str] = {}
        if rank == 0:
            self._inner(1)
        else:
            self._level(0)

    def prefill(self, only: Container[int] | None = None) -> None:
        """Initialise the outputs of reductions that accumulate in memory with the identity."""
        for k in sorted(self.prefilled):
            if not self.reductions[k].adding and (only is None or k in only):
                fill_identity(self.text, self.vector_bytes, self.domain, self.reductions[k])

    def _level(self, position: int) -> None:
        rank = len(self.order)
        finishing = [k for k, depth in enumerate(self.kept_depth) if depth + 1 == position < rank - 1]
        for k in finishing:
            self._open_slot(k)
        start, stop = self.span if self.span and position == 0 else ("0", str(self.sizes[position]))
        if position == rank - 1:
            self._inner(self.sizes[position])
        elif position == rank - 2 and self._sums_short_rows():
            self._short_rows(start, stop)
        elif position == rank - 2 and self._crossing():
            self._square()
        else:
            with Loop(self.text, start, stop) as loop:
                self.indices[self.order[position]] = loop.index
                self._level(position + 1)
            del self.indices[self.order[position]]
        for k in finishing:
            self._finish(k, self._close_slot(k))

    # ---- short rows, summed elementwise

    def _sums_short_rows(self) -> bool:
        """Whether all reductions sum rows elementwise, and a row of totals fits in registers."""
        *_, outer, inner = self.order
        vectors = -(-self.sizes[-1] // self.lanes())
        few = vectors * len(self.reductions) <= TOTALS and vectors * self.ops <= MAX_WRITTEN
        return few and bool(self.reductions) and all(outer in r.axes and inner not in r.axes for r in self.reductions)

    def _pieces(self) -> list[tuple[int, int]]:
        """The innermost axis as vectors: (start, width) of each."""
        size, lanes = self.sizes[-1], self.lanes()
        return [(start, min(lanes, size - start)) for start in range(0, size, lanes)]

    def _short_rows(self, start: str, stop: str) -> None:
        text, (*_, outer, inner) = self.text, self.order
        self.inner_axis = inner
        pieces = self._pieces()
        totals: dict[int, dict[int, Reg]] = {}
        with Loop(text, start, stop) as loop:
            self.indices[outer] = loop.index
            for at, width in pieces:
                emit, totals[at] = VectorEmitter(text, width), {}
                for k, r in enumerate(self.reductions):
                    first = emit.const(r.output.dtype, r.op.identity(r.output.dtype))
                    totals[at][k] = Reg(loop.carry(emit.type(r.output.dtype), first.name), r.output.dtype)
            self._start_row(sorted({width for _, width in pieces}))
            for at, width in pieces:
                before, totals[at] = totals[at], self._chunk(width, str(at), totals[at])
                for k, total in before.items():
                    loop.feed(total.name, totals[at][k].name)
            del self.indices[outer]
        self.row_pointers = {}
        for at, width in pieces:
            for k, r in enumerate(self.reductions):
                pointer, stride = self._row_pointer(r.output), r.output.strides[inner]
                before_ = memory.load(text, pointer, r.output.dtype, str(at), stride, width)
                memory.store(text, pointer, r.op.combine(VectorEmitter(text, width), before_, totals[at][k]), str(at), stride, width)

    # ---- squares, transposed in registers

    def _crossing(self) -> list[int]:
        """Inputs that are contiguous along the second-to-last axis, where the last two axes form a square."""
        width, (*_, outer, inner) = self.sizes[-1], self.order
        if self.reductions or width & (width - 1) or self.sizes[-2:] != [self.side()] * 2 or width * self.ops > MAX_WRITTEN:
            return []
        moves = [(a.strides[outer], abs(a.strides[inner]), a.dtype) for a in self.inputs]
        return [k for k, (along, across, dtype) in enumerate(moves) if along == 1 and across > 1 and dtype != BOOL]

    def _square(self) -> None:
        text, (*_, outer, inner), width = self.text, self.order, self.sizes[-1]
        self.inner_axis = inner
        turned: dict[int, list[Reg]] = {}
        self.indices[outer] = "0"
        self.row_pointers = {}
        for k in self._crossing():
            pointer, dtype, step = self._row_pointer(self.inputs[k]), self.inputs[k].dtype, self.inputs[k].strides[inner]
            columns = [memory.element(text, pointer, dtype, str(i * step)) for i in range(width)]
            turned[k] = memory.transposed(text, [memory.load(text, column, dtype, "0", 1, width) for column in columns])
        for row in range(width):
            self.indices[outer] = str(row)
            self._start_row([width])
            self.given = {k: rows[row] for k, rows in turned.items()}
            self._chunk(width, "0", {})
        self.given = {}
        del self.indices[outer]

    # ---- the innermost axis

    def _start_row(self, widths: list[int]) -> None:
        """Compute the addresses and everything else that is constant along the row, before its first element."""
        self.row_pointers = {}
        for access in self._all():
            self._row_pointer(access)
        self.splats: dict[tuple[int, int], Reg] = {}
        self._hoist(widths)

    def _inner(self, size: int) -> None:
        axis = self.order[-1] if self.order else None
        rank = len(self.order)
        widths = self._widths(size, axis)
        main, trips = widths.pop(0)
        self.inner_axis = axis
        self._start_row([main, *(w for w, _ in widths)])
        vectors = [k for k, depth in enumerate(self.kept_depth) if depth < rank - 1 or rank == 0]
        exact = trips > 2 * ADDITIONS and any(_sums_floats(self.reductions[k]) for k in vectors)
        blocked = exact or trips > 2 * LONG_ROW
        local = [k for k in vectors if k not in self.slots]
        if blocked:
            for k in local:
                self._open_slot(k)
        totals: dict[int, Reg] = {}
        covered = trips * main
        if trips == 1:
            self._merge(totals, self._chunk(main, "0", {}), main)
        elif blocked:
            step = (ADDITIONS if exact else LONG_ROW) * main
            with Loop(self.text, "0", str(covered), step) as loop:
                start = loop.index
                limit = self.text.define(f"add i64 {start}, {step}")
                short = self.text.define(f"icmp slt i64 {limit}, {covered}")
                stop = self.text.define(f"select i1 {short}, i64 {limit}, i64 {covered}")
                part: dict[int, Reg] = {}
                self._merge(part, self._row(main, start, stop, vectors), main)
                for k, value in part.items():
                    self._into_slot(k, value)
        else:
            self._merge(totals, self._row(main, "0", str(covered), vectors), main)
        for width, start_at in widths:
            self._merge(totals, self._chunk(width, str(start_at), {}), width)
        for k, value in totals.items():
            if k in self.slots:
                self._into_slot(k, value)
            else:
                self._finish(k, value)
        if blocked:
            for k in local:
                self._finish(k, self._close_slot(k))

    def _widths(self, size: int, axis: int | None) -> list[tuple[int, int]]:
        """[(main width, trip count), (tail width, start), ...]."""
        if axis is None:
            return [(1, 1)]
        accesses, lanes = self._all(), self.lanes()
        ragged = any(a.strides[axis] not in (0, 1, -1) for a in accesses)
        medium = self.ops <= MEDIUM_BODY or DENSE * len(accesses) <= self.ops <= LONG_BODY
        unroll = 1 if ragged or not medium else 2 if self.ops > WIDE_BODY else 4
        while unroll > 1 and size < 2 * unroll * lanes:
            unroll //= 2
        main = min(unroll * lanes, size)
        trips = size // main
        out, at, left = [(main, trips)], main * trips, size - main * trips
        if left >= lanes:
            whole = left // lanes * lanes
            out.append((whole, at))
            at, left = at + whole, left - whole
        if left:
            out.append((left, at))
        return out

    def lanes(self) -> int:
        """Number of elements in a vector."""
        accesses = self._all()
        itemsizes = [a.dtype.itemsize for a in accesses if a.dtype.kind == "f"] or [a.dtype.itemsize for a in accesses] or [8]
        return max(2, self.vector_bytes // min(itemsizes))

    def side(self) -> int:
        """Side of a square in elements: the vector width, unless that is larger than a tile."""
        return min(self.lanes(), SQUARE)

    def _hoist(self, widths: list[int]) -> None:
        """Load inputs that are constant along the innermost axis once per row."""
        for k, access in enumerate(self.inputs):
            if self.inner_axis is None or access.strides[self.inner_axis] == 0:
                scalar = memory.load(self.text, self._row_pointer(access), access.dtype, "0", 1, 1)
                for width in widths:
                    self.splats[k, width] = memory.splat(self.text, scalar, width)

    def _row(self, width: int, start: str, stop: str, accumulators: list[int]) -> dict[int, Reg]:
        """The vector loop along a row; returns the vector accumulators."""
        emit = VectorEmitter(self.text, width)
        with Loop(self.text, start, stop, width) as loop:
            totals = {}
            for k in accumulators:
                dtype = self.reductions[k].output.dtype
                first = emit.const(dtype, self.reductions[k].op.identity(dtype))
                totals[k] = Reg(loop.carry(emit.type(dtype), first.name), dtype)
            sums = self._chunk(width, loop.index, totals)
            for k, total in totals.items():
                loop.feed(total.name, sums[k].name)
        return sums

    def _chunk(self, width: int, index: str, totals: dict[int, Reg]) -> dict[int, Reg]:
        """Emit the body once for `width` elements from `index`; return the values of the reductions that are held in registers."""
        text, inner = self.text, self.inner_axis
        emit = VectorEmitter(text, width, lambda axis, w: self._position(axis, w, index))
        loaded: dict[int, Reg] = {}
        late: list[tuple[Access, Reg]] = []
        sums: dict[int, Reg] = {}

        def load(k: int) -> Reg:
            if (k, width) in self.splats:
                return self.splats[k, width]
            if k in self.given:
                return self.given[k]
            if k not in loaded:
                access = self.inputs[k]
                loaded[k] = memory.load(text, self._row_pointer(access), access.dtype, index, access.strides[inner], width)  # type: ignore[index]
            return loaded[k]

        def write(access: Access, value: Reg) -> None:
            memory.store(text, self._row_pointer(access), value, index, 1 if inner is None else access.strides[inner], width)

        def put(k: int, value: Reg) -> None:
            if k in self.aliased:
                late.append((self.outputs[k], value))
            else:
                write(self.outputs[k], value)

        def reduce(k: int, value: Reg) -> None:
            r = self.reductions[k]
            if k in totals:
                sums[k] = r.op.combine(emit, totals[k], value)
            elif inner is not None and inner not in r.axes:
                stride = r.output.strides[inner]
                before = memory.load(text, self._row_pointer(r.output), r.output.dtype, index, stride, width)
                write(r.output, r.op.combine(emit, before, value))
            else:
                sums[k] = value

        self.body(Chunk(emit, load, put, reduce))
        for access, value in late:
            write(access, value)
        return sums

    def _position(self, axis: int, width: int, index: str) -> Reg:
        """The i64 positions of a chunk's elements along an axis, in the numbering that the body uses."""
        if self.row is not None:
            axis -= 1
        if axis < 0:
            return memory.splat(self.text, Reg(str(self.row), I64), width)
        if axis != self.inner_axis:
            return memory.splat(self.text, Reg(self.indices.get(axis, "0"), I64), width)
        first = memory.splat(self.text, Reg(index, I64), width)
        if width == 1:
            return first
        steps = ", ".join(f"i64 {k}" for k in range(width))
        return Reg(self.text.define(f"add <{width} x i64> {first.name}, <{steps}>"), I64)

    def _row_pointer(self, access: Access) -> str:
        """The address of an access at the current outer indices, computed once per row."""
        moves = [(self.indices[a], access.strides[a]) for a in self.order[:-1] if access.strides[a]]
        if not moves:
            return access.pointer
        key = (access.pointer, access.strides)
        if key not in self.row_pointers:
            self.row_pointers[key] = self._moved(access, moves)
        return self.row_pointers[key]

    def _moved(self, access: Access, moves: list[tuple[str, int]]) -> str:
        text, total = self.text, ""
        for index, stride in moves:
            part = memory.scaled(text, index, stride)
            total = text.define(f"add i64 {total}, {part}") if total else part
        return memory.element(text, access.pointer, access.dtype, total)

    # ---- totals of reductions

    def _merge(self, totals: dict[int, Reg], parts: dict[int, Reg], width: int) -> None:
        """Reduce vectors of `width` lanes to scalars and combine them into `totals`."""
        for k, value in parts.items():
            op = self.reductions[k].op
            one = self._folded(op, value, width)
            totals[k] = op.combine(VectorEmitter(self.text), totals[k], one) if k in totals else one

    def _folded(self, op: Reduce, value: Reg, width: int) -> Reg:
        """Combine all lanes: by halves first, then the remaining odd width one by one."""
        text = self.text
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

    def _open_slot(self, k: int) -> None:
        """Reserve a stack slot for a total that spans several rows or blocks; float32 sums are kept in float64 there."""
        r = self.reductions[k]
        dtype = F64 if _sums_floats(r) else r.output.dtype
        emit = VectorEmitter(self.text)
        slot = self.text.reserve(emit.type(dtype))
        self.text.put(f"store {emit.type(dtype)} {emit.const(dtype, r.op.identity(dtype)).name}, ptr {slot}")
        self.slots[k] = (slot, dtype)

    def _into_slot(self, k: int, value: Reg) -> None:
        slot, dtype = self.slots[k]
        emit = VectorEmitter(self.text)
        ty = emit.type(dtype)
        before = Reg(self.text.define(f"load {ty}, ptr {slot}"), dtype)
        total = self.reductions[k].op.combine(emit, before, emit.convert(value, dtype))
        self.text.put(f"store {ty} {total.name}, ptr {slot}")

    def _close_slot(self, k: int) -> Reg:
        slot, dtype = self.slots.pop(k)
        emit = VectorEmitter(self.text)
        return emit.convert(Reg(self.text.define(f"load {emit.type(dtype)}, ptr {slot}"), dtype), self.reductions[k].output.dtype)

    def _finish(self, k: int, total: Reg) -> None:
        """Write a finished total to its element of the output."""
        r = self.reductions[k]
        moves = [(self.indices[a], r.output.strides[a]) for a in self.order if a in self.indices and r.output.strides[a]]
        pointer = self._moved(r.output, moves) if moves else r.output.pointer
        if k in self.prefilled:
            before = memory.load(self.text, pointer, r.output.dtype, "0", 1, 1)
            total = r.op.combine(VectorEmitter(self.text), before, total)
        memory.store(self.text, pointer, total, "0", 1, 1)


def fill_identity(text: Text, vector_bytes: int, domain: Shape, r: Reduction) -> None:
    """Fill the output of a reduction with the identity, in a separate nest over the kept axes."""
    shape = tuple(1 if a in r.axes else n for a, n in enumerate(domain))
    value = r.op.identity(r.output.dtype)
    Nest(text, vector_bytes, shape, [], [r.output], [], lambda chunk: chunk.put(0, chunk.emit.const(r.output.dtype, value))).emit()


def _lanes(first: int, count: int) -> str:
    return ", ".join(f"i32 {k}" for k in range(first, first + count))


def _sums_floats(r: Reduction) -> bool:
    return isinstance(r.op, Sum) and r.output.dtype in (F32, F64)
