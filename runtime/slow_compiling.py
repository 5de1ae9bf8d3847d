"""A warning, given once, about a function whose first call took seconds; it names the line that was traced most often."""

from __future__ import annotations

import warnings
from collections import Counter

from adjit.ir.func import Block
from adjit.tracer.frames import user_level

from .concrete import ConcreteFunction

SLOW = 2.0  # seconds
REPEATED = 16  # statements of one line: more than a single expression has


class SlowCompilationWarning(UserWarning):
    """Tracing and compiling a function took a long time."""


def warn_if_slow(name: str, concrete: ConcreteFunction, busy: float) -> bool:
    """Warn if this specialisation took long to make; return whether it did. `busy` is its processor time: waiting does not count."""
    seconds = concrete.executable.seconds
    total = sum(seconds.values())
    if min(total, busy) < SLOW:
        return False
    stages = ", ".join(f"{stage} {spent:.1f} s" for stage, spent in seconds.items())
    warnings.warn(
        f"{name} took {total:.1f} s to trace and compile ({stages}). {advice(concrete.program.func.block)}",
        SlowCompilationWarning,
        stacklevel=user_level(),
    )
    return True


def advice(block: Block) -> str:
    """Return which of the user's lines has most of the statements, and what to write instead."""
    from adjit.passes.rewrite import walk  # noqa: PLC0415 - on the way to a warning only

    located = [stmt.location for stmt in walk(block) if stmt.location is not None]
    by_line = Counter((location.file, location.line) for location in located)
    line, most = max(by_line.items(), key=lambda item: item[1], default=(("", 0), 0))
    if most < max(REPEATED, len(located) // 50):
        return f"It has {len(located)} statements. The disk cache keeps the compiled code for the next process."
    example = next(location for location in located if (location.file, location.line) == line)
    return (
        f"It has {len(located)} statements, {most} of them from one line: a loop around it was unrolled. To compile the line once, loop "
        f"over `aj.range(n)`, or use aj.scan or aj.vmap.\n  {example.describe()}"
    )
