"""How functions are pickled: by the name under which they can be imported, else by value.

A function that an import finds is pickled as plain functions are: as its name. Lambdas, functions made inside of others, and those of
`__main__` for picklers that carry code (cloudpickle, dill), are pickled as the Python function inside and the options it was made with;
whether that one can be pickled is the pickler's matter. Compiled code is never pickled: the first call in the other process finds it in
the disk cache, or compiles.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .function import Function

CARRIERS = ("cloudpickle", "dill")  # joblib and others bring a copy of cloudpickle's


def reduced(function: Function) -> Any:
    """What `__reduce__` gives for a function."""
    name = importable_name(function)
    if name is not None and not (function.__module__ == "__main__" and carries_code()):
        return name
    # the state comes after the object, so that the function may refer to itself
    return blank, (function.kind,), function._arguments()


def blank(kind: type[Function]) -> Function:
    return kind.__new__(kind)


def importable_name(function: Function) -> str | None:
    """The qualified name under which the function's module has the function itself."""
    name = getattr(function, "__qualname__", "")
    found: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is function else None


def carries_code() -> bool:
    """Whether the pickler that is running pickles functions of `__main__` by value."""
    return any(part in CARRIERS for frame in frames() for part in str(frame.f_globals.get("__name__", "")).split("."))


def frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
