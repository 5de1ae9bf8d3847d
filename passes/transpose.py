"""Transposition: from a block that pushes tangents forward to the one that pulls cotangents back."""

from __future__ import annotations

from adjit.ir.builder import Builder
from adjit.ir.errors import GradientError
from adjit.ir.func import Block, Func, Value

from .batch import inline
from .dce import eliminate_dead_code
from .reverse import backpropagate


def transpose(push: Block, read: int, what: str) -> tuple[Block, list[int]]:
    """A block of the first `read` parameters of `push` and cotangents of its results; and which of the other parameters it gives those of.

    `push` must be linear in these others: their cotangents then do not depend on their values, and what computed with those is dead.
    """
    given, tangents, cotangents = ([Value(x.type) for x in xs] for xs in (push.params[:read], push.params[read:], push.results))
    with Builder([*given, *tangents, *cotangents]) as builder:
        results = inline(push, [*given, *tangents])
        found = backpropagate(tuple(builder.stmts), results, cotangents, tangents)
        whole = builder.finish([d for d in found if d is not None])
    block = eliminate_dead_code(Func(what, whole)).block
    values = set(map(id, tangents))
    if any(id(x) in values for x in block.uses()):
        raise GradientError(f"{what}: its derivative is not linear in the tangents, so that reverse mode cannot follow it")
    pull = Block([*given, *cotangents], block.stmts, block.results)
    return pull, [i for i, d in enumerate(found) if d is not None]
