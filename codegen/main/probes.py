"""Profiling probes in native code: a module built with probes records when each kernel started and ended.

The log is a global of the module: the number of events, the memory used by the stacks of loops, the time and number of calls of each site,
then the first events one by one. A site is a place in the main function that calls a kernel; site 0 is the whole call, site 1 the clock
itself.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping

import numpy as np

from adjit.ir.errors import UnsupportedError
from adjit.ir.func import Stmt
from adjit.ir.ops.base import Array
from adjit.ir.records import NamedTuple
from adjit.ir.types import TensorType

from ..llvm.lanes import Text

LOG = "adjit_log"
WHOLE, CLOCK = 0, 1
EVENTS = 1 << 16  # kept individually; the sums include all
HEADER, SITE, EVENT = 2, 2, 3  # sizes in words

IR = """
@adjit_log = global [WORDS x i64] zeroinitializer, align 64

define internal i64 @adjit_now() nounwind noinline {
  %spec = alloca [2 x i64]
  %ok = call i32 @clock_gettime(i32 CLOCK_ID, ptr %spec)
  %seconds = load i64, ptr %spec
  %rest.at = getelementptr i64, ptr %spec, i64 1
  %rest = load i64, ptr %rest.at
  %scaled = mul i64 %seconds, 1000000000
  %now = add i64 %scaled, %rest
  ret i64 %now
}

define internal void @adjit_probe(i64 %site, i64 %began) nounwind noinline {
entry:
  %now = call i64 @adjit_now()
  %took = sub i64 %now, %began
  %twice = mul i64 %site, 2
  %sum.index = add i64 %twice, 2
  %sum.at = getelementptr i64, ptr @adjit_log, i64 %sum.index
  %sum = load i64, ptr %sum.at
  %sum.new = add i64 %sum, %took
  store i64 %sum.new, ptr %sum.at
  %calls.at = getelementptr i64, ptr %sum.at, i64 1
  %calls = load i64, ptr %calls.at
  %calls.new = add i64 %calls, 1
  store i64 %calls.new, ptr %calls.at
  %count = load i64, ptr @adjit_log
  %count.new = add i64 %count, 1
  store i64 %count.new, ptr @adjit_log
  %room = icmp slt i64 %count, EVENTS
  br i1 %room, label %keep, label %done
keep:
  %offset = mul i64 %count, 3
  %index = add i64 %offset, FIRST
  %event = getelementptr i64, ptr @adjit_log, i64 %index
  store i64 %site, ptr %event
  %began.at = getelementptr i64, ptr %event, i64 1
  store i64 %began, ptr %began.at
  %now.at = getelementptr i64, ptr %event, i64 2
  store i64 %now, ptr %now.at
  br label %done
done:
  ret void
}
"""


class Site(NamedTuple):
    """A place that calls a kernel: for a statement, or to copy a value of type `copied` (into a carry, a result, a variable)."""

    stmt: Stmt | None
    copied: TensorType | None


class Run(NamedTuple):
    """The log of one call. `nanoseconds` and `calls` are indexed by site; `events` has rows (site, start, end)."""

    nanoseconds: Array
    calls: Array
    events: Array
    stack_bytes: int


class Probes:
    """The sites of one module, and access to its log once it is linked."""

    log_name = LOG

    def __init__(self) -> None:
        if not hasattr(time, "clock_gettime"):
            raise UnsupportedError("profile: this system has no clock_gettime, which native code would read the time from")
        self.sites = [Site(None, None), Site(None, None)]

    def record(self, began: str, stmt: Stmt | None, copied: TensorType | None) -> str:
        """Add a site; return the call that records its end."""
        self.sites.append(Site(stmt, copied))
        return f"call void @adjit_probe(i64 {len(self.sites) - 1}, i64 {began})"

    def enter(self) -> list[str]:
        """Instructions at the start of the main function."""
        return ["%clock = call i64 @adjit_now()", f"call void @adjit_probe(i64 {CLOCK}, i64 %clock)", "%began = call i64 @adjit_now()"]

    def leave(self, text: Text, handles: Mapping[int, int]) -> None:
        """Emit the instructions at its end, before stacks are freed: `handles` gives the element size of each stack by arena offset."""
        total = "0"
        text.put(f"call void @adjit_probe(i64 {WHOLE}, i64 %began)")
        for at, element in handles.items():
            capacity = text.define(f"getelementptr i8, ptr %arena, i64 {at + 16}")
            elements = text.define(f"load i64, ptr {capacity}")
            size = text.define(f"mul i64 {elements}, {element}")
            total = text.define(f"add i64 {total}, {size}")
        text.put(f"store i64 {total}, ptr getelementptr (i64, ptr @{LOG}, i64 1)")

    @property
    def _first(self) -> int:
        return HEADER + SITE * len(self.sites)

    def runtime(self) -> str:
        clock = getattr(time, "CLOCK_UPTIME_RAW", time.CLOCK_MONOTONIC)  # macOS: the one with nanosecond resolution
        words = {"WORDS": self._first + EVENT * EVENTS, "FIRST": self._first, "EVENTS": EVENTS, "CLOCK_ID": clock}
        text = IR
        for word, number in words.items():
            text = text.replace(word, str(number))
        return text

    def take(self, address: int) -> Run:
        """Read and clear the log at an address."""
        log = np.ctypeslib.as_array((ctypes.c_int64 * (self._first + EVENT * EVENTS)).from_address(address))
        kept = min(int(log[0]), EVENTS)
        sums = log[HEADER : self._first].reshape(-1, SITE).copy()
        run = Run(sums[:, 0], sums[:, 1], log[self._first : self._first + EVENT * kept].reshape(-1, EVENT).copy(), int(log[1]))
        log[: self._first] = 0
        return run
