"""Users' functions as they are traced: with their control flow converted to regions. Eager calls run them unchanged."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from adjit.tracer.trace import current_trace


def converted(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with traceable control flow. AutoGraph is loaded by the first trace, not by `import adjit`."""
    from adjit.tracer.autograph.convert import convert  # noqa: PLC0415 - brings in `ast`

    return convert(fn)


def as_called(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return what a transform calls in place of a user's function: the converted function in a trace, else the function itself."""
    return fn if current_trace() is None else converted(fn)


def handed_over(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a user's function that the library stores and calls later: it is converted when called in a trace."""

    @functools.wraps(fn)
    def called(*args: Any, **kwargs: Any) -> Any:
        return as_called(fn)(*args, **kwargs)

    return fn if getattr(fn, "__module__", "").partition(".")[0] == "adjit" else called
