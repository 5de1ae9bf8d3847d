"""Operators, items, attributes and iteration of users' objects, in rewritten code.

Their special methods and properties are functions of the user's like others, and are converted, so that a traced value can decide in them.
Python itself calls the original ones, so what it does is done here: which of two operands is asked first, and what follows if a method
does not know the other one. Everything whose class has no converted method is left to Python.
"""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable, Iterable
from types import FunctionType, NoneType
from typing import Any

import numpy as np

from adjit.ir import ops

from ..conversion import convert
from ..regions import is_traced, predicate
from ..trace import Splat, Traced, current_trace
from .libraries import is_library

# classes that have no methods of a user's, for a quick answer
COMMON = frozenset({
    int, float, bool, complex, str, bytes, tuple, list, dict, set, frozenset, slice, builtins.range, NoneType, type, super, np.ndarray,
    np.float64, np.float32, np.int64, np.bool_, Traced, Splat,
})  # fmt: skip
CONCATENATED = (list, tuple, str, bytes, bytearray)  # as sequences, after the other operand was asked

Operator = Callable[[Any, Any], Any]
# Python's operator, the method of the left operand and that of the right one
BINARY: dict[str, tuple[Operator, str, str]] = {
    "+": (operator.add, "__add__", "__radd__"), "-": (operator.sub, "__sub__", "__rsub__"), "*": (operator.mul, "__mul__", "__rmul__"),
    "/": (operator.truediv, "__truediv__", "__rtruediv__"), "//": (operator.floordiv, "__floordiv__", "__rfloordiv__"),
    "%": (operator.mod, "__mod__", "__rmod__"), "**": (operator.pow, "__pow__", "__rpow__"),
    "@": (operator.matmul, "__matmul__", "__rmatmul__"), "&": (operator.and_, "__and__", "__rand__"),
    "|": (operator.or_, "__or__", "__ror__"), "^": (operator.xor, "__xor__", "__rxor__"),
    "<<": (operator.lshift, "__lshift__", "__rlshift__"), ">>": (operator.rshift, "__rshift__", "__rrshift__"),
}  # fmt: skip
COMPARISONS: dict[str, tuple[Operator, str, str]] = {
    "<": (operator.lt, "__lt__", "__gt__"), "<=": (operator.le, "__le__", "__ge__"), ">": (operator.gt, "__gt__", "__lt__"),
    ">=": (operator.ge, "__ge__", "__le__"), "==": (operator.eq, "__eq__", "__eq__"), "!=": (operator.ne, "__ne__", "__ne__"),
}  # fmt: skip
UNARY: dict[str, tuple[Callable[[Any], Any], str]] = {
    "-": (operator.neg, "__neg__"), "+": (operator.pos, "__pos__"), "~": (operator.invert, "__invert__"),
}  # fmt: skip


# ---- which methods


def found(cls: type, name: str) -> Any:
    """What a class defines under a name, as Python looks up special methods: not on the object, and not on the class of the class."""
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def converted(function: Any) -> Any:
    """The conversion of a function of the user's; None for anything else, and where there is nothing to convert."""
    if type(function) is not FunctionType or is_library(function.__module__):
        return None
    new = convert(function)
    return None if new is function else new


def method(x: Any, name: str) -> Any:
    """A converted special method of an object, which takes the object first; None if Python's own way does the same."""
    cls = type(x)
    return None if cls in COMMON or current_trace() is None else converted(found(cls, name))


# ---- operators


def binary(symbol: str, a: Any, b: Any) -> Any:
    plain, name, reflected = BINARY[symbol]
    if (type(a) in COMMON and type(b) in COMMON) or current_trace() is None:
        return plain(a, b)
    out = asked(a, b, name, reflected)
    return plain(a, b) if out is NotImplemented else out


def asked(a: Any, b: Any, name: str, reflected: str) -> Any:
    """The answer of the operands' methods, of which one at least is converted; NotImplemented if Python's own way does the same."""
    left, right = method(a, name), method(b, reflected) if type(b) is not type(a) else None
    if left is None and right is None:
        return NotImplemented
    overrides = found(type(a), reflected) is not found(type(b), reflected)
    if right is not None and (
        (isinstance(b, type(a)) and overrides) or (left is None and isinstance(a, CONCATENATED) and name in ("__add__", "__mul__"))
    ):
        return either(right, b, a, left, a, b)
    if left is None:
        left = found(type(a), name)
    return either(left, a, b, right, b, a)


def either(first: Any, x: Any, y: Any, second: Any, u: Any, v: Any) -> Any:
    out = NotImplemented if first is None else first(x, y)
    return second(u, v) if out is NotImplemented and second is not None else out


def compared(symbol: str, a: Any, b: Any) -> Any:
    """Evaluate `a < b` and its like; both operands are asked, whatever their classes."""
    plain, name, reflected = COMPARISONS[symbol]
    if (type(a) in COMMON and type(b) in COMMON) or current_trace() is None:
        return plain(a, b)
    if symbol == "!=" and found(type(a), "__ne__") is object.__ne__ and found(type(b), "__ne__") is object.__ne__:
        equal = compared("==", a, b)  # as object.__ne__ does
        return negated(equal) if method(a, "__eq__") or method(b, "__eq__") else plain(a, b)
    left, right = method(a, name), method(b, reflected)
    out: Any = NotImplemented
    if left is not None or right is not None:
        subclass = type(b) is not type(a) and isinstance(b, type(a))
        sides = [(left or found(type(a), name), a, b), (right or found(type(b), reflected), b, a)]
        (first, x, y), (second, u, v) = reversed(sides) if subclass else sides
        out = either(first, x, y, second, u, v)
    return plain(a, b) if out is NotImplemented else out


def negated(value: Any) -> Any:
    return ops.logical_not(predicate(value, "`!=`")) if is_traced(value) else not value


def unary(symbol: str, x: Any) -> Any:
    plain, name = UNARY[symbol]
    own = method(x, name)
    return plain(x) if own is None else own(x)


def updated(symbol: str, x: Any, value: Any) -> Any:
    """The result of `x += value` for an object with methods of a user's; NotImplemented for all others."""
    if type(x) in COMMON and type(value) in COMMON:
        return NotImplemented
    own = method(x, f"__i{BINARY[symbol][1][2:]}")
    out = NotImplemented if own is None else own(x, value)
    if out is NotImplemented and (own is not None or found(type(x), f"__i{BINARY[symbol][1][2:]}") is None):
        return asked(x, value, *BINARY[symbol][1:])
    return out


def absolute(x: Any, /) -> Any:
    own = method(x, "__abs__")
    return abs(x) if own is None else own(x)


def added(iterable: Iterable[Any], start: Any) -> Any:
    """Implement `sum`, whose additions are Python's own unless an item has methods of a user's."""
    values = list(iterable)
    if type(start) in COMMON and all(type(value) in COMMON for value in values):
        return builtins.sum(values, start)
    return functools.reduce(functools.partial(binary, "+"), values, start)


# ---- attributes


def attribute(x: Any, name: str) -> Any:
    """Evaluate `x.name`: getters of properties and descriptors, and `__getattr__`, are converted."""
    cls = type(x)
    if cls in COMMON or current_trace() is None or isinstance(x, type) or found(cls, "__getattribute__") is not object.__getattribute__:
        return getattr(x, name)
    its = found(cls, name)
    own = attributes(x)
    if its is None:
        getter = None if name in own else method(x, "__getattr__")
        return getattr(x, name) if getter is None else getter(x, name)
    if type(its) is property:
        getter = converted(its.fget)
        return getattr(x, name) if getter is None else own_or_other(x, name, getter)
    if type(its) is functools.cached_property and name not in own:
        getter = converted(its.func)
        if getter is not None:
            own[name] = getter(x)
        return getattr(x, name)
    getter = method(its, "__get__")
    first = name not in own or found(type(its), "__set__") is not None
    return getter(its, x, cls) if getter is not None and first else getattr(x, name)


def own_or_other(x: Any, name: str, getter: Callable[[Any], Any]) -> Any:
    """The value of a property. If its getter raises AttributeError, `__getattr__` is asked."""
    other = method(x, "__getattr__") or found(type(x), "__getattr__")
    if other is None:
        return getter(x)
    try:
        return getter(x)
    except AttributeError:
        return other(x, name)


def attributes(x: Any) -> dict[str, Any]:
    """The object's own attributes; none if its class has slots."""
    try:
        return object.__getattribute__(x, "__dict__")  # type: ignore[no-any-return]
    except AttributeError:
        return {}


# ---- iteration and context managers


def iterated(x: Any) -> Any:
    """What a loop over an object iterates over."""
    own = method(x, "__iter__")
    return x if own is None else own(x)


def entered(manager: Any) -> Any:
    """A context manager, with its methods converted."""
    if method(manager, "__enter__") is None and method(manager, "__exit__") is None:
        return manager
    return Entered(manager)


class Entered:
    """A context manager with converted methods."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager

    def __enter__(self) -> Any:
        return (method(self.manager, "__enter__") or type(self.manager).__enter__)(self.manager)

    def __exit__(self, *error: Any) -> Any:
        return (method(self.manager, "__exit__") or type(self.manager).__exit__)(self.manager, *error)
