"""A counted loop and a condition in LLVM text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ..interrupts import stopping
from .lanes import Text

UNKNOWN = 1024  # assumed trip count of a loop whose bounds are registers


class CountedLoop:
    """`for i = start; i < stop; i += step`, for at least one iteration; values can be carried from one iteration to the next.

    A long loop checks for signals, if the function may (`Text.may_look`).

    with CountedLoop(text, "0", "10") as loop:
        total = loop.carry("float", "0.0")      # before anything else in the body
        ...
        loop.feed(total, following)
    """

    def __init__(self, text: Text, start: str, stop: str, step: int | str = 1, trips: int = UNKNOWN) -> None:
        """`trips`: the approximate trip count, if the bounds are registers."""
        self.text = text
        self.about = trips
        self.start, self.stop, self.step = start, stop, step
        self._phis: dict[str, tuple[int, str, str]] = {}
        self._fed: dict[str, str] = {}

    def __enter__(self) -> CountedLoop:
        text = self.text
        self._before, self._head = text.block, text.fresh_label()
        text.jump(self._head)
        text.start(self._head)
        self.index = self.carry("i64", self.start)
        self._work, self._unseen = text.work, text.unseen_work
        return self

    def carry(self, type: str, initial: str) -> str:
        name = self.text.fresh()
        self._phis[name] = (len(self.text.lines), type, initial)
        self.text.put("")
        return name

    def feed(self, carried: str, following: str) -> None:
        self._fed[carried] = following

    def __exit__(self, failed: object, *exc: object) -> None:
        if failed:
            return
        self._count_work()
        text, after = self.text, self.text.fresh_label()
        following = text.define(f"add i64 {self.index}, {self.step}")
        self.feed(self.index, following)
        more = text.define(f"icmp slt i64 {following}, {self.stop}")
        text.put(f"br i1 {more}, label %{self._head}, label %{after}")
        for name, (line, type, initial) in self._phis.items():
            text.lines[line] = f"{name} = phi {type} [{initial}, %{self._before}], [{self._fed[name]}, %{text.block}]"
        text.start(after)

    def _count_work(self) -> None:
        """Add up the work of the iterations, and emit a check for signals if it is too much."""
        text, trips = self.text, self._trips()
        text.repeated += (trips - 1) * (text.work - self._work)
        unseen = text.unseen_work - self._unseen
        if text.may_look and trips * unseen >= stopping.PIECE:
            every = int(stopping.GRAIN // unseen)
            stopping.poll(text, self.index, self.step, every if isinstance(self.step, int) else 1)
        else:
            text.unseen += (trips - 1) * unseen

    def _trips(self) -> int:
        if self.start.isdigit() and self.stop.isdigit() and isinstance(self.step, int):
            return max(1, -(-(int(self.stop) - int(self.start)) // self.step))
        return self.about


@contextmanager
def only_if(text: Text, condition: str) -> Iterator[None]:
    """Code emitted inside runs only if the condition holds."""
    inside, after = text.fresh_label(), text.fresh_label()
    text.put(f"br i1 {condition}, label %{inside}, label %{after}")
    text.start(inside)
    yield
    text.jump(after)
    text.start(after)


def switch(text: Text, number: str, cases: Mapping[int, Callable[[], None]]) -> None:
    """Run the case of a number, which is one of them. The work of the longest counts."""
    labels, other, after = {n: text.fresh_label() for n in cases}, text.fresh_label(), text.fresh_label()
    text.put(f"switch i64 {number}, label %{other} [{' '.join(f'i64 {n}, label %{label}' for n, label in labels.items())}]")
    text.start(other)
    text.put("unreachable")
    work, unseen = [0.0], [0.0]
    for n, label in labels.items():
        text.start(label)
        before = text.work, text.unseen_work
        cases[n]()
        work.append(text.work - before[0])
        unseen.append(text.unseen_work - before[1])
        text.jump(after)
    text.start(after)
    text.repeated -= sum(work) - max(work)
    text.unseen -= sum(unseen) - max(unseen)
