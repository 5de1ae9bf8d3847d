"""Conversion of users' arguments to operands, and of operands to the objects that users hold.

The classes that users hold are registered by the packages that own them: `Tensor` by the runtime, `Splat` by the tracer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from adjit.ir import ops
from adjit.ir.active import current_builder
from adjit.ir.arrays import as_array
from adjit.ir.errors import ShapeError
from adjit.ir.func import Value
from adjit.ir.operand import LISTS, Concrete, Literal, Operand, as_operand
from adjit.ir.ops.base import Array
from adjit.ir.ops.maps import common_dtype
from adjit.ir.sizes import is_symbolic
from adjit.ir.types import F64, SCALARS, DType, TensorType, normalize_axis

Number: TypeAlias = Operand | bool | int | float | complex  # arguments of elementwise functions: Python scalars stay weakly typed

_concrete: Callable[[Array], Operand] = Concrete
_shared: Callable[[Array], Operand] = Concrete
_splat: Callable[[Any, TensorType], Operand] = Literal


def set_concrete_class(make: Callable[[Array], Operand], shared: Callable[[Array], Operand]) -> None:
    """Register `make(array)`, which creates the objects that users hold when nothing is traced; `shared` is for arrays never written to."""
    global _concrete, _shared
    _concrete, _shared = make, shared


def of_immutable(array: Array) -> Operand:
    """Return an operand that shares the memory of an array that is never written to."""
    return _shared(as_array(array))


def set_splat_class(make: Callable[[Any, TensorType], Operand]) -> None:
    """Register `make(value, type)`, which creates the constants filled with one value that users hold during tracing."""
    global _splat
    _splat = make


def to_operand(x: Any) -> Operand:
    """Return an argument of a public function as an operand, as `np.asarray` would: raw arrays, lists and Python numbers, known and traced,
    are converted to arrays, which determine the dtype of the result.
    """
    if isinstance(x, Operand):
        return as_operand(x).strong()
    if is_symbolic(x):
        return as_operand(x).strong()
    return of_rows(x) if holds_operands(x) else _concrete(as_array(x))


def to_operands(*xs: Any) -> list[Operand]:
    """Return the arguments of one op as operands. Next to a traced value, raw arrays stay raw, so that the trace captures each once."""
    return [x.strong() for x in _operands(xs)]


def _operands(xs: Sequence[Any]) -> list[Operand]:
    """Convert like `to_operands`, except that traced Python numbers stay weakly typed."""
    read = [as_operand(x) if isinstance(x, Operand) or is_symbolic(x) else of_rows(x) if holds_operands(x) else x for x in xs]
    make = Concrete if any(isinstance(x, Value) for x in read) else _concrete
    return [x if isinstance(x, Operand) else make(as_array(x)) for x in read]


def arithmetic(*xs: Any) -> list[Any]:
    """Convert the operands of a Python operator: Python numbers, known and traced, stay weakly typed, whatever the other operands are."""
    operands = iter(_operands([x for x in xs if type(x) not in SCALARS]))
    return [x if type(x) in SCALARS else next(operands) for x in xs]


def numbers(*xs: Any) -> list[Any]:
    """Convert the arguments of a ufunc: Python numbers, known and traced, are weakly typed next to an array, else arrays themselves."""
    out = arithmetic(*xs)
    return [to_operand(x) for x in out] if all(map(is_number, out)) else out


def is_number(x: Any) -> bool:
    """Whether this is a Python number, known or traced: a weakly typed value."""
    return type(x) in SCALARS or (isinstance(x, Operand) and x.weak)


def present(x: Operand) -> Operand:
    """Return an operand that depends on no input (`zeros`, `arange`, a constant gradient) in the form that users hold."""
    if isinstance(x, Literal):
        return _concrete(np.array(x.array())) if current_builder() is None else _splat(x.value, x.type)
    return _concrete(x.buffer) if type(x) is Concrete else x


def along(x: Operand, axis: int | None, what: str) -> tuple[Operand, int]:
    """Return an array and the normalised axis; None means the flattened array."""
    if axis is None:
        x, axis = ops.reshape(x, -1), 0
    return x, normalize_axis(axis, x.ndim, what)


def with_axes(x: Operand) -> Operand:
    """Return a value without axes as a vector of one element, as NumPy's functions that select elements do."""
    return x if x.ndim else ops.reshape(x, 1)


def holds_operands(x: Any) -> bool:
    """Whether a list, or a list nested in it, contains an operand: it is then converted to an array, as in NumPy."""
    if isinstance(x, list | tuple):
        return any(isinstance(v, Operand) or is_symbolic(v) or holds_operands(v) for v in x)
    return type(x) in LISTS


def array_of_list(x: Any) -> Any:
    """Return a list that contains operands as the array that NumPy would make of it; anything else unchanged."""
    return of_rows(x) if holds_operands(x) else x


def rows_at_once(x: Any) -> Operand | None:
    """Return the array whose rows are the items of a list that a traced loop made; None for other lists."""
    return LISTS[type(x)](x) if type(x) in LISTS and not isinstance(x, list | tuple) else None


def of_rows(x: Any) -> Operand:
    """Return the array of a list whose items are operands, numbers, arrays or such lists."""
    if not isinstance(x, list | tuple):
        return LISTS[type(x)](x) if type(x) in LISTS else to_operand(x)
    parts = [of_rows(v) for v in x]
    return rows_joined(parts, common_dtype(*parts))


def rows_joined(parts: Sequence[Operand], dtype: DType) -> Operand:
    """Return the array whose rows are `parts`, cast to `dtype`; raises ShapeError if their shapes differ."""
    if any(part.type.shape != parts[0].type.shape for part in parts):
        types = ", ".join(str(part.type) for part in parts)
        raise ShapeError(f"a ragged sequence is not a tensor: its parts are {types}; pad it to one length")
    rows = [ops.cast(part, dtype) for part in parts]
    return ops.concatenate([ops.reshape(row, (1, *row.type.shape)) for row in rows], 0)


def pick(x: Operand, key: Any) -> Operand:
    """Return `x[key]`, where the key may contain raw arrays."""
    return ops.getitem(x, key)


def as_float(n: int) -> Any:
    """Return a size as a Python float, known or traced."""
    return as_operand(n).retyped(F64, True) if is_symbolic(n) else float(n)


KNOWN = 4096  # maximum number of indices stored in the program as constants


def counting(n: int, rank: int = 1, axis: int = 0) -> Any:
    """Return 0 … n-1 along one of `rank` axes, the others having size 1.

    Small results are arrays, whose elements are known to be in bounds; large ones are computed by the program, so that the time for tracing
    does not grow with the size.
    """
    shape = [n if a == axis else 1 for a in range(rank)]
    return ops.iota(shape, axis) if is_symbolic(n) or n > KNOWN else np.arange(n).reshape(shape)


LISTS.update({list: array_of_list, tuple: array_of_list})
