"""Regions on scalars as one kernel: branches and loops whose values never leave the registers.

Free values are loaded once, at the top; carries are phis; what a loop saves goes straight to its stack, which a counted loop reserves whole
before its first trip.
"""

from __future__ import annotations

from adjit.ir.errors import UnsupportedError
from adjit.ir.func import Block, Stmt
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.base import View
from adjit.ir.ops.control import For, Fuse, If, While
from adjit.ir.ops.index import Gather
from adjit.ir.ops.maps import Map
from adjit.ir.ops.reduce import Reduce
from adjit.ir.ops.stack import StackRead
from adjit.ir.types import BOOL, I64, StackType

from . import memory, stacks
from .kernels import Context, LoopKernel
from .lanes import LLVM_TYPE, Reg

POLL_EVERY = 1 << 18  # trips between two looks for Ctrl-C


def register_kernel(stmt: Stmt, context: Context) -> RegisterKernel:
    kernel = RegisterKernel(context)
    for value in (*stmt.args, *(v for block in stmt.blocks for v in block.free())):
        kernel.open(value)
    kernel.statement(stmt)
    for result in stmt.results:
        if not isinstance(result.type, StackType):
            window = kernel.window(result)
            memory.store(kernel.text, window.pointer, kernel.values[id(result)], "0", 1, 1)
    return kernel


class RegisterKernel(LoopKernel):
    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.values: dict[int, Reg] = {}
        self.handles: dict[int, str] = {}  # stacks

    # ---- operands

    def open(self, value: Operand) -> None:
        """Load a free scalar, or the address of a free stack, before everything else."""
        if isinstance(value, Literal) or id(value) in self.values or id(value) in self.handles:
            return
        if isinstance(value.type, StackType):
            self.handles[id(value)] = self.window(value).pointer
        elif value.type.size == 1:
            window = self.window(value)
            self.values[id(value)] = memory.load(self.text, window.pointer, value.type.dtype, "0", 1, 1)

    def read(self, x: Operand) -> Reg:
        return self.scalar.const(x.type.dtype, x.value) if isinstance(x, Literal) else self.values[id(x)]

    # ---- statements

    def statements(self, block: Block) -> None:
        for stmt in block.stmts:
            self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        op = stmt.op
        self.location = stmt.location
        if isinstance(op, Map):
            self.values[id(stmt.result)] = op.scalar(self.scalar, *map(self.read, stmt.args))
        elif isinstance(op, View | Reduce):  # of one element
            self.values[id(stmt.result)] = self.read(stmt.args[0])
        elif isinstance(op, Fuse):
            (body,) = stmt.blocks
            self.statements(body)
            self.bind(stmt.results, body.results)
        elif isinstance(op, If):
            self.branch(stmt)
        elif isinstance(op, For):
            self.count(stmt)
        elif isinstance(op, While):
            self.repeat(stmt)
        elif isinstance(op, Gather):
            self.gather(stmt)
        elif isinstance(op, StackRead):
            self.unstack(stmt)
        else:
            raise UnsupportedError(f"{op.name} does not run in registers").at(stmt.location)

    def bind(self, results: tuple[Operand, ...], operands: tuple[Operand, ...]) -> None:
        for result, operand in zip(results, operands, strict=True):
            self.values[id(result)] = self.read(operand)

    def branch(self, stmt: Stmt) -> None:
        text = self.text
        then, otherwise, after = (text.fresh_label() for _ in range(3))
        text.put(f"br i1 {self.read(stmt.args[0]).name}, label %{then}, label %{otherwise}")
        yielded: list[tuple[str, list[Reg]]] = []
        for label, block in zip((then, otherwise), stmt.blocks, strict=True):
            text.start(label)
            self.statements(block)
            yielded.append((text.block, [self.read(r) for r in block.results]))
            text.jump(after)
        text.start(after)
        for k, result in enumerate(stmt.results):
            arms = ", ".join(f"[{regs[k].name}, %{label}]" for label, regs in yielded)
            name = text.define(f"phi {LLVM_TYPE[result.type.dtype]} {arms}")
            self.values[id(result)] = Reg(name, result.type.dtype)

    def count(self, stmt: Stmt) -> None:
        """`for`: the counter and the carries are phis; the trip count is known before the first trip, so stacks are reserved whole."""
        text, (body,) = self.text, stmt.blocks
        start, stop = (self.scalar.convert(self.read(a), I64) for a in stmt.args[:2])
        saved = self.saved_stacks(stmt, body)
        trips = self.scalar.sub(stop, start)
        for handle, element in saved:
            self.reserve(handle, trips, element)
        counter, position = body.params[0], len(body.params) - len(body.results)

        def condition(phis: list[Reg]) -> str:
            return self.scalar.compare("lt", phis[0], stop).name

        def run(phis: list[Reg]) -> list[Reg]:
            self.values[id(counter)] = self.scalar.convert(phis[0], counter.type.dtype)
            for param, phi in zip(body.params[position:], phis[1:], strict=True):
                self.values[id(param)] = phi
            self.poll(phis[0])
            self.statements(body)
            for (handle, _), value in zip(saved, body.saving, strict=True):
                data = text.define(f"load ptr, ptr {handle}")
                memory.store(text, data, self.read(value), self.scalar.sub(phis[0], start).name, 1, 1)
            return [self.scalar.add(phis[0], self.scalar.const(I64, 1)), *map(self.read, body.results)]

        final = self.loop_of([start, *map(self.read, stmt.args[2:])], condition, run)
        for handle, _ in saved:
            memory.store(text, handle, self.scalar.select(self.scalar.compare("gt", trips, self.scalar.const(I64, 0)), trips, self.scalar.const(I64, 0)), "1", 1, 1)
        for result, value in zip(stmt.results, final[1:], strict=False):
            self.values[id(result)] = value

    def repeat(self, stmt: Stmt) -> None:
        """`while`: the carries are phis, with a trip counter beside them to look for Ctrl-C now and then."""
        text, (test, body) = self.text, stmt.blocks
        saved = self.saved_stacks(stmt, body)

        def condition(phis: list[Reg]) -> str:
            for param, phi in zip(test.params, phis[1:], strict=True):
                self.values[id(param)] = phi
            self.statements(test)
            return self.read(test.results[0]).name

        def run(phis: list[Reg]) -> list[Reg]:
            for param, phi in zip(body.params, phis[1:], strict=True):
                self.values[id(param)] = phi
            self.poll(phis[0])
            self.statements(body)
            for (handle, element), value in zip(saved, body.saving, strict=True):
                address = text.define(f"call ptr @adjit_push(ptr {handle}, i64 {stacks.element_bytes(element)})")
                self.leave_if(text.define(f"icmp eq ptr {address}, null"), stacks.OUT_OF_MEMORY)
                memory.store(text, address, self.read(value), "0", 1, 1)
            return [self.scalar.add(phis[0], self.scalar.const(I64, 1)), *map(self.read, body.results)]

        final = self.loop_of([self.scalar.const(I64, 0), *map(self.read, stmt.args)], condition, run)
        for result, value in zip(stmt.results, final[1:], strict=False):
            self.values[id(result)] = value

    def loop_of(self, initial, condition, run) -> list[Reg]:  # type: ignore[no-untyped-def]
        """A loop that tests at the top; `run` gives the next values of the phis. Returns their final values."""
        text = self.text
        before, head, inside, after = text.block, *(text.fresh_label() for _ in range(3))
        text.jump(head)
        text.start(head)
        phis = [Reg(text.fresh(), r.dtype) for r in initial]
        lines = range(len(text.lines), len(text.lines) + len(phis))
        text.lines += [""] * len(phis)
        test = condition(phis)
        text.put(f"br i1 {test}, label %{inside}, label %{after}")
        text.start(inside)
        following = run(phis)
        for line, phi, first, next_ in zip(lines, phis, initial, following, strict=True):
            text.lines[line] = f"{phi.name} = phi {LLVM_TYPE[phi.dtype]} [{first.name}, %{before}], [{next_.name}, %{text.block}]"
        text.jump(head)
        text.start(after)
        return phis

    # ---- memory

    def saved_stacks(self, stmt: Stmt, body: Block) -> list[tuple[str, object]]:
        """(handle, element type) of each stack that a loop fills, emptied."""
        out = []
        for stack in stmt.results[len(body.results) :]:
            assert isinstance(stack.type, StackType)
            handle = self.handles[id(stack)] = self.window(stack).pointer
            memory.store(self.text, handle, Reg("0", I64), "1", 1, 1)
            out.append((handle, stack.type.element))
        return out

    def reserve(self, handle: str, count: Reg, element) -> None:  # type: ignore[no-untyped-def]
        call = f"call i1 @adjit_reserve(ptr {handle}, i64 {count.name}, i64 {stacks.element_bytes(element)})"
        fits = self.text.define(call)
        self.leave_if(self.text.define(f"xor i1 {fits}, true"), stacks.OUT_OF_MEMORY)

    def unstack(self, stmt: Stmt) -> None:
        stack, index = stmt.args
        data = self.text.define(f"load ptr, ptr {self.handles[id(stack)]}")
        at = self.scalar.convert(self.read(index), I64)
        self.values[id(stmt.result)] = memory.load(self.text, data, stmt.result.type.dtype, at.name, 1, 1)

    def gather(self, stmt: Stmt) -> None:
        """One element of an array, its indices checked."""
        x, *indices = stmt.args
        at = []
        for axis, index in enumerate(indices):
            size = x.type.shape[axis]
            raw = self.scalar.convert(self.read(index), I64)
            low = self.scalar.compare("lt", raw, self.scalar.const(I64, 0))
            wrapped = self.scalar.select(low, self.scalar.add(raw, self.scalar.const(I64, size)), raw)
            inside = Reg(self.text.define(f"icmp uge i64 {wrapped.name}, {size}"), BOOL)
            self.fail_if(inside, f"gather: index {{0}} is out of bounds for axis {axis} of size {size}", raw)
            at.append(wrapped)
        self.values[id(stmt.result)] = self.load(self.window(x), *at)

    def poll(self, trip: Reg) -> None:
        """Every so many trips, look for Ctrl-C."""
        text, look, go = self.text, self.text.fresh_label(), self.text.fresh_label()
        low = text.define(f"and i64 {trip.name}, {POLL_EVERY - 1}")
        due = text.define(f"icmp eq i64 {low}, {POLL_EVERY - 1}")
        text.put(f"br i1 {due}, label %{look}, label %{go}")
        text.start(look)
        self.leave_if(text.define("call i1 @adjit_interrupted()"), stacks.INTERRUPTED)
        text.jump(go)
        text.start(go)
