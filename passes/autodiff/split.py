"""Splits a traced function with both phases into a forward Func, and a backward Func that is given what the first saves.

A statement is backward if its phase is, or if it reads the result of a backward statement. Results and updates go with their values.
Used to read the IR, or to run the two parts at different times; the compiler optimises both together.
"""

from __future__ import annotations

from adjit.ir.effects import effects
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.operand import Operand

from ..rewrite import operands_read


def split(func: Func) -> tuple[Func, Func | None]:
    """Return `@f.fwd` and `@f.bwd`; the second is None for a function without backward statements."""
    forward, backward, late = _parted(func)
    if not backward:
        return func.replace(name=f"{func.name}.fwd", plan=None), None
    reads = {id(x): x for stmt in backward for x in operands_read(stmt) if isinstance(x, Value)}
    # An update overwrites its parameter when its function ends: if the backward part still reads the parameter, the update moves there.
    waiting = [(param, new) for param, new in func.updates if id(new) in late or id(param) in reads]
    early = [(param, new) for param, new in func.updates if id(new) not in late and id(param) not in reads]
    results = [r for r in func.results if id(r) in late]
    for operand in (*(p for p, _ in waiting), *(new for _, new in waiting)):
        if isinstance(operand, Value):
            reads.setdefault(id(operand), operand)
    given = [x for x in reads.values() if id(x) not in late]
    params = {id(p) for p in func.params}
    saved: list[Operand] = [x for x in given if id(x) not in params]
    fwd = Block(func.params, forward, [r for r in func.results if id(r) not in late], [*func.block.saving, *saved])
    order = {id(p): i for i, p in enumerate(func.params)}
    given.sort(key=lambda x: order.get(id(x), len(order)))  # parameters first, in their own order
    bwd = Block(given, backward, results)
    return (
        func.replace(name=f"{func.name}.fwd", block=fwd, updates=tuple(early), plan=None),
        func.replace(name=f"{func.name}.bwd", block=bwd, given=tuple(given), updates=tuple(waiting), plan=None),
    )


def _parted(func: Func) -> tuple[list[Stmt], list[Stmt], set[int]]:
    """Forward statements, backward statements, and the ids of the values that the latter compute."""
    forward: list[Stmt] = []
    backward: list[Stmt] = []
    late: set[int] = set()
    late_effect = False  # effects keep their order: all that follow a backward one are backward
    for stmt in func.stmts:
        has_effect = effects(stmt).ordered
        is_late = stmt.phase == "backward" or (has_effect and late_effect) or any(id(x) in late for x in operands_read(stmt))
        if is_late:
            backward.append(stmt)
            late.update(id(r) for r in stmt.results)
            late_effect |= has_effect
        else:
            forward.append(stmt)
    return forward, backward, late
