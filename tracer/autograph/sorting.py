"""`sorted` and `list.sort` by keys that are known only when the function runs.

The list keeps its length, and its items are rows of arrays, gathered in the order of the keys: derivatives go to their original positions.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import TraceError
from adjit.ir.operand import Operand
from adjit.ir.ops.base import apply
from adjit.ir.ops.index import Gather

from ..conversion import convert
from ..convert import to_operand
from ..frames import user_location
from ..growing import TracedList
from ..list_items import ItemForm
from ..pytree import flatten
from ..regions import is_traced
from ..trace import current_trace


def sorted_(iterable: Any, /, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> list[Any]:
    if current_trace() is None:
        return builtins.sorted(iterable, key=key, reverse=reverse)
    items = list(iterable)
    function = None if key is None else convert(key)
    keys = items if function is None else [function(item) for item in items]
    if len(items) < 2 or not any(map(is_traced, flatten(keys)[0])):
        order = builtins.sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
        return [items[i] for i in order]
    if is_traced(reverse):
        what = "sorted(): `reverse` is only known when the function runs; sort the list on both sides of an `if`"
        raise TraceError(what).at(user_location())
    if (known := _known_order(keys)) is not None:
        return [items[i] for i in (known[::-1] if reverse else known)]
    return _gathered(items, _order(keys, bool(reverse)))


def sort(items: list[Any], *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
    """Implement `items.sort(...)`."""
    if current_trace() is None:
        items.sort(key=key, reverse=reverse)
        return
    items[:] = sorted_(items, key=key, reverse=reverse)


def _known_order(keys: Sequence[Any]) -> list[int] | None:
    """The positions of the items, if tuples differ in what they begin with and is known: Python does not look at the rest."""
    if not all(type(key) in (tuple, list) for key in keys):
        return None
    count = min(next((n for n, part in enumerate(key) if any(map(is_traced, flatten(part)[0]))), len(key)) for key in keys)
    known = [key[:count] for key in keys]
    if not all(isinstance(leaf, str | bytes | int | float) for leaf in flatten(known)[0]):
        return None
    if any(a == b for n, a in enumerate(known) for b in known[:n]):
        return None
    return builtins.sorted(range(len(keys)), key=known.__getitem__)


def _order(keys: Sequence[Any], descending: bool) -> Operand:
    """Return the positions of the items sorted by their keys: numbers, or tuples of numbers, compared from the first one on."""
    flat = [flatten(key) for key in keys]
    tree = flat[0][1]
    numeric = all(isinstance(leaf, Operand | np.ndarray | np.generic | int | float) for leaves, _ in flat for leaf in leaves)
    if not numeric or any(not other.same(tree) for _, other in flat) or any(to_operand(x).ndim for leaves, _ in flat for x in leaves):
        raise TraceError(
            "sorted(): the keys must be numbers, or tuples of equally many numbers, since their order is only known when the function runs"
        ).at(user_location())
    order: Operand | None = None
    for column in reversed(list(zip(*(leaves for leaves, _ in flat), strict=True))):
        rows = TracedList.of(list(column)).buffers[0]
        found = ops.argsort(rows if order is None else apply(Gather(), rows, order), 0, descending)  # stable
        order = found if order is None else apply(Gather(), order, found)
    assert order is not None
    return order


def _gathered(items: Sequence[Any], order: Operand) -> list[Any]:
    try:
        ItemForm.of(items)
    except TraceError:
        raise TraceError(
            "sorted(): the order of the items is only known when the function runs, so they must be numbers or arrays of one type, or "
            "structures of them; sort their positions, or make them alike"
        ).at(user_location()) from None
    out = TracedList.of(items)
    out.buffers = [apply(Gather(), buffer, order) for buffer in out.buffers]
    return list(out)
