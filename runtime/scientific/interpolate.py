"""Interpolation in one dimension, linear and by cubic splines, differentiable with respect to points, values and coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import ShapeError, UnsupportedError
from adjit.ir.operand import Operand
from adjit.tracer.convert import pick, to_operand, to_operands
from adjit.tracer.surface.elementwise import floating
from adjit.tracer.surface.indexing import interp, searchsorted
from adjit.tracer.surface.shapes import concatenate

__all__ = ["CubicSpline", "interp1d"]


def interp1d(x: Any, y: Any, kind: str = "linear", fill_value: Any = None) -> Callable[[Any], Operand]:
    """Return a function that interpolates the values y at the increasing points x: "linear" or "cubic".

    Beyond the ends, linear interpolation gives `fill_value`, a number or a pair (default: the values at the ends), and cubic extrapolates.
    """
    if kind == "cubic":
        return CubicSpline(x, y)
    if kind != "linear":
        raise UnsupportedError(f"interp1d: kind is 'linear' or 'cubic', not {kind!r}")
    left, right = fill_value if isinstance(fill_value, tuple) else (fill_value, fill_value)
    return lambda at: interp(at, x, y, left=left, right=right)


class CubicSpline:
    """The twice differentiable piecewise cubic through the values y at the increasing points x; further axes of y are interpolated alike.

    `bc_type` is "not-a-knot" (default), "natural" or "clamped". Call it with coordinates, and `nu` for a derivative of order up to 3.
    """

    def __init__(self, x: Any, y: Any, bc_type: str = "not-a-knot") -> None:
        x, y = (floating(v) for v in to_operands(x, y))
        if x.ndim != 1 or x.shape[0] < 2 or not y.ndim or y.shape[0] != x.shape[0]:
            raise ShapeError(f"CubicSpline: takes at least two points, and as many values, not {x.type} and {y.type}")
        if bc_type not in ("not-a-knot", "natural", "clamped"):
            raise UnsupportedError(f"CubicSpline: bc_type is 'not-a-knot', 'natural' or 'clamped', not {bc_type!r}")
        self.x, self.y, self.shape = x, ops.reshape(y, (y.shape[0], -1)), y.shape[1:]
        self.slopes = slopes(x, self.y, bc_type)

    def __call__(self, at: Any, nu: int = 0) -> Operand:
        places = floating(to_operand(at))
        flat = ops.reshape(places, -1)
        last = self.x.shape[0] - 2
        k = ops.clip(searchsorted(self.x, ops.stop_gradient(flat), side="right") - 1, 0, last)
        h = column(pick(self.x, k + 1) - pick(self.x, k))
        d = column(flat - pick(self.x, k))
        y0, s0, s1 = pick(self.y, k), pick(self.slopes, k), pick(self.slopes, k + 1)
        secant = (pick(self.y, k + 1) - y0) / h
        c3 = (s0 + s1 - 2.0 * secant) / (h * h)
        c2 = (secant - s0) / h - c3 * h
        values = {
            0: lambda: ((c3 * d + c2) * d + s0) * d + y0, 1: lambda: (3.0 * c3 * d + 2.0 * c2) * d + s0, 2: lambda: 6.0 * c3 * d + 2.0 * c2,
            3: lambda: 6.0 * c3 + 0.0 * d,
        }  # fmt: skip
        if nu not in values:
            raise UnsupportedError(f"CubicSpline: the order of a derivative is 0 to 3, not {nu}")
        return ops.reshape(values[nu](), (*places.shape, *self.shape))


def column(x: Operand) -> Operand:
    return ops.reshape(x, (-1, 1))


def slopes(x: Operand, y: Operand, bc_type: str) -> Operand:
    """The derivatives at the points, from a tridiagonal system (with one more element at "not-a-knot" ends)."""
    n = x.shape[0]
    h = pick(x, slice(1, None)) - pick(x, slice(None, -1))
    secant = (pick(y, slice(1, None)) - pick(y, slice(None, -1))) / column(h)
    if n == 2:
        both = concatenate([secant, secant], 0)
        return 0.0 * both if bc_type == "clamped" else both
    if n == 3 and bc_type == "not-a-knot":  # one parabola
        h0, h1 = pick(h, 0), pick(h, 1)
        bend = (pick(secant, slice(1, 2)) - pick(secant, slice(0, 1))) / (h0 + h1)
        start = pick(secant, slice(0, 1)) - bend * h0
        return concatenate([start, start + 2.0 * bend * h0, start + 2.0 * bend * (h0 + h1)], 0)
    left, right = pick(h, slice(None, -1)), pick(h, slice(1, None))
    inner_rows = band(n, right, 0) + band(n, 2.0 * (left + right), 1) + band(n, left, 2)
    inner = 3.0 * (column(right) * pick(secant, slice(None, -1)) + column(left) * pick(secant, slice(1, None)))
    first, top = end(h, secant, bc_type)
    last, bottom = end(ops.flip(h, 0), ops.flip(secant, 0), bc_type)
    start_row = ops.reshape(ops.pad(first, [0], [n - first.shape[0]]), (1, n))
    end_row = ops.reshape(ops.pad(ops.flip(last, 0), [n - last.shape[0]], [0]), (1, n))
    matrix = concatenate([start_row, inner_rows, end_row], 0)
    return ops.solve(matrix, concatenate([top, inner, bottom], 0))


def band(n: int, values: Operand, shift: int) -> Operand:
    """A matrix of n - 2 rows and n columns with `values` on the diagonal that starts in column `shift`."""
    rows, columns = ops.iota((n - 2, n), 0), ops.iota((n - 2, n), 1)
    return ops.where(ops.equal(columns, rows + shift), column(values), 0.0)


def end(h: Operand, secant: Operand, bc_type: str) -> tuple[Operand, Operand]:
    """The first elements of the first row, and the right-hand side. At the other end, arguments and result are reversed."""
    one = ops.full((1,), 1.0, h.dtype)
    s0 = pick(secant, slice(0, 1))
    if bc_type == "clamped":
        return one, 0.0 * s0
    if bc_type == "natural":
        return concatenate([2.0 * one, one], 0), 3.0 * s0
    h0, h1, s1 = pick(h, slice(0, 1)), pick(h, slice(1, 2)), pick(secant, slice(1, 2))
    total = h0 + h1
    right = ((h0 + 2.0 * total) * h1 * s0 + h0 * h0 * s1) / total
    return concatenate([h1, total], 0), right


def __dir__() -> list[str]:
    return __all__
