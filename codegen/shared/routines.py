"""The parts that the routines of all exchanges share: places in windows, meetings, and sums over the windows of all ranks.

Exchanges are numbered. At a *meeting*, each rank publishes in its window the number of the exchange that it has reached, and waits until
all others have reached it too, yielding the CPU to other processes.
"""

from __future__ import annotations

from adjit.ir.types import DTYPES
from adjit.ir.world import World

from . import writing
from .windows import ENDED, field
from .writing import LOST, VECTOR

SENDS, STREAMS = "@add_and_send", "@add_and_stream"


def shared_text(dtype: str, ranks: World) -> str:
    adding = [_adding(dtype, ranks, name) for name in ("@add", SENDS, STREAMS)]
    return "\n".join([_places(), _waiting(ranks), writing.text(), *adding])


def _places() -> str:
    number = field("number")
    return f"""declare ptr @memmove(ptr, ptr, i64)
declare i32 @sched_yield()
declare i64 @llvm.umin.i64(i64, i64)
define internal ptr @window(i64 %rank) alwaysinline {{
  %at = getelementptr ptr, {field("windows")}, i64 %rank
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
    """Publish that this rank has reached an exchange, and wait until all have."""
    return f"""declare void @{LOST}(i64)
define internal void @publish(i64 %number) {{
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
  %flag = call ptr @place(i64 %r, i64 {ENDED})
  %ended = load atomic i64, ptr %flag acquire, align 8
  %lives = icmp eq i64 %ended, 0
  br i1 %lives, label %again, label %last
last:
  %final = load atomic i64, ptr %other acquire, align 8
  %was.here = icmp uge i64 %final, %number
  br i1 %was.here, label %met, label %lost
lost:
  call void @{LOST}(i64 %r)
  br label %again
again:
  br label %spin
met:
  %r.next = add i64 %r, 1
  br label %rank
end:
  ret void
}}"""


def _adding(dtype: str, ranks: World, name: str) -> str:
    """@add(to, n, own, offset): sums of own elements and those at an offset of the other windows; @add_and_send(…, copy) copies them to
    an aligned place in a window, @add_and_stream past the caches.
    """
    itemsize, sends = DTYPES[dtype].itemsize, name in (SENDS, STREAMS)
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
            how = f"align {VECTOR}, !nontemporal !0" if step > 1 and name == STREAMS else f"align {itemsize}"
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
{"  fence seq_cst" if name == STREAMS else ""}
  ret void
}}"""
