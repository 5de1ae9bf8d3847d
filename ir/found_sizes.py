"""Sizes that depend on values: the length of a list that a loop appends to, the number of elements that a mask selects.

A program needs all sizes when it starts, because its memory is planned. A call therefore *assumes* the sizes that depend on values: those
that the previous call has found. They are passed as hidden arguments, arrays of that many elements whose contents are not read, so that one
program serves all sizes, as for any other argument. The program compares the actual sizes with the assumed ones. If they differ, it fails
with `FoundSizeError` before anything has changed, and the runtime starts the call again with the actual size.

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
    "the size of an array is only known when the function runs, and is {{}} here (size {}); the call would have to start again with that "
    "size, and a function that prints or communicates with other processes cannot: return the values to print, or compute the array in a "
    "separate function that is called before this one"
)


class Unfinished(BaseException):
    """Ends a trace: the program is what has been traced so far. User code does not catch it."""


def found_size(count: Any, otherwise: str) -> int:
    """A traced integer as the size of an array. `otherwise`: the message of the error that is raised where that is not possible."""
    builder = current_builder()
    if builder is None:
        raise TraceError(otherwise)
    return builder.found_size(count, otherwise)


def size_of(n: Any, what: str) -> int:
    """An argument of the function `what` as a size. It may be traced."""
    if isinstance(n, Value) and not n.type.shape and n.type.dtype.kind in "iu":
        return found_size(n, f"{what}: a size cannot be a traced value; {INSTEAD}")
    return as_size(n)


def shape_of(shape: Any, what: str) -> Shape:
    """A shape given as an integer or a sequence of them, each of which may be traced."""
    return as_shape(sizes_in(shape, what), what)


def sizes_in(shape: Any, what: str) -> list[Any]:
    """The parts of a shape, with sizes instead of traced integers."""
    is_one = isinstance(shape, Value) and not shape.type.shape
    items = shape if isinstance(shape, Iterable) and not is_one else (shape,)
    return [size_of(n, what) if isinstance(n, Value) else n for n in items]
