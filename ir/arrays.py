"""Converts user arrays to plain NumPy arrays. Subclasses whose arithmetic differs from NumPy's are refused: it would be silently lost."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .errors import DTypeError, ShapeError
from .types import as_dtype

ARITHMETIC = ("__array_ufunc__", "__array_function__", "__add__", "__mul__", "__matmul__")
ADVICE = {  # by name: `import numpy` does not load masked arrays
    "MaskedArray": "a masked array would lose its mask; pass .filled(value), or .data and the mask as two arrays",
    "matrix": "np.matrix is not supported: its * is a matrix product and its rows are matrices; pass np.asarray(m), and use @ for products",
}


def plain_array(x: Any) -> np.ndarray[Any, Any]:
    """`np.asarray`; raises DTypeError for a subclass of `np.ndarray` with its own arithmetic, also inside lists."""
    if type(x) is not np.ndarray:
        check_plain(x)
    return np.asarray(x)


def as_array(value: Any) -> np.ndarray[Any, Any]:
    """The user's value as an array of a supported dtype. The one place that explains why a value cannot be converted."""
    try:
        array = plain_array(value)
    except ValueError as error:
        if "inhomogeneous" in str(error):
            raise ShapeError(f"a ragged sequence is not a tensor: {brief(value)}; pad it to one length") from None
        raise
    if array.dtype == object:
        what = "integers too large for 64 bits" if _are_huge(value) else "Python objects"
        raise DTypeError(f"{what} cannot be stored in a tensor: {brief(value)}; pass numbers of a supported dtype, such as float64")
    if array.dtype.kind in "USTMm":
        raise DTypeError(f"{brief(value)} is not numeric: its NumPy dtype is {array.dtype}")
    as_dtype(array.dtype)
    return array


def _are_huge(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, list | tuple) and bool(value) and all(isinstance(x, int) for x in value))


def brief(value: Any) -> str:
    """A short text of a value, for error messages."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def check_plain(x: Any) -> None:
    kind: Any = type(x)
    if kind is list or kind is tuple:
        for held in set(map(type, x)):
            if held is list or held is tuple:
                for item in x:
                    check_plain(item)
            else:
                check_class(held)
    else:
        check_class(kind)


@lru_cache(maxsize=256)
def check_class(cls: Any) -> None:
    """Raise an error unless `np.asarray` preserves the meaning of arrays of this class."""
    if cls is np.ndarray or not issubclass(cls, np.ndarray):
        return
    if any(getattr(cls, name) is not getattr(np.ndarray, name) for name in ARITHMETIC):
        known = [ADVICE[c.__name__] for c in cls.__mro__ if c.__name__ in ADVICE and c.__module__.startswith("numpy")]
        other = f"{cls.__name__} is a subclass of np.ndarray with its own arithmetic; pass np.asarray(x) if its numbers are all you need"
        raise DTypeError(known[0] if known else other)
