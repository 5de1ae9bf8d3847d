"""How rows whose number is known only at run time are cut into parts: by rules that work on numbers and on `llvm/words.py`.

Whole parts come first. The last few rows are divided evenly into smaller ones. There are at least FEW of them after whole parts, and two
smaller parts take the place of a whole one otherwise: tiles of less than four rows do not keep the multipliers busy, and read the other
factor as often as those with many.
"""

from __future__ import annotations

from ..llvm.words import Integer, N, greatest, over

WHOLE = 12  # maximum rows of a whole part: tiles with more rows gain nothing
REST = 8  # maximum rows of a smaller part: there is code for parts of each number of rows up to that
FEW = 5


def heights(most: int, rest: int) -> list[int]:
    """The possible numbers of rows of a part, largest first, of at most `most` rows in all. A smaller part has any number up to `rest`."""
    smaller = list(range(min(most, rest), 0, -1))
    return [min(most, WHOLE), *smaller] if most > rest else smaller


def counts(size: N, whole: int, rest: int) -> tuple[Integer, Integer, Integer, Integer]:
    """How often a whole part occurs; then the number of smaller parts, the rows of the last of them, and how many have one more."""
    wholes: Integer = 0
    left: N = size
    if whole > rest:
        number = (greatest(FEW, size) - FEW) // whole
        wholes, left = number, size - number * whole
    parts = over(left, rest)
    short = left // greatest(1, parts)
    return wholes, parts, short, left - short * parts
