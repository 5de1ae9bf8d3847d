"""The cost of a statement, from its types alone: the operations and the memory traffic that any kernel for it needs at least.

Operations are those of `ir/cost.py`: an addition is one, a division three, a function of the vector math library eight. Bytes are those
of the operands and results, counted once each: caches may reduce the actual traffic, and blocking may increase it. None if it depends on a
loop whose trip count is known only at run time.
"""

from __future__ import annotations

from collections.abc import Iterable

from adjit.ir.cost import assumed_type
from adjit.ir.func import Block, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.control import For, If, Region, While
from adjit.ir.ops.index import Gather, Scatter
from adjit.ir.ops.stack import StackAccumulate, StackOp, StackRead
from adjit.ir.plan import Plan
from adjit.ir.records import NamedTuple
from adjit.ir.types import StackType, TensorType


class Cost(NamedTuple):
    operations: float | None
    bytes: float | None


def copy_cost(type: TensorType) -> Cost:
    return Cost(0.0, 2.0 * assumed_type(type).nbytes)


def cost(stmt: Stmt, plan: Plan) -> Cost:
    return Cost(operations(stmt), traffic(stmt, plan))


def operations(stmt: Stmt) -> float | None:
    op = stmt.op
    match op:
        case For():
            start, stop = stmt.args[:2]
            inside = _sum(stmt.blocks[0])
            if inside is None or not (isinstance(start, Literal) and isinstance(stop, Literal)):
                return None
            return max(0, int(stop.value) - int(start.value)) * inside
        case While():
            return None
        case If():
            then, otherwise = map(_sum, stmt.blocks)
            return None if then is None or otherwise is None else max(then, otherwise)
        case Region():
            return _sum(stmt.blocks[0])
    return op.operations([assumed_type(x.type) for x in stmt.args], [assumed_type(x.type) for x in stmt.results])


def _sum(block: Block) -> float | None:
    total = 0.0
    for stmt in block.stmts:
        own = operations(stmt)
        if own is None:
            return None
        total += own
    return total


def traffic(stmt: Stmt, plan: Plan) -> float | None:
    match stmt.op:
        case StackRead():
            return 2.0 * assumed_type(stmt.result.type).nbytes
        case StackAccumulate():
            return 3.0 * assumed_type(stmt.args[2].type).nbytes
        case StackOp():
            return None
        case Gather():
            return 2.0 * assumed_type(stmt.result.type).nbytes + _bytes(stmt.args[1:], plan)
        case Scatter():  # in place, or after a copy by a separate kernel
            return 2.0 * assumed_type(stmt.args[1].type).nbytes + _bytes(stmt.args[1:], plan)
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
