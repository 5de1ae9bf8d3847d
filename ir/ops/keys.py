"""NumPy's indexing: translates `x[key]` and `x.at[key]` into windows, gathers and scatters.

A key is parsed once, into a `Selection`: a strided window of the operand (integers, slices, `...`, `None`), from which index arrays then
select. A key without index arrays costs nothing in native code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError, IndexingError, OutOfBoundsError, ShapeError, TraceError
from ..operand import Concrete, Literal, Operand, as_operand
from ..records import NamedTuple
from ..sizes import is_symbolic
from ..types import BOOL, Shape, TensorType, as_size, broadcast_shapes
from .base import apply
from .index import Gather, Scatter, ScatterAdd, ScatterSet, wrapped
from .join import concatenate, write_window
from .maps import SCALAR, cast, checked_scalar, where
from .shape import Span, broadcast_to, inverse, read_window, reshape, span, transpose

__all__ = ["getitem", "setitem", "additem", "updateitem"]


class Selection(NamedTuple):
    """The selection that a key describes."""

    spans: list[Span]  # the positions of each axis of the operand that are in the window
    shape: Shape  # of the window, with the axes of integers dropped and those of None inserted
    axes: tuple[int, ...]  # the axes of `shape` that index arrays select from
    indices: tuple[Operand, ...]  # the index arrays, one per axis, of one shape
    place: int  # the axes of the index arrays are inserted before this one of the others

    @property
    def order(self) -> tuple[int, ...]:
        """The axes of the window, those with index arrays first."""
        return self.axes + tuple(a for a in range(len(self.shape)) if a not in self.axes)

    @property
    def arrangement(self) -> tuple[int, ...]:
        """The axes of a gather from the window in this order, as NumPy places them."""
        count = len(self.indices[0].type.shape)
        others = tuple(range(count, count + len(self.shape) - len(self.axes)))
        return others[: self.place] + tuple(range(count)) + others[self.place :]

    def in_row(self, x: Operand) -> Selection | None:
        """The rest of the key, if it begins with one position along each of the first axes and selects a part of the row there.

        A row is read in place, and the gradient of a part of it concerns the row, not the whole array.
        """
        count, rest = len(self.indices), x.type.shape[len(self.indices) :]
        if not count or self.indices[0].type.shape or self.axes != tuple(range(count)) or self.spans[count:] == [Span(0, n) for n in rest]:
            return None
        return Selection(self.spans[count:], self.shape[count:], (), (), 0)

    def window(self, x: Operand) -> Operand:
        return reshape(read_window(x, self.spans), self.shape)

    def put(self, x: Operand, window: Operand) -> Operand:
        return write_window(x, self.spans, reshape(window, tuple(s.length for s in self.spans)))


def getitem(x: Operand, key: Any) -> Operand:
    """`x[key]`, as in NumPy."""
    selection = select(x, key, "getitem")
    if (rest := selection.in_row(x)) is not None:
        return rest.window(apply(Gather(), x, *selection.indices))
    window = selection.window(x)
    if not selection.indices:
        return window
    return transpose(apply(Gather(), transpose(window, selection.order), *selection.indices), selection.arrangement)


def setitem(x: Operand, key: Any, value: Any) -> Operand:
    """A copy of `x` after `x[key] = value`; the value is cast to x's dtype, as in NumPy."""
    mask = traced_mask(x, key)
    if mask is not None:
        return where(mask, fitted("setitem", x, key, value, x.type.shape[len(key.type.shape) :]), x)
    selection = select(x, key, "setitem")
    if not selection.indices:
        return selection.put(x, fitted("setitem", x, key, value, selection.shape))
    return scatter(ScatterSet(), x, selection, "setitem", key, value)


def additem(x: Operand, key: Any, value: Any) -> Operand:
    """A copy of `x` after `x[key] += value`, where values at equal indices are all added."""
    given = value if isinstance(value, SCALAR) else as_operand(value).type.dtype
    if not np.can_cast(np.result_type(given), x.type.dtype, "same_kind"):
        raise DTypeError(f"additem: {value_type(value)} cannot be added to {x.type} without changing its kind of dtype; cast either first")
    mask = traced_mask(x, key)
    if mask is not None:
        return where(mask, x + fitted("additem", x, key, value, x.type.shape[len(key.type.shape) :]), x)
    selection = select(x, key, "additem")
    if not selection.indices:
        return selection.put(x, selection.window(x) + fitted("additem", x, key, value, selection.shape))
    return scatter(ScatterAdd(), x, selection, "additem", key, value)


def scatter(op: Scatter, x: Operand, selection: Selection, what: str, key: Any, value: Any) -> Operand:
    if (rest := selection.in_row(x)) is not None and x.type.dtype != BOOL:
        row, update = apply(Gather(), x, *selection.indices), fitted(what, x, key, value, rest.shape)
        new = rest.put(row, update if isinstance(op, ScatterSet) else rest.window(row) + update)
        return apply(ScatterSet(), x, new, *selection.indices)
    base = transpose(selection.window(x), selection.order)
    counted = len(selection.axes)
    shape = selection.indices[0].type.shape + base.type.shape[counted:]
    update = fitted(what, x, key, value, tuple(shape[a] for a in selection.arrangement))
    new = apply(op, base, transpose(update, inverse(selection.arrangement)), *selection.indices)
    return selection.put(x, transpose(new, inverse(selection.order)))


def fitted(what: str, x: Operand, key: Any, value: Any, shape: Shape) -> Operand:
    """A value to write, in x's dtype and the shape that the key selects; extra leading axes of size 1 are dropped, as in NumPy."""
    dtype = x.type.dtype
    if isinstance(value, SCALAR):
        return x.literal(checked_scalar(what, value, dtype), TensorType(dtype, shape))
    update = cast(as_operand(value), dtype)
    given = update.type.shape
    surplus = max(0, len(given) - len(shape))
    kept = given[surplus:]
    lead = len(shape) - len(kept)
    if any(n != 1 for n in given[:surplus]) or any(n not in (shape[lead + a], 1) for a, n in enumerate(kept)):
        raise ShapeError(f"{what}: {value_type(value)} does not fit [{describe(key)}] of {x.type}, which has the shape {list(shape)}")
    return broadcast_to(reshape(update, kept), shape)


def value_type(value: Any) -> str:
    return type(value).__name__ if isinstance(value, SCALAR) else str(as_operand(value).type)


# ---- masks that are not known while tracing


def traced_mask(x: Operand, key: Any) -> Operand | None:
    """The key as a mask in the shape of x, if it is a single mask whose elements are unknown."""
    if not isinstance(key, Operand):
        return None
    mask = as_operand(key)
    shape = mask.type.shape
    if mask.type.dtype != BOOL or known(mask):
        return None
    if shape != x.type.shape[: len(shape)]:
        sizes = list(x.type.shape[: len(shape)])
        raise IndexingError(f"[{describe(key)}] of {x.type}: a mask of shape {list(shape)} on axes of sizes {sizes}")
    return broadcast_to(reshape(mask, shape + (1,) * (len(x.type.shape) - len(shape))), x.type.shape)


def updateitem(x: Operand, key: Any, update: Callable[[Operand], Operand]) -> Operand:
    """A copy of `x` after `x[key] = update(x[key])`. Under a traced mask all of x is updated, and the mask selects from the result."""
    mask = traced_mask(x, key)
    return setitem(x, key, update(getitem(x, key))) if mask is None else where(mask, cast(update(x), x.type.dtype), x)


# ---- parsing a key


def select(x: Operand, key: Any, what: str) -> Selection:
    """The selection of `key` from `x`; raises an IndexError that names both."""
    where = f"{what}: [{describe(key)}] of {x.type}"
    items = [read_item(item, where) for item in (key if isinstance(key, tuple) else (key,))]
    taken = sum(map(axes_taken, items))
    rank = len(x.type.shape)
    if sum(item is Ellipsis for item in items) > 1:
        raise IndexingError(f"{where}: more than one ellipsis")
    if taken > rank:
        raise IndexingError(f"{where}: too many indices ({taken} for {rank} axes)")
    if Ellipsis not in [item for item in items if item is Ellipsis]:
        items.append(Ellipsis)
    return walk(x, items, rank - taken, where)


def axes_taken(item: Any) -> int:
    """How many axes of the operand an item of a key consumes."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, np.ndarray) else 1


def walk(x: Operand, items: Sequence[Any], missing: int, where: str) -> Selection:
    """Process the items, axis by axis of `x`; the ellipsis covers the `missing` axes."""
    spans: list[Span] = []
    shape: list[int] = []
    axes: list[int] = []
    indices: list[Operand] = []
    advanced: list[int] = []  # items that are integers or index arrays: if adjacent, NumPy keeps the index arrays' axes in place
    place = 0
    for number, item in enumerate(items):
        if item is None:
            shape.append(1)
        elif item is Ellipsis:
            rest = x.type.shape[len(spans) : len(spans) + missing]
            spans += [Span(0, n) for n in rest]
            shape += rest
        elif isinstance(item, slice):
            spans.append(span(item, x.type.shape[len(spans)]))
            shape.append(spans[-1].length)
        else:
            place = place if advanced else len(shape)
            advanced.append(number)
            if isinstance(item, int):
                i = checked_index(item, x.type, len(spans), where)
                spans.append(Span(i, 1))
                continue
            if isinstance(item, np.ndarray) and not item.ndim:  # a single bool: a new axis, of which it selects all or nothing
                axes.append(len(shape))
                indices.append(Concrete(np.zeros(int(item), np.int64)))
                shape.append(1)
                continue
            for index in nonzero(item, x.type, len(spans), where) if isinstance(item, np.ndarray) else (item,):
                checked_indices(index, x.type.shape[len(spans)], len(spans), where)
                axes.append(len(shape))
                indices.append(index)
                shape.append(x.type.shape[len(spans)])
                spans.append(Span(0, shape[-1]))
    if advanced and advanced[-1] - advanced[0] + 1 != len(advanced):
        place = 0
    common = broadcast_shapes(where, *(i.type.shape for i in indices)) if indices else ()
    return Selection(spans, tuple(shape), tuple(axes), tuple(broadcast_to(i, common) for i in indices), place)


def read_item(item: Any, where: str) -> Any:
    """Parse one item of a key: an int, a slice, None, `...`, a mask (a NumPy array of bools) or an operand of integers."""
    if isinstance(item, slice) and any(isinstance(bound, Operand) and not known(bound) for bound in (item.start, item.stop)):
        raise TraceError(f"{where}: the length of a slice with traced bounds must be a number, as in x[i:i + 3]")
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, bool | np.bool_):
        return np.array(item)
    if not isinstance(item, Operand | np.ndarray | list | tuple):
        try:
            return as_size(item)
        except TypeError:
            allowed = "integers, slices, ..., None, or arrays of integers or bools"
            raise IndexingError(f"{where}: {item!r} is not an index; use {allowed}") from None
    if isinstance(item, list | tuple) and any(isinstance(e, Operand) for e in item):
        return concatenate([reshape(as_operand(e), (1,)) for e in item])
    if isinstance(item, list | tuple) and len(item) == 0:
        item = np.zeros(0, np.int64)
    return read_array(as_operand(item), where)


def known(x: Operand) -> bool:
    return isinstance(as_operand(x), Literal | Concrete)


def read_array(index: Operand, where: str) -> Any:
    type = index.type
    data = None
    if isinstance(index, Literal | Concrete) and not is_symbolic(type.size):
        data = index.array() if isinstance(index, Literal) else index.buffer
    if type.dtype == BOOL:
        if data is None:
            raise TraceError(
                f"{where}: the number of elements that a traced mask selects is not known while tracing; use where(mask, a, b) instead, "
                "or give the largest number possible: adjit.extract(mask, x, size=n)"
            )
        return data
    if type.dtype.kind not in "iu":
        raise IndexingError(f"{where}: indices must be integers or bools, not {type}; cast with .astype(int)")
    return int(data) if data is not None and not type.shape else index


def checked_index(index: int, x: TensorType, axis: int, where: str) -> int:
    size = x.shape[axis]
    if not -size <= index < size:
        raise OutOfBoundsError(f"{where}: index {index} is out of bounds for axis {axis} of size {size}")
    return index if index >= 0 else index + size


def checked_indices(index: Operand, size: int, axis: int, where: str) -> None:
    """Check index arrays that are known while tracing, so that they fail there."""
    if isinstance(index, Concrete) and not is_symbolic(size):
        wrapped(index.buffer, size, f"{where}: index {{}} is out of bounds for axis {axis} of size {size}")


def nonzero(mask: np.ndarray[Any, Any], x: TensorType, axis: int, where: str) -> list[Operand]:
    """A mask as the index arrays of the elements that it selects."""
    if mask.shape != x.shape[axis : axis + mask.ndim]:
        raise IndexingError(f"{where}: a mask of shape {list(mask.shape)} on axes of sizes {list(x.shape[axis : axis + mask.ndim])}")
    return [Concrete(i) for i in np.nonzero(mask)]


def describe(key: Any) -> str:
    """A key as it was written, with arrays shown by their types."""
    if isinstance(key, tuple):
        return ", ".join(map(describe, key))
    if isinstance(key, slice):
        parts = ["" if part is None else str(part) for part in (key.start, key.stop, key.step)]
        return ":".join(parts if parts[2] else parts[:2])
    if key is Ellipsis:
        return "..."
    if isinstance(key, Operand):
        return str(key.type)
    if isinstance(key, list) and len(key) > 8:
        return f"a list of {len(key)}"
    return f"{key.dtype}{list(key.shape)}" if isinstance(key, np.ndarray) else repr(key)
