"""The generators behind `tf.data.Dataset.interleave`, `window`, `padded_batch` and `prefetch`, and the check of declared element types."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from adjit.tracer.pytree import flatten, tree_map

from .errors import InvalidArgumentError
from .specs import TensorSpec
from .tensor import convert_to_tensor, eager
from .text import string

AUTOMATIC = 2  # elements that are read ahead with AUTOTUNE


def called(function: Callable[..., Any], element: Any) -> Any:
    """Call a user's function on an element; a tuple is passed as separate arguments."""
    return function(*element) if type(element) is tuple else function(element)


def interleaved(source: Iterable[Any], inner: Callable[[Any], Iterable[Any]], cycle: int, block: int) -> Iterator[Any]:
    """The elements of `cycle` inner datasets at a time, `block` of each in turn."""
    waiting = iter(source)
    running: deque[Iterator[Any]] = deque(iter(inner(x)) for x in islice(waiting, cycle))
    while running:
        current = running.popleft()
        found = list(islice(current, block))
        yield from found
        if len(found) == block:
            running.append(current)
            continue
        following = next(waiting, None)
        if following is not None:
            running.append(iter(inner(following)))


def rows_of(element: Any) -> Iterator[Any]:
    """The rows of all tensors of an element."""
    sizes = {np.asarray(x).shape[0] for x in flatten(element)[0]}
    if len(sizes) != 1:
        raise InvalidArgumentError(
            None, None, f"Dataset.unbatch: the tensors of an element have different numbers of rows: {sorted(sizes)}"
        )
    for i in range(*sizes):
        yield tree_map(lambda x, i=i: eager(np.array(np.asarray(x)[i])), element)


def windows(source: Iterable[Any], size: int, shift: int, stride: int, whole: bool) -> Iterator[list[Any]]:
    """Lists of `size` elements, `stride` apart; each starts `shift` elements after the previous one. `whole`: leave out shorter ones."""
    span = (size - 1) * stride + 1
    held: deque[Any] = deque()
    waiting, skip = iter(source), 0
    while True:
        for _ in islice(waiting, skip):
            pass
        held.extend(islice(waiting, span - len(held)))
        if not held or (whole and len(held) < span):
            return
        yield list(islice(held, 0, span, stride))
        skip = max(shift - len(held), 0)
        for _ in range(min(shift, len(held))):
            held.popleft()


def padded(elements: Sequence[Any], shapes: Any, values: Any) -> Any:
    """Elements padded to one shape and stacked: the given shape, with the largest sizes where it is None."""

    def joined(shape: Any, value: Any, *tensors: Any) -> Any:
        arrays = [np.asarray(t) for t in tensors]
        largest = np.max([a.shape for a in arrays], 0).astype(int).tolist() if arrays[0].ndim else []
        wanted = largest if shape is None else [n if m in (None, -1) else int(m) for n, m in zip(largest, tuple(shape), strict=True)]
        if any(n > m for n, m in zip(largest, wanted, strict=True)):
            raise InvalidArgumentError(None, None, f"Dataset.padded_batch: an element of shape {largest} does not fit the shape {wanted}")
        filled = [np.pad(a, [(0, m - n) for n, m in zip(a.shape, wanted, strict=True)], constant_values=0 if value is None else value)
                  for a in arrays]  # fmt: skip
        return eager(np.stack(filled))

    leaves, tree = flatten(elements[0])
    wanted = (
        [shapes] if len(leaves) == 1 and not isinstance(shapes, tuple | dict) else [None] * len(leaves) if shapes is None else list(shapes)
    )
    fills = [values] * len(leaves) if not isinstance(values, tuple) else list(values)
    columns = zip(*(flatten(e)[0] for e in elements), strict=True)
    return tree.unflatten([joined(*each, *column) for each, column in zip(zip(wanted, fills, strict=True), columns, strict=True)])


class Ahead:
    """Elements that a thread has read ahead."""

    def __init__(self, source: Iterable[Any], capacity: int) -> None:
        self.capacity = capacity
        self.held: deque[Any] = deque()
        self.changed = threading.Condition()
        self.stopped = self.ended = False
        self.error: BaseException | None = None
        threading.Thread(target=self._read, args=(source,), name="tf.data prefetch", daemon=True).start()

    def _read(self, source: Iterable[Any]) -> None:
        try:
            for element in source:
                with self.changed:
                    self.changed.wait_for(lambda: self.stopped or len(self.held) < self.capacity)
                    if self.stopped:
                        return
                    self.held.append(element)
                    self.changed.notify_all()
        except BaseException as error:
            self.error = error
        finally:
            with self.changed:
                self.ended = True
                self.changed.notify_all()

    def next(self) -> Any:
        """Return the next element; raises StopIteration at the end, or the exception that reading raised."""
        with self.changed:
            self.changed.wait_for(lambda: self.held or self.ended)
            if self.held:
                self.changed.notify_all()
                return self.held.popleft()
        raise self.error or StopIteration

    def stop(self) -> None:
        with self.changed:
            self.stopped = True
            self.changed.notify_all()


def prefetched(source: Iterable[Any], count: int) -> Iterator[Any]:
    """The same elements; a thread reads the next `count` of them while one is used."""
    ahead = Ahead(source, count)
    try:
        while True:
            try:
                element = ahead.next()
            except StopIteration:
                return
            yield element
    finally:
        ahead.stop()


def given_specs(types: Any, shapes: Any) -> Any:
    """Specifications of a structure of dtypes and, where they are given, of shapes."""
    if isinstance(types, dict):
        return {key: given_specs(one, None if shapes is None else shapes[key]) for key, one in types.items()}
    if isinstance(types, tuple | list):
        return tuple(given_specs(one, each) for one, each in zip(types, [None] * len(types) if shapes is None else shapes, strict=True))
    return TensorSpec(shapes, types)


def as_promised(element: Any, spec: Any) -> Any:
    """Return a generated element as tensors of the declared dtypes; raise an error if it does not match."""
    if isinstance(spec, dict) and isinstance(element, dict) and set(spec) == set(element):
        return {key: as_promised(element[key], one) for key, one in spec.items()}
    if isinstance(spec, tuple) and isinstance(element, tuple | list) and len(spec) == len(element):
        return tuple(as_promised(x, one) for x, one in zip(element, spec, strict=True))
    if not isinstance(spec, TensorSpec) or isinstance(element, dict):
        raise TypeError(f"`generator` yielded an element that did not match the expected structure: expected {spec}, got {element!r}")
    if spec.dtype is string:
        return convert_to_tensor(element)
    try:
        out = convert_to_tensor(np.asarray(element).astype(spec.dtype.dtype, casting="same_kind"))
    except (TypeError, ValueError):
        raise TypeError(f"`generator` yielded an element that could not be converted to the expected type: {element!r} to {spec}") from None
    if not spec.is_compatible_with(out):
        raise TypeError(f"`generator` yielded an element of shape {out.shape} where an element of {spec} was expected")
    return out
