"""Keys that determine the shape of the selected part: slices with traced bounds, and traced masks.

`data[i * b:(i + 1) * b]` takes b rows for any i: the bounds are compared as linear forms of the values that they were computed from. Such a
slice that exceeds the array, which NumPy would truncate, raises at run time. The lengths of all others, and the numbers of elements that
masks select, are found when the function runs (`ir.found_sizes`).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from adjit.ir import ops
from adjit.ir.active import current_builder
from adjit.ir.builder import Builder
from adjit.ir.found_sizes import found_size
from adjit.ir.func import Stmt, Value
from adjit.ir.operand import Concrete, Literal, Operand, as_operand
from adjit.ir.ops.arithmetic import Add, Neg, Sub
from adjit.ir.ops.maps import Cast, Mul
from adjit.ir.ops.shape import Broadcast, Reshape
from adjit.ir.types import BOOL, I64

from .numpy_table import surface

SEARCHED = 400  # number of statements to search before the slice, in each enclosing region

Form: TypeAlias = dict[int | None, int]  # id of a value -> its coefficient; None: the constant


def has_traced_slice(key: Any) -> bool:
    parts = key if type(key) is tuple else (key,)
    return any(type(part) is slice and (isinstance(part.start, Value) or isinstance(part.stop, Value)) for part in parts)


def has_traced_mask(key: Any) -> bool:
    parts = key if type(key) is tuple else (key,)
    return any(isinstance(part, Value) and part.type.dtype == BOOL for part in parts)


def key_to_write(x: Operand, key: Any, value: Any) -> Any:
    """Return a key for `x[key] = value`, with indices for slices with traced bounds.

    A single traced mask stays a mask if the value fits all elements; if there is a value for each selected element, positions are needed.
    """
    if has_traced_mask(key) and needs_positions(x, key, value):
        key = with_positions(x, key, "setitem")[1]
    return as_rows(x, key) if has_traced_slice(key) else key


def needs_positions(x: Operand, key: Any, value: Any) -> bool:
    if type(key) is tuple:
        return all(part.type.shape for part in key if has_traced_mask(part))
    shape = value.shape if isinstance(value, Operand) else np.shape(value)
    rest = len(x.type.shape) - len(key.type.shape)
    return any(n != 1 for n in shape[: max(0, len(shape) - rest)])


def with_positions(x: Operand, key: Any, what: str = "getitem") -> tuple[Operand, Any]:
    """Return an array and a key that select what x[key] does, with positions instead of traced masks.

    A single bool selects all or nothing of a new axis of size 1.
    """
    given = key if type(key) is tuple else (key,)
    parts: list[Any] = []
    for at, part in enumerate(given):
        if not has_traced_mask(part):
            parts.append(part)
            continue
        otherwise = (
            f"{what}: [{part.type}] of {x.type}: the number of elements that a traced mask selects is not known while tracing; use "
            "where(mask, a, b) instead, or give the largest number possible: adjit.extract(mask, x, size=n)"
        )
        axis = sum(axes_taken(p) for p in parts)
        if any(p is Ellipsis for p in parts):
            axis = len(x.type.shape) - sum(axes_taken(p) for p in given[at:])
        if axis < 0 or part.type.shape != x.type.shape[axis : axis + len(part.type.shape)]:
            return x, key  # `getitem` raises the error
        if not part.type.shape:
            x = ops.reshape(x, (*x.type.shape[:axis], 1, *x.type.shape[axis:]))
        found = surface("sets").found_positions(ops.reshape(part, -1), otherwise)
        parts += surface("indexing").unravel_index(found, part.type.shape or (1,))
    return x, tuple(parts)


def axes_taken(part: Any) -> int:
    """Return the number of axes of the array that a part of a key indexes; a mask indexes as many as it has."""
    if part is None or part is Ellipsis or isinstance(part, bool | np.bool_):
        return 0
    array = part if isinstance(part, Operand | np.ndarray) else np.asarray(part) if isinstance(part, list | tuple) else None
    return len(array.shape) if array is not None and array.dtype.kind == "b" else 1


def taken(x: Operand, key: Any) -> tuple[Operand, Any]:
    """Apply the slices with traced bounds; return the resulting array and a key without such slices."""
    parts = list(key) if type(key) is tuple else [key]
    for at, axis, size in axes_of(x, parts):
        rows = rows_between(parts[at], size)
        if rows is None and has_traced_slice(parts[at]):
            rows = rows_found(parts[at], size)
        if rows is not None:
            x = surface("indexing").take(x, rows, axis)
            parts[at] = slice(None)
    return x, tuple(parts) if type(key) is tuple else parts[0]


def as_rows(x: Operand, key: Any) -> Any:
    """Return a key for assignment in which the only slice with traced bounds is an index array; all other parts must be slices."""
    parts = list(key) if type(key) is tuple else [key]
    traced = [(at, rows_between(parts[at], size)) for at, _, size in axes_of(x, parts) if has_traced_slice(parts[at])]
    if len(traced) != 1 or traced[0][1] is None or not all(type(part) is slice for part in parts):
        return key
    parts[traced[0][0]] = traced[0][1]
    return tuple(parts) if type(key) is tuple else parts[0]


def axes_of(x: Operand, parts: list[Any]) -> list[tuple[int, int, int]]:
    """Return (position in the key, axis, size) of each slice; empty for keys with boolean arrays, which may span several axes."""
    used = [part for part in parts if part is not None and part is not Ellipsis]
    if any(getattr(getattr(part, "dtype", None), "kind", "") == "b" for part in used):
        return []
    out, axis = [], 0
    for at, part in enumerate(parts):
        if part is Ellipsis:
            axis += len(x.type.shape) - len(used)
        elif part is not None:
            if type(part) is slice and axis < len(x.type.shape):
                out.append((at, axis, x.type.shape[axis]))
            axis += 1
    return out


def rows_between(part: slice, size: int) -> Operand | None:
    """Return the indices of a slice with traced bounds; None if its length is unknown or its bounds are not traced."""
    if not has_traced_slice(part) or part.step not in (None, 1):
        return None
    start = 0 if part.start is None else part.start
    stop = size if part.stop is None else part.stop
    first, last = form_of(start), form_of(stop)
    if first is None or last is None:
        return None
    distance = combined(last, first, -1)
    if not set(distance) <= {None}:
        return None
    length = max(0, distance.get(None, 0))
    begin = ops.cast(as_operand(start), I64)
    inside = ops.logical_and(ops.greater_equal(begin, 0), ops.less_equal(begin, size - length))
    ops.check(inside, f"a slice of {length} from a traced start leaves an axis of {size}; NumPy would cut it short, but shapes are static")
    return ops.add(begin, ops.iota((length,)))


def rows_found(part: slice, size: int) -> Operand | None:
    """Return the indices of a slice with traced bounds, whose length is found when the function runs; None if it has a step."""
    if part.step not in (None, 1):
        return None
    start, stop = (within(bound, default, size) for bound, default in ((part.start, 0), (part.stop, size)))
    length = found_size(
        ops.maximum(ops.sub(stop, start), 0),
        "the length of a slice follows from traced bounds; if it is always the same, write it as a number, as in x[i:i + 3]",
    )
    return ops.add(start, ops.iota((length,)))


def within(bound: Any, default: int, size: int) -> Operand:
    """Return a bound of a slice as Python takes it: negative ones count from the end, and those outside are moved to the nearest end."""
    at = ops.cast(as_operand(default if bound is None else bound), I64)
    return ops.clip(ops.where(ops.less(at, 0), ops.add(at, size), at), 0, size)


def form_of(x: Any) -> Form | None:
    """Return a bound as a linear form; None if it is not an integer scalar."""
    if isinstance(x, int):
        return {None: x}
    operand = as_operand(x)
    if operand.type.shape or operand.type.dtype.kind not in "iu":
        return None
    return linear(operand, 0)


def linear(x: Operand, depth: int) -> Form:
    if isinstance(x, Literal | Concrete):
        return {None: int(x.value if isinstance(x, Literal) else x.data)}
    stmt = made_by(x) if depth < 16 else None
    if stmt is None:
        return {id(x): 1}
    parts = [linear(a, depth + 1) for a in stmt.args]
    match stmt.op:
        case Cast() if stmt.args[0].type.dtype.kind in "iu":
            return parts[0]
        case Reshape() | Broadcast():
            return parts[0]
        case Add():
            return combined(parts[0], parts[1], 1)
        case Sub():
            return combined(parts[0], parts[1], -1)
        case Neg():
            return combined({}, parts[0], -1)
        case Mul() if any(set(p) <= {None} for p in parts):
            form, factor = parts if set(parts[1]) <= {None} else parts[::-1]
            return combined({}, form, factor.get(None, 0))
    return {id(x): 1}


def combined(a: Form, b: Form, factor: int) -> Form:
    out = {key: a.get(key, 0) + factor * b.get(key, 0) for key in {**a, **b}}
    return {key: value for key, value in out.items() if value}


def made_by(x: Operand) -> Stmt | None:
    """Return the statement that computes a value, if it is among the last ones of the trace."""
    builder: Builder | None = current_builder()
    while builder is not None:
        for stmt in builder.stmts[: -SEARCHED - 1 : -1]:
            if any(r is x for r in stmt.results):
                return stmt
        builder = builder.parent
    return None
