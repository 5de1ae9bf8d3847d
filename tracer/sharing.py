"""Which arrays would share memory in NumPy.

A traced `x[i] = v` gives the variable `x` a new value. In NumPy it changes memory, and every variable that holds it or a view on it. Where
there is such a variable, the two would differ: this is how a write finds out, and refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.builder import Builder
from adjit.ir.func import Value
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array, Op
from adjit.ir.ops.index import Gather
from adjit.ir.ops.shape import Flip, Reshape, Slice, Transpose

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
    inside: dict[int, Traced] = {}  # id of an array made inside -> the first result that lies in it
    for result, values in zip(results, given, strict=False):
        if isinstance(result, Traced) and result.type.shape:
            outside, made = split_memory(trace, values)
            others = [inside.setdefault(id(root), result) for root in made]
            result.memory = (*outside, *(other for other in others if other is not result))


def split_memory(trace: Builder, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The arrays that values may be views on: those that were there in `trace`, and those made in regions of it."""
    around = list(trace.around())
    roots = [root for value in values for root in memory_of(value) if isinstance(root, Traced | np.ndarray)]
    outside = [isinstance(root, np.ndarray) or root.owner in around for root in roots]
    return [r for r, out in zip(roots, outside, strict=True) if out], [r for r, out in zip(roots, outside, strict=True) if not out]


def memory_of(x: Any) -> tuple[Any, ...]:
    """The arrays that a value may be a view on; itself, if on no other. An array that stands for another in a branch is that one, too."""
    if isinstance(x, Traced):
        return x.memory or (x,)
    known = doubles().get(id(x)) if isinstance(x, np.ndarray) else None
    return (x,) if known is None else (x, *memory_of(known[1]))


def doubles() -> dict[int, tuple[Array, Array]]:
    """id of a copy that a branch or a trip was given in place of an array -> both, as long as the trace lasts."""
    from .trace import current_trace  # noqa: PLC0415 - a trace notes views, which this module knows

    trace = current_trace()
    return {} if trace is None else trace.root().doubles


def double(array: Array) -> Array:
    """A copy of an array, for a branch or a trip to change; a write still knows the two for one."""
    out = array.copy()
    doubles()[id(out)] = (out, array)
    return out


def written(trace: Builder, x: Operand, key: Any, value: Any) -> Operand:
    """What a variable holds after `x[key] = value`: memory of its own, also where the value takes the place of all that was there."""
    out = ops.setitem(x, key, value)
    if not isinstance(out, Traced):  # a constant: as a value of the trace, it has views that are known
        return trace.emit(Reshape(out.type.shape), (out,))[0]
    return out.copy() if out is value or out.memory else out


def share(x: Any, other: Any, kind: type = object) -> bool:
    """Whether a write to the array `x` would show in `other`: an array (of this kind), or a structure of arrays."""
    return any(isinstance(leaf, kind) and same_memory(x, leaf) for leaf in flatten(other)[0])


def same_memory(x: Any, y: Any) -> bool:
    return any(a is b or overlap(a, b) for a in memory_of(x) for b in memory_of(y))


def overlap(a: Any, b: Any) -> bool:
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.shares_memory(a, b)
