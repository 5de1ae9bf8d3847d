"""Functions that combine elements along axes: sums, means, extremes, norms, softmax and similar."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError, UnsupportedError
from adjit.ir.operand import Operand
from adjit.ir.ops.maps import checked_scalar
from adjit.ir.sizes import is_symbolic
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import BOOL, DType, as_dtype, kept_shape, normalize_axes, reduced_shape

from ..convert import as_float, present, to_operand, to_operands
from ..results import copies
from . import elementwise
from .elementwise import floating, isclose


def counted(x: Operand, axis: Any, what: str) -> int:
    """Return how many elements a reduction over `axis` combines."""
    return math.prod(x.shape[a] for a in normalize_axes(axis, x.ndim, what))


def unwritten(name: str, out: Any) -> None:
    """Raise an error if `out` is given: it exists for NumPy's signature only."""
    if out is not None:
        raise UnsupportedError(f"np.{name}: there is no out=: arrays are immutable; assign the result instead")


def prepared(x: Any, dtype: Any, where: Any, fill: Callable[[DType], Any]) -> Operand:
    """Return the operand of a reduction in the requested dtype, with elements excluded by `where` replaced by the neutral element."""
    out = to_operand(x)
    if dtype is not None:
        out = ops.cast(out, as_dtype(dtype))
    if where is True:
        return out
    _, mask = to_operands(out, where)
    return ops.where(mask, out, ops.cast(to_operand(fill(out.dtype)), out.dtype))


def restored(out: Operand, dtype: Any) -> Operand:
    """Cast the result to the requested dtype; 64-bit accumulation is the default only if none was requested."""
    return out if dtype is None else ops.cast(out, as_dtype(dtype))


@copies
def sum(
    x: Any, /, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Operand:
    """Return the sum of the elements over the given axes.

    >>> x = aj.array([[1.0, 2.0], [3.0, 4.0]])
    >>> aj.sum(x), aj.sum(x, axis=0)
    (Tensor(10., f64[]), Tensor([4., 6.], f64[2]))
    """
    unwritten("sum", out)
    found = restored(ops.sum(prepared(x, dtype, where, lambda _: 0), axis, keepdims), dtype)
    return found if initial is None else found + started(initial, found)


@copies
def prod(
    x: Any, /, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Operand:
    """Return the product of the elements over the given axes.

    >>> aj.prod([[1, 2], [3, 4]], axis=1)
    Tensor([ 2, 12], i64[2])
    """
    unwritten("prod", out)
    found = restored(ops.prod(prepared(x, dtype, where, lambda _: 1), axis, keepdims), dtype)
    return found if initial is None else found * started(initial, found)


@copies
def max(x: Any, /, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Operand:
    """Return the largest element; ties share the derivative equally.

    >>> aj.max([[1, 5], [3, 2]], axis=1, keepdims=True)
    Tensor([[5],
            [3]], i64[2,1])
    >>> aj.grad(aj.max)(np.array([1.0, 2.0, 2.0]))
    Tensor([0. , 0.5, 0.5], f64[3])
    """
    unwritten("max", out)
    if where is not True and initial is None:
        raise ShapeError("max: where= needs initial=, the result if no element is selected")
    x = prepared(x, None, where, lowest)
    if initial is not None and x.ndim and not counted(x, axis, "max"):
        return of_nothing(x, axis, keepdims, initial)
    found = ops.max(x, axis, keepdims)
    return found if initial is None else ops.maximum(found, started(initial, found))


@copies
def min(x: Any, /, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Operand:
    """Return the smallest element; ties share the derivative equally.

    >>> aj.min([[1, 5], [3, 2]], axis=0)
    Tensor([1, 2], i64[2])
    """
    unwritten("min", out)
    if where is not True and initial is None:
        raise ShapeError("min: where= needs initial=, the result if no element is selected")
    x = prepared(x, None, where, highest)
    if initial is not None and x.ndim and not counted(x, axis, "min"):
        return of_nothing(x, axis, keepdims, initial)
    found = ops.min(x, axis, keepdims)
    return found if initial is None else ops.minimum(found, started(initial, found))


def started(initial: Any, out: Operand) -> Operand:
    """Convert the initial value of a reduction to the dtype of its result; a Python integer must fit."""
    if type(initial) is int:
        checked_scalar("initial", initial, out.dtype)
    return ops.cast(to_operand(initial), out.dtype)


def of_nothing(x: Operand, axis: Any, keepdims: bool, initial: Any) -> Operand:
    """Return the reduction of an empty axis with the initial value `initial`."""
    axes = normalize_axes(axis, x.ndim, "initial")
    shape = kept_shape(x.shape, axes) if keepdims else reduced_shape(x.shape, axes)
    return present(ops.full(shape, initial, x.dtype))


def lowest(dtype: DType) -> Any:
    return -highest(dtype) if dtype.kind in "fc" else False if dtype == BOOL else np.iinfo(dtype).min


def highest(dtype: DType) -> Any:
    if dtype.kind == "c":
        return complex(math.inf, math.inf)
    return math.inf if dtype.kind == "f" else True if dtype == BOOL else np.iinfo(dtype).max


@copies
def any(x: Any, /, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = True) -> Operand:
    """Return whether any element is true.

    >>> aj.any([[True, False], [False, False]], axis=1)
    Tensor([ True, False], bool[2])
    """
    unwritten("any", out)
    return ops.any(prepared(x, BOOL, where, lambda _: False), axis, keepdims)


@copies
def all(x: Any, /, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = True) -> Operand:
    """Return whether all elements are true.

    >>> aj.all([[True, True], [True, False]], axis=1)
    Tensor([ True, False], bool[2])
    """
    unwritten("all", out)
    return ops.all(prepared(x, BOOL, where, lambda _: True), axis, keepdims)


def argmax(x: Any, /, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Operand:
    """Return the index of the first largest element; not differentiable.

    >>> aj.argmax([[1, 5, 5], [3, 2, 1]], axis=1)
    Tensor([1, 0], i64[2])
    """
    unwritten("argmax", out)
    return ops.argmax(to_operand(x), axis, keepdims)


def argmin(x: Any, /, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Operand:
    """Return the index of the first smallest element; not differentiable.

    >>> aj.argmin([[1, 5, 5], [3, 2, 1]], axis=1)
    Tensor([0, 2], i64[2])
    """
    unwritten("argmin", out)
    return ops.argmin(to_operand(x), axis, keepdims)


def count_nonzero(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Operand:
    """Return the number of nonzero elements.

    >>> aj.count_nonzero([[0, 1], [2, 3]], axis=0)
    Tensor([1, 2], i64[2])
    """
    return ops.sum(ops.cast(to_operand(x), BOOL), axis, keepdims)


def cumsum(x: Any, /, axis: int | None = None, dtype: Any = None, out: None = None) -> Operand:
    """Return the cumulative sums along an axis.

    >>> aj.cumsum([1, 2, 3])
    Tensor([1, 3, 6], i64[3])
    """
    unwritten("cumsum", out)
    x = to_operand(x)
    return restored(ops.cumsum(x if dtype is None else ops.cast(x, as_dtype(dtype)), axis), dtype)


def cumprod(x: Any, /, axis: int | None = None, dtype: Any = None, out: None = None) -> Operand:
    """Return the cumulative products along an axis.

    >>> aj.cumprod([1, 2, 3])
    Tensor([1, 2, 6], i64[3])
    """
    unwritten("cumprod", out)
    x = to_operand(x)
    return restored(ops.cumprod(x if dtype is None else ops.cast(x, as_dtype(dtype)), axis), dtype)


# ---- statistics


def mean(x: Any, /, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = True) -> Operand:
    """Return the arithmetic mean.

    >>> aj.mean([[1.0, 2.0], [3.0, 4.0]], axis=0)
    Tensor([2., 3.], f64[2])
    """
    unwritten("mean", out)
    x = floating(to_operand(x)) if dtype is None else ops.cast(to_operand(x), as_dtype(dtype))
    if where is True:
        return restored(restored(ops.sum(x, axis, keepdims), dtype) / as_float(counted(x, axis, "mean")), dtype)
    _, mask = to_operands(x, where)
    present = ops.cast(ops.broadcast_to(ops.cast(mask, BOOL), x.shape), x.dtype)
    return restored(sum(x, axis, dtype, keepdims=keepdims, where=where) / ops.sum(present, axis, keepdims), dtype)


def var(
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Operand:
    """Return the mean of squared deviations from the mean; `ddof` (or `correction`) is subtracted from the number of elements.

    >>> aj.var([1.0, 3.0]), aj.var([1.0, 3.0], ddof=1)
    (Tensor(1., f64[]), Tensor(2., f64[]))
    """
    unwritten("var", out)
    x = floating(to_operand(x)) if dtype is None else ops.cast(to_operand(x), as_dtype(dtype))
    if not x.type.is_inexact:
        raise DTypeError(f"var, std: dtype={x.type.dtype}: means are not integers; use a float dtype, and cast the result")
    less = ddof if correction is None else correction
    if where is not True:
        return selected_var(x, axis, dtype, less, keepdims, where, mean)
    centre = ops.sum(x, axis, True) / as_float(counted(x, axis, "var")) if mean is None else to_operand(mean)
    distance = x - centre
    rest: Operand | float = remaining(counted(x, axis, "var"), less)
    return restored(ops.sum(squared(distance), axis, keepdims) / rest, dtype)


def selected_var(x: Operand, axis: Any, dtype: Any, less: float, keepdims: bool, where: Any, centre: Any) -> Operand:
    """Return the variance of the elements that a mask selects."""
    _, mask = to_operands(x, where)
    mask = ops.broadcast_to(ops.cast(mask, BOOL), x.shape)
    ones = ops.cast(mask, ops.real(x).dtype)
    if centre is None:
        centre = sum(x, axis, keepdims=True, where=mask) / ops.sum(ones, axis, True)
    squares = ops.where(mask, squared(x - to_operand(centre)), 0.0)
    return restored(ops.sum(squares, axis, keepdims) / ops.maximum(ops.sum(ones, axis, keepdims) - less, 0.0), dtype)


def remaining(count: int, less: float) -> Operand | float:
    """Return the number of elements less the degrees of freedom, 0 if none remain, as a float."""
    if isinstance(less, int) and is_symbolic(count):
        number = count - less
        return as_float(number) if number > 0 else 0.0
    return ops.maximum(as_float(count) - less, 0.0) if is_symbolic(count) else float(count - less if count > less else 0)


def std(
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Operand:
    """Return the standard deviation; its derivative where all elements are equal is 0.

    >>> aj.std([[1.0, 3.0], [2.0, 8.0]], axis=1)
    Tensor([1., 3.], f64[2])
    """
    unwritten("std", out)
    found = root(var(x, axis, dtype, ddof=ddof, keepdims=keepdims, where=where, mean=mean, correction=correction))
    return restored(found, dtype)


def squared(x: Operand) -> Operand:
    """Return |x| squared."""
    if not x.type.is_complex:
        return x * x
    re, im = ops.real(x), ops.imag(x)
    return re * re + im * im


def root(x: Operand) -> Operand:
    """Return sqrt(x) of a sum of squares, with derivative 0 at 0: the masked branch gets a zero cotangent."""
    return ops.where(ops.equal(x, 0.0), 0.0, ops.sqrt(x))


def ptp(x: Any, /, axis: Any = None, out: None = None, keepdims: bool = False) -> Operand:
    """Return the range of the elements: maximum minus minimum.

    >>> aj.ptp([[1, 5], [3, 2]], axis=1)
    Tensor([4, 1], i64[2])
    """
    unwritten("ptp", out)
    x = to_operand(x)
    return ops.max(x, axis, keepdims) - ops.min(x, axis, keepdims)


@copies
def nansum(
    x: Any, /, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Operand:
    """Return the sum of the elements, ignoring NaN.

    >>> aj.nansum([1.0, aj.nan, 2.0])
    Tensor(3., f64[])
    """
    unwritten("nansum", out)
    x = to_operand(x)
    return sum(x, axis, dtype, keepdims=keepdims, initial=initial, where=numbers_of(x, where))


def nanmean(x: Any, /, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = True) -> Operand:
    """Return the mean, ignoring NaN.

    >>> aj.nanmean([1.0, aj.nan, 2.0])
    Tensor(1.5, f64[])
    """
    unwritten("nanmean", out)
    x = to_operand(x)
    return mean(x, axis, dtype, keepdims=keepdims, where=numbers_of(x, where))


def numbers_of(x: Operand, where: Any) -> Any:
    """Return which of the elements that a mask selects are not NaN."""
    if not x.type.is_inexact:
        return where
    there = ops.logical_not(ops.isnan(x))
    return there if where is True else ops.logical_and(there, to_operands(x, where)[1])


@copies
def nanmax(x: Any, /, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Operand:
    """Return the largest element, ignoring NaN.

    >>> aj.nanmax([1.0, aj.nan, 2.0])
    Tensor(2., f64[])
    """
    unwritten("nanmax", out)
    return _nan_extreme(to_operand(x), axis, keepdims, initial, where, max, elementwise.fmax)


@copies
def nanmin(x: Any, /, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Operand:
    """Return the smallest element, ignoring NaN.

    >>> aj.nanmin([1.0, aj.nan, 2.0])
    Tensor(1., f64[])
    """
    unwritten("nanmin", out)
    return _nan_extreme(to_operand(x), axis, keepdims, initial, where, min, elementwise.fmin)


def _nan_extreme(
    x: Operand, axis: Any, keepdims: bool, initial: Any, where: Any, extreme: Callable[..., Operand], of_two: Callable[..., Operand]
) -> Operand:
    if not x.type.is_inexact or not x.type.size:
        return extreme(x, axis, None, keepdims, initial, where)
    if where is not True and initial is None:
        raise ShapeError("nanmax, nanmin: where= needs initial=, the result if no element is selected")
    there = numbers_of(x, where)
    neutral = (lowest if extreme is max else highest)(x.dtype)
    some = extreme(x, axis, None, keepdims, neutral, there)
    found = ops.where(ops.any(there, axis, keepdims), some, ops.cast(to_operand(math.nan), x.dtype))
    return found if initial is None else of_two(found, started(initial, found))


# ---- exponentials


def shifted(x: Operand, axis: Any) -> tuple[Operand, Operand]:
    """Return x minus its maximum, so that exp cannot overflow, and that maximum. Treating it as a constant loses no derivative."""
    peak = ops.stop_gradient(ops.max(x, axis, True))
    peak = ops.where(ops.isfinite(peak), peak, 0.0)
    return x - peak, peak


def logsumexp(x: Any, /, axis: Any = None, keepdims: bool = False) -> Operand:
    """Return log(sum(exp(x))), without overflow.

    >>> aj.logsumexp([1000.0, 1000.0])
    Tensor(1000.69314718, f64[])
    """
    x = floating(to_operand(x))
    moved, peak = shifted(x, axis)
    out = ops.log(ops.sum(ops.exp(moved), axis, True)) + peak
    axes = normalize_axes(axis, x.ndim, "logsumexp")
    return out if keepdims else ops.reshape(out, tuple(n for a, n in enumerate(x.shape) if a not in axes))


def softmax(x: Any, /, axis: Any = -1) -> Operand:
    """Return exp(x) / sum(exp(x)), without overflow.

    >>> aj.softmax([[0.0, 0.0], [1000.0, 0.0]], axis=1)
    Tensor([[0.5, 0.5],
            [1. , 0. ]], f64[2,2])
    """
    powers = ops.exp(shifted(floating(to_operand(x)), axis)[0])
    return powers / ops.sum(powers, axis, True)


def log_softmax(x: Any, /, axis: Any = -1) -> Operand:
    """Return the logarithm of softmax, without overflow.

    >>> aj.log_softmax([0.0, 0.0])
    Tensor([-0.69314718, -0.69314718], f64[2])
    """
    moved, _ = shifted(floating(to_operand(x)), axis)
    return moved - ops.log(ops.sum(ops.exp(moved), axis, True))


# ---- comparisons of arrays


def allclose(a: Any, b: Any, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Operand:
    """Return whether all elements are close, as defined by `isclose`.

    >>> aj.allclose([1.0, 2.0], [1.0, 2.0 + 1e-9])
    Tensor(True, bool[])
    """
    return ops.all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a: Any, b: Any, /, equal_nan: bool = False) -> Any:
    """Return whether shapes and all elements are equal; with `equal_nan`, NaN equals NaN.

    >>> aj.array_equal([1, 2], [1, 2])
    Tensor(True, bool[])
    """
    a, b = to_operands(a, b)
    if a.shape != b.shape:
        return False
    same = ops.equal(a, b)
    if equal_nan and a.type.is_inexact and b.type.is_inexact:
        same = ops.logical_or(same, ops.logical_and(ops.isnan(a), ops.isnan(b)))
    return ops.all(same)


def array_equiv(a: Any, b: Any, /) -> Operand | bool:
    """Return whether the arrays are equal after broadcasting."""
    a, b = to_operands(a, b)
    try:
        return ops.all(ops.equal(a, b))
    except ShapeError:
        return False


end_at_callers(globals())
