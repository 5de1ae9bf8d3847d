"""Where names are bound in memory: what the native entry compares before a call.

The compiled program contains the values of globals, of variables of enclosing functions and of attributes as constants. Each name becomes
pairs of an address and the pointer that must be there: first the table of a dict's keys, which another table replaces when the dict grows,
and then the entry of the name in it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from types import CellType
from typing import Any

DICT_KEYS, DICT_VALUES, CELL_CONTENTS = 32, 40, 16  # offsets in objects
LOG2_INDEX_BYTES, KIND, COUNT, INDICES = 9, 10, 24, 32  # offsets in the table of keys; the entries follow the indices
GENERAL = 0  # the kind of a table with keys that are not strings
VALUES = 0 if sys.version_info < (3, 13) else 8  # where the values of a dict begin that shares its keys with others

Checks = Sequence[tuple[int, int]]


def places(holder: dict[str, Any] | CellType, name: str | None, value: object) -> Checks | None:
    """Return the addresses to compare for one name; None if it is not found there."""
    if isinstance(holder, CellType):
        return confirmed([(id(holder) + CELL_CONTENTS, id(value))])
    keys, values = pointer(id(holder) + DICT_KEYS), pointer(id(holder) + DICT_VALUES)
    if byte(keys + KIND) == GENERAL:
        return None
    entries = keys + INDICES + (1 << byte(keys + LOG2_INDEX_BYTES))
    own = next((id(key) for key in holder if key == name), 0)
    known = list((ctypes.c_uint64 * (2 * pointer(keys + COUNT))).from_address(entries))[::2]
    if own not in known:
        return None
    at = known.index(own)
    table = [(id(holder) + DICT_KEYS, keys), (id(holder) + DICT_VALUES, values)]
    return confirmed([*table, (values + VALUES + 8 * at if values else entries + 16 * at + 8, id(value))])


def confirmed(checks: Checks) -> Checks | None:
    return checks if all(pointer(address) == expected for address, expected in checks) else None


def pointer(address: int) -> int:
    return int(ctypes.c_uint64.from_address(address).value)


def byte(address: int) -> int:
    return int(ctypes.c_uint8.from_address(address).value)
