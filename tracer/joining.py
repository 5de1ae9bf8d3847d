"""`stack`: joins arrays, or the items of a list built by a traced loop, along a new axis."""

from __future__ import annotations

from typing import Any

from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import normalize_axis

from .frames import user_location
from .growing import TracedList
from .list_items import filled
from .results import copies
from .surface import shapes


@copies
def stack(xs: Any, /, axis: int = 0, dtype: Any = None, *, fill: Any = None, length: int | None = None) -> Operand:
    """Return arrays of one shape joined along a new axis.

    With `fill`, the result is padded with rows of it up to `length`. A list that a compiled loop appends to may have a length known only at
    run time: `fill` makes an array of it, with as many rows as the list can have unless `length` is given.

    >>> stack([1.0, 2.0], fill=-1.0, length=3)
    Tensor([ 1.,  2., -1.], f64[3])
    """
    if length is not None and fill is None:
        raise ShapeError("stack: a length needs a fill, the value of the rows past the last array").at(user_location())
    if isinstance(xs, TracedList):
        rows = xs.stacked() if fill is None else xs.padded(fill, length)
        rows = rows if dtype is None else rows.astype(dtype)
    else:
        rows = shapes.stack(xs, 0, dtype)
        count = rows.type.shape[0]
        if length is not None and count > length:
            raise ShapeError(f"stack: the list has {count} items, but length={length}").at(user_location())
        rows = rows if length is None else filled(rows, count, fill, length)
    return shapes.moveaxis(rows, 0, normalize_axis(axis, rows.ndim, "stack")) if axis else rows


end_at_callers(globals(), ["stack"])
