"""How kernels check for signals in long loops, and return early (see `polling.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..llvm.lanes import Text
from .signals import FLAG, INTERRUPTED, LOOK

PIECE = 1 << 20  # instructions that a kernel may execute without a check: about a millisecond
GRAIN = 1 << 18  # instructions between two checks, in kernels that have them
SELDOM = '!0 = !{!"branch_weights", i32 1, i32 65536}'  # marks checks as unlikely, so that values stay in registers around their calls


def poll(text: Text, index: str = "", step: int | str = 1, every: int = 1) -> None:
    """Return from the function if the call was interrupted. Checks once in `every` iterations of a loop whose index grows by `step`.

    The last of them checks, so that a shorter loop, which may be nested in another one, never reads the clock.
    """
    go = text.fresh_label()
    if every > 1:
        look = text.fresh_label()
        period = 1 << (every * int(step) - 1).bit_length()  # exactly one index of each period is within a step of its end
        due = text.define(f"icmp uge i64 {text.define(f'and i64 {index}, {period - 1}')}, {period - int(step)}")
        text.put(f"br i1 {due}, label %{look}, label %{go}, !prof !0")
        text.start(look)
    text.declares.add(f"declare i1 @{LOOK}(ptr)")
    _leave_if(text, text.define(f"call i1 @{LOOK}(ptr %error)"), go)


@contextmanager
def brief(text: Text) -> Iterator[None]:
    """Code emitted inside is known to execute few instructions, whatever the sizes: its loops do not check for signals."""
    before, unseen, repeated = text.may_look, text.unseen, text.repeated
    text.may_look = False
    yield
    text.may_look = before
    text.unseen, text.repeated = min(text.unseen, unseen + PIECE / 4), min(text.repeated, repeated + PIECE / 4)


class Budget:
    """Instructions that are left until the next check, counted while the program runs: for work of sizes that are known only then."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.left = text.reserve("i64")
        text.put(f"store i64 {PIECE}, ptr {self.left}")

    def spend(self, instructions: str) -> None:
        """Take this many instructions from the budget; check for signals if nothing is left."""
        text, look, go = self.text, self.text.fresh_label(), self.text.fresh_label()
        left = text.define(f"sub i64 {text.define(f'load i64, ptr {self.left}')}, {instructions}")
        text.put(f"store i64 {left}, ptr {self.left}")
        text.declares.add(SELDOM)
        text.put(f"br i1 {text.define(f'icmp slt i64 {left}, 0')}, label %{look}, label %{go}, !prof !0")
        text.start(look)
        text.put(f"store i64 {GRAIN}, ptr {self.left}")
        poll(text)
        text.jump(go)
        text.start(go)


def leave_if_stopped(text: Text) -> None:
    """Return from the function if a callee that checks for signals was interrupted."""
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
