"""NumPy's order of complex numbers, composed of real ops: by real parts, then by imaginary parts.

Numbers with a NaN come last in sorted order, those with a NaN as real part after the others; they are less than, and greater than, nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..types import I64, kept_shape, normalize_axes
from . import logic, reduce
from .base import apply
from .complex import imag, real
from .create import iota
from .index import Gather
from .maps import cast, common_dtype, promoted, where
from .shape import reshape, transpose
from .sort import Argsort

if TYPE_CHECKING:
    from ..operand import Operand


def compare(op: Any, a: Any, b: Any) -> Operand:
    """`<`, `<=`, `>` or `>=`: the comparison of the imaginary parts where the real parts are equal."""
    a, b = promoted(op.name, (a, b), common_dtype(a, b))
    strict = logic.Less() if op.predicate in ("lt", "le") else logic.Greater()
    has_nan = logic.logical_or(logic.isnan(imag(a)), logic.isnan(imag(b)))
    first = logic.logical_and(apply(strict, real(a), real(b)), logic.logical_not(has_nan))
    second = logic.logical_and(logic.equal(real(a), real(b)), apply(op, imag(a), imag(b)))
    return logic.logical_or(first, second)


def extreme(a: Any, b: Any, largest: bool) -> Operand:
    """The larger, or smaller, of two numbers; of equal ones the first, and the first that has a NaN."""
    a, b = promoted("maximum" if largest else "minimum", (a, b), common_dtype(a, b))
    first = (logic.greater_equal if largest else logic.less_equal)(a, b)
    return where(logic.logical_or(first, logic.isnan(a)), a, b)


def argsort(z: Operand, axis: int, descending: bool) -> Operand:
    """Stable sorts by the least important key first: the imaginary part, the real part, and which parts are NaN."""
    re, im = real(z), imag(z)
    nans = 2 * cast(logic.isnan(re), I64) + cast(logic.isnan(im), I64)
    out = apply(Argsort(axis, descending), im)
    for key, downward in ((re, descending), (nans, False)):
        order = apply(Argsort(axis, downward), gathered(key, out, axis))
        out = gathered(out, order, axis)
    return out


def sorts_before(a: Any, b: Any, strict: bool) -> Operand:
    """Whether numbers come before others in sorted order; if not `strict`, also where both are in the same place."""
    *keys, (left, right) = zip(sorting_keys(a), sorting_keys(b), strict=True)
    out: Operand = (logic.less if strict else logic.less_equal)(left, right)
    for left, right in reversed(keys):
        out = logic.logical_or(logic.less(left, right), logic.logical_and(logic.equal(left, right), out))
    return out


def sorting_keys(z: Operand) -> tuple[Operand, Operand, Operand]:
    """What is compared first, second and third: which parts are NaN, the real part, and the imaginary part."""
    re, im = real(z), imag(z)
    no_re, no_im = logic.isnan(re), logic.isnan(im)
    return 2 * cast(no_re, I64) + cast(no_im, I64), where(no_re, 0.0, re), where(no_im, 0.0, im)


def gathered(x: Operand, order: Operand, axis: int) -> Operand:
    return apply(Gather(), x, *(order if a == axis else iota(x.shape, a) for a in range(x.ndim)))


def position(z: Operand, axis: int, largest: bool) -> Operand:
    """The position along an axis of the first extreme number, or of the first with a NaN."""
    best: Callable[..., Operand] = reduce.max if largest else reduce.min
    if not z.type.size:  # there is nothing to compare, or nothing to find, which raises
        return (reduce.argmax if largest else reduce.argmin)(real(z), axis)
    re, im, nans = real(z), imag(z), logic.isnan(z)
    leading = logic.equal(re, best(re, axis, True))
    rest = where(leading, im, -math.inf if largest else math.inf)
    candidates = logic.logical_and(leading, logic.equal(im, best(rest, axis, True)))
    return reduce.argmax(where(reduce.any(nans, axis, True), nans, candidates), axis)


def reduced(z: Operand, axis: Any, keepdims: bool, largest: bool) -> Operand:
    """The extreme number over axes; its derivative goes to the first one."""
    axes = normalize_axes(axis, z.ndim, "max" if largest else "min")
    if not axes:
        return z
    if not z.type.size:
        return cast((reduce.max if largest else reduce.min)(real(z), axes, keepdims), z.dtype)
    kept: Sequence[int] = [a for a in range(z.ndim) if a not in axes]
    shape = tuple(z.shape[a] for a in kept)
    flat = reshape(transpose(z, (*kept, *axes)), (*shape, math.prod(z.shape[a] for a in axes)))
    at = position(flat, flat.ndim - 1, largest)
    out = apply(Gather(), flat, *(iota(shape, a) for a in range(len(shape))), at)
    return reshape(out, kept_shape(z.shape, axes)) if keepdims else out
