"""A warning about functions that are compiled anew for almost every call, which names the argument that causes it.

The warning is given after `STREAK` consecutive traces none of which was used a second time, all because of the same arguments. Owns the
history of the last traces, and the description of what changed between two of them.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from adjit.ir.records import NamedTuple
from adjit.ir.types import DTYPE_NAMES
from adjit.tracer.frames import user_level
from adjit.tracer.pytree import TreeDef
from adjit.tracer.trace import argument_names

from .concrete import ConcreteFunction
from .signature import Signature
from .specs import kind_text

STREAK = 5


class RetraceWarning(UserWarning):
    """A function is traced and compiled repeatedly, for a single call each."""


class CachedTrace(NamedTuple):
    tree: TreeDef
    kinds: Sequence[Hashable]
    concrete: ConcreteFunction
    first_use: int


class Retraces:
    """The last traces of one function."""

    def __init__(self, fn: Callable[..., Any], name: str) -> None:
        self.fn = fn
        self.name = name
        self.last: deque[CachedTrace] = deque(maxlen=STREAK)

    def note(self, signature: Signature, concrete: ConcreteFunction, reasons: Sequence[str] = ()) -> None:
        """Record a new trace that is about to run for the first time. `reasons` say why it is not one for all sizes."""
        key: Any = signature.key
        entry = CachedTrace(key[0], key[1], concrete, concrete.used)
        if any(e.concrete.used > e.first_use for e in self.last):
            self.last.clear()
        if len(self.last) > 1 and changed(self.last[-2], self.last[-1]) != changed(self.last[-1], entry):
            self.last = deque([self.last[-1]], STREAK)
        self.last.append(entry)
        if len(self.last) == STREAK:
            change = difference(self.fn, self.last[-2], entry) + "".join(f" (not compiled for all sizes: {reason})" for reason in reasons)
            self.last.clear()
            warnings.warn(
                f"{self.name} has been compiled {STREAK} times in a row for a single call each, the last time because of {change}. "
                "Tracing is expensive, and so is compiling: use few shapes (pad the last batch), pass arrays instead of Python values that "
                "change, and create the function once, outside of loops; reduce_retracing=True silences this warning.",
                RetraceWarning,
                stacklevel=user_level(),
            )

    def clear(self) -> None:
        self.last.clear()


def changed(before: CachedTrace, now: CachedTrace) -> set[int] | None:
    """Return which leaves of the arguments differ; None if their structure differs."""
    if before.tree != now.tree:
        return None
    return {i for i, (a, b) in enumerate(zip(before.kinds, now.kinds, strict=True)) if a != b}


def difference(fn: Callable[..., Any], before: CachedTrace, now: CachedTrace) -> str:
    """Describe what distinguishes two calls: "`x`: dim 0 was 32, is 31"."""
    if before.tree != now.tree and before.tree.entries == now.tree.entries:
        return "the order of the keys of a dict"
    if before.tree != now.tree:
        was, has = argument_names(fn, before.tree), argument_names(fn, now.tree)
        parts = [(", ".join(f"`{n}`" for n in one if n not in other), how) for one, other, how in ((was, has, "gone"), (has, was, "new"))]
        found = "; ".join(f"{names} {how}" for names, how in parts if names)
        return f"the structure of the arguments: {found or f'it was {before.tree}, is {now.tree}'}"
    names = argument_names(fn, now.tree)
    changes = [f"`{n}`: {change(a, b)}" for n, a, b in zip(names, before.kinds, now.kinds, strict=True) if a != b]
    return "; ".join(changes) if changes else "which variables among the arguments are the same"


def change(before: Any, now: Any) -> str:
    both_arrays = all(isinstance(k, tuple) and isinstance(k[0], np.dtype) for k in (before, now))
    if both_arrays and before[0] != now[0]:
        return f"dtype was {DTYPE_NAMES[before[0]]}, is {DTYPE_NAMES[now[0]]}"
    if both_arrays and len(before[1]) == len(now[1]):
        dims = [f"dim {i} was {a}, is {b}" for i, (a, b) in enumerate(zip(before[1], now[1], strict=True)) if a != b]
        return ", ".join(dims) if dims else "a Python number was an array, or the other way round"
    return f"was {kind_text(before)}, is {kind_text(now)}"
