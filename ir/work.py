"""The work of statements: that of their ops (`Op.cost`), and of all that their blocks run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .cost import NOTHING, Cost
from .func import Block, Stmt
from .ops.base import Op
from .ops.region import Region
from .sizes import hint_of
from .specialize import numeric, numeric_type
from .types import TensorType

SOME = 100  # statements without blocks between two sums of `running_work`


def work(stmt: Stmt, size: Callable[[Any], int] = hint_of, in_memory: bool = True) -> Cost:
    """What native code does for a statement.

    `size` is what sizes that are known only at run time are taken to be. Values are `in_memory`, unless the statement belongs to the body
    of a kernel: then only that reads and writes memory.
    """
    op = stmt.op
    if op.is_view:
        return NOTHING
    if not stmt.blocks:
        cost = numeric(op, size).cost(*(numeric_type(x.type, size) for x in stmt.args))
        return cost if in_memory else cost._replace(bytes=0.0)
    assert isinstance(op, Region)
    inside = [block_work(block, size, in_memory and not op.is_nest) for block in stmt.blocks]
    whole = op.total(stmt.args, inside)
    if not in_memory:
        return whole
    free = [x for block in stmt.blocks for x in block.free()]
    return whole._replace(bytes=whole.bytes + sum(numeric_type(x.type, size).nbytes for x in (*stmt.args, *free, *stmt.results)))


def block_work(block: Block, size: Callable[[Any], int] = hint_of, in_memory: bool = True) -> Cost:
    *_, whole = running_work(block, size, in_memory)
    return whole


def running_work(block: Block, size: Callable[[Any], int] = hint_of, in_memory: bool = True) -> Iterator[Cost]:
    """The work of ever more of the statements of a block, which only grows, and last that of all."""
    known: dict[tuple[Op, tuple[TensorType, ...]], Cost] = {}  # long programs repeat a few elementwise ops on operands of few types
    costs = [NOTHING]
    for stmt in block.stmts:
        if len(costs) > SOME or stmt.blocks:
            costs = [summed(costs)]
            yield costs[0]
        if not stmt.op.is_elementwise:
            costs.append(work(stmt, size, in_memory))
            continue
        key = stmt.op, tuple([x.type for x in stmt.args])
        cost = known.get(key)
        if cost is None:
            cost = known[key] = work(stmt, size, in_memory)
        costs.append(cost)
    yield summed(costs)


def summed(costs: list[Cost]) -> Cost:
    return Cost(*map(sum, zip(*costs, strict=True)))
