"""Writes the loop IR as LLVM text. This, with `tile_renderer.py`, is the only place where nodes become instructions.

Long loops check for signals where the text may (`counted.CountedLoop`): whether a loop is long depends on the number of instructions in its
body, which is known only here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from adjit.ir.expr import Atom, Expr, Quotient, SmallerOf, Symbol, Symbolic, Var, minimum
from adjit.ir.records import replace
from adjit.ir.types import F64, I64, DType

from ..interrupts import stopping
from ..kernels.emitter import VectorEmitter
from ..llvm import counted, memory
from ..llvm.lanes import Reg, Text
from ..llvm.words import Truth, branch
from . import nans
from .folds import folded
from .ir import (
    CHUNK,
    CHUNKS,
    LENGTH,
    START,
    WORK,
    Access,
    Call,
    Chunk,
    Close,
    Contraction,
    Either,
    Finish,
    Fold,
    Local,
    Loop,
    Merge,
    Nest,
    Node,
    Open,
    Parallel,
    Part,
    Reduction,
    Row,
    Spill,
    Square,
    Vector,
    static,
)
from .tile_renderer import TileRenderer

if TYPE_CHECKING:
    from ..kernels.kernel import Kernel


SHORT_ROW = stopping.GRAIN >> 6  # instructions: the least that is assumed of a row whose length is known only at run time


def render(text: Text, nodes: Iterable[Node], kernel: Kernel | None = None, sizes: dict[Expr, str] | None = None) -> None:
    """Append the text of these nodes. `kernel`: whose text it is, needed for parts that run in parallel; `sizes`: registers with sizes."""
    Renderer(text, kernel, sizes).all(nodes)


class Renderer:
    def __init__(self, text: Text, kernel: Kernel | None, known: dict[Expr, str] | None = None, worker: str = "0") -> None:
        """`known`: registers that hold the values of expressions; `worker`: the number of the thread."""
        self.worker = worker
        self.text = text
        self.kernel = kernel
        self.known: dict[Expr, str] = dict(known or {})
        self.addresses: dict[tuple[str, Expr, DType], str] = {}  # of the first elements of accesses

    def all(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            match node:
                case Nest():
                    self.nest(node)
                case Contraction():
                    TileRenderer(self, node).render()
                case Call():
                    self.call(node)
                case Loop():
                    self.loop(node)
                case Parallel():
                    self.parallel(node)
                case Local():
                    self.local(node)
                case Either():
                    self.either(node)
                case _:
                    raise TypeError(f"a {type(node).__name__} outside of a nest")

    def local(self, node: Local) -> None:
        """On the stack; if its size is known only at run time, in the scratch memory of the thread."""
        if isinstance(node.nbytes, int):
            self.text.slots.append(f"{node.pointer} = alloca [{node.nbytes} x i8], align 64")
            return
        own = f"mul i64 {self.worker}, {node.nbytes}"
        at = self.text.define(f"add i64 {self.text.define(own)}, {node.offset}")
        self.text.put(f"{node.pointer} = getelementptr i8, ptr {WORK}, i64 {at}")

    def nest(self, nest: Nest) -> None:
        _NestRenderer(self, self.placed(nest)).all(nest.nodes)

    def loop(self, loop: Loop) -> None:
        with counted.CountedLoop(self.text, self.spell(loop.start), self.spell(loop.stop), loop.step) as counter:
            around, addresses = dict(self.known), dict(self.addresses)
            self.known[loop.variable] = counter.index
            self.all(loop.body)
        self.known, self.addresses = around, addresses

    def either(self, node: Either) -> None:
        """Values that one of the branches computes are not known after it."""

        def apart(nodes: list[Node]) -> None:
            around, addresses = dict(self.known), dict(self.addresses)
            self.all(nodes)
            self.known, self.addresses = around, addresses

        is_small = Truth(self.text, self.text.define(f"icmp sle i64 {self.spell(node.size)}, {node.limit}"))
        branch(is_small, lambda: apart(node.few), lambda: apart(node.many))

    def call(self, call: Call) -> None:
        self.text.declares.add(f"declare void @{call.routine}({', '.join(type for type, _ in call.arguments)})")
        given = [f"{type} {value if isinstance(value, str) else self.spell(value)}" for type, value in call.arguments]
        self.text.put(f"call void @{call.routine}({', '.join(given)})")

    def parallel(self, node: Parallel) -> None:
        from ..kernels.parallel import in_chunks  # noqa: PLC0415 - a module of the package that calls this one

        assert self.kernel is not None
        kernel, first = self.kernel, CHUNK * node.rows

        def walk(text: Text, start: str, stop: str) -> None:
            known: dict[Expr, str] = {CHUNK: "%chunk", first: start, minimum(first + node.rows, node.total): stop}
            if node.part is not None:
                known |= _elements(text, start, stop, node.part)
            Renderer(text, kernel, known, "%worker").all(node.body)

        rows = node.rows if isinstance(node.rows, int) else node.sized
        assert rows is not None
        self.known[CHUNKS] = in_chunks(kernel, node.total, rows, walk)

    # ---- addresses

    def placed(self, nest: Nest) -> Nest:
        """The nest with all its accesses beginning at offset 0, behind pointers that are computed here."""
        if all(isinstance(a.offset, int) and a.offset == 0 for a in nest.accesses):
            return nest
        reductions = [replace(r, output=self.address(r.output)) for r in nest.reductions]
        inputs, outputs = [self.address(a) for a in nest.inputs], [self.address(a) for a in nest.outputs]
        return replace(nest, inputs=inputs, outputs=outputs, reductions=reductions)

    def address(self, access: Access) -> Access:
        if isinstance(access.offset, int) and access.offset == 0:
            return access
        key = access.pointer, access.offset, access.dtype
        if key not in self.addresses:
            self.addresses[key] = self._address(access)
        return access._replace(pointer=self.addresses[key], offset=0)

    def _address(self, access: Access) -> str:
        """The constant part of the offset first: it is often the same for many addresses."""
        pointer, offset = access.pointer, access.offset
        if isinstance(offset, Symbolic):
            pointer = memory.element(self.text, pointer, access.dtype, str(offset.constant))
            offset = Symbolic(offset.terms)
        return memory.element(self.text, pointer, access.dtype, self.spell(offset))

    # ---- expressions

    def spell(self, expr: Expr) -> str:
        """The value of an expression: a literal, or a register that holds it."""
        if isinstance(expr, int):
            return str(expr)
        if expr in self.known:
            return self.known[expr]
        if expr.is_of_symbols:
            return f"{expr}"
        total = ""
        for monomial, factor in expr.terms.items():
            product = ""
            for atom in monomial:
                name = self.atom(atom)
                product = self.text.define(f"mul i64 {product}, {name}") if product else name
            part = memory.scaled(self.text, product, factor)
            total = self.text.define(f"add i64 {total}, {part}") if total else part
        return memory.plus(self.text, total, expr.constant)

    def atom(self, atom: Atom) -> str:
        if isinstance(atom, Symbol):
            return f"{Symbolic({(atom,): 1})}"
        if isinstance(atom, Var):
            return self.known[Symbolic({(atom,): 1})]
        if isinstance(atom, Quotient):  # of numbers that are not negative
            return self.text.define(f"udiv i64 {self.spell(atom.dividend)}, {atom.divisor}")
        assert isinstance(atom, SmallerOf)
        a, b = self.spell(atom.a), self.spell(atom.b)
        return self.text.define(f"select i1 {self.text.define(f'icmp slt i64 {a}, {b}')}, i64 {a}, i64 {b}")

    def scaled(self, index: str, stride: Expr) -> str:
        if isinstance(stride, int):
            return memory.scaled(self.text, index, stride)
        return self.text.define(f"mul i64 {index}, {self.spell(stride)}")


def _elements(text: Text, start: str, stop: str, part: Part) -> dict[Expr, str]:
    """The elements of a chunk that is a part of one axis."""
    text.declares.add("declare i64 @llvm.smin.i64(i64, i64)")
    first, after = (text.define(f"mul i64 {row}, {part.row}") for row in (start, stop))
    end = text.define(f"call i64 @llvm.smin.i64(i64 {after}, i64 {part.size})")
    return {START: first, LENGTH: text.define(f"sub i64 {end}, {first}")}


class _NestRenderer:
    """The nodes inside one nest, whose accesses all begin at offset 0."""

    def __init__(self, around: Renderer, nest: Nest) -> None:
        self.around = around
        self.text = around.text
        self.nest = nest
        self.inner_axis = nest.order[-1] if nest.order else None
        self.indices: dict[int, str] = {}  # registers or literals with the position on each outer axis
        self.row_pointers: dict[tuple[str, tuple[Expr, ...]], str] = {}
        self.splats: dict[tuple[int, int], Reg] = {}  # input and width -> an input that is constant along the row
        self.given: dict[int, Reg] = {}  # inputs that are already in registers
        self.carried: dict[tuple[int, int], Reg] = {}  # reduction and piece -> the sum that a loop carries
        self.sums: dict[tuple[int, int], Reg] = {}  # the same after the latest vector
        self.watches: dict[tuple[int, int], nans.NanWatch] = {}  # what a loop carries beside it
        self.totals: dict[int, Reg] = {}
        self.in_row_loop = False  # along an axis whose size is known only at run time
        self.slots: dict[int, tuple[str, DType]] = {}

    def all(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            RENDERED[type(node)](self, node)

    # ---- loops

    def loop(self, loop: Loop) -> None:
        usual = None if self.in_row_loop or loop.axis not in (None, self.inner_axis) else _usual_trips(loop)
        lines, unseen = len(self.text.lines), self.text.unseen
        self.in_row_loop |= usual is not None
        if loop.may_be_empty:
            self.guarded(loop)
        else:
            self.repeated(loop, self.around.spell(loop.start), self.around.spell(loop.stop))
        if usual is not None:  # else the loops around it would assume the longest row, and check for signals all the time
            self.in_row_loop = False
            work = max(SHORT_ROW, usual * (len(self.text.lines) - lines))
            self.text.unseen = min(self.text.unseen, unseen + work)

    def repeated(self, loop: Loop, start: str, stop: str) -> None:
        with counted.CountedLoop(self.text, start, stop, loop.step) as counter:
            carried, watches = {}, {}
            for carry in loop.carries:
                key, emit, r = (carry.reduction, carry.piece), VectorEmitter(self.text, carry.width), self.nest.reductions[carry.reduction]
                first = self._identity(carry.reduction, emit)
                carried[key] = Reg(counter.carry(emit.type(first.dtype), first.name), first.dtype)
                if watch := nans.watch(self.text, counter, r.op, first.dtype, carry.width):
                    watches[key] = watch
            self.carried |= carried
            self.watches |= watches
            self.around.known[loop.variable] = counter.index
            if loop.axis is not None and loop.axis != self.inner_axis:
                self.indices[loop.axis] = counter.index
            self.all(loop.body)
            for key, reg in carried.items():
                counter.feed(reg.name, self.sums[key].name)
                del self.carried[key]
            for key, watch in watches.items():
                counter.feed(watch.carried, watch.numbers)
                del self.watches[key]
            if loop.axis in self.indices:
                del self.indices[loop.axis]
            del self.around.known[loop.variable]
        for key, watch in watches.items():
            self.sums[key] = watch.result(self.sums[key])
        if loop.axis is not None and loop.axis != self.inner_axis:
            self.row_pointers = {}

    def guarded(self, loop: Loop) -> None:
        """A loop that may have no iteration; the sums that it carries are then the identity."""
        text, start, stop = self.text, self.around.spell(loop.start), self.around.spell(loop.stop)
        before = text.block
        with counted.only_if(text, text.define(f"icmp slt i64 {start}, {stop}")):
            self.repeated(loop, start, stop)
            last = text.block
        for carry in loop.carries:
            emit, key = VectorEmitter(text, carry.width), (carry.reduction, carry.piece)
            made, none = self.sums[key], self._identity(carry.reduction, emit)
            phi = text.define(f"phi {emit.type(made.dtype)} [{none.name}, %{before}], [{made.name}, %{last}]")
            self.sums[key] = Reg(phi, made.dtype)

    def _identity(self, k: int, emit: VectorEmitter, dtype: DType | None = None) -> Reg:
        r = self.nest.reductions[k]
        return emit.const(dtype or r.output.dtype, r.op.identity(dtype or r.output.dtype))

    # ---- rows

    def row(self, row: Row) -> None:
        """Compute the addresses and everything else that is constant along the row, before its first element."""
        self.row_pointers = {}
        for access in self.nest.accesses:
            self._row_pointer(access)
        self.splats = {}
        for k, access in enumerate(self.nest.inputs):
            if k not in self.nest.unread and (self.inner_axis is None or access.strides[self.inner_axis] == 0):
                scalar = memory.load(self.text, self._row_pointer(access), access.dtype, "0", 1, 1)
                for width in row.widths:
                    self.splats[k, width] = memory.splat(self.text, scalar, width)

    def _row_pointer(self, access: Access) -> str:
        """The address of an access at the current outer indices, computed once per row."""
        moves = [(self.indices[a], access.strides[a]) for a in self.nest.order[:-1] if access.strides[a]]
        if not moves:
            return access.pointer
        key = (access.pointer, access.strides)
        if key not in self.row_pointers:
            self.row_pointers[key] = self._moved(access, moves)
        return self.row_pointers[key]

    def _moved(self, access: Access, moves: list[tuple[str, Expr]]) -> str:
        text, total = self.text, ""
        for index, stride in moves:
            part = self.around.scaled(index, stride)
            total = text.define(f"add i64 {total}, {part}") if total else part
        return memory.element(text, access.pointer, access.dtype, total)

    def square(self, square: Square) -> None:
        text, side, (*_, outer, inner) = self.text, square.side, self.nest.order
        turned: dict[int, list[Reg]] = {}
        self.indices[outer] = "0"
        self.row_pointers = {}
        for k in square.inputs:
            access = self.nest.inputs[k]
            pointer, dtype, step = self._row_pointer(access), access.dtype, static(access.strides[inner])
            columns = [memory.element(text, pointer, dtype, str(i * step)) for i in range(side)]
            turned[k] = memory.transposed(text, [memory.load(text, column, dtype, "0", 1, side) for column in columns])
        for row in range(side):
            self.indices[outer] = str(row)
            self.row(Row((side,)))
            self.given = {k: rows[row] for k, rows in turned.items()}
            self.vector(Vector(0, side))
        self.given = {}
        del self.indices[outer]

    # ---- elements

    def vector(self, vector: Vector) -> None:
        """Emit the body once, for the elements of a vector."""
        text, width, index = self.text, vector.width, self.around.spell(vector.at)
        mask = None if vector.stop is None else memory.lanes_before(text, index, self.around.spell(vector.stop), width)
        nest, emit = self.nest, VectorEmitter(text, width, lambda axis, w: self._position(axis, w, index))
        loaded: dict[int, Reg] = {}
        late: list[tuple[Access, Reg]] = []

        def load(k: int) -> Reg:
            if (k, width) in self.splats:
                return self.splats[k, width]
            if k in self.given:
                return self.given[k]
            if k not in loaded:
                loaded[k] = self._load(nest.inputs[k], index, width, mask)
            return loaded[k]

        def put(k: int, value: Reg) -> None:
            if k in nest.aliased:
                late.append((nest.outputs[k], value))
            else:
                self._store(nest.outputs[k], value, index, width, mask)

        def reduce(k: int, value: Reg) -> None:
            r, key = nest.reductions[k], (k, vector.piece)
            in_memory = self.inner_axis is not None and self.inner_axis not in r.axes
            if mask is not None and (key in self.carried or not in_memory):
                value = emit.select(mask, value, self._identity(k, emit))
            if key in self.watches:
                self.watches[key].see(value)
                self.sums[key] = r.op.combine_numbers(emit, self.carried[key], value)
            elif key in self.carried:
                self.sums[key] = r.op.combine(emit, self.carried[key], value)
            elif in_memory:
                before = self._load(r.output, index, width, mask)
                self._store(r.output, r.op.combine(emit, before, value), index, width, mask)
            else:
                self.sums[key] = value

        nest.body(Chunk(emit, load, put, reduce))
        for access, value in late:
            self._store(access, value, index, width, mask)

    def _load(self, access: Access, index: str, width: int, mask: Reg | None = None) -> Reg:
        """Some elements along the row; with a mask, they are contiguous, and zeros in the other lanes."""
        pointer = self._row_pointer(access)
        if mask is not None:
            return memory.load_lanes(self.text, pointer, access.dtype, index, width, mask)
        return memory.load(self.text, pointer, access.dtype, *self._along(access, index), width)

    def _store(self, access: Access, value: Reg, index: str, width: int, mask: Reg | None = None) -> None:
        pointer = self._row_pointer(access)
        if mask is not None:
            memory.store_lanes(self.text, pointer, value, index, width, mask)
        else:
            memory.store(self.text, pointer, value, *self._along(access, index), width)

    def _along(self, access: Access, index: str) -> tuple[str, int]:
        """An index along the row and its stride; a stride that is not a number is multiplied here, and only single elements have one."""
        stride = 1 if self.inner_axis is None else access.strides[self.inner_axis]
        return (index, stride) if isinstance(stride, int) else (self.around.scaled(index, stride), 1)

    def _position(self, axis: int, width: int, index: str) -> Reg:
        """The i64 positions of a vector's elements along an axis, in the numbering that the body uses."""
        if self.nest.row is not None:
            axis -= 1
            if axis < 0:
                return memory.splat(self.text, Reg(self.around.spell(self.nest.row), I64), width)
        if axis != self.inner_axis:
            return memory.splat(self.text, Reg(self.indices.get(axis, "0"), I64), width)
        first = memory.splat(self.text, Reg(index, I64), width)
        if width == 1:
            return first
        steps = ", ".join(f"i64 {k}" for k in range(width))
        return Reg(self.text.define(f"add <{width} x i64> {first.name}, <{steps}>"), I64)

    # ---- totals of reductions

    def fold(self, fold: Fold) -> None:
        for k in fold.reductions:
            op = self.nest.reductions[k].op
            one = folded(self.text, op, self.sums[k, 0], fold.width)
            self.totals[k] = op.combine(VectorEmitter(self.text), self.totals[k], one) if k in self.totals else one

    def open(self, node: Open) -> None:
        """Reserve a stack slot; float32 sums are kept in float64 there."""
        emit, dtype = VectorEmitter(self.text), slot_dtype(self.nest.reductions[node.reduction])
        slot = self.text.reserve(emit.type(dtype))
        self.text.put(f"store {emit.type(dtype)} {self._identity(node.reduction, emit, dtype).name}, ptr {slot}")
        self.slots[node.reduction] = (slot, dtype)

    def spill(self, node: Spill) -> None:
        slot, dtype = self.slots[node.reduction]
        emit = VectorEmitter(self.text)
        ty = emit.type(dtype)
        before = Reg(self.text.define(f"load {ty}, ptr {slot}"), dtype)
        value = emit.convert(self.totals.pop(node.reduction), dtype)
        total = self.nest.reductions[node.reduction].op.combine(emit, before, value)
        self.text.put(f"store {ty} {total.name}, ptr {slot}")

    def close(self, node: Close) -> None:
        slot, dtype = self.slots.pop(node.reduction)
        emit = VectorEmitter(self.text)
        total = Reg(self.text.define(f"load {emit.type(dtype)}, ptr {slot}"), dtype)
        self.totals[node.reduction] = emit.convert(total, self.nest.reductions[node.reduction].output.dtype)

    def finish(self, node: Finish) -> None:
        r, total = self.nest.reductions[node.reduction], self.totals.pop(node.reduction)
        moves = [(self.indices[a], r.output.strides[a]) for a in self.nest.order if a in self.indices and r.output.strides[a]]
        pointer = self._moved(r.output, moves) if moves else r.output.pointer
        if node.adding:
            before = memory.load(self.text, pointer, r.output.dtype, "0", 1, 1)
            total = r.op.combine(VectorEmitter(self.text), before, total)
        memory.store(self.text, pointer, total, "0", 1, 1)

    def merge(self, node: Merge) -> None:
        r, (at, width, piece, _) = self.nest.reductions[node.reduction], node.vector
        index, emit = self.around.spell(at), VectorEmitter(self.text, width)
        total = r.op.combine(emit, self._load(r.output, index, width), self.sums[node.reduction, piece])
        self._store(r.output, total, index, width)


RENDERED: dict[type, Callable[[_NestRenderer, Any], None]] = {
    Loop: _NestRenderer.loop, Row: _NestRenderer.row, Vector: _NestRenderer.vector, Square: _NestRenderer.square,
    Open: _NestRenderer.open, Fold: _NestRenderer.fold, Spill: _NestRenderer.spill, Close: _NestRenderer.close,
    Finish: _NestRenderer.finish, Merge: _NestRenderer.merge,
}  # fmt: skip


def slot_dtype(r: Reduction) -> DType:
    return F64 if r.op.rounds(r.output.dtype) else r.output.dtype


def _usual_trips(loop: Loop) -> int | None:
    """How many vectors a loop along a row usually computes, if that is known only at run time."""
    distance = loop.stop - loop.start
    if isinstance(distance, int) or not distance.is_of_symbols:
        return None
    inner = loop.body[0] if loop.axis is None else loop
    return max(1, distance.hint // inner.step) if isinstance(inner, Loop) else None
