"""Splits the functions of a module into parts: each part is compiled on a separate thread while the next one is being emitted.

Functions of different parts call each other by name, so they are `hidden` rather than `internal`, and declared where they are called.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from adjit.ir.target import Target

from . import toolchain as llvm
from .workers import Later

LINES = 400  # minimum length of a part: below it, LLVM's fixed costs take as long as the rest


class Parts:
    """`texts` are the texts of the parts so far; `level` is the highest optimisation level to use for them."""

    def __init__(self, target: Target, level: int) -> None:
        self.texts: list[str] = []
        self._target = target
        self._level = level
        self._codes: list[Later[llvm.Object]] = []
        self._last: list[llvm.Object] = []
        self._definitions: list[str] = []  # of the part being collected
        self._declared: set[str] = set()
        self._defined: set[str] = set()
        self._lines = 0

    def add(self, definition: str, declaration: str, declares: Iterable[str]) -> None:
        """Add a function: its definition, its declaration for callers, and the declarations that it needs."""
        self._definitions.append(definition)
        self._defined.add(declaration)
        self._declared |= set(declares)
        self._lines += definition.count("\n")
        if self._lines >= LINES:
            self._hand_over()

    def finish(self, text: str, declares: Iterable[str], only_calls: bool) -> None:
        """Compile the last part on this thread. If it `only_calls` the others, and is long, it is not worth optimising."""
        is_long = only_calls and text.count("\n") >= LINES
        if is_long and self._definitions:
            self._hand_over()
        self._definitions.append(text)
        self._declared |= set(declares)
        self._last = [self._assembled(self._cut(), 0 if is_long else self._level)]

    def objects(self) -> list[llvm.Object]:
        """The object code of all parts."""
        return [*(code.result() for code in self._codes), *self._last]

    def _hand_over(self) -> None:
        self._codes.append(Later(partial(self._assembled, self._cut(), self._level)))

    def _assembled(self, text: str, level: int) -> llvm.Object:
        return llvm.assemble(text, self._target, min(level, llvm.level_for(text)))

    def _cut(self) -> str:
        text = "\n".join([*sorted(self._declared - self._defined), *self._definitions])
        if self._target.debug_lines:
            from .debug_lines import annotated  # noqa: PLC0415 - only for these programs

            text = annotated(text)
        self.texts.append(text)
        self._definitions, self._declared, self._defined, self._lines = [], set(), set(), 0
        return text


class Texts(Parts):
    """Only the texts, for a caller that links them into one module."""

    def finish(self, text: str, declares: Iterable[str], only_calls: bool) -> None:
        self._definitions.append(text)
        self._declared |= set(declares)
        self._cut()

    def _hand_over(self) -> None:
        self._cut()
