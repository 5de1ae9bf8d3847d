"""A step of a trainer as native code: one program for batches of the usual size, and one for all other sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjit.runtime.config import config
from adjit.runtime.function import Function
from adjit.tracer.pytree import flatten


class CompiledStep:
    """Calls `step(*batch)`. The choice of the program depends only on the size of the batch and the usual size.

    If it depended on earlier batches, a run that is restored in the middle of an epoch would not compute the same bits.
    """

    def __init__(self, step: Callable[..., Any], dynamic: bool) -> None:
        """Unless `dynamic`, every size gets a program of its own."""
        self.step = step
        self.dynamic = dynamic and config.dynamic is not False
        self.usual: int | None = None  # size of a batch; that of the first one by default
        self.own: dict[int | None, Function] = {}  # by the usual size
        self.other = self._function("leading")

    def _function(self, dynamic: bool | str | None) -> Function:
        return Function(self.step, name=self.step.__name__, dynamic=dynamic if self.dynamic else False)

    def __call__(self, *batch: Any) -> Any:
        return self.function_for(batch)(*batch)

    def function_for(self, batch: tuple[Any, ...]) -> Function:
        """The function that runs a batch."""
        if not self.dynamic:
            return self.other
        size = examples(batch)
        if self.usual is None:
            self.usual = size
        if size != self.usual:
            return self.other
        found = self.own.get(size)
        if found is None:
            found = self.own[size] = self._function(None)
        return found

    @property
    def trace_count(self) -> int:
        """The number of times that the step has been traced."""
        return self.other.trace_count + sum(function.trace_count for function in self.own.values())

    def pretty_printed_signature(self) -> str:
        """One line for each compiled program; see `Function.pretty_printed_signature`."""
        return "\n".join(filter(None, (function.pretty_printed_signature() for function in (*self.own.values(), self.other))))


def examples(batch: tuple[Any, ...]) -> int | None:
    """The number of rows of the first array of a batch."""
    first = batch[0]
    if not hasattr(first, "shape"):
        first = next((leaf for leaf in flatten(batch)[0] if hasattr(leaf, "shape")), None)
    return first.shape[0] if first is not None and first.shape else None
