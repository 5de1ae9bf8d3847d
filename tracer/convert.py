"""From what users pass to operands, and from operands to what users hold.

The classes that users hold are registered by the rooms that own them: the runtime its `Tensor`, the tracer its `Splat`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from adjit.ir import ops
from adjit.ir.arrays import as_array
from adjit.ir.builder import current_builder
from adjit.ir.errors import ShapeError
from adjit.ir.func import Value
from adjit.ir.operand import Concrete, Literal, Operand, as_operand
from adjit.ir.ops.base import Array
from adjit.ir.ops.maps import common_dtype
from adjit.ir.types import TensorType, normalize_axis

Number: TypeAlias = Operand | bool | int | float  # what elementwise frontends take: Python scalars stay weak

_concrete: Callable[[Array], Operand] = Concrete
_splat: Callable[[Any, TensorType], Operand] = Literal


def set_concrete_class(make: Callable[[Array], Operand]) -> None:
    """`make(array)` gives what users hold when nothing is traced."""
    global _concrete
    _concrete = make


def set_splat_class(make: Callable[[Any, TensorType], Operand]) -> None:
    """`make(value, type)` gives what users hold of a constant filled with one value while something is traced."""
    global _splat
    _splat = make


def to_operand(x: Any) -> Operand:
    """An argument of a public function as an operand; raw arrays, lists and scalars become what users hold."""
    if isinstance(x, Operand):
        return as_operand(x)
    return of_rows(x) if holds_operands(x) else _concrete(as_array(x))


def to_operands(*xs: Any) -> list[Operand]:
    """Arguments that meet in one op. Beside a traced value a raw array stays as it is: the trace knows it again, and captures it once."""
    read = [to_operand(x) if isinstance(x, Operand) or holds_operands(x) else x for x in xs]
    make = Concrete if any(isinstance(x, Value) for x in read) else _concrete
    return [x if isinstance(x, Operand) else make(as_array(x)) for x in read]


def numbers(*xs: Any) -> list[Any]:
    """Like `to_operands`, but Python scalars beside an operand pass as they are: they are weak in promotion."""
    scalar = [type(x) in (bool, int, float) for x in xs]
    if all(scalar):
        return [to_operand(x) for x in xs]
    operands = iter(to_operands(*(x for x, s in zip(xs, scalar, strict=True) if not s)))
    return [x if s else next(operands) for x, s in zip(xs, scalar, strict=True)]


def present(x: Operand) -> Operand:
    """An operand made of nothing (`zeros`, `arange`, a gradient that is constant) as what users hold."""
    if isinstance(x, Literal):
        return _concrete(np.array(x.array())) if current_builder() is None else _splat(x.value, x.type)
    return _concrete(x.buffer) if type(x) is Concrete else x


def along(x: Operand, axis: int | None, what: str) -> tuple[Operand, int]:
    """An array and one of its axes; None means the flattened array."""
    if axis is None:
        x, axis = ops.reshape(x, -1), 0
    return x, normalize_axis(axis, x.ndim, what)


def holds_operands(x: Any) -> bool:
    """Whether a list, or one of the lists in it, holds an operand: it is an array to be, as in NumPy."""
    return isinstance(x, list | tuple) and any(isinstance(v, Operand) or holds_operands(v) for v in x)


def of_rows(x: Any) -> Operand:
    """The array of a list, whose parts are operands, numbers, arrays or such lists."""
    if not isinstance(x, list | tuple):
        return to_operand(x)
    dtype = common_dtype(*(v if type(v) in (bool, int, float) else of_rows(v) for v in x))
    rows = [ops.cast(of_rows(v), dtype) for v in x]
    if any(row.type.shape != rows[0].type.shape for row in rows):
        parts = ", ".join(str(row.type) for row in rows)
        raise ShapeError(f"a ragged sequence is not a tensor: its parts are {parts}; pad it to one length")
    return ops.concatenate([ops.reshape(row, (1, *row.type.shape)) for row in rows], 0)


def pick(x: Operand, key: Any) -> Operand:
    """`x[key]`, where the key may hold raw arrays."""
    return ops.getitem(x, key)


KNOWN = 4096  # positions that are written into the program


def counting(n: int, rank: int = 1, axis: int = 0) -> Any:
    """0 … n-1 along one of several axes, the others of size 1: an array, whose elements are known to be inside of bounds, or where that
    would be large, a value of the program, so that tracing takes no longer for large sizes.
    """
    shape = [n if a == axis else 1 for a in range(rank)]
    return np.arange(n).reshape(shape) if n <= KNOWN else ops.iota(shape, axis)
