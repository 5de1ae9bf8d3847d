"""Drops ops that only affect derivatives (`custom_gradient`, `detach`, `assigned`): each result equals one of the operands.

The first pass of the pipeline: derivatives have been taken by then. Other passes and code generation see no transparent op.
"""

from __future__ import annotations

from adjit.ir.func import Func, Stmt, Value

from ..rewrite import Renaming


def drop_transparent(func: Func) -> Func:
    if not any(op.is_transparent for op in func.block.op_classes()):
        return func
    renaming = Renaming()
    return renaming.func(func, _dropped(func.stmts, renaming))


def _dropped(stmts: tuple[Stmt, ...], renaming: Renaming) -> list[Stmt]:
    out: list[Stmt] = []
    for stmt in stmts:
        stmt = renaming.stmt(stmt)
        if stmt.op.is_transparent:
            for result, value in zip(stmt.results, stmt.op.passed(stmt.args), strict=True):
                renaming[result] = value
                if isinstance(value, Value) and isinstance(result, Value) and value.name is None:
                    value.name = result.name  # the name that users know
            continue
        if stmt.blocks:
            stmt = stmt.replace(blocks=tuple(renaming.body(b, _dropped(b.stmts, renaming)) for b in stmt.blocks))
        out.append(stmt)
    return out
