"""How the rows of a product are cut into parts: evenly, by rules that work on numbers and on `llvm/words.py`.

A part of few rows does not keep the multipliers busy, and reads the other factor as often as one of many.
"""

from __future__ import annotations

from typing import cast

from ..llvm.words import Integer, N, greatest, over

MOST = 14  # maximum rows of a part if their number is known only at run time: there is code for each smaller one


def heights(most: int) -> list[int]:
    """The possible numbers of rows of a part, largest first."""
    return list(range(min(most, MOST), 0, -1))


def counts(size: N, most: int) -> tuple[Integer, Integer, Integer]:
    """The number of parts, as few as possible; the rows of the last of them; and how many have one more."""
    parts = over(size, most)
    short = size // greatest(1, parts)
    return parts, short, size - short * parts


def evenly(size: int, most: int) -> list[tuple[int, int]]:
    """The parts of a known number of rows: [(count, length), ...], with at most two different lengths."""
    parts, short, longer = cast(tuple[int, int, int], counts(size, most))
    return [(count, length) for count, length in ((longer, short + 1), (parts - longer, short)) if count]
