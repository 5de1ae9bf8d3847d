"""Conversion of control flow, for the modules that converted functions call: they convert the functions that they are given in turn.

Loads `autograph`, which is built on those modules, when a function is first converted: it needs `ast`, which `import adjit` does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def convert(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its control flow converted for tracing."""
    from .autograph import convert  # noqa: PLC0415 - needs `ast`, which would slow down `import adjit`

    return convert.convert(function)


def undecided() -> str:
    """Explain why the user's running line cannot branch on a traced value, and what to do."""
    from .autograph import convert  # noqa: PLC0415 - as above

    return convert.undecided()
