"""Compile one statement of an optimised Func to one native kernel: a fused region, or an op that lowers itself to loops.

A kernel is an LLVM function that takes only pointers. Shapes and strides are constants in its text, or names of sizes that it reads from a
table when they are known only at run time, so structurally identical statements give identical text and share one function.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import cast

from adjit.ir.errors import AdjitError, UnsupportedError, VerifyError
from adjit.ir.expr import Expr, is_static
from adjit.ir.func import Stmt, Value
from adjit.ir.layout import Layout
from adjit.ir.location import Location
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.control import hosted_by
from adjit.ir.ops.maps import Map
from adjit.ir.ops.reduce import Reduce
from adjit.ir.plan import Place, Plan
from adjit.ir.target import Target
from adjit.ir.types import BOOL, I64, DType, Shape, TensorType, row_major

from .. import collectives
from ..cache.image import Failure
from ..interrupts.signals import LOOK
from ..interrupts.stopping import PIECE, leave_if_stopped
from ..llvm import memory
from ..llvm.counted import Loop
from ..llvm.debug_lines import lines_of
from ..llvm.lanes import Outlined, Reg, Text
from ..loops.chunks import CHUNKS, MIN_OPS, Limits, add_nest
from ..loops.ir import Access, Chunk, Extent, LoopProgram, Node, Reduction, Sizing
from ..loops.nest import NestPlan, NestSpec
from ..loops.renderer import render
from ..products import contraction, lapack, products
from ..sizes import SIZES, definitions, may_be_empty, native_shape, native_size, native_type, upper
from .emitter import VectorEmitter
from .literals import Literals
from .parallel import PARALLEL, outlined, parallel_from
from .region import Region, body_ops, region_of
from .repeats import look, lowered_look
from .window import Hosted, Private, Window


@dataclass
class Context:
    """State shared by all kernels of a module."""

    plan: Plan
    target: Target
    outlined: dict[str, Outlined] | None = None  # vector math functions that are called rather than inlined, in programs with many of them
    literals: Literals | None = None  # constants that kernels read from a table, in large programs
    repeats: dict[Hashable, Kernel] = field(default_factory=dict)  # kernels of large programs, keyed by `repeats.look`
    packed: dict[tuple[object, ...], Place] = field(default_factory=dict)  # factors packed by enclosing loops, see packing.py
    symbols: tuple[str, ...] = ()  # the sizes that are known only when the program runs, in the order of the table %sizes
    awake: bool = False  # whether the other threads are always busy, so that they need not be woken
    is_final: bool = False  # variables are being written: from here on, the call is not interrupted
    checked: bool = False  # whether loop programs are checked

    @property
    def repeats_ops(self) -> bool:
        """Whether kernels of ops that lower themselves are shared: in large programs, where they depend on nothing but their windows."""
        return self.literals is not None and not self.packed


class Kernel:
    """The text of one kernel, and what each pointer parameter stands for, in order: a place and an offset in bytes."""

    uses_runtime = False  # whether it calls the routines of `stacks.py`: loops that check for Ctrl-C or save values

    def __init__(self, context: Context) -> None:
        self.plan = context.plan
        self.target = context.target
        self.vector_bytes = context.target.vector_bytes
        self.threads = context.target.threads
        self.text = Text(context.target)
        self.text.outlined = context.outlined
        self.text.may_look, self.text.returns_code = context.target.hosted and not context.is_final, True
        self.pointers: dict[tuple[Place, int], str] = {}  # equal addresses share one pointer, so that `copy` can detect them
        self.packed = context.packed
        self.symbols = context.symbols
        self.awake = context.awake
        self.failures: list[Failure] = []  # the meaning of each code that the kernel may return
        self.location: Location | None = None  # of the statement being emitted
        self.error: type[AdjitError] = AdjitError
        self.fails = False  # whether it may return an error code
        self.imports: set[str] = set()
        self.work_bytes: Expr = 0  # size of its scratch memory, which is passed as the last pointer
        self.helpers: list[str] = []  # functions that only this kernel calls, named after it
        self.checked = context.checked
        self.program = LoopProgram()  # its loop nests

    def come_from(self, stmt: Stmt) -> None:
        self.location = stmt.location
        self.text.locate(stmt.location)

    def pointer(self, root: Value, layout: Layout) -> str:
        offset = native_size(layout.offset) * root.type.dtype.itemsize
        place = self.plan.places[id(root)]
        name = self.pointer_to(place, offset)
        if place.kind != "view":  # a part of another buffer, with that buffer's strides
            self.set_extent(name, -offset, native_size(root.type.nbytes) - offset)
        return name

    def set_extent(self, pointer: str, start: Expr, stop: Expr) -> None:
        """The bytes around a pointer that may be accessed. Values that share a place may have different sizes: the largest counts."""
        known = self.program.extents.get(pointer)
        if known is not None:
            stop = upper(stop, known.stop)
        self.program.extents[pointer] = Extent(start, stop)

    def pointer_to(self, place: Place, offset: int = 0) -> str:
        return self.pointers.setdefault((place, offset), f"%p{len(self.pointers)}")

    def packed_pointer(self, matrix: Window) -> str | None:
        """A pointer to the packed copy of the matrix that products read, if an enclosing loop has packed it."""
        where = next((key for key, name in self.pointers.items() if name == matrix.pointer), None)
        place = self.packed.get((*where, matrix.type.shape, matrix.strides, matrix.type.dtype)) if where is not None else None
        return self.pointer_to(place) if place is not None else None

    def take_pointers(self, count: int) -> None:
        """Declare the parameters %p0, %p1, ... for a caller that knows what they stand for."""
        self.pointers = {(Place("param", k), 0): f"%p{k}" for k in range(count)}

    def access(self, value: Operand) -> Access:
        root, layout = self.plan.windows[id(value)]
        return Access(self.pointer(root, layout), native_shape(layout.strides), value.type.dtype)

    @property
    def limits(self) -> Limits:
        return Limits(self.vector_bytes, parallel_from(self))

    def add_region(self, region: Region) -> None:
        program = LoopProgram()
        region.add_to(program, self.limits)
        self.run(program)

    def add_nest(self, spec: NestSpec) -> None:
        program = LoopProgram()
        add_nest(program, spec, self.limits)
        self.run(program)

    def run(self, part: LoopProgram) -> None:
        """Append the text of a program that accesses the kernel's pointers."""
        self.work_bytes = upper(self.work_bytes, part.work_bytes)
        self.keep(part.nodes)
        render(self.text, part.nodes, self)

    def keep(self, nodes: list[Node]) -> None:
        """Make nodes a part of the kernel's program, for `inspect`, and check them."""
        self.program.nodes += nodes
        if self.checked:
            from ..loops.checker import check  # noqa: PLC0415 - loaded only where programs are checked

            try:
                check(LoopProgram(nodes, self.program.extents, self.work_bytes))
            except VerifyError as error:
                raise error.at(self.location) from None

    @property
    def leaves(self) -> bool:
        """Whether the kernel may return early."""
        return self.fails or self.text.looks

    def helper_text(self, may_look: bool = False) -> Text:
        """An empty body for a function that only this kernel calls. With `may_look`, the function receives %error if it uses it."""
        text = Text(self.target)
        text.outlined = self.text.outlined
        text.may_look = may_look and self.text.may_look
        text.locate(self.text.location)
        return text

    def add_helper(self, kind: str, params: str, text: Text) -> str:
        """Add a helper function with this body; return its name."""
        self.text.declares |= text.declares
        name = f"@{{}}.{kind}{len(self.helpers)}"
        body = "\n".join([*text.slots, *definitions(text.lines, self.symbols), *text.lines, "ret void"])
        self.helpers.append(f"define internal void {name}({params}) nounwind {{\nentry:\n{body}\n}}\n")
        return name

    def repeated(self, other: Kernel) -> Kernel:
        """Give `other`, whose pointers are known already, the text of this kernel."""
        other.text, other.helpers, other.imports, other.work_bytes = self.text, self.helpers, self.imports, self.work_bytes
        other.fails = self.fails
        return other

    def _params(self) -> list[str]:
        last = (["%work"] if self.work_bytes else []) + self.sizes_table + (["%error"] if self.leaves else [])
        return [*(f"%p{k}" for k in range(len(self.pointers))), *last]

    @property
    def sizes_table(self) -> list[str]:
        """The pointer to the sizes that are known only when the program runs, if there are any."""
        return [SIZES] if self.symbols else []

    def imported(self) -> set[str]:
        """Names of the external routines that the kernel calls."""
        return self.imports | {LOOK} if self.text.looks else self.imports

    def definition(self) -> str:
        """The LLVM function, with `{}` for its name. A kernel that may fail takes the error record last and returns a code."""
        result, last = ("i64", "ret i64 0") if self.leaves else ("void", "ret void")
        body = "\n".join([*self.text.slots, *definitions(self.text.lines, self.symbols), *self.text.lines, last])
        params = ", ".join(f"ptr {name}" for name in self._params())
        return "".join([*self.helpers, f"define hidden {result} @{{}}({params}) nounwind {{\nentry:\n{body}\n}}\n"])

    def declaration(self, name: str) -> str:
        return f"declare hidden {'i64' if self.leaves else 'void'} @{name}({', '.join(['ptr'] * len(self._params()))})"


def fused_kernel(stmt: Stmt, context: Context) -> Kernel:
    """Compile a `fuse` region to one loop nest, or to the kernel of the op that hosts the region."""
    host = hosted_by(stmt)
    if host is not None:
        return hosting_kernel(stmt, host, context)
    kernel = Kernel(context)
    kernel.come_from(stmt)
    if context.literals is None:
        kernel.add_region(region_of(stmt, kernel.access))
        return kernel
    numbers = context.literals.taken(stmt.blocks[0], kernel.pointer_to)
    region = region_of(stmt, kernel.access, numbers)
    lines = lines_of((stmt, *stmt.blocks[0].stmts), context.target)
    seen = context.awake, context.is_final, lines, look(stmt.blocks[0], region.spec, numbers), tuple(region.borders)
    if seen in context.repeats:
        return context.repeats[seen].repeated(kernel)
    kernel.add_region(region)
    context.repeats[seen] = kernel
    return kernel


class LoopKernel(Kernel):
    """The loops available to an op's `lower`. Implements `adjit.ir.ops.base.Loops`."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.scalar = VectorEmitter(self.text)
        self.functions: dict[Hashable, tuple[str, bool, float]] = {}  # emitted by `call`: name, whether it checks for signals, work

    def window(self, value: Operand) -> Window:
        root, layout = self.plan.windows[id(value)]
        type, strides = (native_type(value.type), native_shape(layout.strides)) if self.symbols else (value.type, layout.strides)
        return Window(self.text, self.pointer(root, layout), type, strides)

    @contextmanager
    def loop(self, size: int | Reg) -> Iterator[Reg]:
        if not isinstance(size, Reg) and size == 1:
            yield Reg("0", I64)
            return
        text, over = self.text, self.text.fresh_label()
        stop = size.name if isinstance(size, Reg) else f"{size}"
        if isinstance(size, Reg) or may_be_empty(size):  # the body is emitted, but may never run
            some = text.fresh_label()
            text.put(f"br i1 {text.define(f'icmp sgt i64 {stop}, 0')}, label %{some}, label %{over}")
            text.start(some)
        with Loop(text, "0", stop) as loop:
            yield Reg(loop.index, I64)
        text.jump(over)
        text.start(over)

    def is_large(self, work: float) -> bool:
        return getattr(work, "hint", work) >= PARALLEL  # `each` decides again when the size is known

    def lanes(self, dtype: DType) -> int:
        return self.vector_bytes // dtype.itemsize

    def interleave(self, target: Window, a: Window, b: Window) -> None:
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
        with Loop(self.text, "0", f"{size}") as loop:
            carried = loop.carry(self.scalar.type(initial.dtype), initial.name)
            loop.feed(carried, step(Reg(loop.index, I64), Reg(carried, initial.dtype)).name)

    def each(self, size: int, work: float, body: Callable[..., None], *windows: Window) -> None:
        rows: int | Sizing = -(-size // CHUNKS)
        if not is_static(size, work):
            rows = Sizing(cast(Expr, work), PARALLEL, MIN_OPS, CHUNKS)
        elif size < 2 or not self.is_large(work):
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
            with self._writing(text, 1), Loop(text, start, stop, trips=about) as loop:
                body(Reg(loop.index, I64), *there)

        outlined(self, size, rows, outside, inside, walk)

    @contextmanager
    def _writing(self, text: Text, threads: int) -> Iterator[None]:
        """Emit into `text`, the body of a helper function that may use `threads` threads."""
        around = self.text, self.scalar, self.threads
        self.text, self.scalar, self.threads = text, VectorEmitter(text), threads
        try:
            yield
        finally:
            self.text, self.scalar, self.threads = around

    def call(self, body: Callable[..., None], *windows: Window, **settings: Hashable) -> None:
        key = (body, *settings.items(), *((w.type, w.strides) for w in windows))
        if key not in self.functions:
            self.functions[key] = self._function(body, windows, settings)
        pointers = ", ".join(f"ptr {p}" for p in (*(w.pointer for w in windows), *self.sizes_table))
        name, looks, work = self.functions[key]
        self.text.put(f"call void {name}({pointers}{', ptr %error' if looks else ''})")
        self.text.charge(work, looks)
        if looks:
            leave_if_stopped(self.text)

    def _function(self, body: Callable[..., None], windows: Sequence[Window], settings: dict[str, Hashable]) -> tuple[str, bool, float]:
        """Emit a helper function that runs the body on windows like these; return its name, whether it checks for signals, and its work."""
        inner = self.helper_text(may_look=True)
        with self._writing(inner, self.threads):
            body(self, *(w.inside(inner, [f"%w{k}"]) for k, w in enumerate(windows)), **settings)
        names = [*(f"%w{k}" for k in range(len(windows))), *self.sizes_table, *(["%error"] if inner.looks else [])]
        params = [f"ptr {name}" for name in names]
        return self.add_helper("function", ", ".join(params), inner), inner.looks, inner.work

    def load(self, source: Window, *index: Reg) -> Reg:
        at = source.at(*index)
        return memory.load(self.text, at.pointer, at.type.dtype, "0", 1, 1)

    def store(self, target: Window, value: Reg, *index: Reg) -> None:
        memory.store(self.text, target.at(*index).pointer, value, "0", 1, 1)

    def copy(self, target: Window, source: Window) -> None:
        if isinstance(target, Hosted) or target.access != source.access:  # otherwise it was computed in place
            self.map(lambda emit, x: [x], [target], [source])

    def accumulate(self, target: Window, source: Window) -> None:
        self.map(lambda emit, x, y: [emit.add(x, y)], [target], [target, source])

    def fill(self, target: Window, value: float | int | bool) -> None:
        self.map(lambda emit: [emit.const(target.type.dtype, value)], [target], [])

    def matmul(self, target: Window, a: Window, b: Window, accumulate: bool = False, brief: bool = False) -> None:
        if a.type.rank == 1:
            a, target = a.expanded(0), target.expanded(max(target.type.rank - 1, 0))
        if b.type.rank == 1:
            b, target = b.expanded(1), target.expanded(target.type.rank)
        one = products.brief_product if brief else products.matrix_product
        multiply = products.matrix_products if target.type.rank > 2 else one
        multiply(self, target, a, b, accumulate)

    def has_lapack(self) -> bool:
        return self.target.hosted and lapack.is_found()

    def lapack(self, routine: str, dtype: DType, *args: str | int | Window, complex: bool = False) -> Reg:
        return lapack.call(self, routine, dtype, *args, complex=complex)

    def collective(self, name: str, target: Window, source: Window, count: int, root: int) -> None:
        there = target if target.is_row_major else self.scratch(target.type)
        if source is target:
            here = there
        else:
            here = source if source.is_row_major else self.scratch(source.type)
        if here is not source:
            self.copy(here, source)
        code = collectives.call(self, name, there, here, count, root)
        failed = Reg(self.text.define(f"icmp ne i64 {code.name}, 0"), BOOL)
        self.fail_if(failed, f"{name}: MPI failed with error {{}}", code)
        if there is not target:
            self.copy(target, there)

    def product(
        self,
        target: Window,
        a: Window,
        b: Window,
        m: Reg | None = None,
        n: Reg | None = None,
        k: Reg | None = None,
        accumulate: bool = False,
    ) -> None:
        products.sized_product(self, target, a, b, (m, n, k), accumulate)

    def scratch(self, type: TensorType) -> Window:
        offset = -(-self.work_bytes // 64) * 64
        self.work_bytes = offset + type.nbytes
        pointer = self.text.define(f"getelementptr i8, ptr %work, i64 {offset}")
        return Window(self.text, pointer, type, row_major(type.shape))

    def private(self, type: TensorType) -> Private:
        whole = self.scratch(type.with_shape((self.threads, *type.shape)))
        return Private(whole.text, whole.pointer, whole.type, whole.strides)

    def contract(self, spec: str, target: Window, a: Window, b: Window, accumulate: bool = False) -> None:
        contraction.contract(self, spec, target, a, b, accumulate)

    def map(self, function: Callable[..., Sequence[Reg]], targets: Sequence[Window], sources: Sequence[Window]) -> None:
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

    def reduce(self, op: Reduce, function: Callable[..., Reg], target: Window, sources: Sequence[Window]) -> None:
        shape = sources[0].type.shape
        axes, inputs = tuple(range(len(shape))), [w.access for w in sources]
        total = Reduction(op, axes, Access(target.pointer, (0,) * len(shape), target.type.dtype))

        def body(chunk: Chunk) -> None:
            chunk.reduce(0, function(chunk.emit, *(chunk.load(k) for k in range(len(sources)))))

        self.nest(NestSpec(shape, inputs, [], [total], body, 2 * len(inputs)))

    def sweep(
        self,
        function: Callable[..., Sequence[Reg]],
        targets: Sequence[Window],
        totals: Sequence[tuple[type[Reduce], Window]],
        sources: Sequence[Window],
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


def lowered_kernel(stmt: Stmt, context: Context) -> LoopKernel:
    """The kernel of an op that lowers itself."""
    if not hasattr(stmt.op, "lower"):
        raise UnsupportedError(f"{stmt.op.name} has no native code yet").at(stmt.location)
    kernel = LoopKernel(context)
    outs, ins = (tuple(map(kernel.window, values)) for values in (stmt.results, stmt.args))
    key = (lowered_look(stmt.op, (*outs, *ins)), lines_of([stmt], context.target)) if context.repeats_ops else None
    return _lowered(kernel, context, stmt, key, outs[0] if len(outs) == 1 else outs, *ins)


def _lowered(
    kernel: LoopKernel, context: Context, stmt: Stmt, key: Hashable | None, out: Window | tuple[Window, ...], *args: Window
) -> LoopKernel:
    """Let an op lower itself, unless a kernel with the same key exists."""
    seen = context.awake, context.is_final, key
    if seen in context.repeats:
        context.repeats[seen].repeated(kernel)
        return kernel
    kernel.come_from(stmt)
    kernel.error = stmt.op.error
    try:
        stmt.op.lower(kernel, out, *args)  # type: ignore[attr-defined]
    except AdjitError as error:
        raise error.at(stmt.location) from None
    if key is not None and not kernel.failures:  # failures name the statement's line
        context.repeats[seen] = kernel
    return kernel


def hosting_kernel(stmt: Stmt, host: Stmt, context: Context) -> LoopKernel:
    """The kernel of a `fuse` region around an op that lowers itself: the rest of the region is applied wherever it stores its result."""
    kernel, (block,) = LoopKernel(context), stmt.blocks
    made = {id(s.result) for s in block.stmts}
    rest = [s for s in block.stmts if s is not host]
    inputs = {id(a): a for s in rest for a in s.args if isinstance(a, Value) and id(a) not in made}
    numbers = {key: k for k, key in enumerate(inputs)}

    def body(emit: VectorEmitter, value: Reg, load: Callable[[int], Reg]) -> list[Reg]:
        env = {id(host.result): value}

        def read(x: Operand) -> Reg:
            if isinstance(x, Literal):
                return emit.const(x.type.dtype, x.value)
            return env[id(x)] if id(x) in env else load(numbers[id(x)])

        before = emit.text.location
        for s in rest:
            assert isinstance(s.op, Map)
            emit.text.locate(s.location)
            env[id(s.result)] = s.op.scalar(emit, *map(read, s.args))
        emit.text.locate(before)
        return [read(x) for x in block.results]

    dtype = host.result.type.dtype
    read, written = [kernel.window(v) for v in inputs.values()], [kernel.window(r) for r in stmt.results]
    taken = {w.pointer for w in read}
    spare = next((k for k, w in enumerate(written) if w.type.dtype == dtype and w.strides[-1:] == (1,) and w.pointer not in taken), None)
    args = [kernel.window(a) for a in host.args]
    seen = lowered_look(host.op, (*written, *read, *args), block) if context.repeats_ops else None
    key = None if seen is None else (seen, lines_of(block.stmts, context.target))
    return _lowered(kernel, context, host, key, Hosted(kernel.text, dtype, written, read, body, body_ops(rest), spare), *args)


def copy_kernel(target: Access, source: Access, shape: Shape, context: Context) -> Kernel:
    """A kernel that copies the window at %p1 to the window at %p0."""
    kernel = Kernel(context)
    kernel.take_pointers(2)
    kernel.add_nest(NestSpec(shape, [source], [target], [], lambda chunk: chunk.put(0, chunk.load(0))))
    return kernel


def add_kernel(target: Access, source: Access, shape: Shape, context: Context) -> Kernel:
    """A kernel that computes target += source, with the pointers %p0 and %p1."""
    kernel = Kernel(context)
    kernel.take_pointers(2)
    body = lambda chunk: chunk.put(0, chunk.emit.add(chunk.load(0), chunk.load(1)))  # noqa: E731
    spec = NestSpec(shape, [target, source], [target], [], body, aliased=frozenset((0,)))
    kernel.run(LoopProgram(NestPlan(kernel.vector_bytes, spec).nodes()))
    return kernel
