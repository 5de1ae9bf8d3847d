"""Iterators over datasets, which keep their position. A function that takes elements from one runs op by op: see `stepping`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from adjit.ir.errors import UnplannedError
from adjit.tracer.frames import user_location
from adjit.tracer.trace import current_trace

from .errors import OutOfRangeError

if TYPE_CHECKING:
    from .data import Dataset

ADVICE = (
    "an iterator over a dataset is read inside a function, or in a traced branch or loop: only the run shows where it stops; to compile "
    "the function, read elements outside and pass them (`step(next(iterator))`), or loop over the dataset itself"
)


class DatasetIterator(Iterator[Any]):
    """`iter(dataset)`: also has `get_next()`, which raises OutOfRangeError at the end."""

    def __init__(self, elements: Iterator[Any], dataset: Dataset) -> None:
        self._elements, self._dataset = elements, dataset
        self._home = current_trace()  # where its position is known while tracing

    def __iter__(self) -> DatasetIterator:
        self._check()
        return self

    def __next__(self) -> Any:
        self._check()
        return next(self._elements)

    def get_next(self) -> Any:
        try:
            return next(self)
        except StopIteration:
            raise OutOfRangeError(None, None, "End of sequence") from None

    def close(self) -> None:
        """Stop taking elements, and stop the thread that reads ahead."""
        close = getattr(self._elements, "close", None)
        if close is not None:
            close()
        self._elements = iter(())

    @property
    def element_spec(self) -> Any:
        return self._dataset.element_spec

    def _check(self) -> None:
        if current_trace() is not self._home:
            raise UnplannedError(ADVICE).at(user_location())

    def __tf_tracing_type__(self, context: Any) -> Any:
        return type(self)  # no trace depends on which iterator it is
