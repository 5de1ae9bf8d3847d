"""Calls of a tf.function that run op by op, because their memory cannot be planned before they run.

TensorFlow allocates memory while a function runs. Here the memory of a program is planned before it starts, which excludes sizes that
differ in each iteration (`x = tf.concat([x, [i]], 0)` with shape invariants, `ta.stack()` of an array that a loop writes to), and elements
that a call takes from an iterator, whose number is known only at run time. The call then runs like eager code, with the same results and
gradients; functions that it calls are still compiled.
"""

from __future__ import annotations

import warnings
from typing import Any

from adjit.ir.errors import VaryingSizeError
from adjit.runtime.slow_calls import SlowCallWarning
from adjit.tracer.frames import user_level

VARIES = (
    ", because the size of an array changes in a traced branch or loop. To compile it, give arrays one size there (pad them, or write to a "
    "tf.TensorArray and stack it after the loop)"
)


class Steps:
    """The signatures of one function whose calls run op by op."""

    __slots__ = ("keys", "name")

    def __init__(self, name: str) -> None:
        self.keys: set[Any] = set()
        self.name = name

    def add(self, key: Any, error: Exception) -> None:
        """Record a signature that could not be traced, and warn once."""
        if not self.keys:
            why = VARIES if isinstance(error, VaryingSizeError) else ""
            warnings.warn(
                f"{self.name} runs op by op, not compiled{why}:\n{error}",
                SlowCallWarning,
                stacklevel=user_level(),
            )
        self.keys.add(key)

    def __contains__(self, key: Any) -> bool:
        return key in self.keys

    def __bool__(self) -> bool:
        return bool(self.keys)
