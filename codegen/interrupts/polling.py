"""When native code looks for signals: often enough for an answer to Ctrl-C within some 50 ms, seldom enough to cost nothing.

Looking is cheap (a flag, and a clock); only when 20 ms have passed since the last time is the GIL taken and Python asked, by the main
thread alone: it is the only one that signals interrupt. A hit sets the flag of the call, word FLAG of its error record, which ends the work
of all threads that take part in it, and keeps the exception that Python's handler raised in the words before.

Kernels look inside of their loops (`stopping.py`; `Loop` counts what a loop costs), and the thread pool between
chunks. Loops of the program itself look after so much work, whichever of them did it: an innermost loop in registers counts its own
iterations, all others add to one sum. The sum is a global that threads may spoil for each other: it only says when to look.

Nothing is looked for once a call has begun to write to variables: from there on, it ends before it is interrupted.
"""

from __future__ import annotations

from adjit.ir.func import Block
from adjit.ir.ops.control import For, While

from ..cost import operations
from ..llvm.lanes import Text

LIMIT = 1 << 20  # work between two looks of a program's loops, of about a nanosecond each
SPENT = "@adjit_spent"


def has_loops(block: Block) -> bool:
    return any(isinstance(s.op, For | While) or any(map(has_loops, s.blocks)) for s in block.stmts)


def weight(block: Block) -> int:
    """The work of an iteration on scalars, without that of loops inside."""
    return 1 + sum(1 + sum(map(weight, s.blocks)) for s in block.stmts if not isinstance(s.op, For | While))


def kernel_weight(block: Block) -> int:
    """The same for an iteration through kernels on arrays: a call, and a quarter of its operations or elements, for several go at once."""
    total = 0
    for stmt in block.stmts:
        if not isinstance(stmt.op, For | While):
            sizes = (x.type.size for x in stmt.results)
            total += 16 + int(max(operations(stmt) or 0, *sizes, 0)) // 4 + sum(map(kernel_weight, stmt.blocks))
    return total


def trips_between(block: Block) -> int:
    """Iterations of an innermost loop between two looks: a power of two."""
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
