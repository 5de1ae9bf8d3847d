"""Shared by passes that rewrite whole blocks: the walk over blocks, finding connected statements, and the cleanup afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from adjit.ir.func import Block, Func, Stmt
from adjit.ir.operand import Operand

from .cse import eliminate_common_subexpressions
from .dce import eliminate_dead_code
from .simplify import simplify

Rewriting = Callable[[list[Stmt], set[int]], list[Stmt] | None]


def drop_connected(members: dict[int, Stmt], first: Iterable[int]) -> None:
    """Remove from `members` (keyed by the ids of their results) all that are connected with `first` by operands or readers."""
    neighbours: dict[int, list[int]] = {key: [id(a) for a in s.args if id(a) in members] for key, s in members.items()}
    for key, near in list(neighbours.items()):
        for other in near:
            neighbours[other].append(key)
    pending = list(first)
    while pending:
        key = pending.pop()
        if members.pop(key, None) is not None:
            pending += neighbours[key]


def cleaned(func: Func) -> Func:
    return eliminate_dead_code(eliminate_common_subexpressions(simplify(func)))


def rewrite_blocks(func: Func, rewrite: Rewriting) -> Func:
    """Apply `rewrite(stmts, outputs)` to every block, inner ones first, until it returns None; `outputs` are the ids of its outputs."""
    found = False

    def walked(block: Block, outputs: Iterable[Operand]) -> Block:
        nonlocal found
        stmts = [s.replace(blocks=tuple(walked(b, (*b.results, *b.saving)) for b in s.blocks)) if s.blocks else s for s in block.stmts]
        final = {id(x) for x in outputs}
        while (new := rewrite(stmts, final)) is not None:
            stmts, found = new, True
        return Block(block.params, stmts, block.results, block.saving)

    block = walked(func.block, func.outputs())
    return cleaned(func.replace(block=block)) if found else func
