"""Constant folding: evaluates what depends only on literals and small constants.

Literals of any size fold through `op.splat`, if one value fills the result. Constants, and literals combined with them, fold by evaluation
if operands and result are small: folding never makes a function larger than it was written. A branch whose condition is known replaces its
`if`.
"""

from __future__ import annotations

import numpy as np

from adjit.ir.builder import INLINE_CONSTANT
from adjit.ir.errors import AdjitError
from adjit.ir.func import Block, Func, Stmt
from adjit.ir.operand import Literal, Operand, evaluate, fold_literals
from adjit.ir.ops.base import Array
from adjit.ir.ops.control import If
from adjit.ir.ops.create import Constant
from adjit.ir.sizes import is_symbolic
from adjit.ir.types import TensorType, as_dtype

from ..rewrite import Renaming, is_pure

MAX_RESULT = INLINE_CONSTANT  # elements of a folded constant: the limit below which the builder writes constants inline
MAX_OPERAND = 1024  # elements read to fold one statement: bounds compile time


def fold(func: Func) -> Func:
    folding = _Folding()
    return folding.renaming.func(func, folding.visit(func.block))


class _Folding:
    def __init__(self) -> None:
        self.renaming = Renaming()
        self.constants: dict[int, Array] = {}

    def visit(self, block: Block, is_fused: bool = False) -> list[Stmt]:
        """The block's statements, folded. Inside `fuse` only to literals: a loop nest cannot hold constants."""
        out: list[Stmt] = []
        for stmt in block.stmts:
            stmt = self.renaming.stmt(stmt)
            if stmt.blocks:
                self._region(stmt, out)
                continue
            known = self._value(stmt) if len(stmt.results) == 1 and is_pure(stmt) else None
            if isinstance(known, Literal):
                self.renaming[stmt.result] = known
            elif known is None or is_fused:
                out.append(stmt)
            else:
                self.constants[id(stmt.result)] = known
                out.append(stmt if stmt.op.is_constant else stmt.replace(op=Constant.of(known), args=()))
        return out

    def _region(self, stmt: Stmt, out: list[Stmt]) -> None:
        if isinstance(stmt.op, If) and isinstance(stmt.args[0], Literal):
            taken = stmt.blocks[0 if stmt.args[0].value else 1]
            out.extend(self.visit(taken))
            for result, value in zip(stmt.results, taken.results):
                self.renaming[result] = self.renaming[value]
            return
        is_fused = stmt.op.is_nest
        out.append(stmt.replace(blocks=tuple(self.renaming.body(b, self.visit(b, is_fused)) for b in stmt.blocks)))

    def _value(self, stmt: Stmt) -> Literal | Array | None:
        """The statement's value: a literal, a small array, or None if it is unknown (or not worth computing)."""
        if stmt.op.is_constant:
            return uniform(stmt.op.evaluate())
        if not stmt.args or not all(isinstance(a, Literal) or id(a) in self.constants for a in stmt.args):
            return None
        literal = fold_literals(stmt.op, stmt.args)
        if literal is not None:
            return literal
        sizes = [x.type.size for x in (stmt.result, *stmt.args)]
        if any(map(is_symbolic, sizes)) or sizes[0] > MAX_RESULT or sum(sizes[1:]) > MAX_OPERAND:
            return None
        try:
            (array,) = evaluate(stmt.op, [self._array(a) for a in stmt.args], [a.type for a in stmt.args])
        except AdjitError:
            return None  # it fails at run time, and only if it runs
        return uniform(array)

    def _array(self, operand: Operand) -> Array:
        return operand.array() if isinstance(operand, Literal) else self.constants[id(operand)]


def uniform(array: Array) -> Literal | Array:
    """A literal for an array filled with one value (bitwise), otherwise the array."""
    if array.size == 0:
        return array
    bits = np.frombuffer(array.tobytes(), np.uint8).reshape(array.size, -1)
    if (bits != bits[0]).any():
        return array
    return Literal(array.flat[0], TensorType(as_dtype(array.dtype), array.shape))
