"""Checks the bounds of an index only once: statements that use it again, for axes of the same sizes, are marked as unable to fail.

A gather in the forward part checks the indices of the scatter that is its adjoint. A function that cannot fail near its end may also update
variables in place. Runs after the passes that move statements.
"""

from __future__ import annotations

from adjit.ir.func import Block, Func, Stmt
from adjit.ir.ops.index import Indexing

from .bounds import Bounds
from .cse import operand_key


def check_once(func: Func) -> Func:
    if not func.block.contains(Indexing):
        return func
    return func.replace(block=_CheckedSearch(Bounds(func)).visit(func.block))


class _CheckedSearch:
    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.known: set[object] = set()  # indices known to be within bounds at the current statement

    def visit(self, block: Block) -> Block:
        outer, stmts = set(self.known), []
        for stmt in block.stmts:
            if stmt.blocks:
                stmt = stmt.replace(blocks=tuple(map(self.visit, stmt.blocks)))
            stmts.append(self._checked(stmt))
        self.known = outer
        return Block(block.params, stmts, block.results, block.saving)

    def _checked(self, stmt: Stmt) -> Stmt:
        op = stmt.op
        if not isinstance(op, Indexing):
            return stmt
        sizes = op.indexed(*(a.type for a in stmt.args)).shape
        keys = {(size, operand_key(index)) for size, index in zip(sizes, stmt.args[op.first :], strict=False)}
        is_safe = keys <= self.known or self.bounds.cannot_fail(stmt)
        self.known |= keys
        return stmt.replace(op=op.unchecked()) if is_safe else stmt
