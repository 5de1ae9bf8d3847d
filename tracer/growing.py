"""Lists that a traced loop appends to: while the body is traced, and after the loop.

After a loop whose number of trips is known, the list is a `StackedList`: the values lie in one array for all trips. It has the length, the
items and the order of the Python list that the loop would have made; `np.stack` of it costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from adjit.ir import ops
from adjit.ir.errors import TraceError
from adjit.ir.operand import Operand, as_operand

from .frames import user_location
from .pytree import TreeDef, register_pytree_node


class GrowingList(list[Any]):
    """The list as the body of a traced loop sees it: it takes values, and does not show those of earlier trips, which are not there yet."""

    def _unknown(self, *_: Any) -> NoReturn:
        raise TraceError(
            "a list that a traced loop appends to cannot be read inside of the loop: keep the last value in a variable of its own"
        ).at(user_location())

    __getitem__ = __setitem__ = __delitem__ = __contains__ = __len__ = _unknown
    pop = remove = insert = index = count = sort = reverse = clear = _unknown  # type: ignore[assignment]


register_pytree_node(GrowingList, lambda x: (list(list.__iter__(x)), None), lambda kept, children: GrowingList(children))


class StackedList(Sequence[Any]):
    """`first`, then what each of `trips` trips appended: item `j` of trip `k` is row k of the buffers of structure j."""

    def __init__(self, first: Sequence[Any], trees: Sequence[TreeDef], buffers: Sequence[Operand], trips: int) -> None:
        self.first = list(first)
        self.trees = list(trees)
        self.buffers = list(buffers)
        self.trips = trips

    def __len__(self) -> int:
        return len(self.first) + self.trips * len(self.trees)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return [self[i] for i in range(*key.indices(len(self)))]
        if not isinstance(key, int):
            return self.at(key)
        at = key + len(self) if key < 0 else key
        if not 0 <= at < len(self):
            raise IndexError("list index out of range")
        if at < len(self.first):
            return self.first[at]
        trip, item = divmod(at - len(self.first), len(self.trees))
        return self.row(item, trip)

    def at(self, key: Any) -> Any:
        """An item at a traced index."""
        if self.first or len(self.trees) != 1:
            raise TraceError("a list that several lines appended to takes no traced index; make an array of it first").at(user_location())
        return self.row(0, key)

    def row(self, item: int, trip: Any) -> Any:
        start = sum(tree.leaves for tree in self.trees[:item])
        tree = self.trees[item]
        return tree.unflatten([ops.getitem(b, trip) for b in self.buffers[start : start + tree.leaves]])

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def append(self, value: Any) -> NoReturn:
        raise TraceError("a list that a traced loop made is complete; copy it with list(...) to append more").at(user_location())

    def stacked(self) -> Operand:
        """`np.stack` of the items."""
        rows = [self.buffers[i] for i in range(len(self.trees)) if self.trees[i].entries == (None,)]
        if len(rows) != len(self.trees):
            raise TraceError("the items of the list are structures, not arrays: stack their parts one by one").at(user_location())
        if len(rows) == 1:
            out = rows[0]
        else:
            shape = rows[0].type.shape
            pairs = [ops.reshape(r, (self.trips, 1, *shape[1:])) for r in rows]
            out = ops.reshape(ops.concatenate(pairs, 1), (self.trips * len(rows), *shape[1:]))
        if self.first:
            start = [ops.reshape(as_operand(x), (1, *as_operand(x).type.shape)) for x in self.first]
            out = ops.concatenate([*start, out], 0)
        return out


register_pytree_node(StackedList, lambda x: (list(x), None), lambda kept, children: list(children))
