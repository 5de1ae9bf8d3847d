"""Who is listening on this thread: the recorders of the tapes that are recording now.

Owns the thread's list of recorders and nothing else: tensors and variables announce to it, tapes join and leave it, and neither knows the
other. The list is a tuple, so that "nobody listens" costs one attribute and a truth test.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from adjit.ir.gate import gate

if TYPE_CHECKING:
    from adjit.ir.location import Location
    from adjit.ir.operand import Operand
    from adjit.ir.ops.base import Op

    from .leaving import Taken
    from .variable import Store, Variable


class Recorder(Protocol):
    """The ear of one tape."""

    strict: bool = False  # what it watches may not leave: it belongs to `grad` or another transform

    def applied(self, op: Op, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> None:
        """An op was evaluated eagerly."""

    def stand_ins(self, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """The same arguments; those constants that this tape watches inside of a trace as the traced values in their place."""

    def read(self, variable: Variable, value: Operand) -> None:
        """A variable was read and gave `value`."""

    def last_read(self, store: Store) -> Operand | None:
        """What the last reading of the variable gave: readings between two assignments give one value."""

    def assigned(self, variable: Variable, value: Operand) -> None:
        """A variable was given a new value, eagerly."""
        return  # a body of its own: only tapes want to know, so that it is not abstract

    def watches(self, x: Operand) -> bool:
        """Whether derivatives by `x`, or by what it was computed from, may be asked for."""
        return False

    def left(self, tensor: Operand, location: Location | None, out: object) -> None:
        """A tensor became a NumPy array or a Python number, `out` if that may not come back: what is computed with it is not recorded."""
        return  # as above

    def taken(self, x: object) -> Taken | None:
        """Where `x`, a number or an array, was taken out of this tape; None if it was not."""
        return None


class _Listening(threading.local):
    recorders: tuple[Recorder, ...] = ()


listening = _Listening()


def join(recorder: Recorder) -> None:
    listening.recorders = (*listening.recorders, recorder)
    gate.close()


def leave(recorder: Recorder) -> None:
    left = tuple(r for r in listening.recorders if r is not recorder)
    for _ in range(len(listening.recorders) - len(left)):
        gate.open()
    listening.recorders = left


@contextmanager
def suspended() -> Iterator[None]:
    """Nobody listens inside: a trace is not part of the eager computation around it."""
    before = listening.recorders
    listening.recorders = ()
    try:
        yield
    finally:
        listening.recorders = before
