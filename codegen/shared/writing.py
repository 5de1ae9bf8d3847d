"""Writes to windows: through the caches or past them (with non-temporal stores), whichever is faster between the cores in use.

A line that another core has read from a window stays in its cache, and an ordinary store first has to invalidate it there. Between cores
that share a third-level cache this is fast, and the data need not go through memory. Between others it takes ten times as long as stores
past the caches. Which cores two ranks run on may change at any time, as on virtual machines. So each rank measures its writes: if stores
through the caches take much longer than those past them took, the next ones go past the caches, for a while. What others read does not
depend on this choice, so ranks need not agree.
"""

from __future__ import annotations

import ctypes
import time

from .windows import UNKNOWN, field, lost

LOST = "adjit_lost_rank"
VECTOR = 64  # bytes
TELLING = 1 << 15  # bytes of a write that is long enough to be measured
MUCH = 4  # times as long as past the caches
TWICE = 2  # slow writes one after the other: a single one may have been interrupted. After a while of others, one is enough
PATIENCE = 4096  # writes past the caches before others are tried again


def imports() -> dict[str, int]:
    """Functions that the routines call."""
    process = ctypes.CDLL(None)
    functions = {name: getattr(process, name) for name in ("memmove", "sched_yield", "clock_gettime")} | {LOST: lost}
    return {name: ctypes.cast(function, ctypes.c_void_p).value or 0 for name, function in functions.items()}


def text() -> str:
    """@write(to, from, bytes), and @goes_past() for routines that write themselves. Numbers published afterwards become visible later."""
    return "\n".join([_streaming(), _measuring(), _writing()])


def _streaming() -> str:
    """@stream(to, from, bytes): a copy past the caches, if the target is aligned."""
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


def _measuring() -> str:
    """@past(speed) and @through(speed) note how many nanoseconds a MB a write took."""
    return f"""declare i32 @clock_gettime(i32, ptr)
declare i64 @llvm.smin.i64(i64, i64)
define internal i1 @goes_past() alwaysinline {{
  %left = load i64, {field("past")}
  %past = icmp sgt i64 %left, 0
  ret i1 %past
}}
define internal i64 @now() {{
  %time = alloca [2 x i64]
  %code = call i32 @clock_gettime(i32 {time.CLOCK_MONOTONIC}, ptr %time)
  %seconds = load i64, ptr %time
  %rest = getelementptr i64, ptr %time, i64 1
  %nanoseconds = load i64, ptr %rest
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %nanoseconds
  ret i64 %now
}}
define internal void @past(i64 %speed) {{
  %left = load i64, {field("past")}
  %left.next = sub i64 %left, 1
  store i64 %left.next, {field("past")}
  %best = load i64, {field("streamed")}
  %best.next = call i64 @llvm.smin.i64(i64 %best, i64 %speed)
  store i64 %best.next, {field("streamed")}
  ret void
}}
define internal void @through(i64 %speed) {{
  %best = load i64, {field("streamed")}
  %limit = mul i64 %best, {MUCH}
  %slow = icmp sgt i64 %speed, %limit
  %before = load i64, {field("slow")}
  %more = add i64 %before, 1
  %count = select i1 %slow, i64 %more, i64 0
  store i64 %count, {field("slow")}
  %enough = icmp sge i64 %count, {TWICE}
  br i1 %enough, label %change, label %end
change:
  store i64 {PATIENCE}, {field("past")}
  store i64 {UNKNOWN}, {field("streamed")}
  store i64 {TWICE - 1}, {field("slow")}
  br label %end
end:
  ret void
}}"""


def _writing() -> str:
    return f"""define internal void @write(ptr %to, ptr %from, i64 %bytes) {{
  %past = call i1 @goes_past()
  %tells = icmp uge i64 %bytes, {TELLING}
  br i1 %tells, label %measure, label %only
only:
  call void @write_by(i1 %past, ptr %to, ptr %from, i64 %bytes)
  ret void
measure:
  %started = call i64 @now()
  call void @write_by(i1 %past, ptr %to, ptr %from, i64 %bytes)
  %stopped = call i64 @now()
  %time = sub i64 %stopped, %started
  %scaled = shl i64 %time, 20
  %speed = udiv i64 %scaled, %bytes
  br i1 %past, label %note.past, label %note.through
note.past:
  call void @past(i64 %speed)
  ret void
note.through:
  call void @through(i64 %speed)
  ret void
}}
define internal void @write_by(i1 %past, ptr %to, ptr %from, i64 %bytes) alwaysinline {{
  br i1 %past, label %stream, label %copy
stream:
  call void @stream(ptr %to, ptr %from, i64 %bytes)
  ret void
copy:
  %copied = call ptr @memmove(ptr %to, ptr %from, i64 %bytes)
  ret void
}}"""
