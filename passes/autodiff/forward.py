"""Forward mode: computes tangents of values from tangents of the sources.

`push_forward` is the counterpart of `reverse.backpropagate`, for eager statements and IR alike. The pass `jvp_func` is built on it.
Branches and loops are handled in `forward_regions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from adjit.ir.active import current_builder
from adjit.ir.builder import Builder
from adjit.ir.func import Func, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.custom import CustomGradient

from .forward_regions import push_region


def push_forward(stmts: Sequence[Stmt], sources: Sequence[Operand], tangents: Sequence[Operand]) -> dict[int, Operand]:
    """The tangent of every value that depends differentiably on a source, by the value's id. The statements have already been emitted."""
    known = {id(s): t for s, t in zip(sources, tangents, strict=True) if s.type.is_inexact}
    for stmt in stmts:
        with tangent_of(stmt):
            if stmt.blocks:
                push_region(stmt, known, append_with_tangents, in_place=False)
            else:
                push(stmt, known)
    return known


def append_with_tangents(stmts: Sequence[Stmt], known: dict[int, Operand]) -> None:
    """Append statements to the active builder, each followed by the statements that compute its tangents."""
    builder = current_builder()
    assert builder is not None
    for stmt in stmts:
        with tangent_of(stmt):
            if not stmt.blocks:
                builder.stmts.append(stmt)
                push(stmt, known)
            elif not push_region(stmt, known, append_with_tangents, in_place=True):
                builder.stmts.append(stmt)


def push(stmt: Stmt, known: dict[int, Operand]) -> None:
    given = tuple(known.get(id(a)) for a in stmt.args)
    if all(g is None for g in given):
        return
    op = stmt.op
    if isinstance(op, CustomGradient):
        from .transpose import with_push  # noqa: PLC0415 - with the passes that it needs, too much for `import adjit`

        op = with_push(op, stmt.args)
    for result, d in zip(stmt.results, op.pushforward(stmt.results, stmt.args, given), strict=True):
        if d is not None and result.type.is_inexact:
            known[id(result)] = d
            if isinstance(d, Value) and d.name is None and isinstance(result, Value) and result.name:
                d.name = f"{result.name}.dot"


def tangent_of(stmt: Stmt) -> AbstractContextManager[None]:
    """Emitted statements keep the location of the statement whose tangent they compute."""
    builder = current_builder()
    return nullcontext() if builder is None else builder.at(stmt.location, stmt.phase, stmt.origin)


def jvp_func(func: Func) -> Func:
    """`@f.jvp`: takes the parameters, then a tangent per floating parameter; returns the results, then a tangent per floating result."""
    sources = [p for p in func.params if p.type.is_inexact]
    tangents = [Value(p.type, f"{p.name}.dot" if p.name else None) for p in sources]
    known: dict[int, Operand] = {id(s): t for s, t in zip(sources, tangents, strict=True)}
    with Builder([*func.params, *tangents]) as builder:
        append_with_tangents(func.stmts, known)
        dots = [known.get(id(r), Literal(0.0, r.type)) for r in func.results if r.type.is_inexact]
        block = builder.finish([*func.results, *dots], func.block.saving)
    return func.replace(name=f"{func.name}.jvp", block=block, plan=None)
