"""Stack operations of the main function: values that a loop saves for its backward loop (the routines are in `stacks.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adjit.ir.func import Stmt
from adjit.ir.operand import Operand
from adjit.ir.ops.stack import StackAccumulate, StackAdd, StackArray, StackCopy, StackLength, StackRead, StackZeros
from adjit.ir.plan import Place
from adjit.ir.types import I64, StackType, row_major

from ..kernels.kernels import add_kernel, copy_kernel
from ..llvm import memory
from ..llvm.memory import Access
from . import stacks

if TYPE_CHECKING:
    from .module import Module


def on_stack(module: Module, stmt: Stmt) -> None:
    stack = stmt.args[0]
    assert isinstance(stack.type, StackType)
    element = stack.type.element
    match stmt.op:
        case StackZeros():
            module.allocate(stacks.zeros_call(module.handle(stmt.result), module.handle(stack), stmt.result.type.element))  # type: ignore[attr-defined]
        case StackLength():
            memory.store(module.text, module.window(stmt.result).pointer, stacks.count(module.text, module.handle(stack)), "0", 1, 1)
        case StackCopy():
            module.allocate(stacks.copy_call(module.handle(stmt.result), module.handle(stack), element))
        case StackAdd():
            module.text.put(stacks.add_call(module.handle(stack), module.handle(stmt.args[1]), element))
        case StackRead():
            _copy_elements(module, stmt.result, element_at(module, stack, stmt.args[1]))
        case StackArray():
            _copy_elements(module, stmt.result, module.text.define(f"load ptr, ptr {module.handle(stack)}"))
        case StackAccumulate():
            source = module.window(stmt.args[2])
            access = Access("%p0", row_major(element.shape), element.dtype)
            kernel = add_kernel(access, source._replace(pointer="%p1"), element.shape, module.context)
            module.invoke(kernel, [element_at(module, stack, stmt.args[1]), source.pointer])


def _copy_elements(module: Module, value: Operand, pointer: str) -> None:
    """Fill a value from the memory of a stack."""
    target, shape = module.window(value), value.type.shape
    access = Access("%p1", row_major(shape), target.dtype)
    module.invoke(copy_kernel(target._replace(pointer="%p0"), access, shape, module.context), [target.pointer, pointer])


def element_at(module: Module, stack: Operand, index: Operand) -> str:
    """The address of an element."""
    data = module.text.define(f"load ptr, ptr {module.handle(stack)}")
    size = module.scalar.const(I64, stacks.element_bytes(stack.type))
    offset = module.scalar.mul(module.scalar.convert(module.read(index), I64), size)
    return module.text.define(f"getelementptr i8, ptr {data}, i64 {offset.name}")


def push(module: Module, stack: Operand) -> str:
    """Push an element; return its address."""
    address = module.text.define(f"call ptr @adjit_push(ptr {module.handle(stack)}, i64 {stacks.element_bytes(stack.type)})")
    module.leave_if(module.text.define(f"icmp eq ptr {address}, null"), str(stacks.OUT_OF_MEMORY))
    return address


def slot(module: Module, value: Operand) -> Place | None:
    """The place of a value that is made directly on the stack that saves it."""
    place = module.place(value)
    return place if place is not None and place.kind == "slot" else None
