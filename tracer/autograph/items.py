"""Iterables for loops whose iteration number may be traced: ranges, rows of arrays, and `enumerate`, `zip` and `reversed` of them."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import TraceError
from adjit.ir.operand import Operand, as_index, as_operand
from adjit.ir.sizes import is_symbolic, minimum
from adjit.ir.types import as_size, strided_size

from ..control import bound, check_checkpoint, row_at
from ..conversion import undecided
from ..convert import to_operand
from ..frames import user_location
from ..growing import TracedList
from ..pytree import flatten
from ..regions import is_traced
from ..trace import current_trace


class Items:
    """`length` items, an int or a traced scalar; `item(k)` returns the k-th, for a Python or traced integer."""

    def __init__(
        self, length: int | Operand, item: Callable[[Any], Any], rolled: bool = False, checkpoint: str | int = "none",
        most: int | None = None,
    ) -> None:  # fmt: skip
        self.length = length
        self.most = length if isinstance(length, int) else most  # upper bound on the length, if known
        self.item = item
        self.rolled = rolled  # whether the user requests a loop, whatever the trip count
        self.checkpoint = checkpoint

    def __len__(self) -> int:
        if not isinstance(self.length, int):
            raise TraceError("len(): the number of items is only known when the function runs").at(user_location())
        return self.length

    def __iter__(self) -> Iterator[Any]:
        if not isinstance(self.length, int):
            raise TraceError(f"the number of iterations is only known when the function runs; {undecided()}").at(user_location())
        return (self.item(k) for k in builtins.range(self.length))

    def like(self, item: Callable[[Any], Any]) -> Stream:
        return Stream(self.length, item, self.rolled, self.checkpoint, self.most)


class Stream(Items):
    """Items that can be iterated once, like an iterator: `enumerate`, `zip` and `reversed`. A loop directly over it visits all items."""

    at = 0  # number of items already taken

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not isinstance(self.length, int):
            super().__iter__()  # raises
        if self.at >= self.length:
            raise StopIteration
        self.at += 1
        return self.item(self.at - 1)

    def __length_hint__(self) -> int:
        return self.length - self.at if isinstance(self.length, int) else 0

    def rest(self) -> Items:
        """Return all remaining items and mark them as taken."""
        first, self.at = self.at, self.length if isinstance(self.length, int) else 0  # not `len`, which needs the value of a size
        if not first:
            return Items(self.length, self.item, self.rolled, self.checkpoint, self.most)
        return Items(self.length - first, lambda k: self.item(k + first), self.rolled, self.checkpoint)


def range(*bounds: Any, checkpoint: str | int = "none") -> Any:
    """Return a range like Python's; a loop over it stays a loop in compiled code, however many iterations it has.

    `checkpoint` limits the memory of reverse mode: "none", a number of iterations between saved states, "sqrt" or "binomial".

    >>> @aj.function
    ... def power(x, n):
    ...     y = 1.0
    ...     for _ in aj.range(n):
    ...         y = y * x
    ...     return y
    >>> power(2.0, 10)
    Tensor(1024., f64[])
    """
    check_checkpoint(checkpoint)
    return make_range(bounds, True, checkpoint)


def make_range(bounds: tuple[Any, ...], rolled: bool, checkpoint: str | int = "none") -> Any:
    if not any(is_traced(b) for b in bounds):
        if any(map(is_symbolic, bounds)):
            return symbolic_range(bounds, rolled, checkpoint)
        plain = builtins.range(*bounds)
        return Items(len(plain), partial(at_range, plain), True, checkpoint) if rolled else plain
    ends = [bound(b, "range") for b in bounds]
    start = ends[0] if len(ends) > 1 else 0
    stop = ends[1] if len(ends) > 1 else ends[0]
    step = ends[2] if len(ends) > 2 else 1
    return Items(trip_count(start, stop, step), lambda k: affine(start, step, k), rolled, checkpoint)


def symbolic_range(bounds: tuple[Any, ...], rolled: bool, checkpoint: str | int) -> Items:
    """Return a range whose length is a size that is known only when the program runs."""
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if step == 0:
        raise ValueError("range() arg 3 must not be zero")
    count = strided_size(as_size(start), as_size(stop), step) if step > 0 else strided_size(as_size(stop), as_size(start), -step)
    return Items(count, lambda k: affine(start, step, k), rolled, checkpoint)


def at_range(plain: builtins.range, k: Any) -> Any:
    return plain[k] if isinstance(k, int) else affine(plain.start, plain.step, k)


def affine(start: Any, step: Any, k: Any) -> Any:
    """Return `start + k * step`, omitting operations without effect."""
    scaled = k if isinstance(step, int) and step == 1 else k * step
    return scaled if isinstance(start, int) and start == 0 else start + scaled


def trip_count(start: Any, stop: Any, step: Any) -> Operand:
    """Return `len(range(start, stop, step))`."""
    span = stop if isinstance(start, int) and start == 0 else stop - start
    if isinstance(step, int):
        if step == 0:
            raise ValueError("range() arg 3 must not be zero")
        if step == 1:
            return as_index(span)  # negative for an empty range, which also runs no iteration
        count = (span + (step - 1)) // step if step > 0 else (-span + (-step - 1)) // -step
    else:
        ops.check(ops.not_equal(step, 0), "range() arg 3 must not be zero", "ValueError")
        size = ops.absolute(step)
        forward = ops.where(ops.greater(step, 0), as_index(span), -as_index(span))
        count = (forward + (size - 1)) // ops.maximum(size, 1)
    return ops.maximum(as_index(count), 0)


def as_items(iterable: Any, tracing: bool) -> Items | None:
    """Return the items of an iterable that a traced loop supports; None for any other, which Python iterates over."""
    if isinstance(iterable, Items):
        return iterable.rest() if isinstance(iterable, Stream) else iterable
    if not tracing:
        return None
    if isinstance(iterable, builtins.range):
        return Items(len(iterable), partial(at_range, iterable))
    if hasattr(type(iterable), "traced_rows"):  # a dataset of another frontend
        rows = iterable.traced_rows()
        return None if rows is None else rows_of_structure(rows)
    if isinstance(iterable, TracedList):
        kept = iterable.written().copy()  # a body that appends does not see the items that it adds
        return Items(kept.length, lambda k: kept[k] if isinstance(k, int) else kept.row(k), most=kept.most)
    if isinstance(iterable, Operand) or (isinstance(iterable, np.ndarray) and iterable.dtype.kind in "biuf"):
        if not iterable.shape:
            raise TypeError(f"iteration over a 0-dimensional value ({as_operand(iterable).type})")
        rows, held = to_operand(iterable), cast(Any, iterable)
        return Items(rows.type.shape[0], lambda k: held[k] if isinstance(k, int) else row_at(rows, k))
    return None


def rows_of_structure(rows: Any) -> Items:
    leaves, tree = flatten(rows)
    return Items(leaves[0].shape[0], lambda k: tree.unflatten([x[k] if isinstance(k, int) else row_at(to_operand(x), k) for x in leaves]))


def enumerate_items(iterable: Any, start: Any = 0) -> Any:
    items = _sliceable(iterable)
    return builtins.enumerate(iterable, start) if items is None else items.like(lambda k: (affine(start, 1, k), items.item(k)))


def reversed_items(iterable: Any) -> Any:
    items = _sliceable(iterable)
    return builtins.reversed(iterable) if items is None else items.like(lambda k: items.item((items.length - 1) - k))


def zip_items(*iterables: Any, strict: bool = False) -> Any:
    found = [_sliceable(x) for x in iterables]
    if not found or any(f is None for f in found):
        return builtins.zip(*iterables, strict=strict)
    parts = [f for f in found if f is not None]
    lengths = [part.length for part in parts]
    if strict and len({n for n in lengths if isinstance(n, int)}) > 1:
        raise ValueError("zip(): arguments have different lengths")
    length = lengths[0]
    for other in lengths[1:]:
        if isinstance(length, int) and isinstance(other, int):
            length = minimum(length, other)
        else:
            one, two = as_index(length), as_index(other)
            if strict:
                equal = ops.equal(ops.maximum(one, 0), ops.maximum(two, 0))  # a range that is empty may have a negative length
                ops.check(equal, "zip(): arguments have different lengths", "ValueError")
            length = ops.minimum(one, two)
    most = min((part.most for part in parts if part.most is not None), default=None)
    return Stream(length, lambda k: tuple(part.item(k) for part in parts), parts[0].rolled, parts[0].checkpoint, most)


def _sliceable(iterable: Any) -> Items | None:
    """Return the items of traced arrays and of ranges with traced bounds, which plain Python would unroll or could not iterate over."""
    if isinstance(iterable, Items):
        return iterable.rest() if isinstance(iterable, Stream) else iterable
    if current_trace() is None:
        return None
    return as_items(iterable, True) if is_traced(iterable) or isinstance(iterable, TracedList | builtins.range) else None
