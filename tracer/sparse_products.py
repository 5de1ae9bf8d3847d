"""Products with SciPy's sparse matrices, of values that SciPy cannot compute with: traced ones, and those that a tape watches.

`S @ x` calls SciPy first, which converts x to an array. Given an array of one object, SciPy returns NotImplemented, and Python calls
`x.__rmatmul__(S)`. The matrix is a constant: a product is a gather, a multiplication and a scatter at its indices.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array, apply
from adjit.ir.ops.index import Gather, ScatterAdd
from adjit.ir.tracebacks import package_of

from .convert import to_operand


def is_sparse(x: object) -> bool:
    return type(x).__module__.startswith("scipy.sparse") and hasattr(x, "tocoo")


def called_by_scipy() -> bool:
    """Whether an array is requested by SciPy's product with a sparse matrix: the first function on the stack that is not adjit's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and package_of(frame) == "adjit":
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name == "_matmul_dispatch" and package_of(frame) == "scipy"


def declined() -> Array:
    """Return an array of one object, with which SciPy does not multiply."""
    return np.empty((), object)


def product(matrix: Any, x: Operand) -> Operand:
    """matrix @ x."""
    shape = x.type.shape
    if len(matrix.shape) != 2 or len(shape) not in (1, 2):
        raise ShapeError(f"matmul: a sparse array of shape {tuple(matrix.shape)} @ {x.type}; one with two axes takes vectors and matrices")
    if matrix.shape[1] != shape[0]:
        raise ShapeError(
            f"matmul: inner sizes differ: a sparse array of shape {tuple(matrix.shape)} @ {x.type} ({matrix.shape[1]} != {shape[0]})"
        )
    entries = matrix.tocoo()
    rows, columns = (to_operand(np.asarray(index, np.int64)) for index in (entries.row, entries.col))
    factors = to_operand(entries.data.reshape(-1, *[1] * (len(shape) - 1)))
    terms = ops.mul(factors, apply(Gather(), x, columns))
    start = to_operand(np.zeros((matrix.shape[0], *shape[1:]), terms.type.dtype))
    return apply(ScatterAdd(), start, terms, rows)


def product_from_left(x: Operand, matrix: Any) -> Operand:
    """x @ matrix."""
    return ops.transpose(product(matrix.T, ops.transpose(x)))
