"""tf.data for training loops over arrays: slices, batches, shuffling, repetition, maps and others, in plain Python.

Methods that are missing raise an error that names them: use any iterable of arrays in a custom loop instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice, takewhile
from typing import Any

import numpy as np

from adjit.tracer.pytree import flatten, tree_map

from .data_flow import AUTOMATIC, as_promised, called, given_specs, interleaved, padded, prefetched, rows_of, windows
from .errors import InvalidArgumentError, missing, out_of_scope
from .feeding import elements_of
from .iterators import DatasetIterator
from .specs import TensorSpec, spec_of
from .tensor import convert_to_tensor, eager, tracing

AUTOTUNE = -1


class Dataset:
    """An iterable that can be iterated any number of times."""

    def __init__(self, start: Callable[[], Iterator[Any]], length: int | None = None, spec: Any = None) -> None:
        self._start = start
        self._length = length  # None: unknown; -1: infinite
        self._spec = spec  # of the elements, if it was declared
        self._inside = tracing()  # created by a function that is being traced: its elements are known then

    # ---- sources

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """The rows of a tensor, or of each tensor in a structure."""
        whole = tree_map(lambda x: np.asarray(convert_to_tensor(x)), _as_leaves(tensors))
        sizes = {len(x) for x in flatten(whole)[0]}
        if len(sizes) != 1:
            raise ValueError(f"Dimension 0 in the tensors must be equal, but they are {sorted(sizes)}")
        (count,) = sizes
        return Dataset(lambda: (_row(whole, i) for i in range(count)), count)

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        element = tree_map(convert_to_tensor, _as_leaves(tensors))
        return Dataset(lambda: iter([element]), 1)

    @staticmethod
    def range(*args: Any, output_type: Any = np.int64, name: str | None = None) -> Dataset:
        numbers = range(*(int(a) for a in args))
        return Dataset(lambda: (convert_to_tensor(np.array(i), output_type) for i in numbers), len(numbers))

    @staticmethod
    def zip(*datasets: Any, name: str | None = None) -> Dataset:
        parts = datasets[0] if len(datasets) == 1 and isinstance(datasets[0], list | tuple) else datasets
        lengths = [d._length for d in parts if d._length != -1]
        shortest = None if None in lengths else min((n for n in lengths if n is not None), default=-1)
        return Dataset(lambda: zip(*parts, strict=False), shortest)

    @staticmethod
    def from_generator(
        generator: Callable[..., Any], output_types: Any = None, output_shapes: Any = None, args: Any = (), output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """The elements that a generator function yields for `args`, with the declared dtypes and shapes."""
        if (output_types is None) == (output_signature is None):
            raise TypeError("Dataset.from_generator: pass output_signature (or output_types), the types of the elements")
        promised = given_specs(output_types, output_shapes) if output_signature is None else output_signature
        whole = tree_map(convert_to_tensor, tuple(args))
        return Dataset(lambda: (as_promised(x, promised) for x in generator(*(np.asarray(a) for a in whole))), spec=promised)

    # ---- transformations

    def batch(
        self, batch_size: Any, drop_remainder: bool = False, num_parallel_calls: Any = None, deterministic: Any = None,
        name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """Elements stacked into batches of `batch_size`."""
        size = int(batch_size)

        def batches() -> Iterator[Any]:
            held: list[Any] = []
            for element in self:
                held.append(element)
                if len(held) == size:
                    yield _stacked(held)
                    held = []
            if held and not drop_remainder:
                yield _stacked(held)

        length = self._length
        if length is not None and length >= 0:
            length = (length if drop_remainder else length + size - 1) // size
        return Dataset(batches, length)

    def shuffle(self, buffer_size: Any, seed: int | None = None, reshuffle_each_iteration: bool = True, name: str | None = None) -> Dataset:
        """Elements in random order, shuffled by a buffer of the given size."""
        size = int(buffer_size)
        state = np.random.default_rng(seed)
        once = int(state.integers(2**63))

        def shuffled() -> Iterator[Any]:
            choose = state if reshuffle_each_iteration else np.random.default_rng(once)
            held: list[Any] = []
            for element in self:
                held.append(element)
                if len(held) >= size:
                    yield _drawn(held, choose)
            while held:
                yield _drawn(held, choose)

        return Dataset(shuffled, self._length)

    def repeat(self, count: Any = None, name: str | None = None) -> Dataset:
        """The elements repeated `count` times, or forever."""
        times = -1 if count is None else int(count)

        def repeated() -> Iterator[Any]:
            turn = 0
            while turn != times:
                yield from self
                turn += 1

        return Dataset(repeated, -1 if times < 0 else None if self._length is None else self._length * times)

    def map(
        self, map_func: Callable[..., Any], num_parallel_calls: Any = None, deterministic: Any = None, synchronous: Any = None,
        use_unbounded_threadpool: bool = False, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """Apply a function to each element; a tuple is passed as separate arguments."""

        def mapped() -> Iterator[Any]:
            for element in self:
                yield tree_map(convert_to_tensor, called(map_func, element))

        return Dataset(mapped, self._length)

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        def kept() -> Iterator[Any]:
            return (x for x in self if bool(called(predicate, x)))

        return Dataset(kept)

    def take(self, count: Any, name: str | None = None) -> Dataset:
        number = int(count)

        def first() -> Iterator[Any]:
            if number == 0:
                return
            for i, element in enumerate(self, 1):
                yield element
                if i == number:
                    return

        known = self._length is not None and self._length >= 0
        return Dataset(first, min(number, self._length or 0) if known and number >= 0 else number if self._length == -1 else None)

    def skip(self, count: Any, name: str | None = None) -> Dataset:
        number = int(count)
        length = self._length
        if length is not None and length >= 0:
            length = max(length - number, 0)
        return Dataset(lambda: (x for i, x in enumerate(self) if i >= number), length)

    def enumerate(self, start: int = 0, name: str | None = None) -> Dataset:
        return Dataset(lambda: ((convert_to_tensor(np.int64(i)), x) for i, x in enumerate(self, start)), self._length)

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Dataset:
        """The same elements; a thread computes the next `buffer_size` of them while one is used."""
        count = AUTOMATIC if int(buffer_size) == AUTOTUNE else int(buffer_size)
        return self if count < 1 or tracing() else Dataset(lambda: prefetched(self, count), self._length)

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """The elements of this dataset, then those of another."""
        lengths = (self._length, dataset._length)
        infinite, unknown = -1 in lengths, None in lengths
        return Dataset(lambda: chain(self, dataset), -1 if infinite else None if unknown else sum(n or 0 for n in lengths))

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements of the datasets that a function returns for each element, one dataset after the other."""
        return Dataset(lambda: (x for element in self for x in _dataset("flat_map", called(map_func, element))))

    def interleave(
        self, map_func: Callable[..., Any], cycle_length: Any = None, block_length: int = 1, num_parallel_calls: Any = None,
        deterministic: Any = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """The elements of the datasets that a function returns for each element, taken from `cycle_length` datasets in turn."""
        cycle = 16 if cycle_length in (None, AUTOTUNE) else int(cycle_length)
        return Dataset(lambda: interleaved(self, lambda x: _dataset("interleave", called(map_func, x)), cycle, int(block_length)))

    def unbatch(self, name: str | None = None) -> Dataset:
        """The rows of the elements, as elements."""
        return Dataset(lambda: (row for element in self for row in rows_of(element)))

    def window(self, size: Any, shift: Any = None, stride: int = 1, drop_remainder: bool = False, name: str | None = None) -> Dataset:
        """Datasets of `size` elements each; if elements are structures, structures of datasets."""
        count = int(size)

        def parts(elements: list[Any]) -> Any:
            leaves = [flatten(x)[0] for x in elements]
            columns = [Dataset(lambda column=column: iter(column), len(column)) for column in zip(*leaves, strict=True)]  # type: ignore[misc]
            return flatten(elements[0])[1].unflatten(columns)

        return Dataset(lambda: map(parts, windows(self, count, count if shift is None else int(shift), stride, drop_remainder)))

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any = None, padding_values: Any = None, drop_remainder: bool = False, name: str | None = None
    ) -> Dataset:
        """Batches of elements of different shapes, which are padded with zeros or `padding_values`."""
        size = int(batch_size)

        def batches() -> Iterator[Any]:
            return (padded(group, padded_shapes, padding_values) for group in windows(self, size, size, 1, drop_remainder))

        return Dataset(batches, self.batch(size, drop_remainder)._length)

    def cache(self, filename: str = "", name: str | None = None) -> Dataset:
        """Keep the elements of the first pass in memory."""
        if filename:
            out_of_scope("Dataset.cache(filename)", "call cache() to keep the elements in memory")
        kept: list[Any] = []

        def elements() -> Iterator[Any]:
            if not kept:
                kept.extend(self)
            return iter(kept)

        return Dataset(elements, self._length)

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Dataset:
        """Every `num_shards`-th element, starting with the one at `index`."""
        count, at = int(num_shards), int(index)
        if not 0 <= at < count:
            raise InvalidArgumentError(None, None, f"Index must be between 0 and {count - 1} (currently index = {at}).")
        length = self._length
        if length is not None and length >= 0:
            length = len(range(at, length, count))
        return Dataset(lambda: islice(iter(self), at, None, count), length)

    def scan(self, initial_state: Any, scan_func: Callable[[Any, Any], Any], name: str | None = None) -> Dataset:
        """The outputs of a function that maps a state and an element to the next state and an output."""

        def scanned() -> Iterator[Any]:
            state = tree_map(convert_to_tensor, initial_state)
            for element in self:
                state, out = scan_func(state, element)
                yield tree_map(convert_to_tensor, out)

        return Dataset(scanned, self._length)

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements before the first one for which the predicate is false."""
        return Dataset(lambda: takewhile(lambda x: bool(called(predicate, x)), self))

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """The dataset that a function returns for this one."""
        return transformation_func(self)

    def get_single_element(self, name: str | None = None) -> Any:
        """The only element."""
        found = list(islice(iter(self), 2))
        if len(found) != 1:
            raise InvalidArgumentError(None, None, f"Dataset {'had more than one element' if found else 'was empty'}.")
        return found[0]

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any], name: str | None = None) -> Any:
        state = tree_map(convert_to_tensor, initial_state)
        for element in self:
            state = reduce_func(state, element)
        return state

    # ---- inspection

    def __iter__(self) -> Iterator[Any]:
        if self._inside:
            return self._start()
        if not tracing():
            return DatasetIterator(self._start(), self)
        found = elements_of(self)
        rows = found.get("rows")
        if rows is None:
            return DatasetIterator(iter(found["items"]), self)
        return DatasetIterator((tree_map(lambda r, k=k: r[k], rows) for k in range(len(flatten(rows)[0][0]))), self)

    def traced_rows(self) -> Any:
        """The elements as rows of traced arrays, for a loop; None if they are not such rows."""
        return None if self._inside else elements_of(self).get("rows")

    def as_numpy_iterator(self) -> Iterator[Any]:
        return (tree_map(lambda t: t.numpy(), x) for x in self)

    def cardinality(self) -> Any:
        return convert_to_tensor(np.int64(-2 if self._length is None else self._length))

    def __len__(self) -> int:
        if self._length is None or self._length < 0:
            raise TypeError("The dataset is infinite." if self._length == -1 else "The dataset length is unknown.")
        return self._length

    @property
    def element_spec(self) -> Any:
        if self._spec is not None:
            return self._spec
        first = next(iter(self), None)
        return None if first is None else tree_map(spec_of, first)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        out_of_scope(f"tf.data.Dataset.{name}", "iterate over NumPy arrays, or use the methods that it has: batch, map, ...")


def _dataset(where: str, value: Any) -> Dataset:
    if not isinstance(value, Dataset):
        raise TypeError(f"`map_func` must return a `Dataset` object. Got {type(value)!r} in Dataset.{where}.")
    return value


def _as_leaves(tensors: Any) -> Any:
    """A list of numbers is one tensor; tuples and dicts are structures."""
    if isinstance(tensors, dict):
        return {k: _as_leaves(v) for k, v in tensors.items()}
    if isinstance(tensors, tuple):
        return tuple(_as_leaves(v) for v in tensors)
    return convert_to_tensor(tensors)


def _row(whole: Any, i: int) -> Any:
    return tree_map(lambda x: eager(np.array(x[i])), whole)


def _stacked(elements: list[Any]) -> Any:
    return tree_map(lambda *rows: eager(np.stack([np.asarray(r) for r in rows])), *elements)


def _drawn(held: list[Any], choose: np.random.Generator) -> Any:
    at = int(choose.integers(len(held)))
    held[at], held[-1] = held[-1], held[at]
    return held.pop()


__getattr__ = missing("tf.data", "use tf.data.Dataset")


__all__ = ["AUTOTUNE", "Dataset", "TensorSpec"]


def __dir__() -> list[str]:
    return __all__
