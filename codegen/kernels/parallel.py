"""Parts of a kernel that run on all threads: a function of their own, which the thread pool calls for one chunk of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..interrupts.stopping import PIECE, leave_if_stopped
from ..llvm import memory
from ..llvm.lanes import Text
from ..threads import library

if TYPE_CHECKING:
    from .kernels import Kernel

PARALLEL = 200_000  # operations: below this, waking another thread costs more than it gains
AWAKE = 50_000  # the same in loops whose matrix products keep the other threads awake


def parallel_from(kernel: Kernel) -> int:
    """The number of operations from which several threads pay off."""
    return AWAKE if kernel.awake else PARALLEL


def in_chunks(kernel: Kernel, total: int, rows: int, walk: Callable[[Text, str, str], None]) -> None:
    """Call `walk` for `rows` of `total` rows at a time, on all threads. It becomes a separate function that gets the kernel's pointers."""
    pointers = [*kernel.pointers.values(), *(["%work"] if kernel.work_bytes else [])]
    outlined(kernel, total, rows, pointers, pointers, walk)


def outlined(
    kernel: Kernel,
    total: int,
    rows: int,
    outside: Sequence[str],
    inside: Sequence[str],
    walk: Callable[[Text, str, str], None],
    leaves: bool = True,
) -> None:
    """Like `in_chunks` with chosen pointers: their names in the kernel and in the function. `leaves`: return at once when interrupted."""
    text, run = kernel.text, library.runner(kernel.threads)
    kernel.imports.add(run)
    text.declares.add(f"declare void @{run}({library.RUNNER})")
    inner = kernel.helper_text(may_look=True)
    for k, pointer in enumerate(inside):
        inner.put(f"{pointer}.at = getelementptr ptr, ptr %pointers, i64 {k}")
        inner.put(f"{pointer} = load ptr, ptr {pointer}.at")
    start = inner.define(f"mul i64 %chunk, {rows}")
    after = inner.define(f"add i64 {start}, {rows}")
    within = inner.define(f"icmp slt i64 {after}, {total}")
    walk(inner, start, inner.define(f"select i1 {within}, i64 {after}, i64 {total}"))
    chunks = -(-total // rows)
    looks = inner.looks or (text.may_look and chunks * inner.work >= PIECE)
    if inner.looks:
        inner.lines[:0] = [f"%error.at = getelementptr ptr, ptr %pointers, i64 {len(outside)}", "%error = load ptr, ptr %error.at"]
        outside = [*outside, "%error"]
    name = kernel.add_helper("chunk", "ptr %pointers, i64 %chunk, i64 %worker", inner)
    stop = "%error" if looks else "null"
    text.put(f"call void @{run}(ptr {name}, ptr {memory.table(text, outside)}, i64 {chunks}, ptr {stop}, i64 {kernel.threads})")
    text.charge(chunks * inner.work, looks)
    if looks and leaves:
        leave_if_stopped(text)
