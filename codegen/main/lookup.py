"""Addresses known only at run time: the row of an array, or the element of a stack, that a statement reads in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from adjit.ir.func import Stmt
from adjit.ir.operand import Operand
from adjit.ir.ops.index import Indexing, native_position
from adjit.ir.ops.stack import StackArray, StackRead

from ..cache.image import Failure
from ..llvm import memory
from ..llvm.lanes import Reg
from ..sizes import native_shape
from . import saving as stacked

if TYPE_CHECKING:
    from .module import Module


def address(module: Module, stmt: Stmt) -> str:
    """The address of the result of a `stack_read`, or of a `gather` at scalar indices; leaves if an index is out of bounds."""
    source, *indices = stmt.args
    if isinstance(stmt.op, StackArray):
        return stacked.all_elements(module, stmt)
    if isinstance(stmt.op, StackRead):
        return stacked.element_at(module, stmt)
    return _row(module, stmt, source, indices)


def written_row(module: Module, stmt: Stmt) -> str:
    """The address that a `scatter_set` at scalar indices writes to."""
    source, _, *indices = stmt.args
    return _row(module, stmt, source, indices)


def _row(module: Module, stmt: Stmt, source: Operand, indices: Sequence[Operand]) -> str:
    pointer, strides = module.window(source).pointer, native_shape(module.plan.windows[id(source)].layout.strides)
    for axis, (index, stride) in enumerate(zip(indices, strides, strict=False)):
        at = _checked(module, stmt, axis, index)
        pointer = memory.element(module.text, pointer, source.type.dtype, memory.scaled(module.text, at.name, stride))
    return pointer


def _checked(module: Module, stmt: Stmt, axis: int, index: Operand) -> Reg:
    """The bounds-checked position along an axis; negative indices count from the end."""
    assert isinstance(stmt.op, Indexing)
    types = [a.type for a in stmt.args]
    size = stmt.op.indexed(*types).shape[axis]
    at, raw, outside = native_position(module.scalar, module.read(index), index.type.dtype, size)
    module.fail_if(outside, Failure(stmt.op.error, stmt.op.message(axis, index.type, *types), stmt.location), raw)
    out: Reg = at
    return out
