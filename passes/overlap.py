"""Splits large all-reduces: each starts where its operand is computed, and is waited for where it was written in the program. So one
gradient is summed while the next is computed.

If a sum does not fit into the cache and only one `fuse` region reads it, such as the update of a variable, this region computes the sum
part by part (`sum_deferred`). Ranks on one machine then sum through shared memory, and use each part while it is in the cache, without
storing it. If all ranks run on one machine with one thread each, and the operand is a product, such as the gradient of a weight, the region
computes the product too (`matmul_all_reduce`): other ranks get its blocks from the cache, and neither product nor sum is stored.

All ranks compile the same statements, so the reductions start in the same order on all of them. None is moved across a statement that may
fail or has an effect: a call that ends early should leave none in progress.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from adjit.ir.effects import effects
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.operand import Operand
from adjit.ir.target import IN_ORDER, SHARED, USUAL, Target

from .fusion.hosts import Uses, joined
from .rewrite import operands_read
from .targeted import for_target

LEAST = 1 << 16  # bytes: for smaller operands, starting and waiting cost more than the overlap saves
MOST = 64  # reductions in progress at a time


@for_target
def overlap_reductions(func: Func, target: Target = USUAL) -> Func:
    if "adjit.ir.ops.collective" not in sys.modules or target.exchange == IN_ORDER:
        return func
    if target.exchange == SHARED and target.threads == 1:
        func = _with_products(func, target.caches[1])
    regions = _regions(func, target.caches[1])
    moved = _starts(func.stmts, regions)
    if not moved:
        return func
    from adjit.ir.ops.collective import DeferAllReduce, FinishAllReduce, StartAllReduce  # noqa: PLC0415 - few programs have several ranks

    after: dict[int, list[Stmt]] = {}
    replaced: dict[int, list[Stmt]] = {}
    for slot, (at, start) in enumerate(moved.items()):
        stmt = func.stmts[at]
        (x,), result = stmt.args, stmt.result
        name = f"{x.name}.sum" if isinstance(x, Value) and x.name else None
        begun = Value(result.type, name)
        if at in regions:
            result = Value(result.type, name)
            replaced[regions[at]] = _summing(stmt, result, func.stmts[regions[at]], slot)
        op = DeferAllReduce(slot) if at in regions else StartAllReduce(slot)
        after.setdefault(start, []).append(stmt.replace(op=op, results=(begun,)))
        replaced[at] = [stmt.replace(op=FinishAllReduce(slot), args=(begun,), results=(result,))]
    out = list(after.get(-1, ()))
    for i, stmt in enumerate(func.stmts):
        out += [*replaced.get(i, (stmt,)), *after.get(i, ())]
    block = func.block
    return func.replace(block=Block(block.params, out, block.results, block.saving))


def _with_products(func: Func, cache: int) -> Func:
    """The Func with regions that compute and sum products."""
    from adjit.ir.ops.collective import MatmulAllReduce  # noqa: PLC0415 - few programs have several ranks

    uses = Uses(func.block, func.outputs(), {id(param) for param, _ in func.updates})
    made = {id(stmt.result): i for i, stmt in enumerate(func.stmts) if stmt.op.name == "matmul"}
    stmts: list[list[Stmt]] = [[stmt] for stmt in func.stmts]
    for i, region in _regions(func, cache).items():
        (x,), at = func.stmts[i].args, made.get(id(func.stmts[i].args[0]))
        if at is None or uses.readers[id(x)] != {i} or not uses.may_move(at, region):
            continue
        number = sum(stmt.op.is_collective for stmt in func.stmts[:i])
        product = func.stmts[at].replace(op=MatmulAllReduce(number), results=func.stmts[i].results)
        if product.op.stores_once(*(a.type for a in product.args)):
            stmts[at], stmts[i], stmts[region] = [], [], joined(product, func.stmts[region], is_read_later=False)
    block = func.block
    return func.replace(block=Block(block.params, [s for part in stmts for s in part], block.results, block.saving))


def _starts(stmts: Sequence[Stmt], regions: Mapping[int, int]) -> dict[int, int]:
    """For each reduction that is moved, by its position: the position of the statement that it starts after."""
    defined: dict[int, int] = {}
    barrier, work = -1, [0]
    out: dict[int, int] = {}
    for i, stmt in enumerate(stmts):
        if stmt.op.name == "all_reduce":
            (x,) = stmt.args
            start = max(defined.get(id(x), -1), barrier)
            if x.type.nbytes >= LEAST and (work[i] > work[start + 1] or i in regions) and len(out) < MOST:
                out[i] = start
        elif not effects(stmt).is_pure:
            barrier = i
        defined.update((id(result), i) for result in stmt.results)
        work.append(work[-1] + (not stmt.op.is_view and stmt.op.name != "all_reduce"))
    return out


def _regions(func: Func, cache: int) -> dict[int, int]:
    """For each reduction that a region can make, by its position: the position of the region. A region makes one."""
    readers: dict[int, set[int]] = {id(x): {-1} for x in func.outputs()}
    for i, stmt in enumerate(func.stmts):
        for x in operands_read(stmt):
            readers.setdefault(id(x), set()).add(i)
    out: dict[int, int] = {}
    for i, stmt in enumerate(func.stmts):
        if stmt.op.name != "all_reduce" or stmt.result.type.nbytes <= cache or len(readers.get(id(stmt.result), ())) != 1:
            continue
        (reader,) = readers[id(stmt.result)]
        if reader > i and reader not in out.values() and _summing(stmt, stmt.args[0], func.stmts[reader]):
            out[i] = reader
    return out


def _summing(stmt: Stmt, begun: Operand, region: Stmt, slot: int = 0) -> list[Stmt]:
    """The region with the sums as its host; empty if that is not possible."""
    from adjit.ir.ops.collective import SumDeferred  # noqa: PLC0415 - as above

    made = stmt.replace(op=SumDeferred(slot), args=(begun,))
    return joined(made, region, is_read_later=False) if made.op.stores_once(begun.type) else []
