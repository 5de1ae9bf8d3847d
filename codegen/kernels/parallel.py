"""Parts of a kernel that run on all threads: a function of their own, which the thread pool calls for one chunk of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from adjit.ir.bounds import proven_sign
from adjit.ir.cost import flops_in
from adjit.ir.expr import Expr

from ..interrupts.stopping import PIECE, leave_if_stopped
from ..llvm import memory
from ..llvm.lanes import Text
from ..loops.ir import Sizing
from ..sizes import SIZES
from ..threads import library

if TYPE_CHECKING:
    from .kernel import Kernel

PARALLEL = flops_in(20_000)  # operations: waking another thread takes a good part of these nanoseconds
MANY = 32  # chunks that are assumed where their number is known only at run time
ROWS = "%rows"  # of a chunk, where they are known only at run time
AWAKE = flops_in(5_000)  # the same in loops whose matrix products keep the other threads awake


def parallel_from(kernel: Kernel) -> int:
    """The number of operations from which several threads pay off."""
    return AWAKE if kernel.awake else PARALLEL


def in_chunks(kernel: Kernel, total: Expr, rows: int | Sizing, walk: Callable[[Text, str, str], None]) -> str:
    """Call `walk` for `rows` of `total` rows at a time, on all threads. It becomes a separate function that gets the kernel's pointers.

    The result is the number of chunks.
    """
    pointers = [*kernel.pointers.values(), *(["%work"] if kernel.work_bytes else [])]
    return outlined(kernel, total, rows, pointers, pointers, walk)


def _quotient(text: Text, a: str, b: str) -> str:
    """a / b, rounded up."""
    above = text.define(f"sub i64 {text.define(f'add i64 {a}, {b}')}, 1")
    return text.define(f"udiv i64 {above}, {b}")


def outlined(
    kernel: Kernel,
    total: Expr,
    rows: int | Sizing,
    outside: Sequence[str],
    inside: Sequence[str],
    walk: Callable[[Text, str, str], None],
    leaves: bool = True,
) -> str:
    """Like `in_chunks` with chosen pointers: their names in the kernel and in the function. `leaves`: return at once when interrupted."""
    text, run = kernel.text, library.runner(kernel.threads)
    kernel.imports.add(run)
    text.declares.add(f"declare void @{run}({library.RUNNER})")
    inner = kernel.helper_text(may_look=True)
    for k, pointer in enumerate(inside):
        inner.put(f"{pointer}.at = getelementptr ptr, ptr %pointers, i64 {k}")
        inner.put(f"{pointer} = load ptr, ptr {pointer}.at")
    each = str(rows)
    if isinstance(rows, Sizing):  # the kernel stores it behind the pointers
        inner.put(f"{ROWS}.at = getelementptr i64, ptr %pointers, i64 {len(inside)}")
        each = inner.define(f"load i64, ptr {ROWS}.at")
        outside = [*outside, text.define(f"inttoptr i64 {total} to ptr")]
    start = inner.define(f"mul i64 %chunk, {each}")
    after = inner.define(f"add i64 {start}, {each}")
    within = inner.define(f"icmp slt i64 {after}, {total}")
    walk(inner, start, inner.define(f"select i1 {within}, i64 {after}, i64 {total}"))
    count = -(-total // rows) if isinstance(rows, int) and isinstance(total, int) else MANY
    looks = inner.looks or (text.may_look and count * inner.work >= PIECE)
    if inner.looks:
        inner.lines[:0] = [f"%error.at = getelementptr ptr, ptr %pointers, i64 {len(outside)}", "%error = load ptr, ptr %error.at"]
        outside = [*outside, "%error"]
    if kernel.symbols:
        inner.slots += [f"{SIZES}.at = getelementptr ptr, ptr %pointers, i64 {len(outside)}", f"{SIZES} = load ptr, ptr {SIZES}.at"]
        outside = [*outside, SIZES]
    name = kernel.add_helper("chunk", "ptr %pointers, i64 %chunk, i64 %worker", inner)
    stop, table = "%error" if looks else "null", memory.table(text, outside)
    if isinstance(rows, Sizing):
        chunks = _run_sized(kernel, name, table, total, rows, len(inside), stop)
        text.charge(count * inner.work)  # few rows are computed without a check
    else:
        chunks = str(count) if isinstance(total, int) else _quotient(text, f"{total}", each)
        callee = f"@{run}" if isinstance(total, int) else _runner(kernel, chunks)
        text.put(f"call void {callee}(ptr {name}, ptr {table}, i64 {chunks}, ptr {stop}, i64 {kernel.threads})")
        text.charge(count * inner.work, looks)
    if looks and leaves:
        leave_if_stopped(text)
    return chunks


def _run_sized(kernel: Kernel, name: str, table: str, total: Expr, rows: Sizing, slot: int, stop: str) -> str:
    """Run chunks with as many rows as `rows` chooses for the sizes of the call; chunks read that number from a slot of their table.

    All rows are one chunk unless several threads pay off. This chunk is called directly, since the call is often in a loop of the program.
    Returns the number of chunks.
    """
    text = kernel.text
    text.declares |= {f"declare i64 @llvm.{name}.i64(i64, i64)" for name in ("smin", "smax")}
    work = f"{rows.operations}"
    one, several, done = text.fresh_label(), text.fresh_label(), text.fresh_label()
    single = "1" if proven_sign(total) > 0 else text.define(f"call i64 @llvm.smin.i64(i64 {total}, i64 1)")
    is_large = text.define(f"icmp sge i64 {work}, {rows.parallel_from}")
    text.put(f"br i1 {is_large}, label %{several}, label %{one}")
    text.start(several)
    most = text.define(f"call i64 @llvm.smin.i64(i64 {total}, i64 {rows.most})")
    wanted = text.define(f"call i64 @llvm.smin.i64(i64 {most}, i64 {text.define(f'udiv i64 {work}, {rows.least}')})")
    each = _quotient(text, f"{total}", text.define(f"call i64 @llvm.smax.i64(i64 {wanted}, i64 2)"))
    each = text.define(f"call i64 @llvm.smax.i64(i64 {each}, i64 1)")
    text.put(f"store i64 {each}, ptr {text.define(f'getelementptr i64, ptr {table}, i64 {slot}')}")
    chunks = _quotient(text, f"{total}", each)
    text.put(f"call void {_runner(kernel, chunks)}(ptr {name}, ptr {table}, i64 {chunks}, ptr {stop}, i64 {kernel.threads})")
    text.jump(done)
    text.start(one)
    call = f"call void {name}(ptr {table}, i64 0, i64 0)"
    if single == "1":
        text.put(call)
    else:
        some = text.fresh_label()
        text.put(f"br i1 {text.define(f'icmp sgt i64 {single}, 0')}, label %{some}, label %{done}")
        text.start(some)
        text.put(call)
    text.jump(done)
    before = {several: chunks, text.block: single, **({} if single == "1" else {one: single})}
    text.start(done)
    return text.define(f"phi i64 {', '.join(f'[{value}, %{label}]' for label, value in before.items())}")


def _runner(kernel: Kernel, chunks: str) -> str:
    """The routine that runs this number of chunks: a single one needs no other threads."""
    text, names = kernel.text, [library.runner(kernel.threads), library.runner(1)]
    kernel.imports.update(names)
    text.declares |= {f"declare void @{name}({library.RUNNER})" for name in names}
    several = text.define(f"icmp sgt i64 {chunks}, 1")
    return text.define(f"select i1 {several}, ptr @{names[0]}, ptr @{names[1]}")
