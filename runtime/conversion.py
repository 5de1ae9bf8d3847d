"""Users' functions as they are traced: with their control flow converted to regions. Eager calls run them as they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from adjit.tracer.trace import current_trace


def converted(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function with traceable control flow. AutoGraph is loaded by the first trace, not by `import adjit`."""
    from adjit.tracer.autograph.convert import convert  # noqa: PLC0415 - brings in `ast`

    return convert(fn)


def as_called(fn: Callable[..., Any]) -> Callable[..., Any]:
    """What a transformation of ours calls in place of a user's function: the converted one in a trace, itself otherwise."""
    return fn if current_trace() is None else converted(fn)


def handed_over(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the user's that is kept, and called by code of ours: converted where that is traced."""

    @functools.wraps(fn)
    def called(*args: Any, **kwargs: Any) -> Any:
        return as_called(fn)(*args, **kwargs)

    return fn if getattr(fn, "__module__", "").partition(".")[0] == "adjit" else called
