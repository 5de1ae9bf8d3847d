"""Differences over grids, phases and polynomials."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError, UnsupportedError
from adjit.ir.operand import Operand
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import I64, kept_shape, normalize_axes, normalize_axis, promote

from ..convert import present, to_operand, to_operands
from ..results import copies
from .create import linspace
from .elementwise import floating
from .indexing import diff
from .linalg import lstsq
from .shapes import concatenate, stack


def gradient(f: Any, /, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return the derivative of a sampled function, one array per axis: central differences inside, one-sided ones at the ends.

    `varargs` are the distances between samples, or their coordinates: one for all axes, or one for each.

    >>> aj.gradient([0.0, 1.0, 4.0, 9.0])
    Tensor([1., 2., 4., 5.], f64[4])
    >>> aj.gradient([0.0, 1.0, 4.0, 9.0], 0.5)
    Tensor([ 2.,  4.,  8., 10.], f64[4])
    """
    x = floating(to_operand(f))
    normalize_axes(axis, x.ndim, "gradient")  # which refuses an axis that is given twice
    given = range(x.ndim) if axis is None else axis if isinstance(axis, Sequence) else (axis,)
    axes = [normalize_axis(a, x.ndim, "gradient") for a in given]  # in the order given, as the distances and the results are
    spacings = list(varargs) if len(varargs) == len(axes) else [*varargs] * len(axes) if len(varargs) == 1 else [1.0] * len(axes)
    if len(varargs) not in (0, 1, len(axes)):
        raise ShapeError(f"gradient: {len(varargs)} distances for {len(axes)} axes; give one for all, or one for each")
    if edge_order != 1:
        raise UnsupportedError(f"gradient: edge_order={edge_order}; only 1 is supported")
    out = [gradient_along(x, a, h) for a, h in zip(axes, spacings, strict=True)]
    return out[0] if len(out) == 1 else tuple(out)


def gradient_along(x: Operand, axis: int, spacing: Any) -> Operand:
    if x.shape[axis] < 2:
        raise ShapeError(f"gradient: axis {axis} of {x.type} has less than 2 samples")
    head = [slice(None)] * axis
    _, h = to_operands(x, spacing)
    rise = diff(x, axis=axis)
    if h.ndim:
        if h.shape != (x.shape[axis],):
            raise ShapeError(f"gradient: coordinates of shape {list(h.shape)} for axis {axis} of {x.type}")
        h = ops.reshape(floating(diff(h)), [-1 if a == axis else 1 for a in range(x.ndim)])
        before, after = (ops.slice_(h, [*head, s]) for s in (slice(-1), slice(1, None)))
        slopes = rise / h
        left, right = (ops.slice_(slopes, [*head, s]) for s in (slice(-1), slice(1, None)))
        inner = (left * after + right * before) / (before + after)
    else:
        h = spacing if type(spacing) in (bool, int, float) else floating(h)
        slopes = rise / h
        inner = (ops.slice_(x, [*head, slice(2, None)]) - ops.slice_(x, [*head, slice(-2)])) / (2.0 * h)
    ends = [ops.slice_(slopes, [*head, s]) for s in (slice(1), slice(-1, None))]
    return ops.concatenate([ends[0], inner, ends[1]], axis)


def unwrap(p: Any, /, discont: Any = None, axis: int = -1, *, period: float = 2 * math.pi) -> Operand:
    """Return phases without jumps: steps of more than half a period are reduced by whole periods.

    >>> aj.unwrap([0.0, 3.0, -3.0])
    Tensor([0.        , 3.        , 3.28318531], f64[3])
    """
    p = to_operand(p)
    axis = normalize_axis(axis, p.ndim, "unwrap")
    half = period / 2
    x, step = floating(p), floating(diff(ops.stop_gradient(p), axis=axis))  # differences of integers wrap, as in NumPy
    wrapped = (step + half) % period - half
    wrapped = ops.where(ops.logical_and(ops.equal(wrapped, -half), ops.greater(step, 0.0)), half, wrapped)
    turns = ops.where(ops.less(ops.absolute(step), half if discont is None else discont), 0.0, wrapped - step)
    start = ops.slice_(x, [*[slice(None)] * axis, slice(1)])
    rest = ops.slice_(x, [*[slice(None)] * axis, slice(1, None)]) + ops.cumsum(turns, axis)
    return ops.concatenate([start, rest], axis)


# ---- logarithmically spaced numbers


def logspace(start: Any, stop: Any, num: int = 50, /, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0) -> Operand:
    """Return numbers evenly spaced on a logarithmic scale, from base**start to base**stop.

    >>> aj.logspace(0.0, 2.0, 3)
    Tensor([  1.,  10., 100.], f64[3])
    """
    out = ops.power(base, linspace(start, stop, num, endpoint=endpoint, axis=axis))
    return out if dtype is None else out.astype(dtype)


def geomspace(start: Any, stop: Any, num: int = 50, /, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Operand:
    """Return a geometric sequence from start to stop, which must have the same sign.

    >>> aj.geomspace(1.0, 8.0, 4)
    Tensor([1., 2., 4., 8.], f64[4])
    """
    first, last = (floating(x) for x in to_operands(start, stop))
    if first.type.is_complex or last.type.is_complex:
        raise DTypeError(f"geomspace: between complex numbers ({first.type} and {last.type}) is not supported; use exp and linspace")
    sizes = ops.exp(linspace(ops.log(ops.absolute(first)), ops.log(ops.absolute(last)), num, endpoint=endpoint, axis=axis))
    below = ops.logical_or(ops.less(first, 0.0), ops.less(last, 0.0))
    above = ops.logical_or(ops.greater(first, 0.0), ops.greater(last, 0.0))
    zero = ops.logical_or(ops.equal(first, 0.0), ops.equal(last, 0.0))
    wrong = ops.any(ops.logical_or(zero, ops.logical_and(below, above)))
    ops.check(ops.logical_not(wrong), "geomspace: start and stop must have the same sign, and not be 0", "ValueError")
    place = normalize_axis(axis, sizes.ndim, "geomspace")
    below = ops.reshape(below, (*below.shape[:place], 1, *below.shape[place:]))
    out = ops.where(below, -sizes, sizes)
    return out if dtype is None else out.astype(dtype)


# ---- polynomials


def vander(x: Any, n: int | None = None, /, increasing: bool = False) -> Operand:
    """Return a Vandermonde matrix: columns of powers of a vector, from the highest down unless `increasing`.

    >>> aj.vander([1, 2, 3], 3)
    Tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]], i64[3,3])
    """
    x = to_operand(x)
    x = ops.cast(x, promote(x.dtype, I64))
    if x.ndim != 1:
        raise ShapeError(f"vander: takes a vector, not {x.type}")
    count = x.shape[0] if n is None else operator.index(n)
    powers = [x**k for k in range(count)]
    return stack(powers if increasing else powers[::-1], 1) if count else present(ops.full((x.shape[0], 0), 0, x.dtype))


def polyfit(x: Any, y: Any, deg: int, /, w: Any = None) -> Operand:
    """Return the coefficients of the polynomial that fits points by least squares, highest power first.

    >>> aj.round(aj.polyfit([0.0, 1.0, 2.0, 3.0], [1.0, 3.0, 5.0, 7.0], 1), 6)
    Tensor([2., 1.], f64[2])
    """
    x, y = (floating(v) for v in to_operands(x, y))
    if deg < 0:
        raise ShapeError(f"polyfit: the degree must not be negative: {deg}")
    columns, sides = vander(x, operator.index(deg) + 1), y
    if w is not None:
        weight = ops.reshape(to_operands(x, w)[1], (-1, 1))
        columns = columns * weight
        sides = y * (weight if y.ndim == 2 else ops.reshape(weight, -1))
    # columns of equal norm give the best conditioned equations
    scale = ops.sqrt(ops.sum(columns * columns, 0))
    found: Operand = lstsq(columns / scale, sides)[0]
    return found / (ops.reshape(scale, (-1, 1)) if found.ndim == 2 else scale)


@copies
def polyder(p: Any, /, m: int = 1) -> Operand:
    """Return the derivative of a polynomial; coefficients have the highest power first.

    >>> aj.polyder([1, 2, 3])
    Tensor([2, 2], i64[2])
    """
    out = to_operand(p)
    if m < 0:
        raise ShapeError(f"polyder: m must not be negative: {m}; see polyint")
    for _ in range(operator.index(m)):
        degree = out.shape[0] - 1
        out = ops.slice_(out, [slice(0, max(degree, 0))]) * np.arange(degree, 0, -1)
    return out


def polyint(p: Any, /, m: int = 1, k: float | Sequence[float] | None = None) -> Operand:
    """Return the integral of a polynomial; coefficients have the highest power first, `k` are the integration constants.

    >>> aj.polyint([2.0, 2.0], k=3.0)
    Tensor([1., 2., 3.], f64[3])
    """
    out = floating(to_operand(p))
    if m < 0:
        raise ShapeError(f"polyint: m must not be negative: {m}; see polyder")
    constants = [float(constant) for constant in np.ravel(0.0 if k is None else k)]
    constants = constants * m if len(constants) == 1 else constants
    if len(constants) < m:
        raise ShapeError(f"polyint: {len(constants)} constants for {m} integrals")
    for constant in constants[:m]:
        out = concatenate([out / np.arange(out.shape[0], 0.0, -1.0), np.full(1, constant)], 0)
    return out


def trapezoid(y: Any, /, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Operand:
    """Return the integral of y by the trapezoidal rule, over points x or steps dx.

    >>> aj.trapezoid([1.0, 2.0, 3.0], x=[0.0, 1.0, 3.0])
    Tensor(6.5, f64[])
    """
    y = to_operand(y)
    axis = normalize_axis(axis, y.ndim, "trapezoid")
    head = [slice(None)] * axis
    both = floating(ops.slice_(y, [*head, slice(None, -1)]) + ops.slice_(y, [*head, slice(1, None)]))  # integers wrap, as in NumPy
    if x is None:
        return ops.sum(dx * both * 0.5, axis)
    _, points = to_operands(y, x)
    if points.ndim == 1:
        points = ops.reshape(points, kept_shape(y.shape, [a for a in range(y.ndim) if a != axis]))
    steps = ops.slice_(points, [*head, slice(1, None)]) - ops.slice_(points, [*head, slice(None, -1)])
    return ops.sum(steps * both * 0.5, axis)


end_at_callers(globals())
