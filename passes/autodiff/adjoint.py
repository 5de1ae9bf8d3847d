"""Reverse mode as a pass: a function that returns its results and the gradient of the first."""

from __future__ import annotations

from collections.abc import Sequence

from adjit.ir.builder import Builder
from adjit.ir.errors import GradientError
from adjit.ir.func import Func
from adjit.ir.operand import Literal

from .reverse import backpropagate


def value_and_grad_func(func: Func, wrt: Sequence[int] | None = None) -> Func:
    """`@f.grad`: the results, then the gradient of the first (of the sum of its elements) with respect to each parameter in `wrt`.

    `wrt` lists positions; the default is all floating-point parameters. A parameter that the result does not depend on has gradient zero.
    """
    positions = [i for i, p in enumerate(func.params) if p.type.is_inexact] if wrt is None else list(wrt)
    for i in positions:
        if not -len(func.params) <= i < len(func.params):
            raise GradientError(f"@{func.name} has {len(func.params)} parameters: there is no parameter {i} to differentiate by")
        if not func.params[i].type.is_inexact:
            raise GradientError(f"@{func.name}: parameter {i} is {func.params[i].type}; only floats have gradients")
    if not func.results or not func.results[0].type.is_inexact:
        kind = f"is {func.results[0].type}" if func.results else "is missing"
        raise GradientError(f"@{func.name}: its first result {kind}; only floats have gradients")
    target, sources = func.results[0], [func.params[i] for i in positions]
    with Builder(func.params) as builder:
        builder.stmts.extend(func.stmts)
        found = backpropagate(func.stmts, [target], [Literal(1.0, target.type)], sources)
        gradients = [Literal(0.0, s.type) if g is None else g for s, g in zip(sources, found, strict=True)]
        block = builder.finish([*func.results, *gradients], func.block.saving)
    return func.replace(name=f"{func.name}.grad", block=block, plan=None)
