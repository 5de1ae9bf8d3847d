"""Counts of values: bins, histograms."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError, UnsupportedError
from adjit.ir.found_sizes import found_size
from adjit.ir.operand import Concrete, Operand
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import BOOL, F64, I64

from ..convert import pick, present, to_operand, to_operands
from .create import linspace
from .elementwise import floating
from .indexing import searchsorted
from .range_checks import check_monotonic, check_not_negative, check_range
from .statistics import refuse_complex


def digitize(x: Any, bins: Any, /, right: bool = False) -> Operand:
    """Return the index of each element's bin; `bins` must be monotonic.

    >>> aj.digitize([0.5, 1.5, 9.0], [1.0, 2.0, 3.0])
    Tensor([0, 1, 3], i64[3])
    """
    x, bins = to_operands(x, bins)
    if bins.ndim != 1:
        raise ShapeError(f"digitize: bins must be a vector, not {bins.type}")
    refuse_complex("digitize", x)
    count = bins.shape[0]
    side = "left" if right else "right"
    up = searchsorted(bins, x, side)
    if count < 2:
        return up
    check_monotonic(bins, "digitize: bins must increase or decrease monotonically", may_decrease=True)
    down = count - searchsorted(ops.flip(bins, 0), x, side)
    return ops.where(ops.greater(pick(bins, 0), pick(bins, -1)), down, up)


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Operand:
    """Return the count of each integer from 0 on. If x is traced, a `minlength` is the length of the result, and larger integers raise.

    >>> aj.bincount([0, 1, 1, 3])
    Tensor([1, 2, 0, 1], i64[4])
    """
    x = to_operand(x)
    if x.ndim != 1 or x.dtype.kind not in "iub":
        raise ShapeError(f"bincount: takes a vector of integers, not {x.type}")
    x = ops.cast(x, I64) if x.dtype == BOOL else x
    if minlength < 0:
        raise ShapeError(f"bincount: minlength must not be negative: {minlength}")
    check_not_negative(x, "bincount: the integers must not be negative")
    if isinstance(x, Concrete):
        minlength = builtins.max(minlength, int(x.buffer.max()) + 1 if x.buffer.size else 0)
    elif not minlength and x.shape[0]:
        minlength = found_size(
            ops.add(ops.max(x), 1),
            "bincount: the largest number determines the shape of the result; give an upper bound of the numbers with minlength=",
        )
    weighted = weights is not None and x.shape[0] > 0  # for an empty array, NumPy returns integers
    amounts = ops.cast(to_operands(x, weights)[1], F64) if weighted else ops.full(x.shape, 1, I64)
    return ops.additem(ops.full((minlength,), 0, amounts.dtype), x, amounts)


def histogram(x: Any, /, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None) -> tuple[Operand, Operand]:
    """Return the number of elements in each bin, and the bin edges. Bins have equal width unless their edges are given.

    >>> aj.histogram([0.0, 0.2, 0.9, 1.0], bins=2)
    (Tensor([2, 2], i64[2]), Tensor([0. , 0.5, 1. ], f64[3]))
    """
    x = ops.reshape(to_operand(x), -1)
    edges = edges_of(x, bins, range)
    count = edges.shape[0] - 1
    if not count:
        return present(ops.full((0,), 0, I64 if weights is None else to_operands(x, weights)[1].dtype)), present(edges)
    place = ops.minimum(searchsorted(edges, x, side="right") - 1, count - 1)
    inside = ops.logical_and(ops.greater_equal(x, pick(edges, 0)), ops.less_equal(x, pick(edges, -1)))
    if weights is None:
        amounts = ops.cast(inside, I64)
    else:
        given = to_operands(x, weights)[1]
        amounts = ops.where(inside, ops.reshape(given, -1), ops.cast(to_operand(0), given.dtype))
    out = ops.additem(ops.full((count,), 0, amounts.dtype), ops.where(inside, place, 0), amounts)
    if density:
        out = floating(out) / (pick(edges, slice(1, None)) - pick(edges, slice(-1))) / ops.sum(floating(out))
    return present(out), present(edges)


def edges_of(x: Operand, bins: Any, between: Any) -> Operand:
    if not isinstance(bins, int | np.integer):
        if isinstance(bins, str):
            raise UnsupportedError("histogram: the number of bins must be known while tracing; give a number, or the edges of the bins")
        given = to_operands(x, bins)[1]
        check_monotonic(given, "histogram: the edges of bins must increase monotonically")
        return given
    if between is None and not x.type.size:
        between = (0.0, 1.0)
    if between is None:
        low, high = (floating(ops.stop_gradient(f(x))) for f in (ops.min, ops.max))
    else:
        low, high = (floating(to_operands(x, end)[1]) for end in between)
    check_range(low, high, "histogram")
    flat = ops.equal(low, high)
    edges: Operand = linspace(ops.where(flat, low - 0.5, low), ops.where(flat, high + 0.5, high), int(bins) + 1)
    return edges


def histogram_bin_edges(x: Any, /, bins: Any = 10, range: Any = None, weights: Any = None) -> Operand:
    """Return the edges of the bins of a histogram.

    >>> aj.histogram_bin_edges([0.0, 0.2, 1.0], bins=4)
    Tensor([0.  , 0.25, 0.5 , 0.75, 1.  ], f64[5])
    """
    return present(edges_of(ops.reshape(to_operand(x), -1), bins, range))


def histogram2d(
    x: Any, y: Any, /, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Operand, Operand, Operand]:
    """Return the number of points in each cell of a grid, and the edges along both axes.

    >>> counts, x_edges, y_edges = aj.histogram2d([0.1, 0.9, 0.8], [0.1, 0.2, 0.9], bins=2)
    >>> counts
    Tensor([[1., 0.],
            [1., 1.]], f64[2,2])
    """
    several = not isinstance(bins, int | np.integer) and len(bins) not in (1, 2)
    out, edges = histogramdd((x, y), (bins, bins) if several else bins, range, density, weights)
    return out, edges[0], edges[1]


def pair_of_ends(range: Any) -> Any:
    if range is not None and np.shape(range) != (2,):
        raise ShapeError(f"histogramdd: a range has a start and an end, which {range!r} does not")
    return range


def histogramdd(
    sample: Any, /, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Operand, tuple[Operand, ...]]:
    """Return the number of points (rows of an array, or arrays of coordinates) in each cell of a grid, and the edges.

    >>> counts, edges = aj.histogramdd(np.array([[0.1, 0.1], [0.9, 0.2], [0.8, 0.9]]), bins=2)
    >>> counts
    Tensor([[1., 0.],
            [1., 1.]], f64[2,2])
    """
    if isinstance(sample, list | tuple):
        columns = [ops.reshape(x, -1) for x in to_operands(*sample)]
    else:
        points = to_operand(sample)
        points = ops.reshape(points, (-1, 1)) if points.ndim == 1 else points
        columns = [pick(points, (slice(None), k)) for k in builtins.range(points.shape[1])]
    numbers = [bins] * len(columns) if isinstance(bins, int | np.integer) else list(bins)
    ranges = [None] * len(columns) if range is None else list(range)
    if len(numbers) != len(columns) or len(ranges) != len(columns):
        raise ShapeError(f"histogramdd: {len(columns)} variables, with bins for {len(numbers)} and ranges for {len(ranges)} of them")
    edges = [edges_of(x, b, r) for x, b, r in zip(columns, numbers, map(pair_of_ends, ranges), strict=True)]
    shape = tuple(e.shape[0] - 1 for e in edges)
    place: Any = 0
    inside: Any = True
    for x, e, n in zip(columns, edges, shape, strict=True):
        at = ops.clip(searchsorted(e, x, side="right") - 1, 0, n - 1)
        place = place * n + at
        here = ops.logical_and(ops.greater_equal(x, pick(e, 0)), ops.less_equal(x, pick(e, -1)))
        inside = here if inside is True else ops.logical_and(inside, here)
    amounts = ops.cast(inside, F64)
    if weights is not None:
        amounts = ops.where(inside, ops.cast(ops.reshape(to_operands(columns[0], weights)[1], -1), F64), 0.0)
    flat = ops.additem(ops.full((math.prod(shape),), 0.0, F64), ops.where(inside, place, 0), amounts)
    out = ops.reshape(flat, shape)
    if density:
        out = out / ops.sum(out)
        for k, e in enumerate(edges):
            widths = pick(e, slice(1, None)) - pick(e, slice(-1))
            out = out / ops.reshape(widths, tuple(-1 if a == k else 1 for a in builtins.range(len(shape))))
    return present(out), tuple(map(present, edges))


end_at_callers(globals())
