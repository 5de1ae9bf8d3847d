"""Sums over the ranks of one machine through memory that they share, in place of `MPI_Allreduce`.

A large array is summed in chunks that stay in the cache: each rank copies its chunk to its window, adds up one slice of the chunk of all
ranks, and copies the sums of the other slices. For a small array each rank adds up everything. Terms are added in the order of the ranks,
so that all have the same sums.

A rank copies one chunk to its window before it waits for the sums of the chunk before, so that a chunk costs one meeting. For that, there
are two of each buffer: one that was filled for exchange n is read by others between the meetings n and n + 1 (sums: n + 1 and n + 2), and
filled again when its owner has passed the meeting n + 1 (n + 2).
"""

from __future__ import annotations

from adjit.ir.types import DTYPES
from adjit.ir.world import World

from .routines import SENDS, STREAMS, shared_text
from .windows import CHUNK, FEW, INPUT, OUTPUT, SLICE, SMALL, field


def text(name: str, dtype: str, ranks: World, slow: str) -> str:
    """A routine that sums over the ranks, through windows or by the routine `slow`."""
    return "\n".join([_parts(dtype, ranks), choosing(name, dtype, slow)])


def _parts(dtype: str, ranks: World) -> str:
    return "\n".join([shared_text(dtype, ranks), _few(dtype, ranks), _slices(dtype, ranks), _many(dtype), _all(dtype)])


def deferring_text(name: str, dtype: str, slow: str) -> str:
    """A routine that postpones sums if they are computed through windows, and starts others by the routine `slow`."""
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
    """A routine that computes a part of deferred sums through windows. Sums that are not computed there are complete: it returns `here`."""
    complete = f"""define internal i32 @complete(ptr %to, ptr %from, i64 %n, i32 %total) {{
  ret i32 {here}
}}
"""
    return "\n".join([_parts(dtype, ranks), complete, choosing(name, dtype, "complete", of="%total")])


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
  call void @write(ptr %to{r}, ptr %from{r}, i64 %bytes{r})"""
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
  %past = call i1 @goes_past()
  br i1 %past, label %stream, label %send
stream:
  call void {STREAMS}(ptr %to, i64 %n, ptr %from, i64 %in.offset, ptr %out)
  ret void
send:
  call void {SENDS}(ptr %to, i64 %n, ptr %from, i64 %in.offset, ptr %out)
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
  %least = load i64, {field("least")}
  %short = icmp slt i64 %bytes, %least
  br i1 %short, label %by.mpi, label %here
by.mpi:
  %code = call i32 @{slow}(ptr %to, ptr %from, i64 %n, i32 {of or "%root"})
  ret i32 %code
here:
  call void @{fast}(ptr %to, ptr %from, i64 %n)
  ret i32 0
}}"""
