"""Reading arrays at coordinates between their elements."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import ShapeError, UnsupportedError
from adjit.ir.operand import Operand
from adjit.ir.types import I64
from adjit.tracer.convert import pick, to_operand, to_operands
from adjit.tracer.surface.elementwise import floating

__all__ = ["map_coordinates"]

MODES = ("constant", "grid-constant", "nearest", "grid-wrap", "reflect", "mirror")


def map_coordinates(input: Any, coordinates: Any, order: int = 1, mode: str = "constant", cval: float = 0.0) -> Operand:
    """Interpolate the array at coordinates, one row (or item) per axis: by the nearest element (order 0) or linearly (order 1).

    Outside, `mode` is "constant" (`cval`, without interpolation), "grid-constant" (elements outside are `cval`), "nearest", "reflect"
    (about the edge), "mirror" (about the last element) or "grid-wrap".
    Derivatives are with respect to the elements and, for order 1, the coordinates.
    """
    x = floating(to_operand(input))
    rows = to_operands(*coordinates) if isinstance(coordinates, Sequence) else None
    places = [floating(c) for c in (rows or [pick(to_operand(coordinates), i) for i in range(x.ndim)])]
    if len(places) != x.ndim:
        raise ShapeError(f"map_coordinates: {x.type} needs {x.ndim} coordinates, not {len(places)}")
    if order not in (0, 1):
        raise UnsupportedError(f"map_coordinates: order 0 and 1 are supported, not {order}")
    if mode not in MODES:
        raise UnsupportedError(f"map_coordinates: mode is one of {', '.join(MODES)}, not {mode!r}")
    corners = [neighbours(c, order) for c in places]
    total: Operand | None = None
    for corner in itertools.product(*corners):
        inside, index, weight = None, [], None
        for (at, share), size in zip(corner, x.shape, strict=True):
            fixed, is_in = bounded(at, size, mode)
            index.append(fixed)
            inside = is_in if inside is None else ops.logical_and(inside, is_in)
            weight = share if weight is None else share if share is None else weight * share
        value = pick(x, tuple(index))
        if mode == "grid-constant":
            assert inside is not None
            value = ops.where(inside, value, cval)
        part = value if weight is None else value * weight
        total = part if total is None else total + part
    assert total is not None
    if mode == "constant":
        for c, size in zip(places, x.shape, strict=True):
            total = ops.where(ops.logical_and(ops.greater_equal(c, 0.0), ops.less_equal(c, size - 1.0)), total, cval)
    return total


def neighbours(at: Operand, order: int) -> list[tuple[Operand, Operand | None]]:
    """The positions that a coordinate is interpolated between, with their weights."""
    if order == 0:
        return [(ops.cast(ops.floor(at + 0.5), I64), None)]
    low = ops.floor(ops.stop_gradient(at))
    fraction = at - low
    first = ops.cast(low, I64)
    return [(first, 1.0 - fraction), (first + 1, fraction)]


def bounded(at: Operand, size: int, mode: str) -> tuple[Operand, Operand]:
    """A position inside the axis, and whether the given one was."""
    inside = ops.logical_and(ops.greater_equal(at, 0), ops.less(at, size))
    if mode == "grid-wrap":
        return ops.remainder(at, size), inside
    if mode == "reflect":
        turned = ops.remainder(at, 2 * size)
        return ops.minimum(turned, (2 * size - 1) - turned), inside
    if mode == "mirror" and size > 1:
        turned = ops.remainder(at, 2 * size - 2)
        return ops.minimum(turned, (2 * size - 2) - turned), inside
    return ops.clip(at, 0, size - 1), inside


def __dir__() -> list[str]:
    return __all__
