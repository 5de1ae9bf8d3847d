"""Datasets that a compiled function iterates over: read again at every call, and passed to it as hidden arguments.

The first trace that reads a dataset from outside stops with `Wanted`; the caller then reads the dataset, and traces with its elements.
Their number is part of the key, like any shape. Infinite datasets are rejected.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from adjit.ir.errors import TraceError
from adjit.tracer.frames import user_location
from adjit.tracer.pytree import flatten, tree_map

if TYPE_CHECKING:
    from .data import Dataset

ARGUMENT = "feeds__"  # the hidden argument of a function's body


class Wanted(BaseException):
    """Raised when a trace needs the elements of a dataset. Not an error, so that handlers of errors let it pass."""

    def __init__(self, dataset: Dataset) -> None:
        super().__init__("a dataset is read inside a function")
        self.dataset = dataset


class Feeding(threading.local):
    """The state of datasets on this thread."""

    can_retrace = False  # whether the function being called can read a dataset and trace again
    table: dict[int, Any] | None = None  # id of a dataset -> its elements, in the current trace


feeding = Feeding()


@contextmanager
def fed(datasets: Sequence[Dataset], feeds: Sequence[Any]) -> Iterator[None]:
    """Within this context, the elements of these datasets are the traced values `feeds`."""
    before = feeding.table
    feeding.table = {**(before or {}), **{id(d): feed for d, feed in zip(datasets, feeds, strict=False)}}
    try:
        yield
    finally:
        feeding.table = before


def elements_of(dataset: Dataset) -> Any:
    """The elements of a dataset in a trace: {"items": [...]}, or {"rows": ...} if they have one type and are rows of arrays."""
    if feeding.table is None or not feeding.can_retrace:
        raise TraceError(
            "a tf.data.Dataset inside a function would be read while tracing, and never again: decorate the function with tf.function, "
            "which reads it at every call, or pass its elements as arguments"
        ).at(user_location())
    found = feeding.table.get(id(dataset))
    if found is None:
        raise Wanted(dataset)
    return found


def read(dataset: Dataset) -> Any:
    """All elements of a dataset, in the form that a function takes."""
    if dataset._length == -1:
        raise TraceError("a compiled function reads a whole dataset before it runs, and this one is infinite: use take(count)")
    items = [tree_map(np.asarray, element) for element in dataset]
    kinds = {(flatten(item)[1], tuple((a.shape, a.dtype) for a in flatten(item)[0])) for item in items}
    if len(items) > 1 and len(kinds) == 1:
        return {"rows": tree_map(lambda *rows: np.stack(rows), *items)}
    return {"items": items}
