"""Native objects that are not lost if an interrupt occurs.

Ctrl-C raises KeyboardInterrupt between any two instructions of Python code that the main thread runs: when a C function has returned a new
object that is not stored yet, or in the middle of the `__del__` or `finally` that was about to free it. Usually it is raised when a long
call of C returns, so the results of linking and compiling would be lost; and a library that is lost keeps its whole linker alive.

Python only looks for signals while it interprets instructions. So each of the steps that must not be interrupted is one call of C: calling
the function and storing its result; noting that an owner is gone; taking an object off the list and freeing it. Interrupts between these
steps are harmless: the rest is done later.
"""

from __future__ import annotations

import ctypes
import operator
import sys
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import repeat, starmap
from typing import Any

from .workers import llvm_lock

Calls = list[Callable[[], Any]]
SIGINT = 2  # on every system: the module `signal` takes long to import


class Owned:
    """An object made by a C function, and freed by another with the last reference to this. ctypes functions accept it as an argument."""

    __slots__ = ("_as_parameter_", "_calls", "__weakref__")

    def __init__(self, create: Callable[..., Any], arguments: Sequence[Any], free: Callable[..., Any], *more: Any) -> None:
        """Freed by `free(object, *more)`. A null pointer is not freed, and `bool` of this is then False."""
        self._calls: Calls = []
        free_after(self, self._calls)
        made = filter(None, starmap(create, [arguments]))
        self._calls.extend(map(partial, repeat(free), made, *map(repeat, more)))  # one call of C
        self._as_parameter_ = self._calls[0].args[0] if self._calls else None  # type: ignore[attr-defined]

    def __bool__(self) -> bool:
        return bool(self._calls)


class _Remains(weakref.ref[Any]):
    """The remains of an owner: the calls of C that free what it had, and what these need."""

    __slots__ = ("calls", "kept")
    calls: Calls
    kept: tuple[Any, ...]


_known: dict[int, _Remains] = {}
_gone: list[_Remains] = []  # of owners that no longer exist


def free_after(owner: object, calls: Calls, *kept: Any) -> None:
    """Make these calls, functions of C, when `owner` has gone. What is `kept` lives until then.

    Python calls back for the youngest weak reference first. That is a method of `list`, which cannot be interrupted; what `_free_now` does
    not get to is freed with the next owner.
    """
    trigger = weakref.ref(owner, _free_now)
    free_later(owner, calls, trigger, *kept)
    if _gone:
        free()


def free_later(owner: object, calls: Calls, *kept: Any) -> None:
    """The same for small things, which wait until something else is freed."""
    remains = _Remains(owner, _gone.append)
    remains.calls, remains.kept = calls, kept
    _known[id(remains)] = remains


def free() -> None:
    """Free what belonged to owners that are gone. An interrupt may end this anywhere: each step can be repeated."""
    with llvm_lock:
        while _gone:
            remains = _gone[0]
            with suppress(IndexError):  # the list is empty
                deque(map(operator.call, iter(remains.calls.pop, None)), 0)  # one call of C
            _known.pop(id(remains), None)
            with suppress(ValueError):  # a collection in the middle of this has done the same
                _gone.remove(remains)


def _free_now(_: object, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
    """Called when an owner is gone. Python would only report an interrupt that occurs here, and continue: Ctrl-C would have no effect."""
    try:
        if not is_finalizing():  # at the end, the process gives everything back
            free()
    except KeyboardInterrupt:
        _interrupt_later()


# Python makes pending calls after it has looked for signals: this one is noticed the next time, when the destructor is over
_interrupt_later = partial(
    ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(("Py_AddPendingCall", ctypes.pythonapi)),
    ctypes.cast(ctypes.pythonapi.PyErr_SetInterruptEx, ctypes.c_void_p),
    SIGINT,
)


def live() -> int:
    """How many owners have something to free, or had until now."""
    return len(_known)
