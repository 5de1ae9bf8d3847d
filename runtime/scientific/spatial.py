"""Distances between points: `aj.scipy.spatial.distance.cdist`."""

from __future__ import annotations

import sys
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import ShapeError, UnsupportedError
from adjit.ir.operand import Operand
from adjit.tracer.convert import to_operands
from adjit.tracer.surface.elementwise import floating
from adjit.tracer.surface.reductions import root
from adjit.tracer.surface.shapes import matrix_transpose

__all__ = ["cdist", "distance"]

METRICS = ("euclidean", "sqeuclidean", "cityblock", "chebyshev", "minkowski", "cosine", "correlation")


def cdist(XA: Any, XB: Any, metric: str = "euclidean", p: float = 2.0) -> Operand:
    """Compute the distances between each row of XA and each row of XB; the derivative of the Euclidean one at 0 is 0."""
    a, b = (floating(x) for x in to_operands(XA, XB))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ShapeError(f"cdist: takes two matrices with rows of equal length, not {a.type} and {b.type}")
    if metric not in METRICS:
        raise UnsupportedError(f"cdist: metric is one of {', '.join(METRICS)}, not {metric!r}")
    if metric in ("cosine", "correlation"):
        if metric == "correlation":
            a, b = (x - ops.sum(x, 1, True) / x.shape[1] for x in (a, b))
        a, b = (x / root(ops.sum(x * x, 1, True)) for x in (a, b))
        return 1.0 - ops.matmul(a, matrix_transpose(b))
    gap = ops.reshape(a, (a.shape[0], 1, a.shape[1])) - ops.reshape(b, (1, *b.shape))
    if metric in ("euclidean", "sqeuclidean"):
        squares = ops.sum(gap * gap, -1)
        return squares if metric == "sqeuclidean" else root(squares)
    size = ops.absolute(gap)
    if metric == "cityblock":
        return ops.sum(size, -1)
    if metric == "chebyshev":
        return ops.max(size, -1)
    total = ops.sum(ops.power(size, float(p)), -1)
    return ops.where(ops.equal(total, 0.0), 0.0, ops.power(total, 1.0 / p))


distance = sys.modules[__name__]  # SciPy has it in a sub-module of this name


def __dir__() -> list[str]:
    return __all__
