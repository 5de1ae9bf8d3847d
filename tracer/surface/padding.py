"""`pad`: a border of constants, or of elements of the array. The widths are static."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError, UnsupportedError
from adjit.ir.operand import Operand
from adjit.ir.ops.maps import checked_scalar
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import normalize_axis

from ..convert import counting, pick, to_operand
from ..results import copies


@copies
def pad(x: Any, widths: Any, /, mode: str = "constant", *, constant_values: Any = 0) -> Operand:
    """Return x padded with a constant, or with elements of the array (modes edge, reflect, symmetric, wrap).

    >>> aj.pad([1, 2, 3], (1, 2)), aj.pad([1, 2, 3], 1, mode="edge")
    (Tensor([0, 1, 2, 3, 0, 0], i64[6]), Tensor([1, 1, 2, 3, 3], i64[5]))
    """
    out = to_operand(x)
    pairs = pairs_of(widths, out.ndim)
    if mode == "constant":
        return pad_constant(out, pairs, constant_values)
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise UnsupportedError(f"pad: mode {mode!r} is not supported; constant, edge, reflect, symmetric and wrap are")
    for axis, (low, high) in enumerate(pairs):
        if low or high:
            if not out.shape[axis]:
                raise ShapeError(f"pad: axis {axis} is empty, so mode {mode!r} has nothing to take elements from")
            out = pick(out, (*[slice(None)] * axis, padded_positions(out.shape[axis], low, high, mode)))
    return out


def padded_positions(n: int, low: int, high: int, mode: str) -> Any:
    """Return the source index of each element of a padded axis of n elements."""
    at = counting(low + n + high) - low
    if mode == "edge":
        return np.clip(at, 0, n - 1)
    if mode == "wrap":
        return at % n
    period = 2 * n if mode == "symmetric" else max(2 * (n - 1), 1)  # there and back again, including the ends twice or once
    turned = at % period
    return np.minimum(turned, 2 * n - 1 - turned if mode == "symmetric" else period - turned)


def pairs_of(widths: Any, rank: int) -> list[tuple[int, int]]:
    """Expand NumPy's short forms to the pad widths before and after each axis."""
    if isinstance(widths, dict):
        given = dict.fromkeys(range(rank), (0, 0))
        for axis, width in widths.items():
            given[normalize_axis(axis, rank, "pad")] = (width, width) if isinstance(width, int) else tuple(width)
        widths = list(given.values())
    table = np.broadcast_to(np.asarray(widths), (rank, 2))
    if table.dtype.kind not in "iu":
        raise ShapeError(f"pad: widths must be integers, not {widths!r}")
    return [(int(low), int(high)) for low, high in table]


def pad_constant(x: Operand, pairs: list[tuple[int, int]], values: Any) -> Operand:
    low, high = [p[0] for p in pairs], [p[1] for p in pairs]
    if isinstance(values, Operand):
        if values.ndim:
            raise UnsupportedError("pad: constant_values that are traced must be one number; concatenate for several")
        zero, inside = ops.pad(x, low, high), ops.pad(ops.full(x.shape, True), low, high)
        return ops.where(inside, zero, ops.broadcast_to(ops.cast(values, x.dtype), zero.shape))
    if np.ndim(values) == 0:
        return ops.pad(x, low, high, value=as_element(values, x.dtype))
    for axis, (before, after) in enumerate(np.broadcast_to(np.asarray(values), (x.ndim, 2))):
        for at_end, value in ((False, before), (True, after)):
            before_after = [[0] * x.ndim, [0] * x.ndim]
            before_after[at_end][axis] = pairs[axis][at_end]
            x = ops.pad(x, before_after[0], before_after[1], value=as_element(value, x.dtype))
    return x


def as_element(value: Any, dtype: Any) -> Any:
    """The padding value as an element of the array. Where NumPy wraps integers (unsigned only), this raises."""
    value = value.item() if isinstance(value, np.generic | np.ndarray) else value
    return dtype.type(checked_scalar("pad", value, dtype)).item()


end_at_callers(globals())
