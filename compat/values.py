"""Conversion of Python numbers, lists of them and NumPy arrays to arrays of the dtype that they have in TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjit.ir.arrays import as_array
from adjit.ir.ops.base import Array

from .dtypes import KINDS, DType
from .errors import out_of_scope
from .text import is_text


def converted(value: Any, wanted: DType | None) -> Array:
    """Convert a value that is not an operand to a new array."""
    refuse_text(value)
    array = as_array(value)
    if isinstance(value, np.ndarray | np.generic) or hasattr(type(value), "__array__"):
        return array.astype(wanted.dtype) if wanted is not None and wanted.dtype != array.dtype else array.copy()
    if wanted is None:
        if array.dtype.kind == "f":
            return array.astype(float_of(value))
        if array.dtype.kind == "c":
            return array.astype(np.complex128)
        return array.astype(np.int32) if array.dtype.kind in "iu" and fits_int32(array) else array.copy()
    narrows = KINDS.index(array.dtype.kind) > KINDS.index(wanted.dtype.kind) and array.dtype.kind in "fVc"
    if array.size and (narrows or (array.dtype.kind == "b") != (wanted.dtype.kind == "b")):
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype {wanted.name}")
    return wrap_checked(value, array, wanted)


def float_of(value: Any) -> Any:
    """The dtype of a list of floats: that of the first, if it is NumPy's, else float32."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    its = value.dtype if isinstance(value, np.ndarray | np.generic) else None
    return its if its is not None and its.kind == "f" else np.float32


def wrap_checked(value: Any, array: Array, wanted: DType) -> Array:
    if wanted.is_integer and array.size and not (wanted.min <= array.min() and array.max() <= wanted.max):
        raise ValueError(f"Can't convert Python sequence with out-of-range integer to Tensor: {value!r} does not fit {wanted.name}")
    return array.astype(wanted.dtype)


def fits_int32(array: Array) -> bool:
    limits = np.iinfo(np.int32)
    return not array.size or bool(limits.min <= array.min() and array.max() <= limits.max)


def refuse_text(value: Any) -> None:
    """Reject text: string tensors (text.py) are constants that take no part in computations."""
    if is_text(value):
        out_of_scope("a tensor of strings, beyond constants that are passed and printed", "keep text in Python")
