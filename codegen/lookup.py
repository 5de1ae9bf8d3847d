"""Addresses that are known only while a loop runs: the row of an array, or the element of a stack, that a statement reads where it lies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from adjit.ir.func import Stmt
from adjit.ir.operand import Operand
from adjit.ir.ops.index import out_of_bounds
from adjit.ir.ops.stack import StackArray, StackRead
from adjit.ir.types import BOOL, I64

from . import memory, stacked
from .image import Failure
from .lanes import Reg

if TYPE_CHECKING:
    from .module import Module


def address(module: Module, stmt: Stmt) -> str:
    """Where the result of a `stack_read`, or of a `gather` at scalar indices, lies; leaves when an index is out of bounds."""
    source, *indices = stmt.args
    if isinstance(stmt.op, StackArray):
        return module.text.define(f"load ptr, ptr {module.handle(source)}")
    if isinstance(stmt.op, StackRead):
        return stacked.element_at(module, source, indices[0])
    return _row(module, stmt, source, indices)


def written_row(module: Module, stmt: Stmt) -> str:
    """Where a `scatter_set` at scalar indices writes to."""
    source, _, *indices = stmt.args
    return _row(module, stmt, source, indices)


def _row(module: Module, stmt: Stmt, source: Operand, indices: Sequence[Operand]) -> str:
    window = module.window(source)
    pointer = window.pointer
    for axis, (index, stride) in enumerate(zip(indices, window.strides, strict=False)):
        raw = module.scalar.convert(module.read(index), I64)
        at = _checked(module, stmt, axis, raw)
        pointer = memory.element(module.text, pointer, window.dtype, memory.scaled(module.text, at.name, stride))
    return pointer


def _checked(module: Module, stmt: Stmt, axis: int, raw: Reg) -> Reg:
    """The position along an axis: negative indices count from the end."""
    emit, x = module.scalar, stmt.args[0].type
    size = emit.const(I64, x.shape[axis])
    at = emit.select(emit.compare("lt", raw, emit.const(I64, 0)), emit.add(raw, size), raw)
    outside = Reg(module.text.define(f"icmp uge i64 {at.name}, {size.name}"), BOOL)
    module.fail_if(outside, Failure(stmt.op.error, out_of_bounds(stmt.op.name, x, axis), stmt.location), raw)
    return at
