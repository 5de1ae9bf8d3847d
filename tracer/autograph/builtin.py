"""Python's built-in functions on traced values, where a plain call would need the actual value."""

from __future__ import annotations

import builtins
import functools
import itertools
import math
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from types import BuiltinMethodType, GeneratorType
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, UnsupportedError
from adjit.ir.operand import Operand, as_operand, refuse_modulus
from adjit.ir.ops.effects import is_repeating
from adjit.ir.ops.maps import common_dtype
from adjit.ir.sizes import is_symbolic
from adjit.ir.types import BOOL, F64, I64, DType

from ..branches import emit_if
from ..conversion import convert
from ..convert import arithmetic, as_float, to_operand
from ..frames import user_location
from ..growing import TracedList
from ..loops import LoopTrace, emit_for
from ..pytree import flatten
from ..regions import RegionOutput, Wording, is_traced
from ..scipy_names import counterpart
from ..trace import Traced, current_trace
from .arrays import METHODS, method_of_constant, numpy_overload
from .heap import Heap
from .items import enumerate_items, make_range, reversed_items, zip_items
from .mathematics import MATH_OVERLOADS
from .places import not_followed
from .sorting import sort, sorted_
from .special import absolute, added
from .traced_text import TracedText, braced, format_, format_method, join_method, repr_, str_, warn


def _extremum(
    python: Callable[..., Any], elementwise: Callable[..., Any], whole: Callable[..., Any], beats: Callable[..., Any], worst: float
) -> Callable[..., Any]:
    """Return Python's `min` or `max` for traced values: a NaN replaces nothing and is never replaced, unlike in NumPy's functions."""

    def pairwise(out: Any, value: Any) -> Any:
        test = beats(value, out)
        return ops.where(test, value, out) if common_dtype(out, value).kind == "f" else elementwise(out, value)

    def of_vector(x: Operand) -> Any:
        if not x.type.is_float or not x.type.size:
            return whole(x)
        first = ops.getitem(x, 0)
        return ops.where(is_nan(first), first, whole(ops.where(is_nan(x), worst, x)))

    def public(*args: Any, **options: Any) -> Any:
        if not options and len(args) == 1 and is_traced(args[0]) and args[0].ndim == 1:
            return of_vector(as_operand(args[0]))
        if len(args) == 1 and isinstance(args[0], TracedList) and not options:
            return fold(args[0], lambda out, value: pairwise(*arithmetic(out, value)), python.__name__)
        values = list(args[0]) if len(args) == 1 else list(args)
        if options.get("key") is not None and len(values) > 1 and current_trace() is not None and set(options) <= {"key", "default"}:
            return extreme_by(options["key"], values, python is builtins.max)
        if set(options) - {"key", "default"} or not values or not holds_traced(values):
            return python(*args, **options) if len(args) > 1 else python(values, **options)
        out = values[0]
        for value in values[1:]:
            # Python returns the first of equal elements, and so does the derivative
            out = pairwise(*arithmetic(out, value)) if holds_traced((out, value)) else python(out, value)
        return out

    return public


def holds_traced(values: Sequence[Any]) -> bool:
    return any(is_traced(leaf) for leaf in flatten(values)[0])


def extreme_by(key: Callable[[Any], Any], values: Sequence[Any], largest: bool) -> Any:
    """Implement `max(values, key=key)`: return the first value with the largest key."""
    function, trace = convert(key), current_trace()
    assert trace is not None
    out, best = values[0], function(values[0])
    words = Wording("max()" if largest else "min()", ("of a later item", "of an earlier one"))
    for value in values[1:]:
        found = function(value)
        test = found > best if largest else found < best
        if not is_traced(test):
            out, best = (value, found) if test else (out, best)
            continue
        sides: list[Callable[[], list[Any]]] = [partial(list, pair) for pair in ((value, found), (out, best))]
        out, best = emit_if(trace, test, sides, [RegionOutput("the item"), RegionOutput("the key")], words)
    return out


def is_nan(x: Operand) -> Operand:
    return ops.not_equal(x, x)


min_ = _extremum(builtins.min, ops.minimum, ops.min, ops.less, math.inf)
max_ = _extremum(builtins.max, ops.maximum, ops.max, ops.greater, -math.inf)


def sum_(iterable: Any, /, start: Any = 0) -> Any:
    if is_traced(iterable) and as_operand(iterable).ndim:
        total = ops.sum(as_operand(iterable), 0)
        return total if isinstance(start, int) and start == 0 else start + total
    if isinstance(iterable, TracedList):
        return start + iterable.sum()
    return added(iterable, start)


def all_(iterable: Any, /) -> Any:
    return _decided(iterable, builtins.all, ops.logical_and, ops.all, False)


def any_(iterable: Any, /) -> Any:
    return _decided(iterable, builtins.any, ops.logical_or, ops.any, True)


def _decided(iterable: Any, python: Callable[..., Any], pairwise: Callable[..., Any], whole: Callable[..., Any], decisive: bool) -> Any:
    if is_traced(iterable):
        operand = as_operand(iterable)
        return whole(operand) if operand.ndim == 1 else _decided(list(operand), python, pairwise, whole, decisive)  # type: ignore[call-overload]
    if isinstance(iterable, TracedList):
        return fold(iterable, lambda out, value: pairwise(*(ops.cast(to_operand(v), BOOL) for v in (out, value))), python.__name__)
    known: Any = not decisive
    reached: Heap | None = None
    for value in iterable:
        if is_traced(value):
            known = value if known is (not decisive) else pairwise(known, value)
            if reached is None and isinstance(iterable, GeneratorType):
                reached = reach_of(iterable)
        elif bool(value) is decisive:
            known = decisive
            break
    if reached is not None:
        check_unchanged(reached)
    return ops.cast(known, BOOL) if isinstance(known, Operand) else known


def reach_of(generator: GeneratorType[Any, Any, Any]) -> Heap | None:
    """Return what a generator can change. Python would stop it at an item whose value is known only when the function runs."""
    names = {} if generator.gi_frame is None else generator.gi_frame.f_locals
    held = tuple(value for name, value in names.items() if not name.startswith("."))  # `.0` is what it iterates over
    return Heap([lambda: held])


def check_unchanged(heap: Heap) -> None:
    for thing in heap.changed():
        raise not_followed(thing.path.removeprefix("held"), thing.value)
    for named in heap.rebound(set()):
        raise not_followed(named.path.removeprefix("held"), named.place.read())


def fold(items: TracedList, combine: Callable[[Any, Any], Any], what: str) -> Any:
    """Implement `functools.reduce(combine, items)`."""
    count, trace = items.length, current_trace()
    assert trace is not None
    words = Wording(f"{what}()", ("at first", "later"))
    first = items[0]
    loop = LoopTrace([RegionOutput(f"the {what}()")], [first], lambda k, values: [combine(values[0], items.row(k))], words, False)
    return emit_for(trace, loop, 1, count)[0]


def len_(items: Any, /) -> Any:
    if isinstance(items, TracedList):
        return items.length
    if is_traced(items) and items.ndim and is_symbolic(items.shape[0]):  # Python's len takes only plain numbers
        return items.shape[0]
    return builtins.len(items)


def _number(python: type, dtype: DType) -> Callable[..., Any]:
    def public(*args: Any, **options: Any) -> Any:
        if len(args) == 1 and is_symbolic(args[0]):
            return args[0] if python is int else args[0] != 0 if python is bool else as_float(args[0])
        if len(args) != 1 or options or not is_traced(args[0]):
            return python(*args, **options)
        operand = as_operand(args[0])
        if operand.type.size != 1:
            raise TypeError(f"{python.__name__}(): {operand.type} has {operand.type.size} elements, not one")
        if operand.type.is_complex and python is not bool:
            raise DTypeError(f"{python.__name__}(): {operand.type} is complex; take .real or abs() of it")
        return ops.reshape(operand, ()).retyped(dtype, True)  # weakly typed, like the Python number that it represents

    return public


def print_(*values: Any, **options: Any) -> None:
    """Print traced values, and anything in a traced branch or loop, at every run; anything else once, while tracing."""
    trace = current_trace()
    if trace is None or trace.root().python_prints or (trace.parent is None and not any(map(is_shown, values))):
        if not is_repeating():
            builtins.print(*values, **options)
        return
    sep, end, file = options.get("sep"), options.get("end"), options.get("file")
    if file not in (None, sys.stdout, sys.stderr):
        raise UnsupportedError("print() of traced values writes to sys.stdout or sys.stderr, to no other file").at(user_location())
    parts = [v.template if isinstance(v, TracedText) else "{}" if is_traced(v) else braced(str(v)) for v in values]
    shown = [x for v in values for x in (v.operands if isinstance(v, TracedText) else [as_operand(v)] if is_traced(v) else [])]
    stream = "stdout" if file in (None, sys.stdout) else "stderr"
    ops.print_(braced(" " if sep is None else sep).join(parts), *shown, end="\n" if end is None else end, stream=stream)


def is_shown(value: Any) -> bool:
    """Whether printing this requires a run-time value."""
    return isinstance(value, TracedText) or is_traced(value)


def map_(function: Any, /, *iterables: Any, **options: Any) -> Any:
    return builtins.map(handed_over(function), *iterables, **options)


def filter_(function: Any, iterable: Any, /) -> Any:
    return builtins.filter(None if function is None else handed_over(function), iterable)


def reduce_(function: Any, iterable: Any, /, *initial: Any) -> Any:
    return functools.reduce(handed_over(function), iterable, *initial)


def accumulate_(iterable: Any, func: Any = None, *, initial: Any = None) -> Any:
    return itertools.accumulate(iterable, None if func is None else handed_over(func), initial=initial)


def handed_over(function: Any) -> Any:
    """A function that Python calls, as converted code would call it."""
    return function if current_trace() is None else overload(function) or convert(function)


def range_(*bounds: Any) -> Any:
    return make_range(bounds, False)


def pow_(*args: Any, **named: Any) -> Any:
    """Raise for a power with a modulus and a traced exponent: Python would only call a method of the base, which does not support it."""
    if len(args) + len(named) > 2 and any(isinstance(x, Operand) for x in (*args, *named.values())):
        refuse_modulus()
    return builtins.pow(*args, **named)


def isinstance_(value: Any, kind: Any, /) -> bool:
    """Implement `isinstance`: a traced value counts as the Python number, NumPy scalar or array that it represents."""
    represented = python_class(value)
    return builtins.isinstance(value, kind) or (represented is not None and builtins.issubclass(represented, kind))


def type_(*args: Any, **options: Any) -> Any:
    represented = python_class(args[0]) if len(args) == 1 and not options else None
    return represented or builtins.type(*args, **options)


def python_class(value: Any) -> type | None:
    """Return the class of the Python number, NumPy scalar or array that a traced value represents; None for any other value."""
    if type(value) is not Traced:  # tensors of adjit.tf have their own class while they are traced, too
        return None
    kind = value.type.dtype.kind
    if value.weak and not value.type.shape:
        return {"b": bool, "i": int, "u": int, "f": float, "c": complex}.get(kind)
    return np.ndarray if value.type.shape else value.type.dtype.type


_OVERLOADS: dict[Any, Callable[..., Any]] = {
    builtins.min: min_, builtins.max: max_, builtins.sum: sum_, builtins.all: all_, builtins.any: any_, builtins.print: print_,
    builtins.int: _number(int, I64), builtins.float: _number(float, F64), builtins.bool: _number(bool, BOOL), builtins.range: range_,
    builtins.enumerate: enumerate_items, builtins.zip: zip_items, builtins.reversed: reversed_items, builtins.map: map_,
    builtins.filter: filter_, builtins.len: len_, functools.reduce: reduce_, itertools.accumulate: accumulate_, builtins.sorted: sorted_,
    builtins.pow: pow_,
    builtins.isinstance: isinstance_,
    builtins.abs: absolute, builtins.type: type_, builtins.str: str_, builtins.repr: repr_, builtins.format: format_, warnings.warn: warn,
}  # fmt: skip


def overload(function: Any) -> Callable[..., Any] | None:
    """Return the replacement of a function of Python, NumPy or SciPy in converted code."""
    if type(function) is BuiltinMethodType and function.__name__ == "sort" and isinstance(function.__self__, list):
        return partial(sort, function.__self__)
    if type(function) is BuiltinMethodType and isinstance(function.__self__, str) and function.__name__ in ("format", "join"):
        return partial(format_method if function.__name__ == "format" else join_method, function.__self__)
    if type(function) is BuiltinMethodType and function.__name__ in METHODS and isinstance(function.__self__, np.ndarray):
        return method_of_constant(function.__self__, function.__name__)
    try:
        return _OVERLOADS.get(function) or numpy_overload(function) or MATH_OVERLOADS.get(function) or counterpart(function)
    except TypeError:  # not hashable
        return None
