"""Lists that differ after the two branches of a traced `if`: they become one list, whose length depends on the `if`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from adjit.ir.operand import Literal, Operand
from adjit.ir.records import NamedTuple
from adjit.ir.types import I64, TensorType

from .growing import Items, TracedList, bounds
from .list_items import ItemForm, Kept, PendingItems
from .pytree import flatten
from .regions import Kind
from .trace import Trace

Build: TypeAlias = Callable[[Iterator[Operand]], Any]  # builds a value from the results of the `if`
Choose: TypeAlias = Callable[[Kind, tuple[Any, Any]], None]  # requests one more result

COUNT = Kind(TensorType(I64), True)


class Tails(NamedTuple):
    """Two lists with a common prefix `shared`, and the remaining items of each."""

    shared: Items
    chunks: tuple[PendingItems, PendingItems]


def merge_lists(sides: tuple[Items, Items], regions: Sequence[Trace], unread: bool, choose: Choose) -> Build | None:
    """Request what the `if` has to choose, and return the builder of the list. None for unread lists without a common prefix."""
    rows = common_rows(sides)
    if rows is None:
        return None
    form = Kept(rows, min(bounds(side)[0] for side in sides), max(bounds(side)[1] for side in sides))
    found = tails(*sides)
    if found is not None:
        return _choose_tails(found, form, choose)
    return None if unread else _choose_whole(sides, regions, form, choose)


def common_rows(sides: Sequence[Items]) -> ItemForm | None:
    """Return the common form of the items of all lists; None if there are no items."""
    found: ItemForm | None = None
    for side in sides:
        if bounds(side)[1]:
            rows = side.rows if isinstance(side, TracedList) else ItemForm.of(side)
            found = rows if found is None else found.met(rows)
    return found


def tails(a: Items, b: Items) -> Tails | None:
    """Split off the common prefix; None if the lists differ by more than the items appended last."""
    if isinstance(a, list) and isinstance(b, list):
        count = alike(a, b)
        return Tails(a[:count], (chunk_of(a[count:]), chunk_of(b[count:])))
    if not (isinstance(a, TracedList) and isinstance(b, TracedList)) or not a.same_written(b):
        return None
    count = alike(a.chunks, b.chunks)
    if max(len(a.chunks), len(b.chunks)) > count + 1:
        return None
    shared = a.copy()
    shared.chunks = shared.chunks[:count]
    first, second = (side.chunks[count] if len(side.chunks) > count else PendingItems((), 0) for side in (a, b))
    return Tails(shared, (first, second))


def alike(a: Sequence[Any], b: Sequence[Any]) -> int:
    """Return the length of the common prefix of two sequences, compared by identity."""
    count = 0
    while count < min(len(a), len(b)) and a[count] is b[count]:
        count += 1
    return count


def chunk_of(items: list[Any]) -> PendingItems:
    return PendingItems(tuple(tuple(flatten(item)[0]) for item in items), len(items))


def _choose_tails(found: Tails, form: Kept, choose: Choose) -> Build:
    """Choose only between the last items."""
    a, b = found.chunks
    size, kinds = max(len(a.rows), len(b.rows)), form.rows.kinds
    zeros = tuple(Literal(0, kind.type) for kind in kinds)
    for j in range(size):
        row_a, row_b = (chunk.rows[j] if j < len(chunk.rows) else zeros for chunk in found.chunks)
        for kind, x, y in zip(kinds, row_a, row_b, strict=True):
            choose(kind, (x, y))
    known = isinstance(a.number, int) and isinstance(b.number, int) and a.number == b.number
    if not known:
        choose(COUNT, (a.number, b.number))

    def build(results: Iterator[Operand]) -> TracedList:
        rows = tuple(tuple(next(results) for _ in kinds) for _ in range(size))
        number = a.number if known else next(results)
        shared = found.shared.copy() if isinstance(found.shared, TracedList) else TracedList.of(found.shared, 0, form.rows)
        shared.rows, shared.least, shared.most = form
        if rows:
            shared.chunks.append(PendingItems(rows, number))
        return shared

    return build


def _choose_whole(sides: tuple[Items, Items], regions: Sequence[Trace], form: Kept, choose: Choose) -> Build:
    """Choose between the complete contents of the lists."""
    capacity = max([form.most, *(side.capacity for side in sides if isinstance(side, TracedList))])
    parts = []
    for region, side in zip(regions, sides, strict=True):
        with region:
            full = TracedList.of(side, capacity, form.rows)
            parts.append((full.length, full.buffers))
    (a_count, a_buffers), (b_count, b_buffers) = parts
    for kind, x, y in zip(form.rows.kinds, a_buffers, b_buffers, strict=True):
        choose(Kind(kind.type.with_shape((capacity, *kind.type.shape)), False), (x, y))
    known = isinstance(a_count, int) and isinstance(b_count, int) and a_count == b_count
    if not known:
        choose(COUNT, (a_count, b_count))

    def build(results: Iterator[Operand]) -> TracedList:
        buffers = [next(results) for _ in form.rows.kinds]
        return TracedList(form, buffers, a_count if known else next(results))

    return build
