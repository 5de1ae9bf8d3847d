"""The parts of lists in a traced function: the form of their items, deferred items, and rows of arrays."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import TraceError
from adjit.ir.operand import Literal, Operand, as_operand
from adjit.ir.records import NamedTuple
from adjit.ir.sizes import hint_of
from adjit.ir.types import SCALARS

from .frames import user_location
from .pytree import TreeDef, flatten
from .regions import Kind, conform, describe, join, kind_of

FEWEST, ROWS, BYTES = 64, 4096, 1 << 24  # of a list that a loop of unknown length appends to, when the function is first traced
SHARE = 4  # a list may take this part of the machine's memory


class CapacityFactor(threading.local):
    """The factor by which the capacity of such lists is larger in the function that this thread is tracing."""

    factor = 1


_capacity = CapacityFactor()


@contextmanager
def larger_capacity(factor: int) -> Iterator[None]:
    """Give lists in loops of unknown length a larger capacity: earlier calls of the function that is traced needed it."""
    before, _capacity.factor = _capacity.factor, factor
    try:
        yield
    finally:
        _capacity.factor = before


def memory() -> int:
    """Return the machine's memory in bytes."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError):  # not a POSIX system
        return 1 << 34


class ItemForm(NamedTuple):
    """The form of a list's items: their structure, and the kind of each leaf."""

    tree: TreeDef
    kinds: tuple[Kind, ...]

    @staticmethod
    def of(items: Iterable[Any]) -> ItemForm:
        """Return the common form of all items. There must be at least one."""
        found: ItemForm | None = None
        for item in items:
            found = ItemForm.like(item) if found is None else found.joined(item)
        assert found is not None
        return found

    @staticmethod
    def like(item: Any) -> ItemForm:
        leaves, tree = flatten(item)
        kinds = [kind_of(leaf) for leaf in leaves]
        if not kinds or None in kinds:
            wrong = describe(leaves[kinds.index(None)] if kinds else item)
            raise TraceError(f"a list that a traced loop or branch appends to takes numbers and arrays, not {wrong}").at(user_location())
        return ItemForm(tree, tuple(kind for kind in kinds if kind is not None))

    def joined(self, item: Any) -> ItemForm:
        return self.met(ItemForm.like(item))

    def met(self, other: ItemForm) -> ItemForm:
        """Return the common form of both: Python numbers adapt in dtype."""
        kinds = [join(a, b) if a.type.shape == b.type.shape else None for a, b in zip(self.kinds, other.kinds, strict=False)]
        if self.tree != other.tree or None in kinds:
            raise TraceError(f"the items of a list that a traced loop or branch appends to must be of one type, not {self} and {other}").at(
                user_location()
            )
        return ItemForm(self.tree, tuple(kind for kind in kinds if kind is not None))

    def __str__(self) -> str:
        parts = ", ".join(str(kind.type) for kind in self.kinds)
        return parts if self.tree.entries == (None,) else f"({parts})"

    @property
    def capacity(self) -> int:
        """The number of rows for a list without any other limit."""
        size = max(1, sum(hint_of(kind.type.nbytes) for kind in self.kinds))
        rows = max(FEWEST, min(ROWS, BYTES // size)) * _capacity.factor
        if rows * size > max(BYTES, memory() // SHARE):
            where = user_location()
            raise MemoryError(f"not enough memory for a list of {rows:,} items of {self}{f', at {where}' if where else ''}")
        return rows

    def blank(self, capacity: int) -> list[Operand]:
        return [Literal(0, kind.type.with_shape((capacity, *kind.type.shape))) for kind in self.kinds]


class PendingItems(NamedTuple):
    """Items that are not written yet, leaf by leaf. Only the first `number` rows are items; the others are zeros."""

    rows: tuple[tuple[Any, ...], ...]
    number: int | Operand


class Kept(NamedTuple):
    """What is known about a list while tracing: the form of its items, and bounds on their number."""

    rows: ItemForm
    least: int
    most: int


def one_row(x: Any, kind: Kind) -> Operand:
    return ops.reshape(conform(x, kind), (1, *kind.type.shape))


def resized(rows: Operand, length: int) -> Operand:
    """Return the first `length` rows, padded with zeros."""
    there, *rest = rows.type.shape
    if length <= there:
        return rows if length == there else ops.getitem(rows, slice(length))
    return ops.concatenate([rows, Literal(0, rows.type.with_shape((length - there, *rest)))], 0)


def filled(rows: Operand, count: int | Operand, fill: Any, length: int) -> Operand:
    """Return the first `count` rows, followed by `fill` up to `length`."""
    out = resized(rows, length)
    there = ops.less(ops.iota((length,)), as_operand(count))
    rest = fill if type(fill) in SCALARS else as_operand(fill)  # a Python number takes the dtype of the rows
    return ops.where(ops.reshape(there, (length, *(1,) * (out.ndim - 1))), out, rest)
