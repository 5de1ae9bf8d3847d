"""Order statistics, covariances, and statistics that ignore NaN."""

from __future__ import annotations

import builtins
import math
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError, UnsupportedError
from adjit.ir.operand import Operand, as_arithmetic, as_operand
from adjit.ir.sizes import is_symbolic
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import C128, F64, I64, as_dtype, kept_shape, normalize_axes

from ..convert import as_float, pick, present, to_operand, to_operands
from ..results import copies
from .elementwise import floating
from .range_checks import check_quantiles
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
    if is_symbolic(n):  # no Python `if` on its parity: such a decision would fix the size
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


@copies
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
    if not x.type.is_inexact:
        raise DTypeError(f"nanvar, nanstd: dtype={x.type.dtype}: means are no integers; use a float dtype, and cast the result")
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
        count = ops.cast(to_operand(as_float(counted(x, axis, "average"))), out.dtype)
        return (out, ops.broadcast_to(count, out.shape)) if returned else out
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


end_at_callers(globals())
