"""Wraps adjit's functions as TensorFlow's: converts arguments, wraps results, translates errors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from adjit.ir.errors import AdjitError
from adjit.ir.operand import Operand
from adjit.ir.sizes import is_symbolic

from .dtypes import as_dtype
from .errors import InvalidDType, translate
from .tensor import binary as binary_operator
from .tensor import convert_to_tensor, dress

F = TypeVar("F", bound=Callable[..., Any])


def public(function: F) -> F:
    """Decorate a function of tensors: its result (an operand, or a list or tuple of them) is wrapped; errors are TensorFlow's."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            out = function(*args, **kwargs)
        except AdjitError as error:
            translate(error)
            raise
        if isinstance(out, list | tuple) and not hasattr(out, "_fields"):
            return type(out)(map(dress, out))
        return dress(out)

    return wrapper  # type: ignore[return-value]


def unary(function: Callable[[Any], Operand], name: str, floating: bool = False) -> Callable[..., Any]:
    """`tf.exp(x)` from `exp`; `floating` functions reject integers, as TensorFlow's kernels do."""

    def wrapper(x: Any, name: str | None = None) -> Any:
        operand = convert_to_tensor(x)
        if floating:
            check_floating(own, operand)
        return function(operand)

    own = name
    return named(public(wrapper), name)


def binary(function: Callable[[Any, Any], Operand], name: str) -> Callable[..., Any]:
    """`tf.maximum(x, y)` from `maximum`: operands of one dtype."""
    combine = binary_operator(name, function)

    def wrapper(x: Any, y: Any, name: str | None = None) -> Any:
        return combine(x, y)

    return named(wrapper, name)


def named(function: F, name: str) -> F:
    function.__name__ = function.__qualname__ = name
    return function


def check_floating(what: str, x: Operand) -> None:
    if not x.type.is_inexact:
        raise InvalidDType(
            f"{what}: Value for attr 'T' of {as_dtype(x.type.dtype).name} is not in the list of allowed values: float, double; use tf.cast"
        )


def floating(what: str, x: Any) -> Any:
    """x as a tensor of floats."""
    operand = convert_to_tensor(x)
    check_floating(what, operand)
    return operand


def axes_of(axis: Any) -> Any:
    """An axis, or several, as Python integers."""
    if axis is None or isinstance(axis, int):
        return axis
    if isinstance(axis, list | tuple):
        return tuple(int(a) for a in axis)
    values = convert_to_tensor(axis).numpy().tolist()
    return tuple(values) if isinstance(values, list) else values


def sizes_of(shape: Any) -> tuple[int, ...]:
    """A shape given as a list, a tensor or a number."""
    if isinstance(shape, int):
        return (shape,)
    if isinstance(shape, Operand):
        values = convert_to_tensor(shape).numpy().tolist()
        return tuple(values) if isinstance(values, list) else (values,)
    return tuple(n if is_symbolic(n) else int(n) for n in shape)
