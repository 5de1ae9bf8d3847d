"""How rows whose number is known only at run time are cut into parts: by rules that work on numbers and on `llvm/words.py`.

Whole parts come first. The last few rows are divided evenly into smaller ones. There are at least FEW of them after whole parts: tiles of
one or two rows do not keep the multipliers busy, and read the other factor as often as those with many.
"""

from __future__ import annotations

from ..llvm.words import Integer, N, greatest, over

WHOLE = 12  # rows of whole parts at most: tiles with more gain nothing
REST = 7  # of smaller parts at most: there is code for each size up to here
FEW = 3


def heights(most: int) -> list[int]:
    """The numbers of rows that parts have, largest first, if `most` rows are possible."""
    smaller = list(range(min(most, REST), 0, -1))
    return [min(most, WHOLE), *smaller] if most > REST else smaller


def counts(size: N, largest: int) -> tuple[Integer, Integer, Integer, Integer]:
    """How often the largest part occurs; then the number of smaller parts, the rows of the last of them, and how many have one more."""
    wholes: Integer = 0
    left: N = size
    if largest > REST:
        whole = (greatest(FEW, size) - FEW) // largest
        wholes, left = whole, size - whole * largest
    parts = over(left, min(largest, REST))
    short = left // greatest(1, parts)
    return wholes, parts, short, left - short * parts
