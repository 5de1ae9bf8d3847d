"""Updates of parts of a tensor, for `Variable.scatter_*`, `tf.tensor_scatter_nd_*` and `tf.math.*segment_*`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.tracer.surface.updates import update_at

from .errors import InvalidShape

COMBINE: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "mul": ("multiply", lambda a, b: a * b),
    "div": ("divide", lambda a, b: a / b),
    "min": ("minimum", ops.minimum),
    "max": ("maximum", ops.maximum),
}


class IndexedSlices:
    """Rows `values` of a tensor, at `indices` along its first axis: the argument of `Variable.scatter_add` and similar methods."""

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values, self.indices, self.dense_shape = values, indices, dense_shape

    def __repr__(self) -> str:
        return f"IndexedSlices(indices={self.indices!r}, values={self.values!r})"


def nd_key(index: Operand) -> tuple[Any, ...]:
    """The index arrays along each axis, from an array whose last axis holds the positions."""
    if not index.type.shape:
        raise InvalidShape("indices must be at least a vector: its last axis holds one index for each indexed axis")
    return tuple(ops.getitem(index, (..., i)) for i in range(index.type.shape[-1]))


def scattered(how: str, x: Operand, key: tuple[Any, ...], values: Operand) -> Operand:
    """A copy of x, updated at a key. Values at repeated indices are combined; with "update", one of them remains."""
    if how == "update":
        return ops.setitem(x, key, values)
    if how == "add":
        return ops.additem(x, key, values)
    if how == "sub":
        return ops.additem(x, key, ops.neg(values))
    return update_at(*COMBINE[how], x, key, values)
