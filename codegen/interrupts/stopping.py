"""How kernels look for signals in their long loops, and leave (see `polling.py`)."""

from __future__ import annotations

from ..llvm.lanes import Text
from .signals import FLAG, INTERRUPTED, LOOK

PIECE = 1 << 20  # instructions that a kernel may do without looking: about a millisecond
GRAIN = 1 << 18  # instructions between two looks, where there are some
SELDOM = '!0 = !{!"branch_weights", i32 1, i32 65536}'  # keeps what the call of a look destroys in registers all the same


def poll(text: Text, index: str = "", step: int | str = 1, every: int = 1) -> None:
    """Leave the function when the call was interrupted. Looks once in `every` iterations of a loop, whose index goes up by `step`."""
    go = text.fresh_label()
    if every > 1:
        look = text.fresh_label()
        period = 1 << (every * int(step) - 1).bit_length()  # one index of each period is below the step
        due = text.define(f"icmp ult i64 {text.define(f'and i64 {index}, {period - 1}')}, {step}")
        text.put(f"br i1 {due}, label %{look}, label %{go}, !prof !0")
        text.start(look)
    text.declares.add(f"declare i1 @{LOOK}(ptr)")
    _leave_if(text, text.define(f"call i1 @{LOOK}(ptr %error)"), go)


def leave_if_stopped(text: Text) -> None:
    """After a call of something that looks by itself."""
    flag = text.define(f"load i64, ptr {text.define(f'getelementptr i64, ptr %error, i64 {FLAG}')}")
    _leave_if(text, text.define(f"icmp ne i64 {flag}, 0"), text.fresh_label())


def _leave_if(text: Text, condition: str, go: str) -> None:
    leave = text.fresh_label()
    text.declares.add(SELDOM)
    text.put(f"br i1 {condition}, label %{leave}, label %{go}, !prof !0")
    text.start(leave)
    text.put(f"ret i64 {INTERRUPTED}" if text.returns_code else "ret void")
    text.start(go)
    text.looks = True
