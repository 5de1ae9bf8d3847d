"""Sums over the ranks of one machine through memory that they share, in place of `MPI_Allreduce`.

A large array is summed in chunks that stay in the cache: each rank copies its chunk to its window, adds up one slice of the chunk of all
ranks, and copies the sums of the other slices. For a small array each rank adds up everything. Terms are added in the order of the ranks,
so that all have the same sums.

Large parts are written to windows by stores that go past the cache. A line that another core has read from a window stays in its cache:
an ordinary store has to take it away from there first, which takes ten times as long between cores that share no cache.

Exchanges are numbered. Ranks publish the number of the one that they have come to in their windows, wait for each other there, and give way
to other processes while they wait. A rank copies one chunk to its window before it waits for the sums of the chunk before, so that a chunk
costs one meeting. For that, there are two of each buffer: one that was filled for exchange n is read by others between the meetings n and
n + 1 (sums: n + 1 and n + 2), and filled again when its owner has passed the meeting n + 1 (n + 2).

`prepare` maps the windows; all ranks call it at the same time, and measure from which size on this is faster than MPI. Routines that were
linked before read the outcome from `Table`. Between machines, and before, they call MPI.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from adjit.ir.types import DTYPES
from adjit.ir.world import World

SMALL = 1 << 13  # bytes that each rank adds up alone
CHUNK = 1 << 20  # bytes
MOST_RANKS = 16
NEVER = 2**63 - 1
SLICE = CHUNK // 2 + 4096  # bytes: the largest part of a chunk that one rank sums, on two ranks
FEW = 128  # offsets in a window: after the number of an exchange, two small buffers, two chunks, and sums of slices of them
INPUT = FEW + 2 * SMALL
OUTPUT = INPUT + 2 * CHUNK
WINDOW = -(-(OUTPUT + 2 * SLICE) // 4096) * 4096  # whole pages
FOLDER = "/dev/shm"  # files in memory
SIZES = (1 << 10, 1 << 14, 1 << 18, 1 << 22)  # bytes that are measured
ROUNDS = 15
VECTOR = 64  # bytes
LOCAL_SIZES = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE")  # set by the launchers of MPICH and Intel MPI, and of Open MPI


class Table(ctypes.Structure):
    """What the routines read: the least size in bytes that is summed here, the number of the last exchange, and the windows."""

    _fields_ = (("least", ctypes.c_int64), ("number", ctypes.c_int64), ("windows", ctypes.c_void_p * MOST_RANKS))


table = Table(NEVER, 0)
_kept: list[Any] = []  # the windows, which live as long as the process


def imports() -> dict[str, int]:
    """Functions that the routines call."""
    process = ctypes.CDLL(None)
    return {name: ctypes.cast(getattr(process, name), ctypes.c_void_p).value or 0 for name in ("memmove", "sched_yield")}


def is_possible(ranks: World) -> bool:
    return 1 < ranks.size <= MOST_RANKS and hasattr(os, "sched_yield")


def is_used() -> bool:
    """Whether large arrays are summed here."""
    return bool(table.least < NEVER)


def is_expected(ranks: World, environment: Mapping[str, str]) -> bool:
    """Whether they will be, as far as one rank can tell: before `prepare`, launchers say how many ranks the machine has."""
    if _kept or not is_possible(ranks):
        return is_used()
    return str(ranks.size) in (environment.get(name) for name in LOCAL_SIZES)


def prepare(ranks: World, sums: Callable[[int, int, int], int]) -> None:
    """Map the windows, and choose the sizes that are summed through them. `sums(to, from, elements)` adds up float32."""
    if _kept or not is_possible(ranks):
        return
    node = ranks.comm.Split_type(ranks.mpi.COMM_TYPE_SHARED)
    _kept.append(node)
    if ranks.comm.allreduce(node.size, ranks.mpi.MIN) < ranks.size:
        return
    memory = _shared_memory(node, ranks.size * WINDOW)
    if not ranks.comm.allreduce(memory is not None, ranks.mpi.LAND) or memory is None:
        return
    _kept.append(memory)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for rank in range(ranks.size):
        table.windows[rank] = base + rank * WINDOW
    ranks.comm.Barrier()
    table.least = measured(ranks, sums)


def _shared_memory(node: Any, size: int) -> mmap.mmap | None:
    """Memory of zeros that all ranks of a machine share; None if the first cannot make any."""
    path = node.bcast(_file_in_memory(size) if node.rank == 0 else "")
    if not path:
        return None
    memory = None
    with contextlib.suppress(OSError), open(path, "r+b") as file:
        memory = mmap.mmap(file.fileno(), size)
    node.Barrier()
    if node.rank == 0:
        os.unlink(path)
    return memory


def _file_in_memory(size: int) -> str:
    """The path of a new file, all of whose memory is there; "" if there is none."""
    if not os.path.isdir(FOLDER):
        return ""
    try:
        handle, path = tempfile.mkstemp(prefix="adjit.", dir=FOLDER)
    except OSError:
        return ""
    try:
        os.posix_fallocate(handle, 0, size)
    except OSError:
        os.unlink(path)
        return ""
    finally:
        os.close(handle)
    return path


def measured(ranks: World, sums: Callable[[int, int, int], int]) -> int:
    """The size from which on sums through the windows are faster than those of MPI, the same on all ranks."""
    data = np.zeros(SIZES[-1] // 4, np.float32)
    at = data.ctypes.data
    times = {(size, least): np.inf for size in SIZES for least in (0, NEVER)}  # the best of several: others use the machine too
    for _ in range(ROUNDS):
        for size, least in times:
            table.least = least
            ranks.comm.Barrier()
            started = time.perf_counter()
            sums(at, at, size // 4)
            times[size, least] = min(times[size, least], time.perf_counter() - started)
    slowest = {key: ranks.comm.allreduce(each, ranks.mpi.MAX) for key, each in times.items()}
    return int(ranks.comm.bcast(chosen(slowest)))


def chosen(times: Mapping[tuple[int, int], float]) -> int:
    """The threshold with the least product of the times of all sizes: one measurement that was disturbed does not decide."""

    def cost(least: int) -> float:
        return sum(math.log(times[size, NEVER if size < least else 0]) for size in SIZES)

    return min((0, *SIZES[1:], NEVER), key=cost)


def text(name: str, dtype: str, ranks: World, slow: str) -> str:
    """A routine that sums over the ranks, through windows or by the routine `slow`."""
    return "\n".join([_parts(dtype, ranks), choosing(name, dtype, slow)])


def _parts(dtype: str, ranks: World) -> str:
    return "\n".join([shared_text(dtype, ranks), _few(dtype, ranks), _slices(dtype, ranks), _many(dtype), _all(dtype)])


def deferring_text(name: str, dtype: str, slow: str) -> str:
    """A routine that leaves sums that are made through windows for later, and starts others by the routine `slow`."""
    later = f"""declare ptr @memmove(ptr, ptr, i64)
define internal void @later(ptr %to, ptr %from, i64 %n) {{
  %same = icmp eq ptr %to, %from
  %all = mul i64 %n, {DTYPES[dtype].itemsize}
  %bytes = select i1 %same, i64 0, i64 %all
  %copied = call ptr @memmove(ptr %to, ptr %from, i64 %bytes)
  ret void
}}
"""
    return later + choosing(name, dtype, slow, fast="later")


def deferred_text(name: str, dtype: str, ranks: World, here: int) -> str:
    """A routine that makes some of so many sums through windows; if they are not made there, it returns `here`, where they are complete."""
    complete = f"""define internal i32 @complete(ptr %to, ptr %from, i64 %n, i32 %total) {{
  ret i32 {here}
}}
"""
    return "\n".join([_parts(dtype, ranks), complete, choosing(name, dtype, "complete", of="%total")])


def shared_text(dtype: str, ranks: World) -> str:
    """What all routines begin with: places in windows, meetings, and sums."""
    return "\n".join([_constants(), _waiting(ranks), _streaming(), _adding(dtype, ranks, "@add"), _adding(dtype, ranks, SENDS)])


def _constants() -> str:
    number = f"ptr inttoptr (i64 {ctypes.addressof(table) + Table.number.offset} to ptr)"
    return f"""declare ptr @memmove(ptr, ptr, i64)
declare i32 @sched_yield()
declare i64 @llvm.umin.i64(i64, i64)
define internal ptr @window(i64 %rank) alwaysinline {{
  %at = getelementptr ptr, ptr inttoptr (i64 {ctypes.addressof(table) + Table.windows.offset} to ptr), i64 %rank
  %window = load ptr, ptr %at
  ret ptr %window
}}
define internal ptr @place(i64 %rank, i64 %offset) alwaysinline {{
  %window = call ptr @window(i64 %rank)
  %place = getelementptr i8, ptr %window, i64 %offset
  ret ptr %place
}}
define internal i64 @turn(i64 %number, i64 %size) alwaysinline {{
  %parity = and i64 %number, 1
  %shift = mul i64 %parity, %size
  ret i64 %shift
}}
define internal i64 @last() {{
  %number = load i64, {number}
  ret i64 %number
}}
define internal i64 @next() {{
  %old = load i64, {number}
  %new = add i64 %old, 1
  store i64 %new, {number}
  ret i64 %new
}}"""


def _waiting(ranks: World) -> str:
    """Publish that this rank has come to an exchange, and wait until all have."""
    return f"""define internal void @publish(i64 %number) {{
  %own = call ptr @place(i64 {ranks.rank}, i64 0)
  store atomic i64 %number, ptr %own release, align 8
  ret void
}}
define internal void @meet(i64 %number) {{
  call void @publish(i64 %number)
  call void @wait(i64 %number)
  ret void
}}
define internal void @wait(i64 %number) {{
start:
  br label %rank
rank:
  %r = phi i64 [ 0, %start ], [ %r.next, %met ]
  %there = icmp eq i64 %r, {ranks.size}
  br i1 %there, label %end, label %look
look:
  %other = call ptr @place(i64 %r, i64 0)
  br label %spin
spin:
  %count = phi i64 [ 0, %look ], [ %count.next, %again ]
  %seen = load atomic i64, ptr %other acquire, align 8
  %here = icmp uge i64 %seen, %number
  br i1 %here, label %met, label %wait
wait:
  %count.next = add i64 %count, 1
  %low = and i64 %count.next, 63
  %tired = icmp eq i64 %low, 0
  br i1 %tired, label %give, label %again
give:
  %ignored = call i32 @sched_yield()
  br label %again
again:
  br label %spin
met:
  %r.next = add i64 %r, 1
  br label %rank
end:
  ret void
}}"""


def _streaming() -> str:
    """@stream(to, from, bytes): a copy past the cache, if the target is aligned. What is published after it is seen after it."""
    return f"""define internal void @stream(ptr %to, ptr %from, i64 %bytes) {{
start:
  %address = ptrtoint ptr %to to i64
  %low = and i64 %address, {VECTOR - 1}
  %aligned = icmp eq i64 %low, 0
  %whole = and i64 %bytes, -{VECTOR}
  %vectors = select i1 %aligned, i64 %whole, i64 0
  br label %ask
ask:
  %at = phi i64 [ 0, %start ], [ %at.next, %vector ]
  %done = icmp uge i64 %at, %vectors
  br i1 %done, label %rest, label %vector
vector:
  %source = getelementptr i8, ptr %from, i64 %at
  %target = getelementptr i8, ptr %to, i64 %at
  %value = load <{VECTOR} x i8>, ptr %source, align 1
  store <{VECTOR} x i8> %value, ptr %target, align {VECTOR}, !nontemporal !0
  %at.next = add i64 %at, {VECTOR}
  br label %ask
rest:
  %left = sub i64 %bytes, %vectors
  %source.rest = getelementptr i8, ptr %from, i64 %vectors
  %target.rest = getelementptr i8, ptr %to, i64 %vectors
  %copied = call ptr @memmove(ptr %target.rest, ptr %source.rest, i64 %left)
  fence seq_cst
  ret void
}}
!0 = !{{i32 1}}"""


SENDS = "@add_and_send"


def _adding(dtype: str, ranks: World, name: str) -> str:
    """@add(to, n, own, offset): sums of own elements and those at an offset of the other windows; @add_and_send(…, copy) copies them to
    an aligned place in a window.
    """
    itemsize, sends = DTYPES[dtype].itemsize, name == SENDS
    kind = {"f32": "float", "f64": "double"}.get(dtype, f"i{8 * itemsize}")
    lanes = VECTOR // itemsize
    plus = "fadd" if DTYPES[dtype].kind == "f" else "add"
    sources = "\n".join(
        f"  %s{r} = getelementptr i8, ptr %own, i64 0" if r == ranks.rank else f"  %s{r} = call ptr @place(i64 {r}, i64 %offset)"
        for r in range(ranks.size)
    )

    def body(label: str, of: str, step: int, more: str) -> str:
        lines = [f"  %{label}.p{r} = getelementptr {kind}, ptr %s{r}, i64 %{label}" for r in range(ranks.size)]
        lines += [f"  %{label}.x{r} = load {of}, ptr %{label}.p{r}, align {itemsize}" for r in range(ranks.size)]
        total = f"%{label}.x0"
        for r in range(1, ranks.size):
            lines.append(f"  %{label}.t{r} = {plus} {of} {total}, %{label}.x{r}")
            total = f"%{label}.t{r}"
        lines.append(f"  %{label}.to = getelementptr {kind}, ptr %to, i64 %{label}")
        lines.append(f"  store {of} {total}, ptr %{label}.to, align {itemsize}")
        if sends:
            how = f"align {VECTOR}, !nontemporal !0" if step > 1 else f"align {itemsize}"
            lines.append(f"  %{label}.copy = getelementptr {kind}, ptr %copy, i64 %{label}")
            lines.append(f"  store {of} {total}, ptr %{label}.copy, {how}")
        lines += [f"  %{label}.next = add i64 %{label}, {step}", f"  br label %{more}"]
        return "\n".join(lines)

    return f"""define internal void {name}(ptr %to, i64 %n, ptr %own, i64 %offset{", ptr %copy" if sends else ""}) {{
start:
{sources}
  %rest = urem i64 %n, {lanes}
  %whole = sub i64 %n, %rest
  br label %vectors
vectors:
  %v = phi i64 [ 0, %start ], [ %v.next, %vector ]
  %v.done = icmp uge i64 %v, %whole
  br i1 %v.done, label %elements, label %vector
vector:
{body("v", f"<{lanes} x {kind}>", lanes, "vectors")}
elements:
  %e = phi i64 [ %whole, %vectors ], [ %e.next, %element ]
  %e.done = icmp uge i64 %e, %n
  br i1 %e.done, label %end, label %element
element:
{body("e", kind, 1, "elements")}
end:
{"  fence seq_cst" if sends else ""}
  ret void
}}"""


def _few(dtype: str, ranks: World) -> str:
    """Small arrays: two buffers in turn, so that one meeting is enough."""
    return f"""define internal void @few(ptr %to, ptr %from, i64 %n) {{
  %bytes = mul i64 %n, {DTYPES[dtype].itemsize}
  %number = call i64 @next()
  %shift = call i64 @turn(i64 %number, i64 {SMALL})
  %offset = add i64 %shift, {FEW}
  %mine = call ptr @place(i64 {ranks.rank}, i64 %offset)
  %copied = call ptr @memmove(ptr %mine, ptr %from, i64 %bytes)
  call void @meet(i64 %number)
  call void @add(ptr %to, i64 %n, ptr %from, i64 %offset)
  ret void
}}"""


def _slices(dtype: str, ranks: World) -> str:
    """@send, @sum and @take: what a rank does with a chunk of m elements, at the exchange `number`."""
    itemsize, own = DTYPES[dtype].itemsize, ranks.rank
    others = [r for r in range(ranks.size) if r != own]
    sends = "\n".join(
        f"""  %start{r} = call i64 @start(i64 {r}, i64 %m)
  %bytes{r} = call i64 @bytes(i64 {r}, i64 %m)
  %from{r} = getelementptr i8, ptr %source, i64 %start{r}
  %to{r} = getelementptr i8, ptr %window, i64 %start{r}
  call void @stream(ptr %to{r}, ptr %from{r}, i64 %bytes{r})"""
        for r in others
    )
    takes = "\n".join(
        f"""  %start{r} = call i64 @start(i64 {r}, i64 %m)
  %bytes{r} = call i64 @bytes(i64 {r}, i64 %m)
  %from{r} = call ptr @place(i64 {r}, i64 %offset)
  %to{r} = getelementptr i8, ptr %target, i64 %start{r}
  %taken{r} = call ptr @memmove(ptr %to{r}, ptr %from{r}, i64 %bytes{r})"""
        for r in others
    )
    return f"""define internal i64 @start(i64 %rank, i64 %m) {{
  %more = add i64 %m, {ranks.size * 16 - 1}
  %blocks = udiv i64 %more, {ranks.size * 16}
  %each = mul i64 %blocks, 16
  %all = mul i64 %each, %rank
  %first = call i64 @llvm.umin.i64(i64 %all, i64 %m)
  %byte = mul i64 %first, {itemsize}
  ret i64 %byte
}}
define internal i64 @bytes(i64 %rank, i64 %m) {{
  %following = add i64 %rank, 1
  %start = call i64 @start(i64 %rank, i64 %m)
  %stop = call i64 @start(i64 %following, i64 %m)
  %bytes = sub i64 %stop, %start
  ret i64 %bytes
}}
define internal void @send(ptr %source, i64 %m, i64 %number) {{
  %shift = call i64 @turn(i64 %number, i64 {CHUNK})
  %offset = add i64 %shift, {INPUT}
  %window = call ptr @place(i64 {own}, i64 %offset)
{sends}
  ret void
}}
define internal void @sum(ptr %target, ptr %source, i64 %m, i64 %number) {{
  %start = call i64 @start(i64 {own}, i64 %m)
  %bytes = call i64 @bytes(i64 {own}, i64 %m)
  %n = udiv i64 %bytes, {itemsize}
  %from = getelementptr i8, ptr %source, i64 %start
  %to = getelementptr i8, ptr %target, i64 %start
  %out.shift = call i64 @turn(i64 %number, i64 {SLICE})
  %out.offset = add i64 %out.shift, {OUTPUT}
  %out = call ptr @place(i64 {own}, i64 %out.offset)
  %in.shift = call i64 @turn(i64 %number, i64 {CHUNK})
  %in.chunk = add i64 %in.shift, {INPUT}
  %in.offset = add i64 %in.chunk, %start
  call void @add_and_send(ptr %to, i64 %n, ptr %from, i64 %in.offset, ptr %out)
  ret void
}}
define internal void @take(ptr %target, i64 %m, i64 %number) {{
  %shift = call i64 @turn(i64 %number, i64 {SLICE})
  %offset = add i64 %shift, {OUTPUT}
{takes}
  ret void
}}"""


def _many(dtype: str) -> str:
    """Large arrays: chunks, of which each rank sums a slice. The sums of a chunk are taken at the meeting of the next one."""
    itemsize = DTYPES[dtype].itemsize
    return f"""define internal void @many(ptr %to, ptr %from, i64 %n) {{
start:
  br label %chunks
chunks:
  %base = phi i64 [ 0, %start ], [ %base.next, %summed ]
  %m.before = phi i64 [ 0, %start ], [ %m, %summed ]
  %target.before = phi ptr [ %to, %start ], [ %target, %summed ]
  %rest = sub i64 %n, %base
  %m = call i64 @llvm.umin.i64(i64 %rest, i64 {CHUNK // itemsize})
  %shift = mul i64 %base, {itemsize}
  %source = getelementptr i8, ptr %from, i64 %shift
  %target = getelementptr i8, ptr %to, i64 %shift
  %number = call i64 @next()
  call void @send(ptr %source, i64 %m, i64 %number)
  call void @meet(i64 %number)
  %number.before = sub i64 %number, 1
  call void @take(ptr %target.before, i64 %m.before, i64 %number.before)
  %last = icmp eq i64 %m, 0
  br i1 %last, label %end, label %summed
summed:
  call void @sum(ptr %target, ptr %source, i64 %m, i64 %number)
  %base.next = add i64 %base, %m
  br label %chunks
end:
  ret void
}}"""


def _all(dtype: str) -> str:
    return f"""define internal void @all(ptr %to, ptr %from, i64 %n) {{
  %bytes = mul i64 %n, {DTYPES[dtype].itemsize}
  %large = icmp sgt i64 %bytes, {SMALL}
  br i1 %large, label %in.chunks, label %at.once
in.chunks:
  call void @many(ptr %to, ptr %from, i64 %n)
  ret void
at.once:
  call void @few(ptr %to, ptr %from, i64 %n)
  ret void
}}"""


def choosing(name: str, dtype: str, slow: str, parts: int = 1, fast: str = "all", of: str = "") -> str:
    """The routine `name` for n elements in each of several parts: `fast` from the size on for which the windows are faster. If the elements
    are some `of` an array, its size decides.
    """
    return f"""define i32 @{name}(ptr %to, ptr %from, i64 %n, i32 {of or "%root"}) nounwind {{
  %size = {f"zext i32 {of} to i64" if of else "add i64 %n, 0"}
  %bytes = mul i64 %size, {DTYPES[dtype].itemsize * parts}
  %least = load i64, ptr inttoptr (i64 {ctypes.addressof(table) + Table.least.offset} to ptr)
  %short = icmp slt i64 %bytes, %least
  br i1 %short, label %by.mpi, label %here
by.mpi:
  %code = call i32 @{slow}(ptr %to, ptr %from, i64 %n, i32 {of or "%root"})
  ret i32 %code
here:
  call void @{fast}(ptr %to, ptr %from, i64 %n)
  ret i32 0
}}"""
