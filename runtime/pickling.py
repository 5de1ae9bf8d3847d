"""How functions are pickled: by their importable name if they have one, else by value.

A function that can be imported is pickled like a plain function: as its name. Lambdas, functions defined inside others, and, for picklers
that carry code (cloudpickle, dill), those of `__main__` are pickled as the wrapped Python function and the options given to `@function`;
whether that function can be pickled depends on the pickler. Compiled code is never pickled: the first call in the other process finds it in
the disk cache, or compiles.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .function import Function

CARRIERS = ("cloudpickle", "dill")  # joblib and others ship a copy of cloudpickle


def reduced(function: Function) -> Any:
    """Return the value of `__reduce__` for a function."""
    name = importable_name(function)
    if name is not None and not (function.__module__ == "__main__" and carries_code()):
        return name
    # the state is set after the object is created, so that the function may refer to itself
    return blank, (function.kind,), function._arguments()


def blank(kind: type[Function]) -> Function:
    return kind.__new__(kind)


def importable_name(function: Function) -> str | None:
    """Return the qualified name under which the function's module holds the function itself, or None."""
    name = getattr(function, "__qualname__", "")
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is function else None


def carries_code() -> bool:
    """Whether the running pickler pickles functions of `__main__` by value."""
    return any(part in CARRIERS for frame in frames() for part in str(frame.f_globals.get("__name__", "")).split("."))


def frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
