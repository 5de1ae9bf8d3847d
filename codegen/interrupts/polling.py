"""When native code checks for signals: often enough to respond to Ctrl-C within about 50 ms, rarely enough to cost nothing.

A check is cheap (a flag and a clock). Only if 20 ms have passed since the last time does it take the GIL and ask Python, and only on the
main thread, the only one that signals interrupt. If Python reports a signal, the flag of the call is set (word FLAG of its error record),
which ends the work of all threads that take part in it, and the exception raised by Python's handler is stored in the words before.

Kernels check inside their loops (`stopping.py`; `Loop` counts the cost of a loop), and the thread pool between chunks. Loops of the program
itself check after a certain amount of work, whichever loop did it: an innermost loop in registers counts its own iterations, all others add
to one sum. The sum is a global that is not synchronised between threads, which is harmless since it only decides when to check.

There are no checks once a call has begun to write to variables: from then on, it completes before it is interrupted.
"""

from __future__ import annotations

from adjit.ir.cost import nanoseconds
from adjit.ir.func import Block
from adjit.ir.target import Target
from adjit.ir.work import work

from ..llvm.lanes import Text

LIMIT = 1 << 20  # work between two checks in a program's loops, in nanoseconds
CALL = 16  # of a kernel
SPENT = "@adjit_spent"


def has_loops(block: Block) -> bool:
    return any(s.op.is_loop or any(map(has_loops, s.blocks)) for s in block.stmts)


def weight(block: Block, target: Target) -> int:
    """The work of one iteration on scalars, excluding nested loops."""
    return 1 + _weight(block, target, 1, in_memory=False)


def kernel_weight(block: Block, target: Target) -> int:
    """The same for kernels on arrays."""
    return _weight(block, target, CALL, in_memory=True)


def _weight(block: Block, target: Target, each: int, in_memory: bool) -> int:
    total = 0
    for stmt in block.stmts:
        if stmt.op.is_control and not stmt.op.is_loop:
            total += each + sum(_weight(inner, target, each, in_memory) for inner in stmt.blocks)
        elif not stmt.op.is_loop:
            total += each + int(min(LIMIT, nanoseconds(work(stmt, in_memory=in_memory), target)))
    return total


def trips_between(block: Block, target: Target) -> int:
    """Iterations of an innermost loop between two checks: a power of two."""
    return max(64, LIMIT >> weight(block, target).bit_length())


def spend(text: Text, amount: int | str) -> str:
    """Add work to the sum; return the sum."""
    total = text.define(f"add i64 {text.define(f'load i64, ptr {SPENT}')}, {amount}")
    text.put(f"store i64 {total}, ptr {SPENT}")
    return total


def spent_enough(text: Text, amount: int) -> str:
    """Add work to the sum; return whether a check is due, in which case the sum is reset."""
    total = spend(text, amount)
    due = text.define(f"icmp ugt i64 {total}, {LIMIT}")
    text.put(f"store i64 {text.define(f'select i1 {due}, i64 0, i64 {total}')}, ptr {SPENT}")
    return due
