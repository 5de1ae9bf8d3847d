"""Starts large all-reduces where their operands are computed, and waits for them where they stood: the sum of one gradient travels while
the next is computed.

All ranks compile the same statements, so the reductions start in the same order on all. None is moved across a statement that may fail or
has an effect: a call that ends early should leave nothing under way.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from adjit.ir.effects import effects
from adjit.ir.func import Block, Func, Stmt, Value

LEAST = 1 << 16  # bytes: below, starting and waiting cost more than they hide
MOST = 64  # reductions under way


def overlap_reductions(func: Func) -> Func:
    if "adjit.ir.ops.collective" not in sys.modules:
        return func
    moved = _starts(func.stmts)
    if not moved:
        return func
    from adjit.ir.ops.collective import FinishAllReduce, StartAllReduce  # noqa: PLC0415 - few programs have several ranks

    after: dict[int, list[Stmt]] = {}
    replaced: dict[int, Stmt] = {}
    for slot, (at, start) in enumerate(moved.items()):
        stmt = func.stmts[at]
        (x,), result = stmt.args, stmt.result
        under_way = Value(result.type, f"{x.name}.sum" if isinstance(x, Value) and x.name else None)
        after.setdefault(start, []).append(stmt.replace(op=StartAllReduce(slot), results=(under_way,)))
        replaced[at] = stmt.replace(op=FinishAllReduce(slot), args=(under_way,))
    out = list(after.get(-1, ()))
    for i, stmt in enumerate(func.stmts):
        out += [replaced.get(i, stmt), *after.get(i, ())]
    block = func.block
    return func.replace(block=Block(block.params, out, block.results, block.saving))


def _starts(stmts: Sequence[Stmt]) -> dict[int, int]:
    """For each reduction that is moved, by its position: the position of the statement that it starts after."""
    defined: dict[int, int] = {}
    barrier, work = -1, [0]
    out: dict[int, int] = {}
    for i, stmt in enumerate(stmts):
        if stmt.op.name == "all_reduce":
            (x,) = stmt.args
            start = max(defined.get(id(x), -1), barrier)
            if x.type.nbytes >= LEAST and work[i] > work[start + 1] and len(out) < MOST:
                out[i] = start
        elif not effects(stmt).is_pure:
            barrier = i
        defined.update((id(result), i) for result in stmt.results)
        work.append(work[-1] + (not stmt.op.is_view and stmt.op.name != "all_reduce"))
    return out
