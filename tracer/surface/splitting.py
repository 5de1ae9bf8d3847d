"""Functions that divide an array into parts along an axis."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import normalize_axis

from ..convert import to_operand
from ..results import views


def split(x: Any, sections: Any, /, axis: int = 0) -> list[Operand]:
    """Return the parts of x along an axis: a number of equal ones, or those between the given indices.

    >>> aj.split([1, 2, 3, 4], 2)
    [Tensor([1, 2], i64[2]), Tensor([3, 4], i64[2])]
    """
    x = to_operand(x)
    axis = normalize_axis(axis, x.ndim, "split")
    if not isinstance(sections, Iterable) and x.shape[axis] % operator.index(sections):
        raise ShapeError(f"split: axis {axis} of {x.type} does not divide into {sections} equal parts; use array_split")
    return array_split(x, sections, axis=axis)


@views
def array_split(x: Any, sections: Any, /, axis: int = 0) -> list[Operand]:
    """Return parts as `split` does, but the first parts may be one element longer than the last.

    >>> aj.array_split([1, 2, 3], 2)
    [Tensor([1, 2], i64[2]), Tensor([3], i64[1])]
    """
    x = to_operand(x)
    axis = normalize_axis(axis, x.ndim, "array_split")
    size = x.shape[axis]
    if isinstance(sections, Iterable):
        cuts = [operator.index(c) for c in sections]
    else:
        parts = operator.index(sections)
        if parts < 1:
            raise ShapeError(f"array_split: the number of parts must be positive, not {parts}")
        cuts = [i * (size // parts) + min(i, size % parts) for i in range(1, parts)]
    head = [slice(None)] * axis
    return [ops.slice_(x, [*head, slice(a, b)]) for a, b in zip([0, *cuts], [*cuts, size], strict=True)]


def hsplit(x: Any, sections: Any, /) -> list[Operand]:
    """Split along the second axis, or the first for a vector."""
    x = to_operand(x)
    return split(x, sections, axis=1 if x.ndim > 1 else 0)


def vsplit(x: Any, sections: Any, /) -> list[Operand]:
    """Split along the first axis."""
    return split(x, sections, axis=0)


def dsplit(x: Any, sections: Any, /) -> list[Operand]:
    """Split along the third axis."""
    return split(x, sections, axis=2)


end_at_callers(globals())
