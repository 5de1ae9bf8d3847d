"""Drops what only differentiation needs: a `custom_gradient` is replaced by the values that it passes through.

The first pass of the pipeline: derivatives have been taken by then.
"""

from __future__ import annotations

from adjit.ir.func import Func, Stmt
from adjit.ir.ops.custom import CustomGradient

from ..rewrite import Renaming


def drop_custom_gradients(func: Func) -> Func:
    if not func.block.contains(CustomGradient):
        return func
    renaming = Renaming()
    return renaming.func(func, _dropped(func.stmts, renaming))


def _dropped(stmts: tuple[Stmt, ...], renaming: Renaming) -> list[Stmt]:
    out: list[Stmt] = []
    for stmt in stmts:
        op = stmt.op
        if isinstance(op, CustomGradient):
            for result, value in zip(stmt.results, stmt.args[op.inputs : op.inputs + op.values], strict=True):
                renaming[result] = value
            continue
        stmt = renaming.stmt(stmt)
        if stmt.blocks:
            stmt = stmt.replace(blocks=tuple(renaming.body(b, _dropped(b.stmts, renaming)) for b in stmt.blocks))
        out.append(stmt)
    return out
