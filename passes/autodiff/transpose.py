"""Transposition: converts a block that pushes tangents forward into one that pulls cotangents back, and vice versa."""

from __future__ import annotations

from collections.abc import Sequence

from adjit.ir.builder import Builder
from adjit.ir.errors import GradientError
from adjit.ir.func import Block, Func, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.custom import NO_FORWARD, NO_REVERSE, CustomGradient

from ..batch import inline
from ..simplify.dce import eliminate_repeated_checks
from .reverse import backpropagate


def transpose(push: Block, read: int, what: str, refusal: str = NO_REVERSE) -> tuple[Block, list[int]]:
    """A block of the first `read` parameters of `push` and its results' cotangents; and which other parameters it returns cotangents for.

    `push` must be linear in those other parameters: their cotangents then do not depend on their values, and code that used them is dead.
    """
    given, tangents, cotangents = ([Value(x.type) for x in xs] for xs in (push.params[:read], push.params[read:], push.results))
    with Builder([*given, *tangents, *cotangents]) as builder:
        results = inline(push, [*given, *tangents])
        found = backpropagate(tuple(builder.stmts), results, cotangents, tangents)
        whole = builder.finish([d for d in found if d is not None])
    block = eliminate_repeated_checks(Func(what, whole)).block  # a solve with the tangents could fail, and would keep them alive
    values = set(map(id, tangents))
    if any(id(x) in values for x in block.uses()):
        raise GradientError(f"{what}: {refusal}")
    pull = Block([*given, *cotangents], block.stmts, block.results)
    return pull, [i for i, d in enumerate(found) if d is not None]


def with_push(op: CustomGradient, args: Sequence[Operand]) -> CustomGradient:
    """The op with a forward derivative: the user's, or the transpose of the gradient."""
    if op.push is not None:
        return op
    inputs, values = args[: op.inputs], args[op.inputs : op.inputs + op.values]
    count = len(args) - op.inputs - op.values
    block, reached = transpose(op.block, count, op.function, NO_FORWARD)
    read, dots = block.params[:count], dict(zip(op.pulled, block.params[count:], strict=True))
    found = dict(zip(reached, block.results, strict=True))
    floats = [v.type for v in values if v.type.is_inexact]
    params = [*read, *(dots[i] if i in dots else Value(x.type) for i, x in enumerate(inputs))]
    push = Block(params, block.stmts, [found.get(i, Literal(0.0, type)) for i, type in enumerate(floats)])
    return CustomGradient.of(op.function, op.inputs, op.values, op.pulled, op.block, push)
