"""The recorders of the tapes that are recording on this thread.

Owns the thread's list of recorders and nothing else: tensors and variables report to it, tapes join and leave it, and neither depends on
the other. The list is a tuple, so that checking for "no recorder" costs a few attribute accesses and a truth test.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from adjit.ir.gate import gate
from adjit.ir.silence import silence

if TYPE_CHECKING:
    from adjit.ir.location import Location
    from adjit.ir.operand import Operand
    from adjit.ir.ops.base import Op

    from .leaving import Taken
    from .log import TapeLog
    from .variable import Store, Variable


class Recorder(Protocol):
    """Receives events on behalf of one tape."""

    strict: bool = False  # watched values may not be converted: the recorder belongs to `grad` or another transform
    excuses: bool = False  # a function with a derivative of its own is running: values that earlier tapes watch may be converted

    def applied(self, op: Op, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> None:
        """Called when an op was evaluated eagerly."""

    def stand_ins(self, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        """Return the arguments, with constants that this tape watches inside a trace replaced by the traced values that represent them."""

    def read(self, variable: Variable, value: Operand) -> None:
        """Called when a variable was read and returned `value`."""

    def last_read(self, store: Store) -> Operand | None:
        """Return the value of the variable's last read: reads between two assignments return the same value."""

    def assigned(self, variable: Variable, value: Operand) -> None:
        """Called when a variable was assigned eagerly."""
        return  # not abstract, since only tapes need it

    def watches(self, x: Operand) -> bool:
        """Whether derivatives with respect to `x`, or to values that it was computed from, may be requested."""
        return False

    def left(self, tensor: Operand, location: Location | None, out: object) -> None:
        """Called when a tensor became a NumPy array or a Python number (`out`, if it may not come back), which is not recorded."""
        return  # as above

    def taken(self, x: object) -> Taken | None:
        """Return where `x`, a number or an array, was extracted from this tape; None if it was not."""
        return None


class Here:
    """The state that an eager op needs: the recorders of the thread, and how it calls NumPy without warnings."""

    __slots__ = ("recorders", "log", "run")

    def __init__(self) -> None:
        self.recorders: tuple[Recorder, ...] = ()
        self.log: TapeLog | None = None  # that of the only recorder, if it is an eager tape
        self.run = silence.run

    def listen(self, recorders: tuple[Recorder, ...]) -> None:
        self.recorders = recorders
        self.log = getattr(recorders[0], "log", None) if len(recorders) == 1 else None


HERE = "adjit here"  # the key of a thread's state in the dict that Python keeps for it, where native code finds it


class _Listening(threading.local):
    here: Here

    def __init__(self) -> None:
        self.here = Here()
        ctypes.cast(_dict_of_thread(), ctypes.py_object).value[HERE] = self.here  # a borrowed reference

    @property
    def recorders(self) -> tuple[Recorder, ...]:
        return self.here.recorders

    @recorders.setter
    def recorders(self, recorders: tuple[Recorder, ...]) -> None:
        self.here.listen(recorders)


_dict_of_thread = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyThreadState_GetDict", ctypes.pythonapi))
listening = _Listening()


def join(recorder: Recorder) -> None:
    here = listening.here
    here.listen((*here.recorders, recorder))
    gate.close()


def leave(recorder: Recorder) -> None:
    here = listening.here
    before = here.recorders
    left = () if before == (recorder,) else tuple(r for r in before if r is not recorder)
    for _ in range(len(before) - len(left)):
        gate.open()
    here.listen(left)


@contextmanager
def suspended() -> Iterator[None]:
    """Disable all recorders inside the block: a trace is not part of the surrounding eager computation."""
    before = listening.recorders
    listening.recorders = ()
    try:
        yield
    finally:
        listening.recorders = before
