"""Sizes that a call finds while it runs: the length of a list that a loop appends to, the number of elements that a mask selects.

The memory of a program is planned when it starts, so sizes are known by then. A call therefore *assumes* the sizes that follow from values:
those that the call before it has found. They are hidden arguments, arrays of as many elements that no one reads, so that one program serves
all sizes, as for any other argument. The program compares what it finds with each assumption. If they differ, it fails with
`FoundSizeError` before anything has changed, and the runtime starts the call again with the size that was found.

If nothing is known about a size yet, the trace ends there (`Unfinished`), and the program is one that always fails in this way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .active import current_builder
from .errors import TraceError
from .func import Value
from .types import Shape, as_shape, as_size

INSTEAD = "take it from the .shape of an argument, close over a Python int, or name the argument in static="
NEVER = -(2**63)  # a size that no array has

MESSAGE = (
    "an array has a size that is only known when the function runs, and is {{}} here (size {}); a function that prints, or communicates "
    "with other processes, cannot start again with that size: return what is to be printed, or make the array in a function called before "
    "this one"
)


class Unfinished(BaseException):
    """Ends a trace: the program is what has been traced so far. User code does not catch it."""


def found_size(count: Any, otherwise: str) -> int:
    """A traced integer as the size of an array. `otherwise` is what an error says where that is not possible."""
    builder = current_builder()
    if builder is None:
        raise TraceError(otherwise)
    return builder.found_size(count, otherwise)


def size_of(n: Any, what: str) -> int:
    """An argument of the function `what` as a size. It may be traced."""
    if isinstance(n, Value) and not n.type.shape and n.type.dtype.kind in "iu":
        return found_size(n, f"{what}: a traced value decides on a size; {INSTEAD}")
    return as_size(n)


def shape_of(shape: Any, what: str) -> Shape:
    """A shape given as an integer or a sequence of them, each of which may be traced."""
    return as_shape(sizes_in(shape, what), what)


def sizes_in(shape: Any, what: str) -> list[Any]:
    """The parts of a shape, with sizes in the place of traced integers."""
    is_one = isinstance(shape, Value) and not shape.type.shape
    items = shape if isinstance(shape, Iterable) and not is_one else (shape,)
    return [size_of(n, what) if isinstance(n, Value) else n for n in items]
