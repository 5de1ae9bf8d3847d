"""A function as a region of a trace whose intermediate values are recomputed in reverse mode instead of being stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from adjit.ir.operand import Operand, as_operand
from adjit.ir.ops.control import Checkpoint

from .control import converted
from .pytree import flatten
from .regions import conform, finish, hold, kind_of
from .trace import Trace


def emit_checkpoint(trace: Trace, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Trace `fn` into a recomputed region; its results are the return value of `fn` and the variables that it assigns."""
    region = trace.region()
    with region:
        leaves, tree = flatten(converted(fn)(*args, **kwargs))
        kinds = [kind_of(leaf) for leaf in leaves]
        yields: list[Operand] = [conform(leaf, kind) for leaf, kind in zip(leaves, kinds, strict=True) if kind is not None]
    cells = [cell for cell in trace.cells if id(cell) in region.written]
    yields += [as_operand(region.written[id(cell)]) for cell in cells]
    trace.dead_end = trace.dead_end or region.dead_end
    results = trace.emit(Checkpoint(), (), (finish(region, yields),), [y.type for y in yields])
    trace.overwritten.take_over(region.overwritten, yields, results)
    given = [kind for kind in kinds if kind is not None]
    count = len(given)
    hold(trace, results[:count], [getattr(y, "name", None) for y in yields[:count]], given)
    for cell, value in zip(cells, results[count:], strict=True):
        value.name = cell.name
        trace.write(cell, value)
    found = iter(results)
    return tree.unflatten([leaf if kind is None else next(found) for leaf, kind in zip(leaves, kinds, strict=True)])
