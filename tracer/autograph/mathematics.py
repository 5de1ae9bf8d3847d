"""The functions of Python's `math` on traced values: scalars of float64, with the errors that `math` raises, checked at run time."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.operand import Operand, as_operand
from adjit.ir.types import F64, I64

from ..regions import is_traced

Function = Callable[..., Any]


def scalar(x: Any) -> Operand:
    """Return an argument as `math` takes it: as a Python float."""
    operand = as_operand(x)
    if operand.type.size != 1 or operand.type.is_complex:
        raise TypeError(f"a function of math takes a number, not {operand.type}; use the one of NumPy")
    return ops.reshape(operand, ()).retyped(F64, True)


def is_finite(x: Operand) -> Operand:
    return ops.less(abs(x), math.inf)


def checked(name: str, out: Operand, *args: Operand) -> Operand:
    """Check a result as `math` does: it raises if a result is NaN although no argument is, or infinite although all are finite."""
    fine = is_finite(out)
    for x in args:
        is_nan = ops.not_equal(x, x)
        infinite = ops.logical_and(ops.equal(abs(out), math.inf), ops.equal(abs(x), math.inf))
        fine = ops.logical_or(fine, ops.logical_or(is_nan, infinite))
    ops.check(fine, f"math.{name}: math domain error, or math range error", "ValueError")
    return out


def real(name: str, ours: Function) -> Function:
    return _dispatched(name, lambda *args: checked(name, ours(*args).retyped(F64, True), *args))


def whole(name: str, ours: Function) -> Function:
    def rounded(x: Operand) -> Any:
        message = f"math.{name}: the float is NaN, infinite, or too large for an integer of 64 bits"
        ops.check(ops.less(abs(x), 2.0**63), message, "ValueError")
        return ours(x).retyped(I64, True)

    return _dispatched(name, rounded)


def test(name: str, ours: Function) -> Function:
    return _dispatched(name, ours)


def _dispatched(name: str, ours: Function) -> Function:
    python = getattr(math, name)

    def public(*args: Any, **options: Any) -> Any:
        if not any(map(is_traced, args)):
            return python(*args, **options)
        return ours(*map(scalar, args), **options)

    return public


def logarithm(x: Operand, base: Operand | None = None) -> Operand:
    return ops.log(x) if base is None else ops.log(x) / ops.log(base)


def special(name: str) -> Function:
    return lambda x: getattr(import_module("adjit.tracer.surface.special"), name)(x)  # imported on first use, since it is large


def close(a: Operand, b: Operand, *, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> Operand:
    near = ops.less_equal(abs(a - b), ops.maximum(ops.maximum(abs(a), abs(b)) * rel_tol, abs_tol))
    return ops.logical_or(ops.equal(a, b), ops.logical_and(near, ops.logical_and(is_finite(a), is_finite(b))))


_SAME = (
    "sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log1p", "log2", "log10", "sqrt", "cbrt", "fabs", "degrees",
    "radians", "hypot", "copysign", "fmod",
)  # fmt: skip

_REAL: dict[str, Function] = {
    **{name: getattr(np, name) for name in _SAME},
    **{name: getattr(np, f"arc{name[1:]}") for name in ("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh")},
    **{name: special(ours) for name, ours in (("erf", "erf"), ("erfc", "erfc"), ("gamma", "gamma"), ("lgamma", "gammaln"))},
    "log": logarithm, "pow": np.power,
}  # fmt: skip

MATH_OVERLOADS: dict[Any, Function] = {
    **{getattr(math, name): real(name, ours) for name, ours in _REAL.items() if hasattr(math, name)},
    **{getattr(math, name): whole(name, getattr(np, name)) for name in ("floor", "ceil", "trunc")},
    **{getattr(math, name): test(name, getattr(np, name)) for name in ("isnan", "isinf", "isfinite")},
    math.isclose: test("isclose", close),
}
