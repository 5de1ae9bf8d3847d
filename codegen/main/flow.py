"""Branches and loops of the main function, for regions that do not fit in registers; their bodies call kernels as usual."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from adjit.ir.func import Block, Stmt
from adjit.ir.operand import Operand
from adjit.ir.plan import Place
from adjit.ir.types import I64

from ..interrupts import polling, signals
from ..kernels.kernels import fused_kernel
from ..kernels.rows import rows_kernel
from ..llvm import memory
from ..llvm.lanes import Reg
from ..products import gemm, products
from ..products.packing import StoredFactor
from ..threads import library
from . import saving as stacked
from . import stacks

if TYPE_CHECKING:
    from .module import Module


class Flow:
    """Runs the blocks of a region in the main function."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def entered(self) -> Module:
        """The module, whose main function has branches or loops: these check for interrupts."""
        self.module.uses_runtime = True
        return self.module

    def fused(self, stmt: Stmt) -> None:
        self.module.call(fused_kernel(stmt, self.module.context))

    def rows(self, stmt: Stmt) -> None:
        self.module.call(rows_kernel(stmt, self.module.context))

    def inline(self, stmt: Stmt) -> None:
        (body,) = stmt.blocks
        self.module.block(body)
        self.module.copy_all(stmt.results, body.results)

    def branches(self, stmt: Stmt) -> None:
        module = self.entered()
        text = module.text
        then, otherwise, after = (text.fresh_label() for _ in range(3))
        text.put(f"br i1 {module.read(stmt.args[0]).name}, label %{then}, label %{otherwise}")
        for label, block in zip((then, otherwise), stmt.blocks, strict=True):
            text.start(label)
            module.block(block)
            module.copy_all(stmt.results, block.results)
            text.jump(after)
        text.start(after)

    def for_loop(self, stmt: Stmt) -> None:
        """The counter has its own buffer, from which the kernels of the body read it."""
        module = self.entered()
        (body,) = stmt.blocks
        counter = body.params[0]
        start, stop = (module.scalar.convert(module.read(a), I64) for a in stmt.args[:2])
        module.copy(counter, stmt.args[0])
        for stack in stmt.results[len(body.results) :]:
            trips = module.scalar.sub(stop, start).name
            module.allocate(stacks.reserve_call(module.handle(stack), trips, stack.type.element))  # type: ignore[attr-defined]

        def condition() -> Reg:
            return module.scalar.compare("lt", module.scalar.convert(module.read(counter), I64), stop)

        def step() -> None:
            following = module.scalar.add(module.read(counter), module.scalar.const(counter.type.dtype, 1))
            memory.store(module.text, module.window(counter).pointer, following, "0", 1, 1)

        _loop(module, stmt, stmt.args[2:], condition, step)

    def while_loop(self, stmt: Stmt) -> None:
        module = self.entered()
        test = stmt.blocks[0]

        def condition() -> Reg:
            module.block(test)
            return module.read(test.results[0])

        _loop(module, stmt, stmt.args, condition, lambda: None)


def _loop(module: Module, stmt: Stmt, initial: Sequence[Operand], condition: Callable[[], Reg], step: Callable[[], None]) -> None:
    """Copy the carries into their buffers once, then run the body, which updates them in place, while the condition holds."""
    text, body = module.text, stmt.blocks[-1]
    carries = body.params[len(body.params) - len(body.results) :]
    saved = list(zip(stmt.results[len(carries) :], body.saving, strict=True))
    for stack, _ in saved:
        memory.store(text, module.handle(stack), Reg("0", I64), "1", 1, 1)
    module.copy_all(carries, initial)
    around = module.context.packed, module.context.awake
    module.context.packed = module.context.packed | _pack(module, stmt)
    for inner in body.stmts:
        place = module.place(inner.args[1]) if inner.op.sets_rows else None
        if place is not None and place.kind == "row":
            module.rows[place] = inner
    module.context.awake = module.context.awake or products.is_parallel(body)
    head, inside, after = (text.fresh_label() for _ in range(3))
    text.jump(head)
    text.start(head)
    text.put(f"br i1 {condition().name}, label %{inside}, label %{after}")
    text.start(inside)
    _poll(module, body)
    late = []
    for stack, value in saved:
        place = stacked.slot(module, value)
        if place is not None and place not in module.addresses:
            module.addresses[place] = stacked.push(module, stack)
        elif any(value is p for p in body.params):
            module.copy_to(stacked.push(module, stack), value)
        else:
            late.append((stack, value))
    module.block(body)
    for stack, value in late:
        module.copy_to(stacked.push(module, stack), value)
    module.copy_all(carries, body.results)
    step()
    text.jump(head)
    text.start(after)
    module.context.packed, module.context.awake = around


def _pack(module: Module, loop: Stmt) -> dict[StoredFactor, Place]:
    """Pack the factors that every iteration multiplies by."""
    factors = module.packing.loops[id(loop)]
    for (place, offset, (k, n), strides, dtype), target in factors.items():
        name, run = library.PACK_NAMES[dtype], library.runner(module.context.target.threads)
        module.imports |= {name, run}
        module.declares |= {f"declare void @{name}({gemm.PACK_TYPES})", f"declare void @{run}({library.RUNNER})"}
        matrix = f"ptr {module.pointer(place, offset)}, i64 {strides[0]}, i64 {strides[1]}, ptr {module.pointer(target)}"
        module.text.put(f"call void @{name}(i64 {n}, i64 {k}, {matrix}, i64 {module.context.target.threads}, ptr @{run}, ptr null)")
    return factors


def _poll(module: Module, body: Block) -> None:
    """Check for Ctrl-C whenever enough work has been done."""
    if not module.context.target.hosted:
        return
    text, look, go = module.text, module.text.fresh_label(), module.text.fresh_label()
    text.put(f"br i1 {polling.spent_enough(text, polling.kernel_weight(body, module.context.target))}, label %{look}, label %{go}")
    text.start(look)
    module.leave_if(text.define("call i1 @adjit_interrupted(ptr %error)"), str(signals.INTERRUPTED))
    text.jump(go)
    text.start(go)
