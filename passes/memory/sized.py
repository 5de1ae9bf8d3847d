"""Buffers whose sizes are known only at run time.

They follow the arena, in order, at offsets that are computed when the program is entered. A buffer holds one value after the other, as
many as are proven to fit for all sizes, so it is never split.
"""

from __future__ import annotations

from adjit.ir.sizes import at_least, hint_of


class Sized:
    def __init__(self) -> None:
        self.sizes: list[int] = []  # of the largest value of each buffer
        self.free: list[int] = []

    def take(self, nbytes: int) -> int:
        """The number of a buffer: the smallest free one that is large enough, otherwise the largest smaller one, which grows."""
        larger = [k for k in self.free if at_least(self.sizes[k], nbytes)]
        smaller = [k for k in self.free if at_least(nbytes, self.sizes[k])]
        if larger:
            number = min(larger, key=self._hint)
        elif smaller:
            number = max(smaller, key=self._hint)
            self.sizes[number] = nbytes
        else:
            self.sizes.append(nbytes)
            return len(self.sizes) - 1
        self.free.remove(number)
        return number

    def give(self, number: int) -> None:
        self.free.append(number)

    def _hint(self, number: int) -> int:
        return hint_of(self.sizes[number])
