"""The functions of a module in parts: each part is compiled on a thread of its own while the next one is being written.

Functions of different parts call each other by name, so they are `hidden` rather than `internal`, and declared where they are called.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from adjit.ir.target import Target

from . import toolchain as llvm
from .workers import Later

LINES = 400  # of a part: for a shorter one, LLVM's preparations take as long as the rest


class Parts:
    """`texts` are those of the parts so far; `level` is the highest of LLVM's that they are worth."""

    def __init__(self, target: Target, level: int) -> None:
        self.texts: list[str] = []
        self._target = target
        self._level = level
        self._codes: list[Later[llvm.Object]] = []
        self._last: list[llvm.Object] = []
        self._definitions: list[str] = []  # of the part being gathered
        self._declared: set[str] = set()
        self._defined: set[str] = set()
        self._lines = 0

    def add(self, definition: str, declaration: str, declares: Iterable[str]) -> None:
        """A function, how others declare it, and what it declares itself."""
        self._definitions.append(definition)
        self._defined.add(declaration)
        self._declared |= set(declares)
        self._lines += definition.count("\n")
        if self._lines >= LINES:
            self._hand_over()

    def finish(self, text: str, declares: Iterable[str], only_calls: bool) -> None:
        """The last part, which is compiled here. If it `only_calls` the others, and is long, no effort is worth it."""
        is_long = only_calls and text.count("\n") >= LINES
        if is_long and self._definitions:
            self._hand_over()
        self._definitions.append(text)
        self._declared |= set(declares)
        self._last = [self._assembled(self._cut(), 0 if is_long else self._level)]

    def objects(self) -> list[llvm.Object]:
        """The code of all parts."""
        return [*(code.result() for code in self._codes), *self._last]

    def _hand_over(self) -> None:
        self._codes.append(Later(partial(self._assembled, self._cut(), self._level)))

    def _assembled(self, text: str, level: int) -> llvm.Object:
        return llvm.assemble(text, self._target, min(level, llvm.level_for(text)))

    def _cut(self) -> str:
        text = "\n".join([*sorted(self._declared - self._defined), *self._definitions])
        self.texts.append(text)
        self._definitions, self._declared, self._defined, self._lines = [], set(), set(), 0
        return text
