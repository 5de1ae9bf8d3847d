"""TensorFlow's rule for variables that a function creates: on the first call only, and something must keep them alive."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .variable import Store, scope

if TYPE_CHECKING:
    from .variable import Variable

SINGLETON = (
    "a function only supports singleton variables created on the first call: make sure that the Variable is created once "
    "(`if self.w is None: self.w = Variable(...)`), or create it outside of the function"
)


class Creation:
    """Applies the rule to one function, whose body may be traced several times."""

    def __init__(self) -> None:
        self._complete = False  # traced to the end once: from then on no variable may be created

    @contextmanager
    def watched(self, closed_over: set[Store], is_stepwise: bool = False) -> Iterator[None]:
        """Apply the rule while the body is traced (or runs op by op), and add the variables that it closes over to a set."""
        before = (scope.refusal, scope.created, scope.closed_over, scope.is_stepwise)
        created: list[weakref.ref[Variable]] = []
        scope.refusal, scope.created, scope.closed_over = SINGLETON if self._complete else None, created, closed_over
        scope.is_stepwise = is_stepwise
        try:
            yield
        finally:
            scope.refusal, scope.created, scope.closed_over, scope.is_stepwise = before
        if any(ref() is None for ref in created):  # not kept alive: the next call would create it again
            raise ValueError(SINGLETON)
        self._complete = True
