"""Norms of vectors and matrices."""

from __future__ import annotations

import math
import numbers
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import ShapeError, UnsupportedError
from adjit.ir.operand import Operand
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import listed_axes, normalize_axes

from ..convert import to_operand
from .elementwise import floating
from .reductions import counted, root, squared


def norm(x: Any, /, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Operand:
    """Return the norm of a vector or a matrix, as np.linalg.norm does; the derivative of the Euclidean norm at 0 is 0.

    >>> aj.norm([[3.0, 4.0], [6.0, 8.0]], axis=1)
    Tensor([ 5., 10.], f64[2])
    >>> aj.grad(aj.norm)(np.zeros(2))
    Tensor([0., 0.], f64[2])
    """
    x = floating(to_operand(x))
    if axis is None and ord is None:
        return root(ops.sum(squared(x), None, keepdims))
    axes = tuple(range(x.ndim)) if axis is None else listed_axes(axis)
    if len(axes) == 1:
        return vector_norm(x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return matrix_norm(x, "fro" if ord is None else ord, axes, keepdims)
    raise ShapeError(f"norm: takes one axis (vectors) or two (matrices), not {len(axes)}, of {x.type}")


def vector_norm(x: Operand, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Operand:
    size = ops.absolute(x)
    if ord == 2:
        return root(ops.sum(squared(x), axes, keepdims))
    if ord == math.inf:
        return largest(size, axes, keepdims)
    if ord == -math.inf:
        return ops.min(size, axes, keepdims)
    if ord == 0:
        return ops.cast(ops.sum(ops.not_equal(x, 0.0), axes, keepdims), size.dtype)
    if ord == 1:
        return ops.sum(size, axes, keepdims)
    if not isinstance(ord, numbers.Real):
        raise UnsupportedError(f"norm: order {ord!r} is not a vector norm; use a number, np.inf or -np.inf")
    total = ops.sum(ops.power(size, float(ord)), axes, keepdims)
    return ops.where(ops.equal(total, 0.0), 0.0, ops.power(total, 1.0 / float(ord)))


def largest(size: Operand, axes: tuple[int, ...], keepdims: bool) -> Operand:
    """Return the largest of sizes that are not negative: 0 if there are none."""
    empty = not counted(size, axes, "norm")
    return ops.sum(size, axes, keepdims) if empty else ops.max(size, axes, keepdims)


def matrix_norm(x: Operand, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Operand:
    if ord == "fro":
        return root(ops.sum(squared(x), axes, keepdims))
    if ord in (2, -2, "nuc"):
        from .spectral import nuclear_norm  # noqa: PLC0415 - few programs need singular values

        return nuclear_norm(x, (axes[0], axes[1]), keepdims, ord)
    if ord not in (1, -1, math.inf, -math.inf):
        raise UnsupportedError(f"norm: order {ord!r} is not a matrix norm; use 'fro', 'nuc', 1, -1, 2, -2, np.inf or -np.inf")
    rows, columns = normalize_axes(axes[0], x.ndim, "norm") + normalize_axes(axes[1], x.ndim, "norm")
    inner, outer = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = ops.sum(ops.absolute(x), inner, True)
    out = largest(sums, (outer,), True) if ord > 0 else ops.min(sums, outer, True)
    return out if keepdims else ops.reshape(out, tuple(n for a, n in enumerate(x.shape) if a not in (rows, columns)))


end_at_callers(globals())
