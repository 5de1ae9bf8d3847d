"""Context managers in traced programs: an error for one that suppresses an exception where the rewriting relies on it not to."""

from __future__ import annotations

from typing import Any

from adjit.ir.errors import TraceError

from ..frames import user_location
from ..trace import current_trace
from .special import Entered


def not_suppressing(manager: Any, names: str) -> NotSuppressing:
    return NotSuppressing(manager, names)


class NotSuppressing:
    """Wraps a context manager that must not suppress exceptions: after it, `names` would have other values than in Python."""

    def __init__(self, manager: Any, names: str) -> None:
        self.manager = manager
        self.names = names

    def __enter__(self) -> Any:
        return type(self.manager).__enter__(self.manager)

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Any:
        suppressed = type(self.manager).__exit__(self.manager, kind, error, traceback)
        if suppressed and kind is not None and current_trace() is not None:
            manager = self.manager.manager if isinstance(self.manager, Entered) else self.manager
            raise TraceError(
                f"a context manager ({type(manager).__name__}) suppresses {kind.__name__} here, after which `{self.names}` would not "
                "have the values that a branch or loop of the block assigned; catch the exception with try, or with contextlib.suppress"
            ).at(user_location()) from error
        return suppressed
