"""Loop-invariant code motion: computes statements that depend on nothing in the loop once, before it.

Moves pure statements whose operands all come from outside, out of as many loops as possible. Statements that may fail or have an effect
stay: the loop may never reach them. Stacks stay: the loop modifies their memory. Statements without operands stay: they cost nothing there.
Nothing is moved out of branches inside loops: it may never be needed.
"""

from __future__ import annotations

from adjit.ir.func import Block, Func, Stmt

from ..rewrite import is_pure


def hoist_invariants(func: Func) -> Func:
    return func.replace(block=_hoisted(func.block)) if any(stmt.blocks for stmt in func.stmts) else func


def _hoisted(block: Block) -> Block:
    out: list[Stmt] = []
    for stmt in block.stmts:
        if stmt.blocks:
            stmt = stmt.replace(blocks=tuple(map(_hoisted, stmt.blocks)))
        if stmt.op.is_loop:
            stmt, before = _without_invariants(stmt)
            out.extend(before)
        out.append(stmt)
    return Block(block.params, out, block.results, block.saving)


def _without_invariants(loop: Stmt) -> tuple[Stmt, list[Stmt]]:
    """The loop, and the statements hoisted before it. Its blocks have been processed: statements hoisted from inner loops are in them."""
    inside: set[int] = set()  # values that the loop computes; more deeply nested ones are not visible to the statements in question
    before: list[Stmt] = []
    blocks: list[Block] = []
    for block in loop.blocks:
        inside.update(id(p) for p in block.params)
        stay: list[Stmt] = []
        for stmt in block.stmts:
            if _may_move(stmt) and not any(id(a) in inside for a in stmt.args):
                before.append(stmt)
            else:
                stay.append(stmt)
                inside.update(id(r) for r in stmt.results)
        blocks.append(Block(block.params, stay, block.results, block.saving))
    return (loop.replace(blocks=tuple(blocks)), before) if before else (loop, before)


def _may_move(stmt: Stmt) -> bool:
    return is_pure(stmt) and not stmt.blocks and not stmt.op.takes_stacks and (bool(stmt.args) or stmt.op.is_constant)
