"""Batches from arrays, or from any iterable of them. Deterministic: the order of an epoch depends only on the seed and the epoch number."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from adjit.ir.arrays import brief, plain_array
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.tracer.pytree import flatten, tree_map

__all__ = ["Batches"]


def __dir__() -> list[str]:
    return __all__


SHOWN = 8  # arrays listed in an error message


class Parts(NamedTuple):
    """The part of every batch that one of several ranks takes. Batches are shortened to a multiple of `multiple` examples."""

    rank: int
    size: int
    multiple: int

    def rows(self, n: int) -> slice:
        """This rank's part of n examples."""
        each = n // self.multiple * self.multiple // self.size
        return slice(self.rank * each, (self.rank + 1) * each)


class Batches:
    """`for x, y, weight in batches.epoch(k)`. `x` and `y` are arrays or structures of them; or `x` alone, an iterable of batches:

    tuples (x,), (x, y) or (x, y, weight). An iterable is restarted every epoch, and so is a generator or a function that returns one.
    """

    def __init__(
        self, x: Any, y: Any = None, sample_weight: Any = None, batch_size: int | None = None, shuffle: bool = False, seed: int = 0,
        steps: int | None = None, what: str = "fit", parts: Parts | None = None,
    ) -> None:  # fmt: skip
        self.parts = parts or Parts(0, 1, 1)
        self.what, self.seed, self.shuffle, self.steps = what, seed, shuffle, steps
        self.batch_size = 32 if batch_size is None else int(batch_size)
        if self.batch_size < 1:
            raise ValueError(f"{what}: batch_size must be positive, not {batch_size}")
        if self.batch_size % self.parts.multiple:
            raise ValueError(f"{what}: batches of {self.batch_size} examples cannot be cut into {self.parts.multiple} equal parts")
        self.source: Iterable[Any] | Callable[[], Iterable[Any]] | None = None
        self.running: Iterator[Any] | None = None
        if is_arrays(x):
            self.data = tree_map(as_array, tuple(numbers_as_array(what, part) for part in (x, y, sample_weight)))
            self.size = self._size()
        else:
            if y is not None or sample_weight is not None:
                raise TypeError(f"{what}: an iterable of batches has its own labels and weights; give y and sample_weight with arrays only")
            self.source = x
            self.size = 0

    def _size(self) -> int:
        leaves, tree = flatten(self.data)
        sizes = {path: leaf.shape[0] if leaf.shape else None for path, leaf in zip(tree.paths(), leaves, strict=True)}
        found = set(sizes.values())
        if len(found) != 1 or None in found:
            names = {"[0]": "x", "[1]": "y", "[2]": "sample_weight"}
            shapes = [list(leaf.shape) for leaf in leaves]
            told = [f"{names.get(path[:3], '')}{path[3:]} {shape}" for path, shape in zip(tree.paths(), shapes, strict=True)]
            more = ", ..." if len(told) > SHOWN else ""
            raise ShapeError(
                f"{self.what}: arrays must have first axes of the same size, a row per example: {', '.join(told[:SHOWN])}{more}"
            )
        (size,) = found
        if not size:
            raise ShapeError(f"{self.what}: there are no examples")
        if size < self.parts.multiple:
            raise ShapeError(f"{self.what}: {size} examples cannot be cut into {self.parts.multiple} parts")
        return int(size or 0)

    @property
    def length(self) -> int | None:
        """Batches per epoch, if known."""
        if self.source is None:
            whole, rest = divmod(self.size, self.batch_size)
            whole += rest >= self.parts.multiple
            return whole if self.steps is None else min(self.steps, whole)
        if self.steps is not None:
            return self.steps
        count = getattr(self.source, "__len__", None)
        return None if count is None else int(count())

    def epoch(self, number: int = 0, first: int = 0) -> Iterator[tuple[Any, Any, Any]]:
        """The batches of an epoch, without those before batch `first`."""
        if self.source is not None:
            yield from map(self._own_part, itertools.islice(self._from_source(), first, None))
            return
        order = np.random.default_rng([self.seed, number]).permutation(self.size) if self.shuffle else None
        for k in range(first, self.length or 0):
            start = k * self.batch_size
            rows = self.parts.rows(min(self.batch_size, self.size - start))
            part = slice(start + rows.start, start + rows.stop)
            chosen: Any = part if order is None else order[part]
            x, y, weight = tree_map(lambda a, chosen=chosen: a[chosen], self.data)
            yield x, y, weight

    def _own_part(self, batch: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        if self.parts.multiple == 1:
            return batch
        if any(len(leaf) < self.parts.multiple for leaf in flatten(batch)[0]):
            raise ShapeError(f"{self.what}: a batch has fewer examples than the {self.parts.multiple} parts that it is cut into")
        x, y, weight = tree_map(lambda a: a[self.parts.rows(len(a))], batch)
        return x, y, weight

    def _from_source(self) -> Iterator[tuple[Any, Any, Any]]:
        source = self.source
        fresh = self.running is None
        if self.running is None:
            self.running = iter(source() if callable(source) else source)  # type: ignore[arg-type]
        count = 0
        while self.steps is None or count < self.steps:
            try:
                item = next(self.running)
            except StopIteration:
                self.running = None
                if count == 0 and not fresh:  # it ended exactly with the previous epoch
                    yield from self._from_source()
                elif count == 0:
                    raise ShapeError(
                        f"{self.what}: the iterable gave no batches; a generator is exhausted after one epoch: pass a list, an object that "
                        "can be iterated again, a function that returns a generator, or a number of steps per epoch"
                    ) from None
                return
            count += 1
            yield unpacked(self.what, item)


def is_arrays(x: Any) -> bool:
    """Whether x is an array or a structure of arrays, rather than an iterable of batches."""
    if isinstance(x, Operand | np.ndarray | np.generic):
        return True
    if isinstance(x, list) and x and isinstance(x[0], tuple | dict):
        return False
    if isinstance(x, tuple | list | dict):
        return all(hasattr(leaf, "shape") or isinstance(leaf, int | float | bool) for leaf in flatten(x)[0])
    return hasattr(x, "__array__") and not hasattr(x, "__next__")


def numbers_as_array(what: str, x: Any) -> Any:
    """Convert lists of only numbers to an array; return anything else unchanged."""
    if not isinstance(x, list) or not all(isinstance(leaf, int | float) for leaf in flatten(x)[0]):
        return x
    try:
        return np.asarray(x)
    except ValueError:
        raise ShapeError(f"{what}: a ragged sequence is not a tensor: {brief(x)}; pad it to one length") from None


def as_array(x: Any) -> Any:
    return x.numpy() if hasattr(x, "numpy") else plain_array(x)


def unpacked(what: str, item: Any) -> tuple[Any, Any, Any]:
    """A batch of an iterable as (x, y, weight)."""
    if not isinstance(item, tuple):
        return item, None, None
    if not 1 <= len(item) <= 3:
        raise ShapeError(f"{what}: a batch is x, (x, y) or (x, y, weight), not a tuple of {len(item)}")
    x, y, weight = (*item, None, None)[:3]
    return x, y, weight
