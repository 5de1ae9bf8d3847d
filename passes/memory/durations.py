"""How long statements take, roughly: enough to tell a call that a user may want to interrupt from one that is over before that.

Counted in operations of a product, of which a core does about twenty in a nanosecond.
"""

from __future__ import annotations

from collections.abc import Iterable

from adjit.ir.func import Stmt
from adjit.ir.operand import Operand
from adjit.ir.ops.control import Fuse
from adjit.ir.ops.convolution import Convolution
from adjit.ir.ops.linalg import Matmul, MatmulAdd
from adjit.ir.ops.maps import Map

COMPUTED = 4.0  # an element of a result inside of a kernel
READ = 16.0  # an element that a kernel walks over
PLAIN = 4.0  # an operation outside of products: these run near the peak, others do not
WRITTEN = 1.0  # an element of what is as large as all that is walked over: memory bounds how many there are


def duration(stmt: Stmt) -> float:
    """Of one statement. Loops have no bound, and are not asked for here."""
    op = stmt.op
    if isinstance(op, Fuse):
        return _fused(stmt)
    if isinstance(op, Map):
        return WRITTEN * stmt.result.type.size
    operations = op.operations([x.type for x in stmt.args], [x.type for x in stmt.results])
    if isinstance(op, Matmul | MatmulAdd | Convolution):
        return operations
    walked = READ * max(_largest(stmt.args), _largest(stmt.results))
    return max(PLAIN * operations, walked) + sum(duration(s) for block in stmt.blocks for s in block.stmts)


def _fused(stmt: Stmt) -> float:
    inner = stmt.blocks[0].stmts
    products = sum(duration(s) for s in inner if isinstance(s.op, Matmul | MatmulAdd | Convolution))
    walked = _largest([r for s in inner for r in (*s.results, *s.args)])
    if walked == _largest(stmt.results):
        return products + WRITTEN * walked
    return products + (READ + COMPUTED * len(inner)) * walked


def _largest(values: Iterable[Operand]) -> int:
    return max((x.type.size for x in values), default=0)
