"""Plans one loop nest: the order of the axes, vector widths, and where reductions accumulate.

The nest drops and merges axes as far as the strides of all its accesses allow, makes the axis that vectorises best the innermost, and
processes it in vectors: a main loop, then the rest of the row as one or two odd-sized vectors. If the size of the innermost axis is known
only at run time, the rest is in vectors of which the last may be a part, or, where the CPU cannot load and store parts, in shorter vectors
and single elements.

A reduction over the innermost axis accumulates in vector registers, in blocks, so that long float sums stay accurate; the float32 totals of
blocks are added in float64. A reduction that keeps the innermost axis accumulates in the memory of its output.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

from adjit.ir.bounds import Ranges, proven_sign
from adjit.ir.expr import Expr, Symbolic, minimum, variable
from adjit.ir.records import record
from adjit.ir.types import BOOL, F32, F64, computed

from .ir import (
    Access,
    Body,
    Carry,
    Chunk,
    Close,
    Either,
    Finish,
    Fold,
    Loop,
    Merge,
    Nest,
    Node,
    Open,
    Reduction,
    Row,
    Spill,
    Square,
    Vector,
    index_of,
)

# Additions per lane before a block is added to the row's total: bounds the error equally for every vector width. The end of a block costs
# about as much as five vectors, so blocks of float64, which has digits to spare, are longer.
ADDITIONS = {F32: 128, F64: 256}
LONG_ROW = 1 << 13  # vectors in a row, beyond which the loop is split so that it can check for signals
TOTALS = 8  # vectors of totals held in registers while short rows are summed elementwise
MAX_WRITTEN = 64  # operations in such a row, which is fully unrolled
WIDE_BODY, MEDIUM_BODY = 4, 12  # in ops: up to these, the main loop processes four and two vectors per iteration
SQUARE = 32  # maximum side, in elements, of a square transposed in registers; tiles consist of whole squares
LONG_BODY, DENSE = 40, 6  # in ops: bodies up to this length also use two vectors, if latency-bound (DENSE ops per access)
ASSUMED = 1024  # size of an axis whose size is known only at run time, where a choice depends on it


@record
class NestSpec:
    """The computation of a nest: `body`, for every element of a domain."""

    domain: tuple[Expr, ...]
    inputs: list[Access]
    outputs: list[Access]
    reductions: list[Reduction]
    body: Body
    ops: int = 1  # number of operations in the body
    indexed: frozenset[int] = frozenset()  # axes whose index the body reads
    aliased: frozenset[int] = frozenset()  # outputs that share a buffer with an input
    unread: frozenset[int] = frozenset()  # inputs that the body does not load
    minor: bool = False  # whether it is a small part of a larger nest, where short code matters more than speed


class NestPlan:
    """The decisions about one nest; `nest` gives the nest, `fills` the nests that initialise its outputs."""

    def __init__(self, vector_bytes: int, spec: NestSpec, row: Symbolic | None = None) -> None:
        """`row`: the position on an additional first axis, which is looped over outside of the nest."""
        self.vector_bytes = vector_bytes
        self.spec = spec
        self.domain, self.reductions, self.ops = spec.domain, spec.reductions, spec.ops
        self.row = row
        self.accesses = [*spec.inputs, *spec.outputs, *(r.output for r in spec.reductions)]
        self.empty = any(isinstance(n, int) and n == 0 for n in self.domain)
        self._simplify_axes(spec.indexed)
        self._classify_reductions()

    # ---- choice and order of axes

    def _simplify_axes(self, indexed: frozenset[int]) -> None:
        """Drop axes of size 1, merge neighbouring axes that are contiguous in every access, and choose the innermost axis."""
        groups: list[list[int]] = []
        for axis, n in enumerate(self.domain):
            if isinstance(n, int) and n == 1:
                continue
            if groups and axis not in indexed and groups[-1][-1] not in indexed:
                last = groups[-1][-1]
                if all(a.strides[last] == a.strides[axis] * n for a in self.accesses):
                    groups[-1].append(axis)
                    continue
            groups.append([axis])
        sizes = {g[-1]: math.prod(self.domain[a] for a in g) for g in groups}
        order = [g[-1] for g in groups]
        if order:
            inner = max(order, key=lambda a: (self._score(a, sizes[a]), a))
            order = [a for a in order if a != inner] + [inner]
        self.order = order
        self.sizes: list[Expr] = [sizes[a] for a in order]

    def _score(self, axis: int, size: Expr) -> float:
        """How well the nest vectorises along an axis."""
        strides = [a.strides[axis] for a in self.accesses]
        smooth = sum(1.0 if s in (0, 1) else 0.5 if s == -1 else -1.0 for s in strides) / max(1, len(strides))
        return smooth * min(_assumed(size), 8)

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

    def lanes(self) -> int:
        """Number of elements in a vector."""
        itemsizes = (
            [computed(a.dtype).itemsize for a in self.accesses if a.dtype.kind in "fV"] or [a.dtype.itemsize for a in self.accesses] or [8]
        )
        return max(2, self.vector_bytes // min(itemsizes))

    def side(self) -> int:
        """Side of a square in elements: the vector width, unless that is larger than a tile."""
        return min(self.lanes(), SQUARE)

    # ---- the loops

    def nodes(self) -> list[Node]:
        """The whole nest for one thread."""
        return [*self.fills(), *([] if self.empty else self.versions())]

    def fills(self, only: Container[int] | None = None) -> list[Node]:
        """Nests that initialise the outputs of reductions that accumulate in memory."""
        out: list[Node] = []
        for k in sorted(self.prefilled):
            if not self.reductions[k].adding and (only is None or k in only):
                out += fill(self.vector_bytes, self.domain, self.reductions[k])
        return out

    def versions(self, span: tuple[Expr, Expr] | None = None) -> list[Node]:
        """The nest; if the length of the rows that it reduces is known only at run time, another one for short rows, without blocks."""
        if not self._varies():
            return [self.nest(span)]
        return [Either(self.sizes[-1], self._short(), [self.nest(span, short=True)], [self.nest(span)])]

    def nest(self, span: tuple[Expr, Expr] | None = None, short: bool = False) -> Nest:
        """The loops; `span` limits the outermost one to a part of its range, and `short` assumes that a row is a part of a block."""
        self.slots: set[int] = set()
        self.span, self.short = span, short
        nodes = self._level(0) if self.order else self._inner(1)
        s = self.spec
        return Nest(s.inputs, s.outputs, s.reductions, s.body, self.order, self.sizes, nodes, s.aliased, self.row, s.unread)

    def _level(self, position: int) -> list[Node]:
        rank = len(self.order)
        finishing = [k for k, depth in enumerate(self.kept_depth) if depth + 1 == position < rank - 1]
        nodes: list[Node] = [Open(k) for k in finishing]
        self.slots.update(finishing)
        axis, size = self.order[position], self.sizes[position]
        start, stop = self.span if self.span and position == 0 else (0, size)
        if position == rank - 1:
            nodes += self._inner(size)
        elif position == rank - 2 and self._sums_short_rows():
            nodes += self._short_rows(start, stop)
        elif position == rank - 2 and (crossing := self._crossing()):
            nodes.append(Square(self.side(), crossing))
        else:
            nodes.append(Loop(index_of(axis), start, stop, 1, self._level(position + 1), axis, may_be_empty=_may_be_empty(size)))
        for k in finishing:
            nodes += self._closed(k)
        return nodes

    def _closed(self, k: int) -> list[Node]:
        self.slots.remove(k)
        return [Close(k), self._finished(k)]

    def _finished(self, k: int) -> Node:
        return Finish(k, k in self.prefilled)

    # ---- short rows, summed elementwise

    def _sums_short_rows(self) -> bool:
        """Whether all reductions sum rows elementwise, and a row of totals fits in registers."""
        *_, outer, inner = self.order
        size = self.sizes[-1]
        if not self.reductions or not isinstance(size, int):
            return False
        vectors = -(-size // self.lanes())
        few = vectors * len(self.reductions) <= TOTALS and vectors * self.ops <= MAX_WRITTEN
        return few and all(outer in r.axes and inner not in r.axes for r in self.reductions)

    def _short_rows(self, start: Expr, stop: Expr) -> list[Node]:
        size, lanes = self.sizes[-1], self.lanes()
        assert isinstance(size, int)
        pieces = [Vector(at, min(lanes, size - at), piece) for piece, at in enumerate(range(0, size, lanes))]
        carries = tuple(Carry(k, v.piece, v.width) for v in pieces for k in range(len(self.reductions)))
        outer = self.order[-2]
        row = Row(tuple(sorted({v.width for v in pieces})))
        loop = Loop(index_of(outer), start, stop, 1, [row, *pieces], outer, carries, _may_be_empty(self.sizes[-2]))
        return [loop, *(Merge(k, v) for v in pieces for k in range(len(self.reductions)))]

    # ---- squares, transposed in registers

    def _crossing(self) -> tuple[int, ...]:
        """Inputs that are contiguous along the second-to-last axis, where the last two axes form a square."""
        width, (*_, outer, inner) = self.sizes[-1], self.order
        if self.reductions or self.sizes[-2:] != [self.side()] * 2 or not isinstance(width, int):
            return ()
        if width & (width - 1) or width * self.ops > MAX_WRITTEN:
            return ()
        moves = [(a.strides[outer], a.strides[inner], a.dtype) for a in self.spec.inputs]
        return tuple(
            k for k, (along, across, dtype) in enumerate(moves)
            if along == 1 and isinstance(across, int) and abs(across) > 1 and dtype != BOOL
        )  # fmt: skip

    # ---- the innermost axis

    def _inner(self, size: Expr) -> list[Node]:
        axis = self.order[-1] if self.order else None
        rank = len(self.order)
        sums = tuple(k for k, depth in enumerate(self.kept_depth) if depth < rank - 1 or rank == 0)
        length = self._block(sums)
        if not isinstance(size, int):
            return self._short_row(size, sums) if self.short else self._inner_at_run_time(size, sums, length)
        (main, count), *tails = self._widths(size, axis)
        blocked = count > 2 * length
        local = [k for k in sums if k not in self.slots] if blocked else []
        nodes: list[Node] = [Row((main, *(width for width, _ in tails))), *map(Open, local)]
        self.slots.update(local)
        covered = count * main
        if count == 1:
            nodes += self._vector(Vector(0, main), sums)
        elif blocked:
            nodes.append(self._blocks(covered, main, length, sums))
        else:
            nodes += self._main_loop(0, covered, main, sums)
        for width, at in tails:
            nodes += self._vector(Vector(at, width), sums)
        if tails or not blocked:
            nodes += [Spill(k) if k in self.slots else self._finished(k) for k in sums]
        for k in local:
            nodes += self._closed(k)
        return nodes

    def _block(self, sums: Sequence[int]) -> int:
        """The number of vectors of a block."""
        rounded = [r.output.dtype for r in map(self.reductions.__getitem__, sums) if r.op.rounds(r.output.dtype)]
        return min(map(ADDITIONS.__getitem__, rounded), default=LONG_ROW)

    def _varies(self) -> bool:
        """Whether rows are reduced whose length, known only at run time, may be anything from a few elements to many blocks."""
        if not self.order or isinstance(self.sizes[-1], int) or (len(self.order) == 1 and self.row is None):
            return False
        return any(depth < len(self.order) - 1 for depth in self.kept_depth) and self._ends_in_part(self.sizes[-1])

    def _short(self) -> int:
        """The length up to which a row is short: a block, or where the main loop processes several vectors at once, a few of these."""
        unroll = self._unrolled(ASSUMED, self.order[-1])
        return self.lanes() * (4 if unroll > 1 else self._block(range(len(self.reductions))))

    def _short_row(self, size: Expr, sums: tuple[int, ...]) -> list[Node]:
        loop, *fold = self._main_loop(0, size, self.lanes(), sums, in_parts=True)
        assert isinstance(loop, Loop)
        loop.may_be_empty = proven_sign(size) < 1
        return [Row((self.lanes(),)), loop, *fold, *(Spill(k) if k in self.slots else self._finished(k) for k in sums)]

    def _inner_at_run_time(self, size: Expr, sums: tuple[int, ...], length: int) -> list[Node]:
        """The innermost axis if its size is an expression: blocks of a number of vectors, then shorter vectors, then single elements.

        Where the CPU can load and store a part of a vector, the rest consists of vectors of which the last one may be such a part.
        """
        widths, lanes = self._run_time_widths(size), self.lanes()
        in_parts = self._ends_in_part(size)
        if in_parts:
            widths = (widths[0], lanes) if widths[0] > lanes else (lanes,)
        local = [k for k in sums if k not in self.slots]
        self.slots.update(local)
        covered = size if in_parts and widths == (lanes,) else _whole(size, widths[0])
        blocks = self._blocks(covered, widths[0], length, sums, in_parts and widths == (lanes,))
        blocks.may_be_empty = True
        nodes: list[Node] = [Row(widths), *map(Open, local), blocks]
        for width in widths[1:]:
            start, covered = covered, size if in_parts else _whole(size, width)
            rest = self._main_loop(start, covered, width, sums, in_parts)
            assert isinstance(rest[0], Loop)
            rest[0].may_be_empty = True
            nodes += [*rest, *map(Spill, sums)]
        for k in local:
            nodes += self._closed(k)
        return nodes

    def _run_time_widths(self, size: Expr) -> tuple[int, ...]:
        """Widths of the vectors of such an axis, each a multiple of the next; the last divides the size."""
        axis, lanes = self.order[-1], self.lanes()
        if not all(isinstance(a.strides[axis], int) for a in self.accesses):
            return (1,)
        main = self._unrolled(ASSUMED if self._varies() else _assumed(size), axis) * lanes
        shorter = (lanes, lanes // 4, 1) if self.ops <= LONG_BODY else (lanes, 1)
        divides = Ranges().multiple(size)
        out: list[int] = []
        for width in (main, *(w for w in shorter if 0 < w < main)):
            out.append(width)
            if divides % width == 0:
                break
        return tuple(out)

    def _ends_in_part(self, size: Expr) -> bool:
        """Whether a row may end with a part of a vector that the CPU can load and store: lanes of 32 or 64 bits, with AVX-512 also 8."""
        axis, sizes = self.order[-1], {a.dtype.itemsize for a in self.accesses}
        if Ranges().multiple(size) % self.lanes() == 0:
            return False
        contiguous = all(a.strides[axis] in (0, 1) for a in self.accesses)
        return contiguous and self.vector_bytes >= 32 and sizes <= ({1, 4, 8} if self.vector_bytes >= 64 else {4, 8})

    def _vector(self, vector: Vector, sums: tuple[int, ...]) -> list[Node]:
        return [vector, Fold(sums, vector.width)] if sums else [vector]

    def _main_loop(self, start: Expr, stop: Expr, width: int, sums: tuple[int, ...], in_parts: bool = False) -> list[Node]:
        """The vector loop along a row, or a part of it; `in_parts`: the last vector may end behind it."""
        axis = self.order[-1]
        carries = tuple(Carry(k, 0, width) for k in sums)
        vector = Vector(index_of(axis), width, stop=stop if in_parts else None)
        loop = Loop(index_of(axis), start, stop, width, [vector], axis, carries)
        return [loop, Fold(sums, width)] if sums else [loop]

    def _blocks(self, covered: Expr, width: int, vectors: int, sums: tuple[int, ...], in_parts: bool = False) -> Loop:
        """The main loop in blocks of `vectors` vectors, whose sums are added to the slots."""
        block, step = variable(f"b{self.order[-1]}"), vectors * width
        body = self._main_loop(block, minimum(block + step, covered), width, sums, in_parts)
        return Loop(block, 0, covered, step, [*body, *map(Spill, sums)])

    def _is_ragged(self, axis: int) -> bool:
        """Whether an access along the axis has gaps, so that a vector is loaded or stored element by element."""
        return any(a.strides[axis] not in (0, 1, -1) for a in self.accesses)

    def _unrolled(self, size: int, axis: int) -> int:
        """Vectors per iteration of the main loop."""
        ragged = self._is_ragged(axis)
        medium = self.ops <= MEDIUM_BODY or DENSE * len(self.accesses) <= self.ops <= LONG_BODY
        unroll = 1 if ragged or not medium else 2 if self.ops > WIDE_BODY else 4
        while unroll > 1 and size < 2 * unroll * self.lanes():
            unroll //= 2
        return unroll

    def _widths(self, size: int, axis: int | None) -> list[tuple[int, int]]:
        """[(main width, iterations), (tail width, start), ...]."""
        if axis is None:
            return [(1, 1)]
        if not all(isinstance(a.strides[axis], int) for a in self.accesses) or (self.spec.minor and self._is_ragged(axis)):
            return [(1, size)]
        lanes = self.lanes()
        main = min(self._unrolled(size, axis) * lanes, size)
        count = size // main
        out, at, left = [(main, count)], main * count, size - main * count
        if left >= lanes:
            whole = left // lanes * lanes
            out.append((whole, at))
            at, left = at + whole, left - whole
        if left:
            out.append((left, at))
        return out


def fill(vector_bytes: int, domain: Sequence[Expr], r: Reduction) -> list[Node]:
    """A nest that fills the output of a reduction with the identity, over the kept axes."""
    shape = tuple(1 if a in r.axes else n for a, n in enumerate(domain))
    dtype, value = r.output.dtype, r.op.identity(r.output.dtype)

    def body(chunk: Chunk) -> None:
        chunk.put(0, chunk.emit.const(dtype, value))

    return NestPlan(vector_bytes, NestSpec(shape, [], [r.output], [], body)).nodes()


def _assumed(size: Expr) -> int:
    """A size for choices that are right for every size."""
    return size if isinstance(size, int) else size.hint if size.is_of_symbols else ASSUMED


def _may_be_empty(size: Expr) -> bool:
    return isinstance(size, Symbolic) and size.is_of_symbols and proven_sign(size) < 1


def _whole(size: Expr, width: int) -> Expr:
    """The elements of an axis that whole vectors cover."""
    return size // width * width if width > 1 else size
