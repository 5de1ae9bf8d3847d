"""Constants shared by the native code of eager calls and the tables that it reads."""

from __future__ import annotations

from ..entry.entry import TUPLE_ITEMS

PREFIX, INFIX = ("negative", "absolute"), ("add", "subtract", "multiply", "divide")  # ufuncs that have an operator
COMPARISONS = ("less", "less_equal", "equal", "not_equal", "greater", "greater_equal")  # in Python's order

# The words of a table, after the loop, its data, the dtype and the size of results, for float64 and for float32.
OP, NUMBER, METHOD, REFLECTED, FLAGS, FUNCTION, WORDS = range(8, 15)
IS_BINARY, FOLLOWS, IS_LINEAR, IS_EXACT = 1, 2, 4, 8  # flags: FOLLOWS: tapes note it; IS_EXACT: results do not depend on how rows are cut

MOST = 4096  # elements: NumPy releases the GIL for larger arrays, and its own overhead does not count there
RANKS = 5  # sums of arrays of less axes are quick
EXACT = 1 << 24  # integers up to here are float32 numbers

NUMBERS = {
    "OP": OP, "NUMBER": NUMBER, "METHOD": METHOD, "REFLECTED": REFLECTED, "FLAGS": FLAGS, "FUNCTION": FUNCTION,
    "IS_BINARY": IS_BINARY, "FOLLOWS": FOLLOWS, "IS_LINEAR": IS_LINEAR, "IS_EXACT": IS_EXACT,
    "MOST": MOST, "RANKS": RANKS, "EXACT": EXACT, "TUPLE_ITEMS": TUPLE_ITEMS,
}  # fmt: skip
