"""Order statistics, histograms, covariances, and statistics that ignore NaN."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError, UnsupportedError
from adjit.ir.found_sizes import found_size
from adjit.ir.operand import Concrete, Operand, as_arithmetic, as_operand
from adjit.ir.sizes import is_symbolic
from adjit.ir.types import BOOL, C128, F64, I64, as_dtype, kept_shape, normalize_axes

from ..convert import as_float, pick, present, to_operand, to_operands
from .create import linspace
from .elementwise import floating
from .indexing import searchsorted
from .range_checks import check_monotonic, check_not_negative, check_quantiles, check_range
from .reductions import counted, cumprod, cumsum, mean, prod
from .reductions import sum as total
from .shapes import concatenate

# ---- order statistics


def median(x: Any, /, axis: Any = None, keepdims: bool = False) -> Operand:
    """Return the median: the middle of the sorted elements, or the mean of the two middle ones; NaN if any element is NaN.

    >>> aj.median([[1.0, 9.0, 2.0], [4.0, 4.0, 6.0]], axis=1)
    Tensor([2., 4.], f64[2])
    """
    x = floating(to_operand(x))
    ordered = sorted_lines(x, axis, "median")
    n = ordered.shape[-1]
    low, high = item(ordered, (n - 1) // 2), item(ordered, n // 2)
    if is_symbolic(n):  # no decision, which would fix the size
        middle = ops.where(ops.equal(as_operand(n % 2), 0), 0.5 * (low + high), high)
    else:
        middle = 0.5 * (low + high) if n % 2 == 0 else high
    return restored(or_nan(middle, item(ordered, n - 1)), x, axis, keepdims)


def quantile(x: Any, q: Any, /, axis: Any = None, keepdims: bool = False, method: str = "linear") -> Operand:
    """Return quantiles by linear interpolation between the sorted elements; NaN if any element is NaN.

    >>> aj.quantile([1.0, 2.0, 3.0, 4.0], [0.25, 0.5])
    Tensor([1.75, 2.5 ], f64[2])
    """
    x, q = to_operands(x, q)
    x = floating(x)
    if method != "linear":
        raise UnsupportedError(f"quantile: method {method!r}; only 'linear' is supported")
    check_quantiles(q, "quantile")
    refuse_complex("quantile", x)
    ordered = sorted_lines(x, axis, "quantile")
    n = ordered.shape[-1]
    first = ops.transpose(ordered, (ordered.ndim - 1, *range(ordered.ndim - 1)))
    place = ops.cast(q, F64 if q.dtype == F64 and q.ndim else x.dtype) * as_float(n - 1)
    below = ops.floor(ops.stop_gradient(place))
    low, high = (pick(first, ops.cast(ops.clip(at, 0, as_arithmetic(n - 1)), I64)) for at in (below, below + 1))
    part = ops.reshape(place - below, (*q.shape, *(1 for _ in range(ordered.ndim - 1))))
    gap = high - low
    between = ops.where(ops.less(part, 0.5), low + gap * part, high - gap * (1 - part))
    out = or_nan(between, item(ordered, n - 1))
    return ops.reshape(out, (*q.shape, *kept_shape(x.shape, normalize_axes(axis, x.ndim, "quantile")))) if keepdims else out


def refuse_complex(what: str, x: Operand) -> None:
    if x.type.is_complex:
        raise DTypeError(f"{what}: {x.type}: takes real numbers, as in NumPy")


def percentile(x: Any, q: Any, /, axis: Any = None, keepdims: bool = False, method: str = "linear") -> Operand:
    """Return percentiles: quantiles with q from 0 to 100.

    >>> aj.percentile([1.0, 2.0, 3.0, 4.0], 50)
    Tensor(2.5, f64[])
    """
    _, q = to_operands(x, q)
    return quantile(x, q / 100.0, axis, keepdims, method)


def nanmedian(x: Any, /, axis: Any = None, keepdims: bool = False) -> Operand:
    """Return the median, ignoring NaN.

    >>> aj.nanmedian([1.0, aj.nan, 2.0, 9.0])
    Tensor(2., f64[])
    """
    x = floating(to_operand(x))
    ordered = ops.sort(lines(x, axis, "nanmedian"), -1)
    count = ops.sum(ops.logical_not(ops.isnan(ordered)), -1)
    low, high = (picked(ordered, at) for at in ((count - 1) // 2, count // 2))
    return restored(ops.where(ops.equal(count, 0), math.nan, 0.5 * (low + high)), x, axis, keepdims)


def nanquantile(x: Any, q: Any, /, axis: Any = None, keepdims: bool = False, method: str = "linear") -> Operand:
    """Return quantiles by linear interpolation, ignoring NaN; NaN if there are no other elements.

    >>> aj.nanquantile([1.0, aj.nan, 3.0], 0.25)
    Tensor(1.5, f64[])
    """
    x, q = to_operands(x, q)
    x = floating(x)
    if method != "linear":
        raise UnsupportedError(f"nanquantile: method {method!r}; only 'linear' is supported")
    check_quantiles(q, "nanquantile")
    refuse_complex("nanquantile", x)
    ordered = ops.sort(lines(x, axis, "nanquantile"), -1)
    count = ops.sum(ops.logical_not(ops.isnan(ordered)), -1)
    parts = [quantile_of(ordered, count, pick(ops.reshape(q, -1), i)) for i in range(q.type.size)]
    empty = ops.full((0, *ordered.shape[:-1]), 0, x.dtype)
    out = ops.concatenate([empty, *(ops.reshape(part, (1, *part.shape)) for part in parts)], 0)
    shape = kept_shape(x.shape, normalize_axes(axis, x.ndim, "nanquantile")) if keepdims else ordered.shape[:-1]
    return present(ops.reshape(out, (*q.shape, *shape)))


def quantile_of(ordered: Operand, count: Operand, q: Operand) -> Operand:
    """Compute one quantile of the first `count` elements of each slice."""
    place = ops.cast(q, ordered.dtype) * ops.cast(count - 1, ordered.dtype)
    below = ops.floor(ops.stop_gradient(place))
    there = ops.where(ops.isnan(ordered), 0.0, ordered)
    low, high = (picked(there, ops.minimum(ops.cast(at, I64), count - 1)) for at in (below, below + 1))
    part, gap = place - below, high - low
    between = ops.where(ops.less(part, 0.5), low + gap * part, high - gap * (1 - part))
    return ops.where(ops.equal(count, 0), math.nan, between)


def nanpercentile(x: Any, q: Any, /, axis: Any = None, keepdims: bool = False, method: str = "linear") -> Operand:
    """Return percentiles, ignoring NaN.

    >>> aj.nanpercentile([1.0, aj.nan, 3.0], 25)
    Tensor(1.5, f64[])
    """
    _, q = to_operands(x, q)
    return nanquantile(x, q / 100.0, axis, keepdims, method)


def lines(x: Operand, axis: Any, what: str) -> Operand:
    """Merge the reduced axes into one, the last."""
    axes = normalize_axes(axis, x.ndim, what)
    others = [a for a in range(x.ndim) if a not in axes]
    return ops.reshape(ops.transpose(x, [*others, *axes]), (*(x.shape[a] for a in others), math.prod(x.shape[a] for a in axes)))


def sorted_lines(x: Operand, axis: Any, what: str) -> Operand:
    out = lines(x, axis, what)
    if not out.shape[-1]:
        raise ShapeError(f"{what}: {x.type} has no elements along axis {axis}")
    return ops.sort(out, -1)


def item(x: Operand, i: int) -> Operand:
    return pick(x, (..., i))


def picked(x: Operand, at: Operand) -> Operand:
    """Select from each slice the element at its own index."""
    n = x.shape[-1]
    here = ops.equal(ops.iota(x.shape, x.ndim - 1), ops.reshape(ops.clip(at, 0, n - 1), (*at.shape, 1)))
    return ops.sum(ops.where(here, x, 0.0), -1)


def or_nan(x: Operand, last: Operand) -> Operand:
    """Return NaN where the last of the sorted elements is NaN."""
    return ops.where(ops.isnan(last), math.nan, x)


def restored(out: Operand, x: Operand, axis: Any, keepdims: bool) -> Operand:
    return ops.reshape(out, kept_shape(x.shape, normalize_axes(axis, x.ndim, "median"))) if keepdims else out


# ---- counting


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
    weighted = weights is not None and x.shape[0] > 0  # of nothing, NumPy counts integers
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
    edges = [edges_of(x, b, r) for x, b, r in zip(columns, numbers, ranges, strict=True)]
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


# ---- covariances


def cov(x: Any, /, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: float | None = None) -> Operand:
    """Return the covariances of variables, which are rows, or columns if `rowvar` is false.

    >>> aj.cov([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])
    Tensor([[1., 2.],
            [2., 4.]], f64[2,2])
    """
    operands = to_operands(*([x] if y is None else [x, y]))
    dtype = C128 if any(v.type.is_complex for v in operands) else F64  # as in NumPy, for any dtype
    given = [ops.cast(v, dtype) for v in operands]
    if any(v.ndim > 2 for v in given):
        raise ShapeError(f"cov: takes vectors and matrices, not {given[0].type}")
    rows = concatenate([ops.reshape(v, (1, -1)) if v.ndim < 2 else v if rowvar else ops.transpose(v, (1, 0)) for v in given], 0)
    number = rows.shape[1] - ((0 if bias else 1) if ddof is None else ddof)
    centred = rows - mean(rows, 1, keepdims=True)
    divisor = builtins.max(number, 0)
    out = ops.matmul(centred, ops.conj(ops.transpose(centred, (1, 0)))) / (as_float(divisor) if isinstance(divisor, int) else divisor)
    return ops.reshape(out, ()) if out.type.size == 1 else out


def corrcoef(x: Any, /, y: Any = None, rowvar: bool = True) -> Operand:
    """Return the correlation coefficients of variables, which are rows, or columns if `rowvar` is false.

    >>> aj.corrcoef([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    Tensor([[ 1., -1.],
            [-1.,  1.]], f64[2,2])
    """
    c = cov(x, y, rowvar)
    if not c.ndim:
        return c / c
    n = c.shape[0]
    deviation = ops.sqrt(ops.real(ops.slice_(ops.reshape(c, -1), [slice(0, n * n, n + 1)])))
    out = c / ops.reshape(deviation, (n, 1)) / deviation
    if out.type.is_complex:
        return ops.from_parts(*(ops.clip(part, -1.0, 1.0) for part in (ops.real(out), ops.imag(out))))
    return ops.clip(out, -1.0, 1.0)


# ---- ignoring NaN


def numbers_in(x: Operand) -> Any:
    return ops.logical_not(ops.isnan(x)) if x.type.is_inexact else True


def nanprod(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Operand:
    """Return the product of the elements, ignoring NaN.

    >>> aj.nanprod([2.0, aj.nan, 3.0])
    Tensor(6., f64[])
    """
    x = to_operand(x)
    return prod(x, axis, dtype, keepdims=keepdims, where=numbers_in(x))


def nanvar(x: Any, /, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False) -> Operand:
    """Return the variance, ignoring NaN.

    >>> aj.nanvar([1.0, aj.nan, 3.0])
    Tensor(1., f64[])
    """
    x = floating(to_operand(x)) if dtype is None else ops.cast(to_operand(x), as_dtype(dtype))
    there = numbers_in(x)
    distance = ops.where(there, x - mean(x, axis, keepdims=True, where=there), 0.0)
    square = ops.real(distance * ops.conj(distance))
    count = ops.cast(ops.sum(there, axis, keepdims), square.dtype) - ddof
    return ops.where(ops.greater(count, 0), total(square, axis, keepdims=keepdims) / count, math.nan)


def nanstd(x: Any, /, axis: Any = None, dtype: Any = None, ddof: float = 0, keepdims: bool = False) -> Operand:
    """Return the standard deviation, ignoring NaN.

    >>> aj.nanstd([1.0, aj.nan, 3.0])
    Tensor(1., f64[])
    """
    return ops.sqrt(nanvar(x, axis, dtype, ddof, keepdims))


def nancumsum(x: Any, /, axis: int | None = None, dtype: Any = None) -> Operand:
    """Compute cumulative sums, with NaN as 0."""
    return cumsum(filled(x, 0.0), axis, dtype)


def nancumprod(x: Any, /, axis: int | None = None, dtype: Any = None) -> Operand:
    """Compute cumulative products, with NaN as 1."""
    return cumprod(filled(x, 1.0), axis, dtype)


def nanargmax(x: Any, /, axis: int | None = None, keepdims: bool = False) -> Operand:
    """Return the index of the first largest element, ignoring NaN; raises if there are no other elements.

    >>> aj.nanargmax([aj.nan, 2.0, 1.0])
    Tensor(1, i64[])
    """
    return ops.argmax(some_number(x, axis, "nanargmax", -math.inf), axis, keepdims)


def nanargmin(x: Any, /, axis: int | None = None, keepdims: bool = False) -> Operand:
    """Return the index of the first smallest element, ignoring NaN; raises if there are no other elements.

    >>> aj.nanargmin([aj.nan, 2.0, 1.0])
    Tensor(2, i64[])
    """
    return ops.argmin(some_number(x, axis, "nanargmin", math.inf), axis, keepdims)


def some_number(x: Any, axis: int | None, what: str, value: float) -> Operand:
    """Replace NaN by `value`, after checking that every slice contains a number."""
    x = to_operand(x)
    if x.type.is_float:
        found = ops.all(ops.any(ops.logical_not(ops.isnan(x)), axis))
        ops.check(found, f"{what}: a line of the array has no number, only NaN", "ValueError")
    return filled(x, value)


def filled(x: Any, value: float) -> Operand:
    x = to_operand(x)
    return ops.where(ops.isnan(x), value, x) if x.type.is_inexact else x


def average(x: Any, /, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """Return the weighted mean; with `returned`, also the sum of the weights.

    >>> aj.average([1.0, 2.0], weights=[3.0, 1.0])
    Tensor(1.25, f64[])
    """
    x = to_operand(x)
    if weights is None:
        out = mean(x, axis, keepdims=keepdims)
        return (out, ops.broadcast_to(to_operand(as_float(counted(x, axis, "average"))), out.shape)) if returned else out
    x, weights = to_operands(x, weights)
    if weights.shape != x.shape:
        if axis is None:
            raise ShapeError(f"average: weights of shape {list(weights.shape)} need an axis, because the operand is {x.type}")
        axes = normalize_axes(axis, x.ndim, "average")
        if weights.shape != tuple(x.shape[a] for a in axes):
            raise ShapeError(f"average: weights of shape {list(weights.shape)} do not fit axis {axis} of {x.type}")
        weights = ops.reshape(weights, tuple(n if a in axes else 1 for a, n in enumerate(x.shape)))
    weights = ops.broadcast_to(weights, x.shape)
    total = ops.sum(floating(weights), axis, keepdims)
    ops.check(ops.all(ops.not_equal(ops.stop_gradient(total), 0)), "average: the weights sum to zero", "ZeroDivisionError")
    out = ops.sum(x * floating(weights), axis, keepdims) / total
    return (out, present(total)) if returned else out
