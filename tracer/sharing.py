"""Which arrays would share memory in NumPy.

A traced `x[i] = v` gives the variable `x` a new value. In NumPy it changes memory, and every variable that holds it or a view on it. Where
there is such a variable, the two would differ: this is how a write finds out, and refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.func import Value
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Op
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


def memory_of(x: Any) -> Any:
    return x if not isinstance(x, Traced) or x.memory is None else x.memory


def written(x: Operand, key: Any, value: Any) -> Operand:
    """What a variable holds after `x[key] = value`: memory of its own, also where the value takes the place of all that was there."""
    out = ops.setitem(x, key, value)
    return out.copy() if isinstance(out, Traced) and (out is value or out.memory is not None) else out


def share(x: Any, other: Any) -> bool:
    """Whether a write to the array `x` would show in `other`: an array, or a structure of arrays."""
    return any(same_memory(x, leaf) for leaf in flatten(other)[0])


def same_memory(x: Any, y: Any) -> bool:
    if isinstance(x, np.ndarray):
        return isinstance(y, np.ndarray) and np.shares_memory(x, y)
    return memory_of(x) is memory_of(y)
