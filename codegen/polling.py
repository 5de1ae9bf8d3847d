"""When compiled loops look for Ctrl-C: after so much work, whichever of them did it.

An innermost loop in registers counts its own trips. All others add to one sum: a loop of few trips that runs again and again inside of
another, may take as long as a long one. The sum is a global that threads may spoil for each other: it only says when to look.
"""

from __future__ import annotations

from adjit.ir.func import Block
from adjit.ir.ops.control import For, While

from .cost import operations
from .lanes import Text

LIMIT = 1 << 24  # work between two looks, of about a nanosecond each: looking may have to wait for the GIL
SPENT = "@adjit_spent"


def has_loops(block: Block) -> bool:
    return any(isinstance(s.op, For | While) or any(map(has_loops, s.blocks)) for s in block.stmts)


def weight(block: Block) -> int:
    """The work of a trip on scalars, without that of loops inside."""
    return 1 + sum(1 + sum(map(weight, s.blocks)) for s in block.stmts if not isinstance(s.op, For | While))


def kernel_weight(block: Block) -> int:
    """The same for a trip through kernels on arrays: a call, and a quarter of its operations or elements, for several go at once."""
    total = 0
    for stmt in block.stmts:
        if not isinstance(stmt.op, For | While):
            sizes = (x.type.size for x in stmt.results)
            total += 16 + int(max(operations(stmt) or 0, *sizes, 0)) // 4 + sum(map(kernel_weight, stmt.blocks))
    return total


def trips_between(block: Block) -> int:
    """Trips of an innermost loop between two looks: a power of two."""
    return max(64, LIMIT >> weight(block).bit_length())


def spend(text: Text, amount: int | str) -> str:
    """Add work to the sum; gives the sum."""
    total = text.define(f"add i64 {text.define(f'load i64, ptr {SPENT}')}, {amount}")
    text.put(f"store i64 {total}, ptr {SPENT}")
    return total


def spent_enough(text: Text, amount: int) -> str:
    """Add work to the sum; whether it is time to look. Then the sum starts again."""
    total = spend(text, amount)
    due = text.define(f"icmp ugt i64 {total}, {LIMIT}")
    text.put(f"store i64 {text.define(f'select i1 {due}, i64 0, i64 {total}')}, ptr {SPENT}")
    return due
