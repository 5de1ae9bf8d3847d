"""NumPy's functions that write to an argument, in rewritten code: `np.put(x, ...)`, `np.add.at(x, ...)`, `np.add(a, b, out=x)`.

As a statement on a local variable they are treated like `x[i] = v`: the variable gets a new array if the old one cannot hold the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.operand import Operand, as_operand

from ..convert import to_operand
from ..numpy_table import MUTATING, applied, call_ufunc, surface
from ..pytree import flatten
from ..regions import is_traced
from ..sharing import owned
from ..trace import Traced, current_trace
from .arrays import is_numpy, stored
from .expressions import callee
from .updates import check_others, check_unseen


def write_array(
    x: Any, function: Any, args: Sequence[Any], options: Mapping[str, Any], *,
    argument: str = "", others: Sequence[Callable[[], Any]] = (),
) -> Any:  # fmt: skip
    """Perform `function(x, *args, **options)` and return the variable's new value: a new array if traced values are involved.

    `others` are variables that are read later, and must not be arrays that NumPy would change as well.
    """
    trace, ours = current_trace(), returning(function)
    if ours is None or trace is None:
        callee(function)(x, *args, **options)
        return x
    functional = (isinstance(x, Operand) and as_operand(x) is x) or (
        isinstance(x, np.ndarray) and any(map(is_traced, flatten((args, dict(options)))[0]))
    )
    if not functional:
        if isinstance(x, np.ndarray):
            check_others(x, others, Traced)  # NumPy arrays see the write
        function(x, *args, **options)  # tensors and variables raise an error that says what to do instead
        if isinstance(x, np.ndarray):
            trace.overwritten.wrote(x)
        return x
    check_unseen(x, argument, others, f"{spelled(function)}({{}}, ...)")
    target = to_operand(x)
    out = owned(trace, ops.cast(ours(target, args, options), target.dtype))
    trace.overwrite(x, out)
    return out


def write_out(
    x: Any, function: Any, args: Sequence[Any], options: Mapping[str, Any], *,
    argument: str = "", others: Sequence[Callable[[], Any]] = (),
) -> Any:  # fmt: skip
    """Perform `function(*args, out=x, **options)` and return the variable's new value, as `write_array` does."""
    trace = current_trace()
    given = [*args, *options.values()]
    ours = isinstance(function, np.ufunc) or is_numpy(function) or is_reduction(function)
    if not ours or trace is None or not (is_traced(x) or any(map(is_traced, flatten(given)[0]))):
        if trace is not None and isinstance(x, np.ndarray):
            check_others(x, others, Traced)
        callee(function)(*args, out=x, **options)
        if trace is not None and isinstance(x, np.ndarray):
            trace.overwritten.wrote(x)
        return x
    if not isinstance(x, np.ndarray) and not (isinstance(x, Operand) and as_operand(x) is x):
        raise TypeError(f"out= takes an array, not {type(x).__name__}")
    check_unseen(x, argument, others, f"np.{getattr(function, '__name__', '')}(..., out={{}})")
    target, rest = to_operand(x), {name: value for name, value in options.items() if name not in ("where", "casting")}
    where = options.get("where", True)
    result = to_operand(callee(function)(*args, **rest))
    out = owned(trace, stored(result, target, where, options.get("casting", "same_kind")))
    trace.overwrite(x, out)
    return out


def is_reduction(function: Any) -> bool:
    """Whether this is `np.add.reduce` or a similar method."""
    return isinstance(getattr(function, "__self__", None), np.ufunc)


def returning(function: Any) -> Callable[[Operand, Sequence[Any], Mapping[str, Any]], Operand] | None:
    """Return a function that gives a new array instead of writing to one; None if this is not one of NumPy's."""
    name, ufunc = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if isinstance(ufunc, np.ufunc) and name == "at":
        update = surface("updates").update_at
        return lambda x, args, options: to_operand(update(ufunc.__name__, lambda *both: elementwise(ufunc, both), x, *args, **options))
    if name not in MUTATING or getattr(np, name) is not function:
        return None
    return lambda x, args, options: to_operand(applied(function, getattr(surface("updates"), name), (x, *args), options))


def elementwise(ufunc: np.ufunc, args: Sequence[Any]) -> Operand:
    return to_operand(call_ufunc(ufunc, "__call__", args, {}))


def spelled(function: Any) -> str:
    ufunc = getattr(function, "__self__", None)
    return f"np.{ufunc.__name__}.at" if isinstance(ufunc, np.ufunc) else f"np.{function.__name__}"
