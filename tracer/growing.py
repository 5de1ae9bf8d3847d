"""Lists that a traced loop or branch appends to, or pops from.

Shapes are static, so items are stored in arrays with a row for every possible item; the number of items may be known only at run time.
`append` defers an item, as one of `PendingItems`; it is written to its row when the arrays are read. A branch that appends therefore
chooses between rows, not between copies of the whole list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import is_
from typing import Any, NoReturn, TypeAlias

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError, TraceError
from adjit.ir.found_sizes import found_size
from adjit.ir.operand import LISTS, Literal, Operand, as_operand
from adjit.ir.ops.base import apply
from adjit.ir.ops.index import Gather
from adjit.ir.types import I64, TensorType

from .frames import user_location
from .list_items import ItemForm, Kept, PendingItems, filled, one_row, resized
from .numpy_table import call_function, call_ufunc
from .pytree import flatten, register_pytree_node
from .regions import conform, is_traced
from .sharing import memory_of, set_memory
from .trace import Traced, current_trace
from .traced import WeakSplat

UNKNOWN = "the length of this list is only known when the function runs"
INSTEAD = (
    "aj.stack(items, fill=0.0) makes an array with a row for each possible item, and `for item in items:` iterates over the actual ones"
)


class GrowingList(list[Any]):
    """A list as first seen by the body of a traced loop, before it is known whether it grows: it holds the items from before the loop."""

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, slice) and not list.__len__(self):
            raise TraceError(
                "the list is empty before the traced loop that appends to it, so the type of its items is not known: append the first one "
                "before the loop, or test len(...) > 0 first"
            ).at(user_location())
        return TracedList.of(list(self))[key] if is_traced(key) else list.__getitem__(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if is_traced(key):
            raise TraceError(
                "an item of a list cannot be replaced at an index that is only known when the function runs; make an array with np.stack"
            ).at(user_location())
        list.__setitem__(self, key, value)


class TracedList(Sequence[Any]):
    """Items are stored in the first rows of `buffers`, one buffer per leaf of an item, and in `chunks`; unused rows are zeros."""

    def __init__(self, kept: Kept, buffers: Sequence[Operand], written: Operand | int) -> None:
        self.rows = kept.rows
        self.least, self.most = kept.least, kept.most  # bounds on the number of all items
        self.buffers = list(buffers)
        # number of items in the buffers: base + offset
        self.base: Operand | None = None if isinstance(written, int) else written
        self.offset = written if isinstance(written, int) else 0
        self.chunks: list[PendingItems] = []
        self.sealed = 0  # number of chunks shared with the list that this one was copied from
        self.home = current_trace()

    @staticmethod
    def of(items: Sequence[Any], capacity: int = 0, rows: ItemForm | None = None) -> TracedList:
        """Create a list of known items, with capacity for more."""
        if isinstance(items, TracedList):
            out = items.written()
            return out.enlarged(max(capacity, out.capacity), out.rows if rows is None else rows.met(out.rows))
        count = len(items)
        rows = rows or ItemForm.of(items)
        out = TracedList(Kept(rows, 0, 0), rows.blank(0), 0)
        out.extend(items)
        out = out.written()
        return out.enlarged(max(capacity, count), out.rows)

    # ---- length

    @property
    def capacity(self) -> int:
        return self.buffers[0].type.shape[0]

    @property
    def length(self) -> int | Operand:
        """The number of items: traced if it is known only at run time."""
        return self.place(len(self.chunks))

    def place(self, chunk: int) -> int | Operand:
        """Return the row of the first item of a chunk."""
        known = self.offset + sum(c.number for c in self.chunks[:chunk] if isinstance(c.number, int))
        total = self.base
        for c in self.chunks[:chunk]:
            if not isinstance(c.number, int):
                total = c.number if total is None else ops.add(total, c.number)
        if total is None:
            return known
        return ops.add(total, WeakSplat(known, TensorType(I64))) if known else total

    def __len__(self) -> int:
        count = self.length
        if not isinstance(count, int):
            raise TraceError(f"{UNKNOWN}: call len() in converted code, or {INSTEAD}").at(user_location())
        return count

    def __bool__(self) -> bool:
        if self.least or not self.most:
            return bool(self.least)
        raise TraceError(f"{UNKNOWN}, and so is whether it is empty; write len(...) > 0").at(user_location())

    # ---- items

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and self.least != self.most:
            raise TraceError(f"{UNKNOWN}, and so are the contents of a slice of it; {INSTEAD}").at(user_location())
        if isinstance(key, slice):
            return [self[i] for i in range(*key.indices(len(self)))]
        if is_traced(key):
            return self._at(key)
        at = key if key >= 0 else key + self.most
        if not 0 <= at < self.most:
            raise IndexError("list index out of range")
        last = self.chunks[-1] if self.chunks else None
        if key < 0 and last is not None and isinstance(last.number, int) and -key <= last.number:
            return self.rows.tree.unflatten(last.rows[key])
        count = self.length
        index = key if key >= 0 else count + key
        if not (key < self.least if key >= 0 else -key <= self.least):
            inside = count > key if key >= 0 else index >= 0
            ops.check(inside, "list index out of range", "IndexError")
        return self.row(index)

    def _at(self, key: Operand) -> Any:
        count = self.length
        if isinstance(count, int) and count == self.capacity:
            return self.row(key)
        index = ops.where(key < 0, key + count, key)
        ops.check(ops.logical_and(index >= 0, index < count), "list index out of range", "IndexError")
        return self.row(index)

    def row(self, index: Any) -> Any:
        """Return the item in a row, which must exist."""
        full = self.written()
        leaves = [ops.getitem(b, index) if isinstance(index, int) else apply(Gather(), b, ops.cast(index, I64)) for b in full.buffers]
        for leaf, kind in zip(leaves, full.rows.kinds, strict=True):
            if kind.weak and isinstance(leaf, Traced):
                leaf.weak = True
        return full.rows.tree.unflatten(leaves)

    def __setitem__(self, key: Any, value: Any) -> None:
        self[key]  # raises if the index is out of range
        if isinstance(key, slice):
            raise TraceError("a slice of a list that a traced loop made cannot be assigned to; assign item by item").at(user_location())
        rows = self.rows.joined(value)
        full = self.written()
        full = full.enlarged(full.capacity, rows)
        index = ops.where(key < 0, key + self.length, key) if is_traced(key) else key if key >= 0 else self.length + key
        pairs = zip(full.buffers, flatten(value)[0], rows.kinds, strict=True)
        full.buffers = [ops.setitem(buffer, index, conform(leaf, kind)) for buffer, leaf, kind in pairs]
        self.become(full)

    def __iter__(self) -> Iterator[Any]:
        if not isinstance(self.length, int):
            raise TraceError(f"{UNKNOWN}; {INSTEAD}").at(user_location())
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"a list of {self.most}" if self.least == self.most else f"a list of {self.least} to {self.most}"

    # ---- growing

    def append(self, value: Any) -> None:
        self.rows = self.rows.joined(value)
        row = tuple(flatten(value)[0])
        last = self.chunks[-1] if len(self.chunks) > self.sealed else None
        if last is not None and isinstance(last.number, int):
            self.chunks[-1] = PendingItems((*last.rows, row), last.number + 1)
        else:
            self.chunks.append(PendingItems((row,), 1))
        self.least += 1
        self.most += 1

    def extend(self, values: Iterable[Any]) -> None:
        for value in values:
            self.append(value)

    def __iadd__(self, values: Iterable[Any]) -> TracedList:
        self.extend(values)
        return self

    def __add__(self, values: Iterable[Any]) -> TracedList:
        out = self.copy()
        out.extend(values)
        return out

    def copy(self) -> TracedList:
        out = TracedList(self.kept, self.buffers, self.offset)
        out.base, out.chunks, out.sealed = self.base, list(self.chunks), len(self.chunks)
        return out

    def _refused(self, *_: Any, **__: Any) -> NoReturn:
        what = "a list that a traced loop or branch changes takes new items at its end, replaced items, and pop() of the last one"
        raise TraceError(what).at(user_location())

    insert = remove = clear = sort = reverse = __delitem__ = _refused

    def pop(self, index: Any = -1, /) -> Any:
        if is_traced(index) or index != -1:
            self._refused()
        if not self.most:
            raise IndexError("pop from empty list")
        count = self.length
        if not self.least:
            ops.check(ops.greater(as_operand(count), 0), "pop from empty list", "IndexError")
        full = self.written().copy()
        last = count - 1
        value = full.row(last)
        pairs = zip(full.buffers, full.rows.kinds, strict=True)
        full.buffers = [ops.setitem(buffer, last, Literal(0, kind.type)) for buffer, kind in pairs]  # unused rows are zeros
        full.base, full.offset = (None, last) if isinstance(last, int) else (last, 0)
        full.least, full.most = max(0, self.least - 1), self.most - 1
        self.become(full)
        return value

    def become(self, other: TracedList) -> None:
        """Take over the contents of another list."""
        self.rows, self.least, self.most, self.buffers = other.rows, other.least, other.most, list(other.buffers)
        self.base, self.offset, self.chunks, self.sealed = other.base, other.offset, list(other.chunks), other.sealed

    def written(self) -> TracedList:
        """Return this list with every item written to its row."""
        if not self.chunks:
            return self
        out = self.copy()
        known = all(isinstance(chunk.number, int) for chunk in self.chunks)
        if known and self.base is None and self.offset == self.capacity and len(self.chunks) == 1:
            columns = zip(*self.chunks[0].rows, strict=True)
            parts = zip(self.enlarged(self.capacity, self.rows).buffers, columns, self.rows.kinds, strict=True)
            out.buffers = [ops.concatenate([b, *(one_row(x, kind) for x in column)], 0) for b, column, kind in parts]
        else:
            out.buffers = self.enlarged(max(self.capacity, self.most), self.rows).buffers
            for i, chunk in enumerate(self.chunks):
                out.put(self.place(i), chunk)
        length = self.length
        if isinstance(length, int):
            out.base, out.offset = None, length
        elif known:
            out.base, out.offset = self.base, self.offset + sum(len(chunk.rows) for chunk in self.chunks)
        else:
            out.base, out.offset = length, 0
        out.hold(self)
        out.chunks, out.sealed = [], 0
        if self.home is current_trace():
            self.become(out)
        return out

    def hold(self, before: TracedList) -> None:
        """Record that the rows represent the items of `before`: in Python, a list holds the arrays themselves, so it sees writes."""
        for j, buffer in enumerate(self.buffers):
            items = [row[j] for chunk in before.chunks for row in chunk.rows]
            arrays = [root for item in items if getattr(item, "shape", ()) for root in memory_of(item)]
            old = before.buffers[j]
            arrays += old.memory if isinstance(old, Traced) else ()
            if arrays and isinstance(buffer, Traced):
                set_memory(buffer, tuple({id(root): root for root in arrays}.values()))

    def put(self, place: int | Operand, chunk: PendingItems) -> None:
        for j, row in enumerate(chunk.rows):
            parts = zip(self.buffers, row, self.rows.kinds, strict=True)
            self.buffers = [ops.setitem(buffer, place + j, conform(leaf, kind)) for buffer, leaf, kind in parts]

    def enlarged(self, capacity: int, rows: ItemForm) -> TracedList:
        """Return a copy with a larger capacity and a more general form of items."""
        out = self.copy()
        out.rows = rows
        for i, kind in enumerate(rows.kinds):
            buffer, missing = ops.cast(out.buffers[i], kind.type.dtype), capacity - self.capacity
            empty = Literal(0, kind.type.with_shape((missing, *kind.type.shape)))
            full = empty if missing == capacity else ops.concatenate([buffer, empty], 0)
            out.buffers[i] = full if missing else buffer
        out.hold(self)
        return out

    # ---- the whole list

    def stacked(self) -> Operand:
        """Return `np.stack` of the items."""
        count, rows = self.length, self.matrix()
        return resized(rows, count if isinstance(count, int) else found_size(count, f"{UNKNOWN}; {INSTEAD}"))

    def padded(self, fill: Any, length: int | None) -> Operand:
        """Return `stacked` padded with rows of `fill` up to `length` (default: the maximum length of the list)."""
        count, length = self.length, self.most if length is None else length
        if self.least > length:
            raise ShapeError(f"stack: the list has {self.least} items or more, but length={length}").at(user_location())
        if self.most > length:
            ops.check(ops.less_equal(as_operand(count), length), f"stack: the list has more items than length={length}")
        return filled(self.matrix(), count, fill, length)

    def sum(self) -> Operand:
        return ops.sum(self.matrix(), 0)

    def matrix(self) -> Operand:
        """Return all rows, including unused ones."""
        full = self.written()
        if full.rows.tree.entries != (None,):
            raise TraceError("the items of the list are structures, not arrays: make a list of each of their parts").at(user_location())
        return full.buffers[0]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call_function(function, args, kwargs)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TraceError("a list that a traced loop made is not known while tracing; make an array of it with np.stack").at(user_location())

    def __eq__(self, other: object) -> NoReturn:
        raise TraceError(
            "lists that a traced loop made cannot be compared; compare arrays of them: np.array_equal(np.stack(a), np.stack(b))"
        ).at(user_location())

    __hash__ = None  # type: ignore[assignment] # as of lists

    # ---- pytree interface

    @property
    def kept(self) -> Kept:
        return Kept(self.rows, self.least, self.most)

    def same(self, other: TracedList) -> bool:
        """Whether two lists have the same contents, by identity."""
        return self.same_written(other) and len(self.chunks) == len(other.chunks) and all(map(is_, self.chunks, other.chunks))

    def same_written(self, other: TracedList) -> bool:
        return all(map(is_, self.buffers, other.buffers)) and self.base is other.base and self.offset == other.offset


Items: TypeAlias = list[Any] | TracedList


def is_items(x: Any) -> bool:
    return isinstance(x, list | TracedList)


def bounds(items: Items) -> tuple[int, int]:
    """Return lower and upper bounds on the number of items."""
    return (items.least, items.most) if isinstance(items, TracedList) else (len(items), len(items))


def _flatten(items: TracedList) -> tuple[list[Any], Kept | None]:
    count = items.length
    if isinstance(count, int):
        return list(items), None
    full = items.written()
    return [count, *full.buffers], full.kept


def _unflatten(kept: Kept | None, children: Sequence[Any]) -> Any:
    """Rebuild the list; outside a trace, as the plain list that a compiled function returns."""
    if kept is None:
        return list(children)
    count, *buffers = children
    if current_trace() is not None:
        return TracedList(kept, buffers, count)
    if getattr(count, "shape", None) != ():
        raise TraceError(f"a function under vmap returns a list; {UNKNOWN}, and may differ; return aj.stack(items, fill=0.0)")
    return [kept.rows.tree.unflatten([buffer[i] for buffer in buffers]) for i in range(int(count))]


register_pytree_node(GrowingList, lambda x: (list(list.__iter__(x)), None), lambda kept, children: GrowingList(children))
register_pytree_node(TracedList, _flatten, _unflatten)
LISTS[TracedList] = TracedList.stacked
