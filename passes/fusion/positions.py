"""Positions of extrema as reductions: `argmax` is the smallest position of an element that equals the maximum, or is NaN.

Both reductions and the comparison are vectorised elementwise work on all threads, and fuse with their neighbours: in `fuse_rows` a row is
read from memory once.
"""

from __future__ import annotations

from adjit.ir import ops
from adjit.ir.builder import Builder
from adjit.ir.func import Block, Func, Stmt
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.base import perform
from adjit.ir.ops.create import Iota
from adjit.ir.ops.reduce import ArgExtremum, ArgMax
from adjit.ir.sizes import is_symbolic
from adjit.ir.types import I32, I64

from ..rewrite import Renaming

SHORT = 2**31 - 1  # positions that a narrow integer can hold


def reduce_positions(func: Func) -> Func:
    if not func.block.contains(ArgExtremum):
        return func
    renaming = Renaming()
    return renaming.func(func, _rewritten(func.block, renaming))


def _rewritten(block: Block, renaming: Renaming) -> list[Stmt]:
    out: list[Stmt] = []
    for stmt in block.stmts:
        stmt = renaming.stmt(stmt)
        if stmt.blocks:
            stmt = stmt.replace(blocks=tuple(renaming.body(b, _rewritten(b, renaming)) for b in stmt.blocks))
        if not isinstance(stmt.op, ArgExtremum) or isinstance(stmt.args[0], Literal):
            out.append(stmt)
            continue
        with Builder([]) as builder, builder.at(stmt.location, stmt.phase, stmt.origin):
            renaming[stmt.result] = _position(stmt.op, stmt.args[0])
        out += builder.stmts
    return out


def _position(op: ArgExtremum, x: Operand) -> Operand:
    reduce = ops.max if isinstance(op, ArgMax) else ops.min
    n = x.type.shape[op.axis]
    found = ops.equal(x, reduce(x, op.axis, keepdims=True))
    if x.type.is_float:
        found = ops.bitwise_or(found, ops.not_equal(x, x))  # the extremum of a NaN is NaN, which compares unequal to everything
    counted = perform(Iota(I32 if not is_symbolic(n) and n <= SHORT else I64, x.type.shape, op.axis))
    nowhere = ops.size_value(n) if is_symbolic(n) else n
    return ops.cast(ops.min(ops.where(found, counted, nowhere), op.axis), I64)
