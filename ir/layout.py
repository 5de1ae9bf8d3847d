"""The layout of a value's elements in a buffer: an offset and a stride per axis, counted in elements.

Owns the layout arithmetic that view ops (`transpose`, `broadcast`, `slice`, ...) and the buffer planner share.
"""

from __future__ import annotations

from collections.abc import Sequence

from .records import NamedTuple
from .types import Shape, row_major


class Layout(NamedTuple):
    offset: int
    strides: tuple[int, ...]

    @staticmethod
    def contiguous(shape: Shape) -> Layout:
        return Layout(0, row_major(shape))

    def is_contiguous(self, shape: Shape) -> bool:
        """Whether the elements are consecutive in row-major order (at any offset)."""
        return normalized(self.strides, shape) == normalized(row_major(shape), shape)

    def permuted(self, axes: Sequence[int]) -> Layout:
        return Layout(self.offset, tuple(self.strides[a] for a in axes))

    def broadcast(self, source: Shape, target: Shape) -> Layout:
        lead = len(target) - len(source)
        kept = tuple(0 if n == 1 and target[lead + a] != 1 else s for a, (n, s) in enumerate(zip(source, self.strides, strict=True)))
        return Layout(self.offset, (0,) * lead + kept)

    def sliced(self, starts: Sequence[int], steps: Sequence[int]) -> Layout:
        offset = self.offset + sum(b * s for b, s in zip(starts, self.strides, strict=True))
        return Layout(offset, tuple(s * k for s, k in zip(self.strides, steps, strict=True)))

    def flipped(self, axes: Sequence[int], shape: Shape) -> Layout:
        offset = self.offset + sum((shape[a] - 1) * self.strides[a] for a in axes if shape[a])
        return Layout(offset, tuple(-s if a in axes else s for a, s in enumerate(self.strides)))

    def reshaped(self, source: Shape, target: Shape) -> Layout | None:
        """The same elements under another shape, or None if no strides express it."""
        if 0 in source:
            return Layout(self.offset, row_major(target))
        groups = merged(source, self.strides)
        strides = [0] * len(target)
        axis = len(target) - 1
        for size, stride in reversed(groups):
            reach = 1
            while reach < size:
                if axis < 0:
                    return None
                strides[axis] = stride * reach
                reach *= target[axis]
                axis -= 1
            if reach != size:
                return None
        return Layout(self.offset, tuple(strides))


def normalized(strides: Sequence[int], shape: Shape) -> tuple[int, ...]:
    """Strides with those of axes of size 1 (which are never used) set to 0."""
    return tuple(0 if n == 1 else s for s, n in zip(strides, shape, strict=True)) if 0 not in shape else ()


def merged(shape: Shape, strides: Sequence[int]) -> list[tuple[int, int]]:
    """(size, stride) of the fewest axes that visit the same elements in the same order; axes of size 1 are dropped."""
    out: list[tuple[int, int]] = []
    for n, s in zip(shape, strides, strict=True):
        if n == 1:
            continue
        if out and out[-1][1] == s * n:
            out[-1] = (out[-1][0] * n, s)
        else:
            out.append((n, s))
    return out
