"""The loops, products and calls that an op which lowers itself is made of."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import cast

from adjit.ir.expr import Expr, is_static
from adjit.ir.operand import Operand
from adjit.ir.ops.reduce import Reduce
from adjit.ir.types import BOOL, I64, DType, TensorType, row_major

from ..cache.image import Failure
from ..interrupts.stopping import PIECE, leave_if_stopped
from ..llvm import memory
from ..llvm.counted import CountedLoop, only_if
from ..llvm.lanes import Reg, Text
from ..loops.chunks import CHUNKS, MIN_OPS
from ..loops.ir import Access, Chunk, Node, Reduction, Sizing
from ..loops.nest import NestPlan, NestSpec
from ..loops.renderer import render
from ..products import contraction, lapack, products
from ..sizes import may_be_empty, native_shape, native_type
from .emitter import VectorEmitter
from .kernel import Context, Kernel
from .parallel import PARALLEL, outlined
from .window import Hosted, Private, Strided


class LoopKernel(Kernel):
    """The loops available to an op's `lower`. Implements `adjit.ir.ops.lowering.Loops`."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.scalar = VectorEmitter(self.text)
        self.functions: dict[Hashable, tuple[str, bool, float]] = {}  # emitted by `call`: name, whether it checks for signals, work

    def window(self, value: Operand) -> Strided:
        root, layout = self.plan.windows[id(value)]
        type, strides = (native_type(value.type), native_shape(layout.strides)) if self.symbols else (value.type, layout.strides)
        return Strided(self.text, self.pointer(root, layout), type, strides)

    @contextmanager
    def loop(self, size: int | Reg) -> Iterator[Reg]:
        if not isinstance(size, Reg) and size == 1:
            yield Reg("0", I64)
            return
        stop = size.name if isinstance(size, Reg) else f"{size}"
        with ExitStack() as around:
            if isinstance(size, Reg) or may_be_empty(size):  # the body is emitted, but may never run
                around.enter_context(only_if(self.text, self.text.define(f"icmp sgt i64 {stop}, 0")))
            loop = around.enter_context(CountedLoop(self.text, "0", stop))
            yield Reg(loop.index, I64)

    def is_large(self, work: float) -> bool:
        return getattr(work, "hint", work) >= PARALLEL  # `each` decides again when the size is known

    def lanes(self, dtype: DType) -> int:
        return self.vector_bytes // dtype.itemsize

    def interleave(self, target: Strided, a: Strided, b: Strided) -> None:
        lanes, shape = self.lanes(a.type.dtype), a.type.shape
        count = shape[-1] // lanes if shape else 0
        whole = count * lanes
        if a.strides[-1:] == b.strides[-1:] == (1,) and target.strides[-2:] == (2, 1) and count:
            with ExitStack() as around:
                index = [around.enter_context(self.loop(size)) for size in shape[:-1]]
                i = around.enter_context(self.loop(count))
                sources = [w.at(*index).pointer for w in (a, b)]
                memory.store_pairs(self.text, target.at(*index).pointer, sources, a.type.dtype, i.name, lanes)
        else:
            whole = 0
        axis = len(shape) - 1
        for k, source in enumerate((a, b)):
            part = target.slice(axis + 1, k, 1)
            if shape and whole < shape[axis]:
                part, source = (w.slice(axis, whole, shape[axis] - whole) for w in (part, source))
            if not shape or whole < shape[axis]:
                self.copy(part, source.expanded(axis + 1))

    def tile_width(self, dtype: DType) -> int:
        return contraction.VECTORS * self.vector_bytes // dtype.itemsize

    def fold(self, size: int, initial: Reg, step: Callable[[Reg, Reg], Reg]) -> None:
        if size == 0:
            return
        with CountedLoop(self.text, "0", f"{size}") as loop:
            carried = loop.carry(self.scalar.type(initial.dtype), initial.name)
            loop.feed(carried, step(Reg(loop.index, I64), Reg(carried, initial.dtype)).name)

    def each(self, size: int, work: float, body: Callable[..., None], *windows: Strided, parallel_from: int = PARALLEL) -> None:
        rows: int | Sizing = -(-size // CHUNKS)
        if not is_static(size, work):
            rows = Sizing(cast(Expr, work), parallel_from, MIN_OPS, CHUNKS)
        elif size < 2 or work < parallel_from:
            here = [w.at(Reg("0", I64)) if isinstance(w, Private) else w for w in windows]
            with self.loop(size) as i:
                body(i, *here)
            return
        outside = [pointer for w in windows for pointer in w.pointers]
        inside = [f"%w{k}" for k in range(len(outside))]

        def walk(text: Text, start: str, stop: str) -> None:
            names = iter(inside)
            there = [w.inside(text, [next(names) for _ in w.pointers]) for w in windows]
            about = rows if isinstance(rows, int) else PIECE  # of run-time sizes that are worth several threads: they check for signals
            with self.writing(text, 1), CountedLoop(text, start, stop, trips=about) as loop:
                body(Reg(loop.index, I64), *there)

        outlined(self, size, rows, outside, inside, walk)

    @contextmanager
    def writing(self, text: Text, threads: int) -> Iterator[None]:
        """Emit into `text`, the body of a helper function that may use `threads` threads."""
        around = self.text, self.scalar, self.threads
        self.text, self.scalar, self.threads = text, VectorEmitter(text), threads
        try:
            yield
        finally:
            self.text, self.scalar, self.threads = around

    def call(self, body: Callable[..., None], *windows: Strided, **settings: Hashable) -> None:
        key = (body, *settings.items(), *((w.type, w.strides) for w in windows))
        if key not in self.functions:
            self.functions[key] = self._function(body, windows, settings)
        pointers = ", ".join(f"ptr {p}" for p in (*(w.pointer for w in windows), *self.sizes_table))
        name, looks, work = self.functions[key]
        self.text.put(f"call void {name}({pointers}{', ptr %error' if looks else ''})")
        self.text.charge(work, looks)
        if looks:
            leave_if_stopped(self.text)

    def _function(self, body: Callable[..., None], windows: Sequence[Strided], settings: dict[str, Hashable]) -> tuple[str, bool, float]:
        """Emit a helper function that runs the body on windows like these; return its name, whether it checks for signals, and its work."""
        inner = self.helper_text(may_look=True)
        with self.writing(inner, self.threads):
            body(self, *(w.inside(inner, [f"%w{k}"]) for k, w in enumerate(windows)), **settings)
        names = [*(f"%w{k}" for k in range(len(windows))), *self.sizes_table, *(["%error"] if inner.looks else [])]
        params = [f"ptr {name}" for name in names]
        return self.add_helper("function", ", ".join(params), inner), inner.looks, inner.work

    def load(self, source: Strided, *index: Reg) -> Reg:
        at = source.at(*index)
        return memory.load(self.text, at.pointer, at.type.dtype, "0", 1, 1)

    def store(self, target: Strided, value: Reg, *index: Reg) -> None:
        memory.store(self.text, target.at(*index).pointer, value, "0", 1, 1)

    def copy(self, target: Strided, source: Strided) -> None:
        if isinstance(target, Hosted) or target.access != source.access:  # otherwise it was computed in place
            self.map(lambda emit, x: [x], [target], [source])

    def accumulate(self, target: Strided, source: Strided) -> None:
        self.map(lambda emit, x, y: [emit.add(x, y)], [target], [target, source])

    def fill(self, target: Strided, value: float | int | bool) -> None:
        self.map(lambda emit: [emit.const(target.type.dtype, value)], [target], [])

    def matmul(self, target: Strided, a: Strided, b: Strided, accumulate: bool = False, brief: bool = False) -> None:
        if a.type.rank == 1:
            a, target = a.expanded(0), target.expanded(max(target.type.rank - 1, 0))
        if b.type.rank == 1:
            b, target = b.expanded(1), target.expanded(target.type.rank)
        one = products.brief_product if brief else products.matrix_product
        multiply = products.matrix_products if target.type.rank > 2 else one
        multiply(self, target, a, b, accumulate)

    def has_lapack(self) -> bool:
        return self.target.hosted and lapack.is_found()

    def lapack(self, routine: str, dtype: DType, *args: str | int | Strided, complex: bool = False) -> Reg:
        return lapack.call(self, routine, dtype, *args, complex=complex)

    def collective(self, name: str, target: Strided, source: Strided, count: int, root: int) -> None:
        there = target if target.is_row_major else self.scratch(target.type)
        if source is target:
            here = there
        else:
            here = source if source.is_row_major else self.scratch(source.type)
        if here is not source:
            self.copy(here, source)
        from .. import collectives  # noqa: PLC0415 - few programs use MPI

        code = collectives.call(self, name, there, here, count, root)
        failed = Reg(self.text.define(f"icmp ne i64 {code.name}, 0"), BOOL)
        self.fail_if(failed, f"{name}: MPI failed with error {{}}", code)
        if there is not target:
            self.copy(target, there)

    def sum_deferred(self, target: Strided, source: Strided, rows: int) -> None:
        from .. import collectives  # noqa: PLC0415 - as above

        collectives.sum_deferred(self, target, source, rows)

    def summed_product(self, target: Strided, a: Strided, b: Strided) -> None:
        from ..products.summed import summed_product  # noqa: PLC0415 - only for programs of several ranks

        summed_product(self, target, a, b)

    def product(
        self,
        target: Strided,
        a: Strided,
        b: Strided,
        m: Reg | None = None,
        n: Reg | None = None,
        k: Reg | None = None,
        accumulate: bool = False,
    ) -> None:
        products.sized_product(self, target, a, b, (m, n, k), accumulate)

    def scratch(self, type: TensorType) -> Strided:
        offset = -(-self.work_bytes // 64) * 64
        self.work_bytes = offset + type.nbytes
        pointer = self.text.define(f"getelementptr i8, ptr %work, i64 {offset}")
        return Strided(self.text, pointer, type, row_major(type.shape))

    def private(self, type: TensorType) -> Private:
        whole = self.scratch(type.with_shape((self.threads, *type.shape)))
        return Private(whole.text, whole.pointer, whole.type, whole.strides)

    def contract(self, spec: str, target: Strided, a: Strided, b: Strided, accumulate: bool = False) -> None:
        contraction.contract(self, spec, target, a, b, accumulate)

    def map(self, function: Callable[..., Sequence[Reg]], targets: Sequence[Strided], sources: Sequence[Strided]) -> None:
        inputs, outputs = [w.access for w in sources], list[Access]()
        numbers: list[list[int]] = []  # index of each member of each target among the outputs or the inputs
        for target in targets:
            written, read = target.members[: target.written], target.members[target.written :]
            numbers.append([*range(len(outputs), len(outputs) + len(written)), *range(len(inputs), len(inputs) + len(read))])
            outputs += written
            inputs += read

        def body(chunk: Chunk) -> None:
            values = function(chunk.emit, *(chunk.load(k) for k in range(len(sources))))
            for target, value, these in zip(targets, values, numbers, strict=True):
                target.put(chunk.emit, value, lambda k: chunk.load(these[k]), lambda k, r: chunk.put(these[k], r))  # noqa: B023 - used at once

        aliased = frozenset(range(len(outputs)))
        ops = len(inputs) + len(outputs) + sum(target.ops for target in targets)
        self.nest(NestSpec(targets[0].type.shape, inputs, outputs, [], body, ops, aliased=aliased))

    def nest(self, spec: NestSpec) -> None:
        """Emit a nest on the current thread."""
        for node in NestPlan(self.vector_bytes, spec).nodes():
            self.run_node(node)

    def run_node(self, node: Node) -> None:
        """Append the text of a node that runs on the current thread, and keep it for `inspect`."""
        self.keep([node])
        render(self.text, [node])

    def reduce(self, op: Reduce, function: Callable[..., Reg], target: Strided, sources: Sequence[Strided]) -> None:
        shape = sources[0].type.shape
        axes, inputs = tuple(range(len(shape))), [w.access for w in sources]
        total = Reduction(op, axes, Access(target.pointer, (0,) * len(shape), target.type.dtype))

        def body(chunk: Chunk) -> None:
            chunk.reduce(0, function(chunk.emit, *(chunk.load(k) for k in range(len(sources)))))

        self.nest(NestSpec(shape, inputs, [], [total], body, 2 * len(inputs)))

    def sweep(
        self,
        function: Callable[..., Sequence[Reg]],
        targets: Sequence[Strided],
        totals: Sequence[tuple[type[Reduce], Strided]],
        sources: Sequence[Strided],
    ) -> None:
        inputs, outputs = [w.access for w in sources], [w.access for w in targets]
        sums = [Reduction(op((0,)), (0,), Access(w.pointer, (0, *w.strides), w.type.dtype)) for op, w in totals]

        def body(chunk: Chunk) -> None:
            values = function(chunk.emit, *(chunk.load(k) for k in range(len(sources))))
            for k, value in enumerate(values):
                if k < len(targets):
                    chunk.put(k, value)
                else:
                    chunk.reduce(k - len(targets), value)

        aliased = frozenset(range(len(outputs)))
        self.nest(NestSpec(sources[0].type.shape, inputs, outputs, sums, body, len(inputs) + len(outputs), aliased=aliased))

    def fail_if(self, condition: Reg, what: str, *details: Reg) -> None:
        failure = Failure(self.error, what, self.location)
        if failure not in self.failures:
            self.failures.append(failure)
        self.leave_if(condition.name, self.failures.index(failure) + 1, *details)

    def leave_if(self, condition: str, code: int, *details: Reg) -> None:
        """Return `code` from the kernel if the condition holds, storing the details in the error record."""
        text, leave, stay = self.text, self.text.fresh_label(), self.text.fresh_label()
        self.fails = True
        text.put(f"br i1 {condition}, label %{leave}, label %{stay}")
        text.start(leave)
        for k, detail in enumerate(details):
            memory.store(text, "%error", Reg(detail.name, I64), str(k), 1, 1)
        text.put(f"ret i64 {code}")
        text.start(stay)
