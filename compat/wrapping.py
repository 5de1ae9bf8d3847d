"""Wraps adjit's functions as TensorFlow's: converts arguments, wraps results, translates errors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import AdjitError
from adjit.ir.found_sizes import size_of
from adjit.ir.operand import Operand, as_operand
from adjit.ir.sizes import is_symbolic
from adjit.ir.types import F32
from adjit.tracer.regions import is_traced

from .dtypes import as_dtype
from .errors import InvalidDType, translate
from .tensor import binary as binary_operator
from .tensor import convert_to_tensor, dress, pair, wide

F = TypeVar("F", bound=Callable[..., Any])


def public(function: F) -> F:
    """Decorate a function of tensors: its result (an operand, or a list or tuple of them) is wrapped; errors are TensorFlow's.

    It computes 16-bit floats in float32 and rounds its results to their dtype, unless it has an argument for the dtype of its result.
    """
    chooses = bool({"dtype", "out_type"} & set(inspect.signature(function).parameters))

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            narrow = None if chooses else narrow_dtype((*args, *kwargs.values()))
            if narrow is None:
                out = function(*args, **kwargs)
            else:
                out = narrowed(function(*map(wide, args), **{name: wide(x) for name, x in kwargs.items()}), narrow)
        except AdjitError as error:
            translate(error)
            raise
        if isinstance(out, list | tuple) and not hasattr(out, "_fields"):
            return type(out)(map(dress, out))
        return dress(out)

    return wrapper  # type: ignore[return-value]


def narrow_dtype(given: Iterable[Any]) -> np.dtype[Any] | None:
    """The dtype of 16-bit floats among the arguments; None if there are none, or wider ones."""
    found = None
    for x in given:
        if isinstance(x, list | tuple):
            dtype = narrow_dtype(x)
        elif isinstance(x, Operand) and x.type.is_float and not x.weak:
            if not x.type.is_stored:
                return None
            dtype = x.type.dtype
        else:
            continue
        if dtype is not None and found is not None and dtype != found:
            return None
        found = dtype or found
    return found


def narrowed(out: Any, dtype: np.dtype[Any]) -> Any:
    """A result with its float32 rounded to 16 bits."""
    if isinstance(out, list | tuple):
        parts = [narrowed(part, dtype) for part in out]
        return type(out)(*parts) if hasattr(out, "_fields") else type(out)(parts)
    return ops.cast(out, dtype) if isinstance(out, Operand) and out.type.dtype == F32 else out


def unary(function: Callable[[Any], Operand], name: str, floating: bool = False, argument: str = "x") -> Callable[..., Any]:
    """`tf.exp(x)` from `exp`; `floating` functions reject integers, as TensorFlow's kernels do."""

    def wrapper(x: Any, name: str | None = None) -> Any:
        operand = convert_to_tensor(x)
        if floating:
            check_floating(own, operand)
        return function(operand)

    def of_features(features: Any, name: str | None = None) -> Any:
        return wrapper(features)

    own = name
    return named(public(of_features if argument == "features" else wrapper), name)


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


def tensors(what: str, a: Any, b: Any) -> tuple[Any, Any]:
    """The two operands of a function, both as tensors: for functions that also use the shapes of operands."""
    x, y = pair(what, a, b)
    other = as_dtype((x if isinstance(x, Operand) else y).type.dtype)
    return convert_to_tensor(x, dtype_hint=other), convert_to_tensor(y, dtype_hint=other)


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
    if hasattr(type(shape), "made_tensor"):
        shape = shape.made_tensor()
    if is_traced(shape):
        shape = [ops.getitem(shape, k) for k in range(shape.type.shape[0])] if shape.type.shape else [shape]
    if isinstance(shape, Operand):
        values = convert_to_tensor(shape).numpy().tolist()
        shape = values if isinstance(values, list) else [values]
    if any(isinstance(n, float | np.floating) for n in shape):
        raise TypeError(f"Cannot convert {shape!r} to EagerTensor of dtype int32: sizes are integers")
    return tuple(n if is_symbolic(n) else size_of(as_operand(n), "shape") if is_traced(n) else int(n) for n in shape)
