"""Whether a NumPy array still holds what it held: exact up to a size, a sample beyond it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adjit.ir.ops.base import Array

EXACT = 1 << 24  # bytes: larger arrays are compared at evenly spaced elements, for tracing must stay quick
SAMPLES = 1 << 12


class ArrayContents(NamedTuple):
    """What an array held when this was made."""

    array: Array
    held: Array
    whole: bool  # whether `held` is all of it

    @staticmethod
    def of(array: Array) -> ArrayContents:
        whole = array.nbytes <= EXACT
        return ArrayContents(array, array.copy() if whole else sample(array), whole)

    def changed(self) -> bool:
        return not same_bits(self.array if self.whole else sample(self.array), self.held)

    def restore(self) -> None:
        """Put it back, as far as it was kept."""
        if self.whole and self.array.flags.writeable:
            self.array[...] = self.held


def holds_still(array: Array, copy: Array) -> bool:
    """Whether an array still holds what a copy of it holds."""
    if array.nbytes <= EXACT:
        return same_bits(array, copy)
    return same_bits(sample(array), sample(copy))


def sample(array: Array) -> Array:
    out: Array = array.flat[:: max(1, array.size // SAMPLES)]
    return out


def same_bits(a: Array, b: Array) -> bool:
    """Equal to the bit: NaNs are themselves, and zeros of both signs differ."""
    if a.dtype.hasobject:
        return all(x is y for x, y in zip(a.flat, b.flat, strict=True))
    word = next(size for size in (8, 4, 2, 1) if a.dtype.itemsize % size == 0)
    left, right = (np.ascontiguousarray(x).reshape(-1).view(f"u{word}") for x in (a, b))
    return bool(np.array_equal(left, right))
