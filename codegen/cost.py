"""What a statement costs by its types alone: operations, and the bytes that must be moved. The least that any kernel for it can do.

An operation is one of a Map or a reduction on an element; a function of the vector math library counts as MATH_COST of them, a
multiplication with its addition as two. Bytes are those of the operands and results, each once: caches may spare a kernel some, blocking
may cost it more. None where a loop decides at run time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from adjit.ir.func import Block, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.base import View
from adjit.ir.ops.control import For, If, Region, While
from adjit.ir.ops.convolution import Convolution, Convolve, ConvolveFilter
from adjit.ir.ops.create import Constant, Fill, Iota
from adjit.ir.ops.index import Gather, Scatter
from adjit.ir.ops.linalg import Matmul, MatmulAdd
from adjit.ir.ops.maps import FloatUnary, Map
from adjit.ir.ops.pooling import Pooling
from adjit.ir.ops.reduce import ArgExtremum, Reduce
from adjit.ir.ops.scan import Scan
from adjit.ir.ops.stack import StackAccumulate, StackOp, StackRead
from adjit.ir.plan import Plan
from adjit.ir.types import StackType, TensorType

from .kernels import MATH_COST


class Cost(NamedTuple):
    operations: float | None
    bytes: float | None


def copy_cost(type: TensorType) -> Cost:
    return Cost(0.0, 2.0 * type.nbytes)


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
        case Matmul() | MatmulAdd():
            return 2.0 * stmt.result.type.size * stmt.args[-2].type.shape[-1]
        case Convolution():  # of images x, filters w and results d, whichever of them it computes
            w = stmt.result if isinstance(op, ConvolveFilter) else stmt.args[1]
            d = stmt.result if isinstance(op, Convolve) else stmt.args[isinstance(op, ConvolveFilter)]
            return 2.0 * d.type.size * math.prod(w.type.shape[:-1])
        case Pooling():
            return float(min(x.type.size for x in (*stmt.args, stmt.result)) * math.prod(op.window))
        case View() | Constant() | Iota() | Fill():
            return 0.0
        case FloatUnary():
            return float(MATH_COST * stmt.result.type.size)
        case Map():
            return float(stmt.result.type.size)
        case Reduce() | ArgExtremum() | Scan():
            return float(stmt.args[0].type.size)
        case Scatter():
            return float(stmt.args[-1].type.size)
        case StackAccumulate():
            return float(stmt.args[2].type.size)
        case _:
            return 0.0  # it moves data


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
            return 2.0 * stmt.result.type.nbytes
        case StackAccumulate():
            return 3.0 * stmt.args[2].type.nbytes
        case StackOp():
            return None
        case Gather():
            return 2.0 * stmt.result.type.nbytes + _bytes(stmt.args[1:], plan)
        case Scatter():  # in place, or after a copy that is a kernel of its own
            return 2.0 * stmt.args[-1].type.nbytes + _bytes(stmt.args[1:], plan)
    read: list[Operand] = [*stmt.args]
    for block in stmt.blocks:
        read += [v for v in block.free() if all(v is not a for a in stmt.args)]
    if any(isinstance(x.type, StackType) for x in (*read, *stmt.results)):
        return None
    return _bytes(read, plan) + _bytes(stmt.results, plan)


def _bytes(values: Iterable[Operand], plan: Plan) -> float:
    """A buffer counts once, and a broadcast as much as there is of it."""
    roots: dict[int, tuple[int, int]] = {}
    for value in values:
        if isinstance(value, Value):
            root = plan.windows[id(value)].root if id(value) in plan.windows else value
            size = roots.get(id(root), (0, 0))[0] + value.type.nbytes
            roots[id(root)] = (size, root.type.nbytes)
    return float(sum(min(size, whole) for size, whole in roots.values()))
