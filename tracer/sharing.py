"""Which arrays would share memory in NumPy.

A traced `x[i] = v` gives the variable `x` a new value. In NumPy it changes memory, and every variable that holds it or a view on it. Where
there is such a variable, the two would differ: this is how a write finds out, and refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.builder import Builder
from adjit.ir.func import Value
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Op
from adjit.ir.ops.index import Gather
from adjit.ir.ops.shape import Flip, Reshape, Slice, Transpose

from .convert import present
from .pytree import flatten
from .traced import Traced

SHARING: tuple[type[Op], ...] = (Reshape, Transpose, Slice, Flip, Gather)  # ops that NumPy has views for


def remember_view(op: Op, args: Sequence[Operand], result: Value) -> None:
    """Note whose memory a result would lie in. Of gathers, only those by numbers (`x[i]`) are views; a view without axes is a number."""
    source = args[0]
    if not result.type.shape or any(index.type.shape for index in args[1:]):
        return
    if isinstance(source, Traced) and isinstance(result, Traced):
        result.memory = memory_of(source)


def remember_choice(trace: Builder, results: Sequence[Value], given: Sequence[Sequence[Any]]) -> None:
    """Note in whose memory results of branches, or of a loop, may lie: of what they are given, that of arrays made outside."""
    around = list(builders_around(trace))
    for result, values in zip(results, given, strict=False):
        if isinstance(result, Traced) and result.type.shape:
            roots = [root for value in values for root in memory_of(value)]
            result.memory = tuple(r for r in roots if isinstance(r, np.ndarray) or (isinstance(r, Traced) and r.owner in around))


def builders_around(trace: Builder | None) -> Iterator[Builder]:
    while trace is not None:
        yield trace
        trace = trace.parent


def memory_of(x: Any) -> tuple[Any, ...]:
    """The arrays that a value may be a view on; itself, if on no other."""
    return x.memory or (x,) if isinstance(x, Traced) else (x,)


def written(x: Operand, key: Any, value: Any) -> Operand:
    """What a variable holds after `x[key] = value`: memory of its own, also where the value takes the place of all that was there."""
    out = ops.setitem(x, key, value)
    if not isinstance(out, Traced):
        return present(out)
    return out.copy() if out is value or out.memory else out


def share(x: Any, other: Any) -> bool:
    """Whether a write to the array `x` would show in `other`: an array, or a structure of arrays."""
    return any(same_memory(x, leaf) for leaf in flatten(other)[0])


def same_memory(x: Any, y: Any) -> bool:
    return any(a is b or overlap(a, b) for a in memory_of(x) for b in memory_of(y))


def overlap(a: Any, b: Any) -> bool:
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.shares_memory(a, b)
