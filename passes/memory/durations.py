"""Rough durations of statements: enough to tell calls that a user may want to interrupt from short ones.

Measured in operations of a matrix product, of which a core does about twenty per nanosecond.
"""

from __future__ import annotations

from collections.abc import Iterable

from adjit.ir.cost import assumed_type
from adjit.ir.func import Stmt
from adjit.ir.operand import Operand

COMPUTED = 4.0  # per element of a result inside a kernel
READ = 16.0  # per element that a kernel iterates over
PLAIN = 4.0  # per operation outside products: products run near the peak, other ops do not
WRITTEN = 1.0  # per element, if the result is as large as everything that is read: memory limits the number of elements


def duration(stmt: Stmt) -> float:
    """The duration of one statement. Loops have no bound, and are not handled here."""
    op = stmt.op
    if op.is_nest:
        return _fused(stmt)
    if op.is_elementwise:
        return WRITTEN * assumed_type(stmt.result.type).size
    operations = op.operations([assumed_type(x.type) for x in stmt.args], [assumed_type(x.type) for x in stmt.results])
    if op.is_product:
        return operations
    walked = READ * max(_largest(stmt.args), _largest(stmt.results))
    return max(PLAIN * operations, walked) + sum(duration(s) for block in stmt.blocks for s in block.stmts)


def _fused(stmt: Stmt) -> float:
    inner = stmt.blocks[0].stmts
    products = sum(duration(s) for s in inner if s.op.is_product)
    walked = _largest([r for s in inner for r in (*s.results, *s.args)])
    if walked == _largest(stmt.results):
        return products + WRITTEN * walked
    return products + (READ + COMPUTED * len(inner)) * walked


def _largest(values: Iterable[Operand]) -> int:
    return max((assumed_type(x.type).size for x in values), default=0)
