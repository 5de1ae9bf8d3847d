"""Random numbers from NumPy and Python's `random`, which a trace draws only once: every call of the compiled function gets the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import BuiltinMethodType, MethodType
from typing import Any

from adjit.ir.errors import TraceError

from ..frames import user_location
from ..trace import Trace

RANDOM = ("random", "numpy.random")
SOURCES = frozenset({"Generator", "RandomState", "Random"})  # recognised by name, which avoids importing their modules
MAKERS = SOURCES | {"default_rng"}
HARMLESS = frozenset({"seed", "getstate", "setstate", "get_state", "set_state", "spawn"})


def draws(function: Any) -> bool:
    """Whether a function may draw random numbers, or create a generator."""
    owner = getattr(function, "__self__", function)
    return any(str(getattr(x, "__module__", "")).startswith(RANDOM) for x in (type(owner), function))


def checked(function: Any, trace: Trace) -> Callable[..., Any] | None:
    """Return what is called in place of a function that creates or uses a random number generator; None for any other."""
    if not draws(function):
        return None
    name = getattr(function, "__name__", "")
    if name in MAKERS:
        return lambda *args, **options: _made(function, trace, *args, **options)
    if not isinstance(function, BuiltinMethodType | MethodType) or type(function.__self__).__name__ not in SOURCES:
        return None
    if name not in HARMLESS and id(function.__self__) not in trace.root().sources:
        _report_draw(name, is_error=type(function.__self__).__name__ == "Generator")
    return function


def _made(function: Callable[..., Any], trace: Trace, *args: Any, **options: Any) -> Any:
    """Create a generator. One created with a seed inside the function gives the same numbers in every call in plain Python, too."""
    out = function(*args, **options)
    if args or options:
        trace.root().sources[id(out)] = out
    return out


def _report_draw(name: str, is_error: bool) -> None:
    """Raise for NumPy's generators, which are drawn from deliberately; warn for the global ones, which libraries use as well."""
    place = user_location()
    text = (
        f"{name}() draws random numbers only while the function is traced, so every call would use the same ones; use aj.random, which "
        "draws in every call, or pass the numbers as an argument"
    )
    if is_error:
        raise TraceError(text).at(place)
    if place is None:
        warnings.warn(text, stacklevel=3)
    else:
        warnings.warn_explicit(text, UserWarning, place.file, place.line)
