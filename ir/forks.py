"""The locks that a fork waits for, in a fixed order.

Each stage keeps something out until the fork is over, and waits for those that are inside. A thread that a later stage waits for may need
what an earlier one keeps out only if it can do without: a step, for instance, may collect garbage and so free native code, but it never
compiles. So compilations are waited for first, then steps, and the freeing of native code last. The order must not depend on which module
happens to be imported first.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable
from functools import partial


class Stage(enum.IntEnum):
    COMPILING = 0
    STEPS = 1
    FREEING = 2


_waits: dict[Stage, Callable[[], None]] = {}


def before_fork(stage: Stage, wait: Callable[[], None]) -> None:
    """Call `wait` in the parent before it forks, after the earlier stages."""
    _waits[stage] = wait


def _run(stage: Stage) -> None:
    if stage in _waits:
        _waits[stage]()


if hasattr(os, "register_at_fork"):
    for each in reversed(Stage):  # Python calls the one that was registered last first; if one is interrupted, it calls the others
        os.register_at_fork(before=partial(_run, each))
