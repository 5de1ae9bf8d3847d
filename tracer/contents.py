"""Detecting changes of a NumPy array: exact up to a size, by sampling beyond it."""

from __future__ import annotations

import numpy as np

from adjit.ir.ops.base import Array
from adjit.ir.records import NamedTuple

EXACT = 1 << 24  # bytes: larger arrays are compared at evenly spaced elements, to keep tracing fast
SAMPLES = 1 << 12


class ArrayContents(NamedTuple):
    """A record of an array's contents at one time."""

    array: Array
    held: Array
    whole: bool  # whether `held` is a complete copy

    @staticmethod
    def of(array: Array) -> ArrayContents:
        whole = array.nbytes <= EXACT
        return ArrayContents(array, array.copy() if whole else sample(array), whole)

    def changed(self) -> bool:
        return not same_bits(self.array if self.whole else sample(self.array), self.held)

    def restore(self) -> None:
        """Restore the contents, if they were stored completely."""
        if self.whole and self.array.flags.writeable:
            self.array[...] = self.held


def holds_still(array: Array, copy: Array) -> bool:
    """Whether an array has the same contents as an earlier copy."""
    if array.nbytes <= EXACT:
        return same_bits(array, copy)
    return same_bits(sample(array), sample(copy))


def sample(array: Array) -> Array:
    out: Array = array.flat[:: max(1, array.size // SAMPLES)]
    return out


def same_bits(a: Array, b: Array) -> bool:
    """Whether arrays are bitwise equal: NaN equals itself, and zeros of different sign differ."""
    if a.dtype.hasobject:
        return all(x is y for x, y in zip(a.flat, b.flat, strict=True))
    word = next(size for size in (8, 4, 2, 1) if a.dtype.itemsize % size == 0)
    left, right = (np.ascontiguousarray(x).reshape(-1).view(f"u{word}") for x in (a, b))
    return bool(np.array_equal(left, right))
