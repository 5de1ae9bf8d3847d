"""Scalar regions as one kernel: branches and loops whose values stay in registers.

Free values are loaded once, at the top; loop carries are phis; values that a loop saves are written directly to its stack, which a counted
loop allocates in full before its first iteration. Stacks live in memory: a stack value is represented by the address of its data, loaded
once the stack exists. Arrays live in memory too: single elements are read and written in place, and the planner guarantees that this is
not observable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adjit.ir.effects import effects
from adjit.ir.errors import UnsupportedError
from adjit.ir.func import Block, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.index import Indexing, ScatterAdd, native_position
from adjit.ir.ops.stack import CheckedStackOp, StackAccumulate, StackAdd, StackCopy, StackLength, StackRead, StackZeros
from adjit.ir.types import BOOL, I64, StackType

from ..interrupts import polling, signals, stopping
from ..llvm import memory
from ..llvm.lanes import LLVM_TYPE, Reg
from ..main import stacks
from .emitter import VectorEmitter
from .kernel import Context
from .loop_kernel import LoopKernel
from .multiply_add import MultiplyAdds


def register_kernel(stmt: Stmt, context: Context) -> RegisterKernel:
    kernel = RegisterKernel(context, Block((), [stmt], ()))
    for value in (*stmt.args, *(v for block in stmt.blocks for v in block.free())):
        kernel.open(value)
    kernel.statement(stmt)
    for result in stmt.results:
        if in_register(result):
            window = kernel.window(result)
            memory.store(kernel.text, window.pointer, kernel.values[id(result)], "0", 1, 1)
    return kernel


def in_register(x: Operand) -> bool:
    """Whether a value is a scalar, rather than a stack or an array."""
    return x.type.size == 1 and not isinstance(x.type, StackType)


class RegisterKernel(LoopKernel):
    uses_runtime = True

    def __init__(self, context: Context, block: Block) -> None:
        super().__init__(context)
        self.scalar = VectorEmitter(self.text, position=lambda axis, width: Reg("0", I64))  # a single element has only position 0
        self.contraction = MultiplyAdds(block, self.scalar)
        self.values: dict[int, Reg] = {}
        self.data: dict[int, str] = {}  # root of a stack -> address of its elements

    # ---- operands

    def open(self, value: Operand) -> None:
        """Load a free scalar, or the address of a free stack's elements, at the top of the kernel."""
        if isinstance(value, Literal) or id(value) in self.values:
            return
        if isinstance(value.type, StackType):
            self.load_data(value)
        elif value.type.size == 1:
            window = self.window(value)
            self.values[id(value)] = memory.load(self.text, window.pointer, value.type.dtype, "0", 1, 1)

    def read(self, x: Operand) -> Reg:
        return self.scalar.const(x.type.dtype, x.value) if isinstance(x, Literal) else self.values[id(x)]

    def bind(self, results: Sequence[Operand], operands: Sequence[Operand]) -> None:
        """Bind the results to the operands. Stacks in other memory are copied; arrays already share memory."""
        for result, operand in zip(results, operands, strict=True):
            if isinstance(result.type, StackType):
                self.move_stack(result, operand)
            elif in_register(result):
                self.values[id(result)] = self.read(operand)

    # ---- statements

    def statements(self, block: Block) -> None:
        for stmt in block.stmts:
            self.statement(stmt)

    def statement(self, stmt: Stmt) -> None:
        self.come_from(stmt)
        stmt.op.run_in_registers(self, stmt)

    def elementwise(self, stmt: Stmt) -> None:
        self.values[id(stmt.result)] = self.contraction.scalar(stmt, [self.read(a) for a in stmt.args])

    def same(self, stmt: Stmt) -> None:
        self.values[id(stmt.result)] = self.read(stmt.args[0])

    def inline(self, stmt: Stmt) -> None:
        (body,) = stmt.blocks
        self.statements(body)
        self.bind(stmt.results, body.results)

    def fused(self, stmt: Stmt) -> None:
        self.inline(stmt)

    def rows(self, stmt: Stmt) -> None:
        raise UnsupportedError(f"{stmt.op.name} does not run in registers").at(stmt.location)

    def branches(self, stmt: Stmt) -> None:
        text = self.text
        then, otherwise, after = (text.fresh_label() for _ in range(3))
        scalars = [k for k, r in enumerate(stmt.results) if in_register(r)]
        others = [k for k, r in enumerate(stmt.results) if isinstance(r.type, StackType)]
        text.put(f"br i1 {self.read(stmt.args[0]).name}, label %{then}, label %{otherwise}")
        yielded: list[tuple[str, list[Reg]]] = []
        for label, block in zip((then, otherwise), stmt.blocks, strict=True):
            text.start(label)
            self.statements(block)
            regs = [self.read(block.results[k]) for k in scalars]
            self.bind([stmt.results[k] for k in others], [block.results[k] for k in others])
            yielded.append((text.block, regs))
            text.jump(after)
        text.start(after)
        for n, k in enumerate(scalars):
            arms = ", ".join(f"[{regs[n].name}, %{label}]" for label, regs in yielded)
            dtype = stmt.results[k].type.dtype
            self.values[id(stmt.results[k])] = Reg(text.define(f"phi {LLVM_TYPE[dtype]} {arms}"), dtype)
        for k in others:
            self.load_data(stmt.results[k])

    # ---- loops

    def for_loop(self, stmt: Stmt) -> None:
        """`for`: the counter and the carries are phis; the trip count is known before the loop, so stacks are allocated in full."""
        (body,) = stmt.blocks
        start, stop = (self.scalar.convert(self.read(a), I64) for a in stmt.args[:2])
        trips = self.scalar.sub(stop, start)
        saved = stmt.results[len(body.results) :]
        for stack in saved:
            self.allocate(stacks.reserve_call(self.handle(stack), trips.name, stack.type.element))  # type: ignore[attr-defined]
            self.load_data(stack)
        counter = body.params[0]

        def condition(phis: list[Reg]) -> str:
            return self.scalar.compare("lt", phis[0], stop).name

        def run(phis: list[Reg]) -> Reg:
            self.values[id(counter)] = self.scalar.convert(phis[0], counter.type.dtype)
            self.poll(phis[0], body)
            self.statements(body)
            if saved:
                trip = self.scalar.sub(phis[0], start).name
                for stack, value in zip(saved, body.saving, strict=True):
                    memory.store(self.text, self.data_of(stack), self.read(value), trip, 1, 1)
            return self.scalar.add(phis[0], self.scalar.const(I64, 1))

        self.carry(stmt, start, condition, run)
        none = self.scalar.const(I64, 0)
        for stack in saved:
            memory.store(self.text, self.handle(stack), self.scalar.select(self.scalar.compare("gt", trips, none), trips, none), "1", 1, 1)

    def while_loop(self, stmt: Stmt) -> None:
        """`while`: in addition to the carries there is an iteration counter, which is also the index of the next stack elements."""
        test, body = stmt.blocks
        saved = stmt.results[len(body.results) :]

        def condition(phis: list[Reg]) -> str:
            self.enter(test.params, phis[1:])
            self.statements(test)
            return self.read(test.results[0]).name

        def run(phis: list[Reg]) -> Reg:
            self.poll(phis[0], body)
            self.statements(body)
            for stack, value in zip(saved, body.saving, strict=True):
                self.grow(stack, phis[0])
                memory.store(self.text, self.data_of(stack), self.read(value), phis[0].name, 1, 1)
            return self.scalar.add(phis[0], self.scalar.const(I64, 1))

        trips = self.carry(stmt, self.scalar.const(I64, 0), condition, run)
        for stack in saved:
            memory.store(self.text, self.handle(stack), trips, "1", 1, 1)
            self.load_data(stack)

    def carry(self, stmt: Stmt, first: Reg, condition: Callable[[list[Reg]], str], run: Callable[[list[Reg]], Reg]) -> Reg:
        """Emit a loop that tests at the top. `first` is where a counter starts, `run` returns its next value; returns its last value.

        The counter and the scalar carries are phis. A carried stack uses the memory of its initial value, and so does an array, unless it
        has been given memory of its own.
        """
        text, body = self.text, stmt.blocks[-1]
        inits = stmt.args[len(stmt.args) - len(body.results) :]
        params = body.params[len(body.params) - len(body.results) :]
        slots = [k for k, p in enumerate(params) if in_register(p)]
        others = [k for k, p in enumerate(params) if isinstance(p.type, StackType)]
        for param, init in zip(params, inits, strict=True):
            if not in_register(param) and not isinstance(param.type, StackType):
                self.set_array(param, init)
        initial = [first, *(self.read(inits[k]) for k in slots)]
        before, head, inside, after = text.block, *(text.fresh_label() for _ in range(3))
        text.jump(head)
        text.start(head)
        phis = [Reg(text.fresh(), r.dtype) for r in initial]
        lines = range(len(text.lines), len(text.lines) + len(phis))
        text.lines += [""] * len(phis)
        test = condition(phis)
        text.put(f"br i1 {test}, label %{inside}, label %{after}")
        text.start(inside)
        self.enter(params, phis[1:])
        following = [run(phis), *(self.read(body.results[k]) for k in slots)]
        for k in others:
            self.move_stack(params[k], body.results[k])
        for line, phi, start, next_ in zip(lines, phis, initial, following, strict=True):
            text.lines[line] = f"{phi.name} = phi {LLVM_TYPE[phi.dtype]} [{start.name}, %{before}], [{next_.name}, %{text.block}]"
        text.jump(head)
        text.start(after)
        if self.target.hosted:
            trips = self.scalar.sub(phis[0], first)
            polling.spend(text, self.scalar.mul(trips, self.scalar.const(I64, polling.weight(body, self.target))).name)
        self.enter(stmt.results[: len(params)], phis[1:])
        return phis[0]

    def enter(self, params: Sequence[Operand], phis: Sequence[Reg]) -> None:
        """Bind the scalars among the parameters to the phis; values in memory are identified by their root."""
        for param, phi in zip(filter(in_register, params), phis, strict=True):
            self.values[id(param)] = phi

    def poll(self, trip: Reg, body: Block) -> None:
        """Check for Ctrl-C, once in a number of iterations."""
        if not self.target.hosted:
            return
        text, look, go = self.text, self.text.fresh_label(), self.text.fresh_label()
        if polling.has_loops(body):
            due = polling.spent_enough(text, polling.weight(body, self.target))
        else:
            last = polling.trips_between(body, self.target) - 1
            due = text.define(f"icmp eq i64 {text.define(f'and i64 {trip.name}, {last}')}, {last}")
        text.declares.add(stopping.SELDOM)
        text.put(f"br i1 {due}, label %{look}, label %{go}, !prof !0")
        text.start(look)
        self.leave_if(text.define("call i1 @adjit_interrupted(ptr %error)"), signals.INTERRUPTED)
        text.jump(go)
        text.start(go)

    # ---- stacks

    def root(self, stack: Operand) -> Value:
        return self.plan.windows[id(stack)].root

    def handle(self, stack: Operand) -> str:
        return self.window(stack).pointer

    def data_of(self, stack: Operand) -> str:
        return self.data[id(self.root(stack))]

    def load_data(self, stack: Operand) -> None:
        self.data[id(self.root(stack))] = self.text.define(f"load ptr, ptr {self.handle(stack)}")

    def allocate(self, call: str) -> None:
        """Emit an allocating call; leave the kernel if it reports that there is no memory."""
        self.leave_if(self.text.define(f"xor i1 {self.text.define(call)}, true"), stacks.OUT_OF_MEMORY)

    def move_stack(self, target: Operand, source: Operand) -> None:
        if self.root(target) is not self.root(source):
            self.allocate(stacks.copy_call(self.handle(target), self.handle(source), source.type.element))  # type: ignore[attr-defined]

    def grow(self, stack: Operand, count: Reg) -> None:
        """Make room for one more element, growing the stack if it is full."""
        text, full, there = self.text, self.text.fresh_label(), self.text.fresh_label()
        capacity = memory.load(text, self.handle(stack), I64, "2", 1, 1)
        text.declares.add(stopping.SELDOM)
        text.put(f"br i1 {self.scalar.compare('ge', count, capacity).name}, label %{full}, label %{there}, !prof !0")
        text.start(full)
        wanted = self.scalar.add(self.scalar.add(count, count), self.scalar.const(I64, 16))
        self.allocate(stacks.reserve_call(self.handle(stack), wanted.name, stack.type.element))  # type: ignore[attr-defined]
        text.jump(there)
        text.start(there)
        self.load_data(stack)

    def on_stack(self, stmt: Stmt) -> None:
        stack = stmt.args[0]
        assert isinstance(stack.type, StackType)
        element = stack.type.element
        match stmt.op:
            case StackZeros():
                self.allocate(stacks.zeros_call(self.handle(stmt.result), self.handle(stack), stmt.result.type.element))  # type: ignore[attr-defined]
                self.load_data(stmt.result)
            case StackCopy():
                self.allocate(stacks.copy_call(self.handle(stmt.result), self.handle(stack), element))
                self.load_data(stmt.result)
            case StackLength():
                self.values[id(stmt.result)] = stacks.count(self.text, self.handle(stack))
            case StackAdd():
                self.check(stmt, "ne", stacks.count(self.text, self.handle(stmt.args[1])))
                self.text.put(stacks.add_call(self.handle(stack), self.handle(stmt.args[1]), element))
            case StackRead():
                at = self.element_index(stmt)
                self.values[id(stmt.result)] = memory.load(self.text, self.data_of(stack), element.dtype, at.name, 1, 1)
            case StackAccumulate():
                at = self.element_index(stmt)
                before = memory.load(self.text, self.data_of(stack), element.dtype, at.name, 1, 1)
                memory.store(self.text, self.data_of(stack), self.scalar.add(before, self.read(stmt.args[2])), at.name, 1, 1)

    def element_index(self, stmt: Stmt) -> Reg:
        """The index of the element that a statement reads or adds to."""
        at = self.scalar.convert(self.read(stmt.args[1]), I64)
        self.check(stmt, "uge", at)  # as unsigned, negative indices are huge
        return at

    def check(self, stmt: Stmt, wrong: str, value: Reg) -> None:
        """Fail if the comparison `wrong` of a value with the length of the statement's stack holds, unless the op is known not to fail."""
        if effects(stmt).fails:
            assert isinstance(stmt.op, CheckedStackOp)
            self.error = stmt.op.error
            length = stacks.count(self.text, self.handle(stmt.args[0]))
            self.fail_if(Reg(self.text.define(f"icmp {wrong} i64 {value.name}, {length.name}"), BOOL), stmt.op.message, value)

    # ---- arrays

    def set_array(self, target: Operand, source: Operand) -> None:
        if isinstance(source, Literal):
            self.fill(self.window(target), source.value)
        else:
            self.copy(self.window(target), self.window(source))

    def gather(self, stmt: Stmt) -> None:
        """Read one element of an array. An array of one element is in a register itself; its index is still checked."""
        x, at = stmt.args[0], self.positions(stmt)
        self.values[id(stmt.result)] = self.read(x) if in_register(x) else self.load(self.window(x), *at)

    def scatter(self, stmt: Stmt) -> None:
        x, update, at = *stmt.args[:2], self.positions(stmt)
        value = self.read(update)
        if isinstance(stmt.op, ScatterAdd):
            value = self.scalar.add(self.read(x) if in_register(x) else self.load(self.window(x), *at), value)
        if in_register(x):
            self.values[id(stmt.result)] = value
        else:
            self.store(self.window(x), value, *at)

    def check_index(self, stmt: Stmt) -> None:
        self.positions(stmt)

    def positions(self, stmt: Stmt) -> list[Reg]:
        """The indices of a statement, checked unless they are known to be within bounds."""
        op, types, out = stmt.op, [a.type for a in stmt.args], []
        assert isinstance(op, Indexing)
        self.error = op.error
        sizes = op.indexed(*types).shape
        for axis, index in enumerate(stmt.args[op.first :]):
            at, raw, outside = native_position(self.scalar, self.read(index), index.type.dtype, sizes[axis])
            if effects(stmt).fails:
                self.fail_if(outside, op.message(axis, index.type, *types), raw)
            out.append(at)
        return out
