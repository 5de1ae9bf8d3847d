"""Matrix products by OpenBLAS: the library that NumPy's own wheel carries, or the scipy-openblas wheel. Found by symbol, never by path.

Where none is found the generated loops of `products.py` do the work; `source()` says which it is.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from adjit.ir.types import F32, F64, DType

SYMBOLS = (("scipy_cblas_{}gemm64_", "i64"), ("scipy_cblas_{}gemm", "i32"), ("cblas_{}gemm64_", "i64"), ("cblas_{}gemm", "i32"))


PREFIX = "adjit_blas_"  # of the names by which native code imports them


def symbol(dtype: DType) -> str:
    return PREFIX + ("sgemm" if dtype == F32 else "dgemm")


def addresses() -> dict[str, int]:
    found = find()
    return {symbol(dtype): found.address[dtype] for dtype in (F32, F64)} if found else {}


class Blas(NamedTuple):
    """Addresses of cblas_?gemm and the integer type that it counts with."""

    address: dict[DType, int]
    index_type: str
    source: str


def _libraries() -> Iterator[Path]:
    root = Path(np.__file__).parent
    for folder in (root.parent / "numpy.libs", root / ".dylibs", root / ".libs"):
        yield from sorted(folder.glob("*openblas*"))
    for name in ("scipy_openblas64", "scipy_openblas32"):
        try:
            package = importlib.import_module(name)
        except ImportError:
            continue
        yield from sorted(Path(package.get_lib_dir()).glob("*openblas*"))


@lru_cache(maxsize=1)
def find() -> Blas | None:
    """The first library that has all the symbols; None when there is none."""
    for path in _libraries():
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for pattern, index_type in SYMBOLS:
            try:
                address = {
                    dtype: ctypes.cast(getattr(library, pattern.format(letter)), ctypes.c_void_p).value or 0
                    for dtype, letter in ((F32, "s"), (F64, "d"))
                }
            except AttributeError:
                continue
            return Blas(address, index_type, path.name)
    return None
