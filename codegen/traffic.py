"""The memory traffic of a statement that any kernel for it needs at least: bytes of the operands and results, counted once each.

Caches may reduce the actual traffic, and blocking may increase it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from adjit.ir.cost import assumed_type
from adjit.ir.func import Stmt, Value
from adjit.ir.operand import Operand
from adjit.ir.plan import Plan
from adjit.ir.types import StackType
from adjit.ir.work import work


def traffic(stmt: Stmt, plan: Plan) -> float | None:
    """None if it depends on a length that is known only at run time."""
    if not stmt.blocks:
        own = work(stmt).bytes
        if not stmt.op.takes_stacks:
            return min(own, _bytes(stmt.args, plan) + _bytes(stmt.results, plan))
        return None if math.isinf(own) else own
    read: list[Operand] = [*stmt.args]
    for block in stmt.blocks:
        read += [v for v in block.free() if all(v is not a for a in stmt.args)]
    if any(isinstance(x.type, StackType) for x in (*read, *stmt.results)):
        return None
    return _bytes(read, plan) + _bytes(stmt.results, plan)


def _bytes(values: Iterable[Operand], plan: Plan) -> float:
    """The size of the buffers behind the values: each buffer is counted once, and a broadcast at its stored size."""
    roots: dict[int, tuple[int, int]] = {}
    for value in values:
        if isinstance(value, Value):
            root = plan.windows[id(value)].root if id(value) in plan.windows else value
            size = roots.get(id(root), (0, 0))[0] + assumed_type(value.type).nbytes
            roots[id(root)] = (size, assumed_type(root.type).nbytes)
    return float(sum(min(size, whole) for size, whole in roots.values()))
