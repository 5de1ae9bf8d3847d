"""Windows that slide over an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError
from adjit.ir.operand import Concrete, Operand
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import normalize_axis

from ..convert import pick, to_operand


def sliding_window_view(x: Any, /, window_shape: Any, axis: Any = None) -> Operand:
    """Return the windows of a given shape at all positions of an array; their axes are the last ones. The result is a copy, not a view."""
    x = to_operand(x)
    windows = tuple(window_shape) if isinstance(window_shape, tuple | list) else (window_shape,)
    given = range(x.ndim) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    axes = [normalize_axis(a, x.ndim, "sliding_window_view") for a in given]
    if len(windows) != len(axes):
        raise ShapeError(f"sliding_window_view: {len(windows)} sizes of windows for {len(axes)} axes of {x.type}")
    for window, place in zip(windows, axes, strict=True):  # new axes are the last ones: earlier ones keep their numbers
        count = x.shape[place] - window + 1
        if window < 0 or count < 1:
            raise ShapeError(f"sliding_window_view: no window of size {window} fits in axis {place} of {x.type}")
        at = Concrete(np.arange(count)[:, None] + np.arange(window))
        taken: Operand = pick(x, (slice(None),) * place + (at,))
        x = ops.transpose(taken, [*(a for a in range(taken.ndim) if a != place + 1), place + 1])
    out: Operand = x
    return out


end_at_callers(globals())
