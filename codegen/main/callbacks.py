"""Calls from native code back to Python, for effects that only Python can have: printing.

Native code passes the addresses of the operands; their types and layouts are static, so Python can view them as arrays. The function is
imported by name, never by address, so object code is the same in every process.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjit.ir.ops.base import Array, Op
from adjit.ir.types import TensorType

from ..native import RAISED, raised

HostFunction: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


def symbol(number: int) -> str:
    return f"adjit_host_{number}"


def evaluator(op: Op, operands: Sequence[tuple[TensorType, tuple[int, ...]]]) -> Callable[[int], int]:
    """A function that takes a table of addresses and evaluates the op on the operands there; operands are types and strides.

    It returns 0, or the code to leave with.
    """

    def run(table: int) -> int:
        try:
            addresses = (ctypes.c_void_p * len(operands)).from_address(table)
            op.evaluate(*(seen(address, *operand) for address, operand in zip(addresses, operands, strict=True)))
        except BaseException as error:  # exceptions cannot propagate through native code
            raised.error = error
            return RAISED
        return 0

    return run


def seen(address: int, type: TensorType, steps: tuple[int, ...]) -> Array:
    """The operand as a new array: a copy, since the memory will be reused."""
    itemsize = type.dtype.itemsize
    strides = [s * itemsize for s in steps]
    low = sum(s * (n - 1) for s, n in zip(strides, type.shape, strict=True) if s < 0 and n)
    high = sum(s * (n - 1) for s, n in zip(strides, type.shape, strict=True) if s > 0 and n)
    memory = memoryview((ctypes.c_char * (high - low + itemsize)).from_address(address + low))
    return np.ndarray(type.shape, type.dtype, memory, -low, strides).copy() if type.size else np.empty(type.shape, type.dtype)
