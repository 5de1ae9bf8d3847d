"""Large nests on all cores.

The outermost axis is cut into chunks by size alone, so results do not depend on the number of threads. A reduction over that axis stores
one partial result per chunk in scratch memory; the partial results are combined in order at the end. A nest with a single axis is processed
as rows of a fixed length, with the remainder as one more chunk.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from adjit.ir.cost import flops_in
from adjit.ir.expr import Expr, hint_of, minimum
from adjit.ir.records import NamedTuple, replace

from ..sizes import may_be_empty, upper
from . import ir
from .ir import CHUNK, LENGTH, START, WORK, Access, Chunk, LoopProgram, Node, Parallel, Part, Reduction, Sizing
from .nest import NestPlan, NestSpec
from .tiles import pieces

MIN_OPS = flops_in(2_000)  # minimum operations per chunk: claiming one costs a fraction of a microsecond
CHUNKS = 32  # enough to keep every thread busy, few enough to combine cheaply
ROW = 8192  # length of the rows that a single axis is cut into
MAX_PARTIALS = 1 << 20  # size limit of the partial results, in bytes


class Limits(NamedTuple):
    """The limits that decisions depend on, besides the nest."""

    vector_bytes: int
    parallel_from: int  # operations from which several threads pay off


def add_nest(program: LoopProgram, spec: NestSpec, limits: Limits) -> None:
    """Append a nest to the program of a kernel, in tiles if its accesses run in different directions."""
    whole = NestPlan(limits.vector_bytes, spec)
    tiles = [NestPlan(limits.vector_bytes, piece) for piece in pieces(whole)]
    for plan in tiles or [whole]:
        _add_whole(program, plan, limits)


def _add_whole(program: LoopProgram, plan: NestPlan, limits: Limits) -> None:
    """Append a nest: on one thread if it is small, in chunks otherwise."""
    cut = (_RowCut if _is_long_row(plan) else _Cut)(plan, limits) if _is_large(plan, limits) else None
    if cut is None or not cut.pays_off:
        program.nodes += plan.nodes()
    else:
        program.nodes += cut.nodes()
        program.work_bytes = upper(program.work_bytes, cut.partial_bytes)


def _is_large(plan: NestPlan, limits: Limits) -> bool:
    """Whether chunks pay off; if a size is known only at run time, whether that can be decided at run time."""
    size = math.prod(plan.sizes)
    if plan.empty:
        return False
    if not isinstance(size, int):
        decidable = size.is_of_symbols and not any(map(may_be_empty, plan.sizes))
        return decidable and (len(plan.order) > 1 or not plan.spec.indexed)
    if size * plan.ops < limits.parallel_from:
        return False
    return len(plan.order) > 1 or (not plan.spec.indexed and size >= 2 * ROW)


def _is_long_row(plan: NestPlan) -> bool:
    """Whether a nest is a single axis whose size is known only at run time."""
    return len(plan.order) == 1 and not isinstance(plan.sizes[0], int)


class _Cut:
    part: Part | None = None
    rest_size: int | None = None  # elements after the last whole row; None for a nest of several axes

    def __init__(self, plan: NestPlan, limits: Limits) -> None:
        self.vector_bytes = plan.vector_bytes
        self.spec = plan.spec if len(plan.order) > 1 else self._as_rows(plan)
        self.nest = NestPlan(self.vector_bytes, self.spec)
        self.total, operations = self._rows(), math.prod(self.nest.sizes) * self.spec.ops
        self.sized: Sizing | None = None
        if isinstance(operations, int) and isinstance(self.total, int):
            wanted = max(2, min(self.total, CHUNKS, operations // MIN_OPS))
            self.rows: Expr = -(-self.total // wanted)  # per chunk
            self.count: Expr = -(-self.total // self.rows)
        else:
            self.rows, self.count = ir.ROWS, ir.CHUNKS
            self.sized = Sizing(operations, limits.parallel_from, MIN_OPS, CHUNKS)
        self.partial = [k for k, r in enumerate(self.spec.reductions) if self.nest.order[0] in r.axes]
        self.offsets: dict[int, Expr] = {}  # in bytes
        self.partial_bytes: Expr = 0
        most = self._slots if self.sized is None else CHUNKS
        for k in self.partial:
            self.offsets[k] = self.partial_bytes
            nbytes = most * self._size(k) * self.spec.reductions[k].output.dtype.itemsize
            self.partial_bytes += -(-nbytes // 64) * 64

    @property
    def pays_off(self) -> bool:
        """Whether there are several chunks, with not too many partial results."""
        if (isinstance(self.total, int) and self.total < 2) or not all(map(self._is_dense, self.partial)):
            return False
        few = hint_of(self.partial_bytes) <= MAX_PARTIALS
        return few and (self.sized is not None or not isinstance(self.count, int) or self.count >= 2)

    def _is_dense(self, k: int) -> bool:
        """Whether the output of a reduction has no gaps, like its partial results: one box of a padded nest writes a part of the output."""
        r = self.spec.reductions[k]
        step: Expr = 1
        for axis in reversed([axis for axis in range(len(self.spec.domain)) if axis not in r.axes]):
            n, gap = self.spec.domain[axis], r.output.strides[axis] - step
            if not (isinstance(n, int) and n == 1) and not (isinstance(gap, int) and gap == 0):
                return False
            step = step * n
        return True

    @property
    def _slots(self) -> Expr:
        """The number of partial results."""
        return self.count + bool(self.rest_size)

    def _rows(self) -> Expr:
        """The number of rows, of which each chunk has some."""
        return self.nest.sizes[0]

    def _size(self, k: int) -> Expr:
        """The number of elements of a reduction's output."""
        return math.prod(n for axis, n in enumerate(self.spec.domain) if axis not in self.spec.reductions[k].axes)

    def _as_rows(self, plan: NestPlan) -> NestSpec:
        """Treat a single axis of n elements as n // ROW rows; the remainder is a separate nest."""
        (axis,), (n,) = plan.order, plan.sizes
        assert isinstance(n, int)
        rows, self.rest_size = divmod(n, ROW)

        def rowed(access: Access) -> Access:
            stride = access.strides[axis]
            return access._replace(strides=(stride * ROW, stride))

        spec = _moved(plan.spec, rowed, lambda r: (0, 1) if axis in r.axes else ())
        return replace(spec, domain=(rows, ROW), indexed=spec.indexed | {0})  # which keeps the rows from being merged into one axis again

    # ---- nodes

    def nodes(self) -> list[Node]:
        out = self.nest.fills(self.nest.prefilled - set(self.partial))
        out.append(Parallel(self.total, self.rows, self._chunk(), self.sized, self.part))
        if self.rest_size:
            out += self._rest(self.rest_size)
        for k in self.partial:
            out += self._combined(k)
        return out

    def _chunk(self) -> list[Node]:
        """The rows of one chunk."""
        start = CHUNK * self.rows
        chunk = NestPlan(self.vector_bytes, replace(self.spec, reductions=self._with_partials(CHUNK)))
        return [*chunk.fills(self.partial), *chunk.versions((start, minimum(start + self.rows, self.total)))]

    def _with_partials(self, slot: Expr) -> list[Reduction]:
        """The reductions, with those over the cut axis redirected to their partial results number `slot`."""
        out = list(self.spec.reductions)
        for k in self.partial:
            partial = self._partials(k, out[k].output.strides)
            out[k] = replace(out[k], output=partial._replace(offset=partial.offset + slot * self._size(k)), adding=False)
        return out

    def _partials(self, k: int, strides: tuple[Expr, ...]) -> Access:
        dtype = self.spec.reductions[k].output.dtype
        return Access(WORK, strides, dtype, self.offsets[k] // dtype.itemsize)

    def _rest(self, size: int) -> list[Node]:
        """The elements after the last whole row, reduced into the last partial results."""

        def moved(access: Access) -> Access:
            stride = access.strides[1]
            return access._replace(strides=(stride,), offset=access.offset + stride * (self.total * ROW))

        spec = replace(self.spec, domain=(size,), reductions=self._with_partials(self.count), indexed=frozenset())
        return NestPlan(self.vector_bytes, _moved(spec, moved, lambda r: (0,) if r.axes else ())).nodes()

    def _combined(self, k: int) -> list[Node]:
        """Combine partial results in order into the output of the reduction."""
        r, size = self.spec.reductions[k], self._size(k)
        output = r.output._replace(strides=(0, 1))
        combined = Reduction(type(r.op)((0,)), (0,), output, r.adding)

        def body(chunk: Chunk) -> None:
            chunk.reduce(0, chunk.load(0))

        spec = NestSpec((self._slots, size), [self._partials(k, (size, 1))], [], [combined], body)
        return NestPlan(self.vector_bytes, spec).nodes()


class _RowCut(_Cut):
    """A single axis whose size is known only at run time: chunks are parts of it, of any length."""

    def _as_rows(self, plan: NestPlan) -> NestSpec:
        (axis,), (size,) = plan.order, plan.sizes
        self.part = Part(size, ROW)
        spec = _moved(plan.spec, lambda a: a._replace(strides=(a.strides[axis],)), lambda r: (0,) if axis in r.axes else ())
        return replace(spec, domain=(size,))

    def _rows(self) -> Expr:
        return -(-self.nest.sizes[0] // ROW)

    def _chunk(self) -> list[Node]:
        def moved(access: Access) -> Access:
            return access if access.pointer == WORK else access.moved((START,))

        spec = _moved(replace(self.spec, domain=(LENGTH,), reductions=self._with_partials(CHUNK)), moved, lambda r: r.axes)
        return NestPlan(self.vector_bytes, spec).nodes()


def _moved(spec: NestSpec, move: Callable[[Access], Access], axes: Callable[[Reduction], tuple[int, ...]]) -> NestSpec:
    """The same computation with other accesses, and other axes for its reductions."""
    reductions = [replace(r, axes=axes(r), output=move(r.output)) for r in spec.reductions]
    return replace(spec, inputs=[move(a) for a in spec.inputs], outputs=[move(a) for a in spec.outputs], reductions=reductions)
