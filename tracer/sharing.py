"""Which arrays would share memory in NumPy.

A traced `x[i] = v` gives the variable `x` a new value. In NumPy it changes memory, and therefore every variable that holds the array or a
view of it. If there is such a variable, the results would differ: this module lets a write detect that, and raise an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.active import current_builder
from adjit.ir.builder import Builder
from adjit.ir.func import Value
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array, Op
from adjit.ir.ops.index import Gather
from adjit.ir.ops.shape import Flip, Reshape, Slice, Transpose

from .pytree import flatten
from .traced import Traced

SHARING: tuple[type[Op], ...] = (Reshape, Transpose, Slice, Flip, Gather)  # ops that return views in NumPy


def remember_view(op: Op, args: Sequence[Operand], result: Value) -> None:
    """Record whose memory a result would share. Only gathers by scalars (`x[i]`) are views; a result without axes is a scalar."""
    source = args[0]
    if not result.type.shape or any(index.type.shape for index in args[1:]):
        return
    if isinstance(source, Traced) and isinstance(result, Traced):
        result.memory = memory_of(source)


def remember_choice(trace: Builder, results: Sequence[Value], given: Sequence[Sequence[Any]]) -> None:
    """Record whose memory the results of branches or of a loop may share, given the values that they may take."""
    inside: dict[int, Traced] = {}  # id of an array created inside -> the first result that shares its memory
    for result, values in zip(results, given, strict=False):
        if isinstance(result, Traced) and result.type.shape:
            outside, made = split_memory(trace, values)
            others = [inside.setdefault(id(root), result) for root in made]
            result.memory = (*outside, *(other for other in others if other is not result))


def split_memory(trace: Builder, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the arrays that values may be views of: those that existed in `trace`, and those created in its regions."""
    around = list(trace.around())
    roots = [root for value in values for root in memory_of(value) if isinstance(root, Traced | np.ndarray)]
    outside = [isinstance(root, np.ndarray) or root.owner in around for root in roots]
    return [r for r, out in zip(roots, outside, strict=True) if out], [r for r, out in zip(roots, outside, strict=True) if not out]


def memory_of(x: Any) -> tuple[Any, ...]:
    """Return the arrays that a value may be a view of, or else itself. A copy made for a branch, and its views, count as its original."""
    if isinstance(x, Traced):
        return x.memory or (x,)
    known, viewed = doubles(), x
    while isinstance(viewed, np.ndarray):
        if id(viewed) in known:
            return (x, *memory_of(known[id(viewed)][1]))
        viewed = viewed.base
    return (x,)


def doubles() -> dict[int, tuple[Array, Array]]:
    """Return id of a copy made for a branch or an iteration -> (copy, original), for the duration of the trace."""
    builder = current_builder()
    kept: list[dict[int, tuple[Array, Array]]] = [] if builder is None else [b.doubles for b in builder.around() if hasattr(b, "doubles")]
    return kept[-1] if kept else {}


def double(array: Array) -> Array:
    """Copy an array for a branch or an iteration to change; the copy remains linked to the original."""
    out = array.copy()
    doubles()[id(out)] = (out, array)
    return out


def written(trace: Builder, x: Operand, key: Any, value: Any) -> Operand:
    """Return the value of a variable after `x[key] = value`: it has its own memory, even if the value replaces all elements."""
    return owned(trace, ops.setitem(x, key, value), value)


def owned(trace: Builder, out: Operand, given: Any = None) -> Operand:
    """Return a value with its own memory: not that of the value it was given, nor that of an array of which it would be a view."""
    if not isinstance(out, Traced):  # a constant: emitted as a value of the trace, so that its views are tracked
        return trace.emit(Reshape(out.type.shape), (out,))[0]
    return out.copy() if out is given or out.memory else out


def share(x: Any, other: Any, kind: type = object) -> bool:
    """Whether a write to the array `x` would change `other`: an array (of this class), or a structure of arrays."""
    return any(isinstance(leaf, kind) and same_memory(x, leaf) for leaf in flatten(other)[0])


def same_memory(x: Any, y: Any) -> bool:
    return any(a is b or overlap(a, b) for a in memory_of(x) for b in memory_of(y))


def overlap(a: Any, b: Any) -> bool:
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.shares_memory(a, b)
