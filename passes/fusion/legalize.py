"""Materialises operands that native code reads from memory: a literal operand of a non-elementwise op becomes a separate `fill`.

Literals stay where they are supported: elementwise ops and pads take them as immediates, loops as bounds and initial values, and a returned
literal is written directly into the result. Runs before fusion, so that the fill of a reduction joins its loop nest and costs no memory.
"""

from __future__ import annotations

from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.create import Fill
from adjit.ir.ops.fused import is_border

from ..rewrite import like


def legalize(func: Func) -> Func:
    return func.replace(block=_legalized(func.block))


def _legalized(block: Block) -> Block:
    stmts: list[Stmt] = []
    fills: dict[tuple[object, bytes], Value] = {}

    def filled(operand: Operand, reader: Stmt) -> Operand:
        if not isinstance(operand, Literal):
            return operand
        key = (operand.type, operand.value.tobytes())
        if key not in fills:
            fills[key] = Value(operand.type)
            op = Fill(operand.value.item(), operand.type.dtype, operand.type.shape)
            stmts.append(like(reader, op, (), result=fills[key]))
        return fills[key]

    for stmt in block.stmts:
        if stmt.blocks:
            stmt = stmt.replace(blocks=tuple(map(_legalized, stmt.blocks)))
        if not stmt.op.is_elementwise and not stmt.blocks and not is_border(stmt) and any(isinstance(a, Literal) for a in stmt.args):
            stmt = stmt.replace(args=tuple(filled(a, stmt) for a in stmt.args))
        stmts.append(stmt)
    return Block(block.params, stmts, block.results, block.saving)
