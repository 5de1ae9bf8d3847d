"""Forward mode: tangents of values, from those of the sources.

`push_forward` is the twin of `reverse.backpropagate`, for eager statements and IR alike. `jvp_func` is the pass that is built on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from adjit.ir.builder import Builder, current_builder
from adjit.ir.func import Func, Stmt, Value
from adjit.ir.operand import Literal, Operand


def push_forward(stmts: Sequence[Stmt], sources: Sequence[Operand], tangents: Sequence[Operand]) -> dict[int, Operand]:
    """The tangent of every value that depends on a source differentiably, by the value's id."""
    known = {id(s): t for s, t in zip(sources, tangents, strict=True) if s.type.is_float}
    for stmt in stmts:
        given = tuple(known.get(id(a)) for a in stmt.args)
        if all(g is None for g in given):
            continue
        with tangent_of(stmt):
            for result, d in zip(stmt.results, stmt.op.pushforward(stmt.results, stmt.args, given), strict=True):
                if d is not None and result.type.is_float:
                    known[id(result)] = d
                    name_tangent(d, result)
    return known


def name_tangent(d: Operand, value: Operand) -> None:
    if isinstance(d, Value) and d.name is None and isinstance(value, Value) and value.name:
        d.name = f"{value.name}.dot"


def tangent_of(stmt: Stmt) -> AbstractContextManager[None]:
    """Emitted statements keep the location of the statement whose tangent they compute."""
    builder = current_builder()
    return nullcontext() if builder is None else builder.at(stmt.location, stmt.phase, stmt.origin)


def jvp_func(func: Func) -> Func:
    """`@f.jvp`: takes the parameters, then a tangent for each floating one; gives the results, then a tangent for each floating one."""
    sources = [p for p in func.params if p.type.is_float]
    tangents = [Value(p.type, f"{p.name}.dot" if p.name else None) for p in sources]
    with Builder([*func.params, *tangents]) as builder:
        builder.stmts.extend(func.stmts)
        known = push_forward(func.stmts, sources, tangents)
        dots = [known.get(id(r), Literal(0.0, r.type)) for r in func.results if r.type.is_float]
        block = builder.finish([*func.results, *dots], func.block.saving)
    return func.replace(name=f"{func.name}.jvp", block=block, plan=None)
