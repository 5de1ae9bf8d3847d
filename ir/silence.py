"""NumPy without warnings about overflow, division by zero and invalid operations: their results are the values of IEEE 754.

`np.errstate` costs several times as much as an op on a small array. NumPy keeps these settings in a context variable, so a context in which
they are off, one for each thread, serves all calls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import Context
from typing import Any

import numpy as np


class _Silence(threading.local):
    """`run(function, *args)` calls a function that runs no Python code: other context variables have their defaults in it."""

    run: Callable[..., Any]

    def __init__(self) -> None:
        context = Context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


silence = _Silence()


def silently(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function that has no effects and runs no code of the user's."""
    try:
        return silence.run(function, *args)
    except RuntimeError:  # perhaps a finalizer interrupted another such call of this thread, whose context cannot be entered twice
        with np.errstate(all="ignore"):
            return function(*args)
