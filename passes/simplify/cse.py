"""Common subexpression elimination: a statement that repeats an earlier one is replaced by it.

Two statements are equal if their ops, attributes and operands are; literals are compared bitwise, and operands of commutative ops in either
order. Values computed in the enclosing blocks are known inside a region, but not vice versa. Effects stay; a statement that may fail is
replaced by an equal one that would have failed before it.
"""

from __future__ import annotations

from collections.abc import Hashable

from adjit.ir.effects import effects
from adjit.ir.func import Block, Func, Stmt
from adjit.ir.operand import Literal, Operand

from ..rewrite import COMMUTATIVE, Renaming


def eliminate_common_subexpressions(func: Func) -> Func:
    """Return the function itself if nothing is computed twice."""
    search = _Search()
    stmts = search.visit(func.block)
    return search.renaming.func(func, stmts) if search.renaming.table else func


class _Search:
    def __init__(self) -> None:
        self.renaming = Renaming()
        self.known: dict[Hashable, tuple[list[Stmt], int]] = {}  # expression -> its statement: the list that holds it, and the index

    def visit(self, block: Block) -> list[Stmt]:
        out: list[Stmt] = []
        learnt: list[Hashable] = []
        for stmt in block.stmts:
            stmt = self.renaming.stmt(stmt)
            if stmt.blocks:
                stmt = stmt.replace(blocks=tuple(map(self._nested, stmt.blocks)))
            if stmt.blocks or effects(stmt).ordered:
                out.append(stmt)
                continue
            key = self._key(stmt)
            if key not in self.known:
                self.known[key] = out, len(out)
                learnt.append(key)
                out.append(stmt)
                continue
            there, at = self.known[key]
            twin = there[at]
            for old, new in zip(stmt.results, twin.results):
                self.renaming[old] = new
            if stmt.phase == "forward" and twin.phase == "backward":  # a value that the forward part needs is forward
                there[at] = twin.replace(phase="forward", origin=None)
        for key in learnt:
            del self.known[key]
        return out

    def _nested(self, block: Block) -> Block:
        return self.renaming.body(block, self.visit(block))

    def _key(self, stmt: Stmt) -> Hashable:
        args = [operand_key(a) for a in stmt.args]
        if stmt.op.name in COMMUTATIVE:
            args.sort(key=hash)  # any order will do, as long as it is the same for both
        return stmt.op.key, *args


def operand_key(operand: Operand) -> Hashable:
    return (operand.type, operand.value.tobytes()) if isinstance(operand, Literal) else id(operand)
