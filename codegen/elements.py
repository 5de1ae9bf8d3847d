"""Where the elements of arrays are in memory: native code takes their addresses.

NumPy's own answer (`__array_interface__`) makes a dict of six items for each array, and takes ten times as long as reading its struct.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable
from typing import NoReturn

import numpy as np

from adjit.ir.ops.base import Array

DATA = 16  # offset of the address in the struct of an array, as the native entry reads it too

_word = ctypes.c_size_t.from_address


def by_struct(arrays: Iterable[object]) -> list[int]:
    return [_word(id(a) + DATA).value if isinstance(a, np.ndarray) else no_array(a) for a in arrays]


def no_array(x: object) -> NoReturn:
    """Refuse what has no such struct, as NumPy's scalars: reading one would end the process."""
    raise TypeError(f"native code takes arrays, not {type(x).__name__}: convert it by np.asarray")


def by_interface(arrays: Iterable[Array]) -> list[int]:
    return [a.__array_interface__["data"][0] for a in arrays]


def is_known() -> bool:
    """Whether arrays have this layout: an `id` is an address in CPython only, and without the GIL objects have a longer header."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    samples = [np.zeros(3), np.zeros((2, 2), "f4")[1:, ::-1], np.zeros((0, 4))]
    return by_struct(samples) == by_interface(samples)


data_addresses = by_struct if is_known() else by_interface
