"""Results that are objects of their own.

Many functions have nothing to compute for some arguments: `clip` without bounds, `roll` by 0, `reshape` to the same shape. In the IR their
result is then the operand itself. A user can write to a tensor, so that two names for one object are one too many: public functions that
may return an argument are decorated, as `copies` or, if NumPy's function returns a view, as `views`. What a write to the result means
depends on it (see `runtime/writing.py`): the arrays of views are marked as writable, if they are those of tensors that are not views, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from adjit.ir.active import current_builder
from adjit.ir.operand import Concrete
from adjit.ir.ops.base import Array

P = ParamSpec("P")
R = TypeVar("R")


def copies(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a public function whose results have no memory in common with its arguments."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        out: R = apart(function(*args, **kwargs), args, False)
        return out

    return call


def views(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a public function whose results may be views of its arguments."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        out: R = apart(function(*args, **kwargs), args, True)
        return out

    return call


def apart(out: Any, args: Sequence[Any], view: bool) -> Any:
    """Return the results of a function, with tensors of their own in the place of its arguments and, in copies, of views of them."""
    if isinstance(out, Concrete):
        return out.apart(view) if is_given(out, args) else marked(out, args, view)
    if isinstance(out, list | tuple):
        parts = [apart(each, args, view) for each in out]
        return out._make(parts) if hasattr(out, "_make") else type(out)(parts)
    return out


def is_given(out: Concrete, args: Sequence[Any]) -> bool:
    """Whether a result is an argument, or an item of one that is a list."""
    return any(out is arg or (isinstance(arg, list | tuple) and is_given(out, arg)) for arg in args)


def marked(out: Concrete, args: Sequence[Any], view: bool) -> Concrete:
    """Return a new result with memory of its own, if it is to be a copy, or marked as a view."""
    array = out.buffer
    if current_builder() is not None:
        return out
    if not view:
        if not array.flags.writeable or any(owner(array) is owner(arg.buffer) for arg in flat(args)):
            out.buffer = array.copy()  # an argument's array, or a part of it or of something else that was computed
    elif array.base is not None and 0 not in array.strides:
        array.flags.writeable = all(arg.buffer.flags.writeable for arg in flat(args))
    return out


def flat(args: Sequence[Any]) -> Iterator[Concrete]:
    for arg in args:
        if isinstance(arg, Concrete):
            yield arg
        elif isinstance(arg, list | tuple):
            yield from flat(arg)


def owner(array: Array) -> Any:
    """The object that the memory of an array belongs to."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
