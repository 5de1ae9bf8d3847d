"""Choosing among arrays: by an index, by conditions, by functions for parts of the domain."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError
from adjit.ir.operand import Operand
from adjit.ir.ops.maps import common_dtype
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import BOOL, I64

from ..convert import numbers, to_operand, to_operands
from .indexing import take_along_axis, wrapped
from .range_checks import check_below
from .shapes import broadcast_arrays, stack


def select(conditions: Any, choices: Any, /, default: Any = 0) -> Operand:
    """Return, for each element, the first of the choices whose condition holds.

    >>> x = aj.arange(5)
    >>> aj.select([x < 2, x > 3], [x, 10 * x], default=-1)
    Tensor([ 0,  1, -1, -1, 40], i64[5])
    """
    pairs = list(zip(conditions, choices, strict=True))
    dtype = common_dtype(*numbers(*(choice for _, choice in pairs), default))
    out = ops.cast(to_operand(default), dtype)
    for condition, choice in reversed(pairs):
        given, value = to_operand(condition), to_operand(choice)
        if given.dtype.kind != "b":
            raise DTypeError(f"select: conditions are bools, not {given.type}")
        if not np.can_cast(value.dtype, dtype, "same_kind"):
            raise DTypeError(f"select: {value.type} among choices of {dtype}; cast it, with np.asarray(choice, dtype)")
        out = ops.where(given, ops.cast(value, dtype), out)
    return out


def choose(index: Any, choices: Any, /, mode: str = "raise") -> Operand:
    """Return, for each element, the one from the broadcast array that an index names.

    >>> aj.choose([0, 1, 0], [[1, 2, 3], [10, 20, 30]])
    Tensor([ 1, 20,  3], i64[3])
    """
    index, *arrays = to_operands(index, *choices)
    index = ops.cast(index, I64) if index.dtype == BOOL else index
    index, *arrays = broadcast_arrays(index, *arrays)
    if mode == "raise":
        check_below(index, len(arrays), "choose")
    return take_along_axis(stack(arrays), ops.reshape(wrapped(index, len(arrays), mode, "choose"), (1, *index.shape)), 0)[0]


def piecewise(x: Any, condlist: Any, funclist: Any, /, *args: Any, **kwargs: Any) -> Operand:
    """Return, for each element, the value of the last function whose condition holds; an extra function is the default.

    >>> x = aj.array([-2.0, 1.0, 3.0])
    >>> aj.piecewise(x, [x < 0, x > 2], [lambda x: -x, 9.0, lambda x: x])
    Tensor([2., 1., 9.], f64[3])
    """
    x = to_operand(x)
    conditions = list(condlist) if isinstance(condlist, list | tuple) else [condlist]
    values = [f(x, *args, **kwargs) if callable(f) else f for f in funclist]
    if len(values) not in (len(conditions), len(conditions) + 1):
        raise ShapeError(f"piecewise: {len(values)} functions for {len(conditions)} conditions; give one for each, or one more")
    out = values.pop() if len(values) > len(conditions) else 0
    for condition, value in zip(conditions, values, strict=True):
        out = ops.where(to_operands(x, condition)[1], value, out)
    return ops.broadcast_to(ops.cast(to_operand(out), x.dtype), x.shape)


end_at_callers(globals())
