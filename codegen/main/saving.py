"""Stack operations of the main function: values that a loop saves for its backward loop (the routines are in `stacks.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adjit.ir.effects import effects
from adjit.ir.func import Stmt
from adjit.ir.operand import Operand
from adjit.ir.ops.stack import CheckedStackOp, StackAccumulate, StackAdd, StackArray, StackCopy, StackLength, StackRead, StackZeros
from adjit.ir.plan import Place
from adjit.ir.types import BOOL, I64, StackType, row_major

from ..cache.image import Failure
from ..kernels.kernels import add_kernel, copy_kernel
from ..llvm import memory
from ..llvm.lanes import Reg
from ..loops.ir import Access
from ..sizes import native_shape, native_size
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
            check(module, stmt, "ne", stacks.count(module.text, module.handle(stmt.args[1])))
            module.text.put(stacks.add_call(module.handle(stack), module.handle(stmt.args[1]), element))
        case StackRead():
            _copy_elements(module, stmt.result, element_at(module, stmt))
        case StackArray():
            _copy_elements(module, stmt.result, all_elements(module, stmt))
        case StackAccumulate():
            source = module.window(stmt.args[2])
            shape = native_shape(element.shape)
            access = Access("%p0", row_major(shape), element.dtype)
            kernel = add_kernel(access, source._replace(pointer="%p1"), shape, module.context)
            module.invoke(kernel, [element_at(module, stmt), source.pointer])


def _copy_elements(module: Module, value: Operand, pointer: str) -> None:
    """Fill a value from the memory of a stack."""
    target, shape = module.window(value), native_shape(value.type.shape)
    access = Access("%p1", row_major(shape), target.dtype)
    module.invoke(copy_kernel(target._replace(pointer="%p0"), access, shape, module.context), [target.pointer, pointer])


def check(module: Module, stmt: Stmt, wrong: str, value: Reg) -> None:
    """Leave if the comparison `wrong` of a value with the length of the statement's stack holds, unless the op is known not to fail."""
    if effects(stmt).fails:
        assert isinstance(stmt.op, CheckedStackOp)
        length = stacks.count(module.text, module.handle(stmt.args[0]))
        fails = Reg(module.text.define(f"icmp {wrong} i64 {value.name}, {length.name}"), BOOL)
        module.fail_if(fails, Failure(stmt.op.error, stmt.op.message, stmt.location), value)


def all_elements(module: Module, stmt: Stmt) -> str:
    """The address of the array that a `stack_array` gives."""
    assert isinstance(stmt.op, StackArray)
    handle = module.handle(stmt.args[0])
    if effects(stmt).fails:
        length = stacks.count(module.text, handle)
        fails = Reg(module.text.define(f"icmp ne i64 {length.name}, {native_size(stmt.op.count)}"), BOOL)
        module.fail_if(fails, Failure(stmt.op.error, stmt.op.message, stmt.location), length)
    return module.text.define(f"load ptr, ptr {handle}")


def element_at(module: Module, stmt: Stmt) -> str:
    """The address of the element that a statement reads or adds to."""
    stack, index = stmt.args[:2]
    at = module.scalar.convert(module.read(index), I64)
    check(module, stmt, "uge", at)  # as unsigned, negative indices are huge
    data = module.text.define(f"load ptr, ptr {module.handle(stack)}")
    offset = module.scalar.mul(at, module.scalar.const(I64, stacks.element_bytes(stack.type)))
    return module.text.define(f"getelementptr i8, ptr {data}, i64 {offset.name}")


def push(module: Module, stack: Operand) -> str:
    """Push an element; return its address."""
    address = module.text.define(f"call ptr @adjit_push(ptr {module.handle(stack)}, i64 {stacks.element_bytes(stack.type)})")
    module.leave_if(module.text.define(f"icmp eq ptr {address}, null"), str(stacks.OUT_OF_MEMORY))
    return address


def slot(module: Module, value: Operand) -> Place | None:
    """The place of a value that is made directly on the stack that saves it.

    Views of it that are transposed, or parts, are copied to stacks of their own.
    """
    window, place = module.plan.windows.get(id(value)), module.place(value)
    if window is None or place is None or place.kind != "slot":
        return None
    return place if window.is_whole(value) else None
