"""`do_not_convert`: functions that are traced as written. Kept separate from the other modules, which need `ast`."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_marked: dict[int, CodeType] = {}  # the code is kept alive, so that its id stays unique


def do_not_convert(function: F) -> F:
    """Return the function, marked to be traced as written, without conversion; its `if` and `while` must not depend on traced values.

    >>> @aj.do_not_convert
    ... def double(x):
    ...     return x * 2
    >>> aj.function(lambda x: double(x) + 1.0)(3.0)
    Tensor(7., f64[])
    """
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        raise TypeError(f"do_not_convert takes a Python function, not {type(function).__name__}")
    _marked[id(code)] = code
    return function


def is_marked(code: CodeType) -> bool:
    return id(code) in _marked
