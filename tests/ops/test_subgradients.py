"""The published table of subgradients: derivatives where there is no unique one, the same eagerly and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.ir import ops
from adjit.ir.builder import Builder
from adjit.ir.func import Func
from adjit.ir.interpreter import run
from adjit.ir.ops.base import Array
from adjit.passes.autodiff.forward import push_forward
from adjit.passes.autodiff.reverse import backpropagate
from adjit.passes.pipeline import OPTIMIZE
from tests.ops.harness import like

inf = np.inf

# name, function of scalars, point, gradient
TABLE: list[tuple[str, Callable[..., Any], list[float], list[float]]] = [
    ("relu at 0", ops.relu, [0.0], [0.0]),
    ("relu below 0", ops.relu, [-1.0], [0.0]),
    ("relu above 0", ops.relu, [1.0], [1.0]),
    ("abs at 0", ops.absolute, [0.0], [0.0]),
    ("abs at -0", ops.absolute, [-0.0], [0.0]),
    ("sqrt at 0", ops.sqrt, [0.0], [inf]),
    ("log at 0", ops.log, [0.0], [inf]),
    ("maximum, tie", ops.maximum, [2.0, 2.0], [1.0, 0.0]),
    ("minimum, tie", ops.minimum, [2.0, 2.0], [1.0, 0.0]),
    ("maximum", ops.maximum, [1.0, 2.0], [0.0, 1.0]),
    ("minimum", ops.minimum, [1.0, 2.0], [1.0, 0.0]),
    ("clip at its low bound", lambda x: ops.clip(x, 0.0, 1.0), [0.0], [1.0]),
    ("clip at its high bound", lambda x: ops.clip(x, 0.0, 1.0), [1.0], [1.0]),
    ("clip outside", lambda x: ops.clip(x, 0.0, 1.0), [1.5], [0.0]),
    ("0 ** 0", ops.power, [0.0, 0.0], [0.0, 0.0]),
    ("0 ** 1", ops.power, [0.0, 1.0], [1.0, 0.0]),
    ("0 ** 2", ops.power, [0.0, 2.0], [0.0, 0.0]),
    ("0 ** 0.5", ops.power, [0.0, 0.5], [inf, 0.0]),
    ("negative base, whole exponent", ops.power, [-2.0, 3.0], [12.0, 0.0]),
    ("x ** 0 at 0", lambda x: x**0, [0.0], [0.0]),
    ("x ** 1 at 0", lambda x: x**1, [0.0], [1.0]),
    ("x ** 2 at 0", lambda x: x**2, [0.0], [0.0]),
    ("x ** 0.0 at 0", lambda x: x**0.0, [0.0], [0.0]),
    ("hypot at the origin", ops.hypot, [0.0, 0.0], [0.0, 0.0]),
    ("logaddexp, tie", ops.logaddexp, [1.0, 1.0], [0.5, 0.5]),
    ("logaddexp of nothing", ops.logaddexp, [-inf, -inf], [0.0, 0.0]),
    ("logaddexp with nothing", ops.logaddexp, [-inf, 1.0], [0.0, 1.0]),
    ("copysign", ops.copysign, [-3.0, 2.0], [-1.0, 0.0]),
    ("asinh at 0", ops.asinh, [0.0], [1.0]),
    ("atanh at 1", ops.atanh, [1.0], [inf]),
    ("softplus far out", ops.softplus, [1e4], [1.0]),
    ("sigmoid far out", ops.sigmoid, [-1e4], [0.0]),
    # a zero cotangent stays zero, whatever the local derivative
    ("where around sqrt", lambda x: ops.where(x > 0, ops.sqrt(x), 0.0), [0.0], [0.0]),
    ("where around log", lambda x: ops.where(x > 0, ops.log(x), 0.0), [0.0], [0.0]),
    ("where around 1 / x", lambda x: ops.where(x != 0, 1.0 / x, 0.0), [0.0], [0.0]),
    ("where around x / x", lambda x: ops.where(x != 0, x / x, 0.0), [0.0], [0.0]),
    ("where around x ** -1", lambda x: ops.where(x != 0, x**-1, 0.0), [0.0], [0.0]),
    ("where around x ** -2", lambda x: ops.where(x != 0, x**-2, 0.0), [0.0], [0.0]),
    ("where around x ** 0.3", lambda x: ops.where(x > 0, x**0.3, 0.0), [0.0], [0.0]),
    ("where around rsqrt", lambda x: ops.where(x > 0, ops.rsqrt(x), 0.0), [0.0], [0.0]),
    ("where around atan2", lambda a, b: ops.where(a > 0, ops.atan2(a, b), 0.0), [0.0, 0.0], [0.0, 0.0]),
    ("where around asin", lambda x: ops.where(x < 1, ops.asin(x), 0.0), [1.0], [0.0]),
    ("where around acos", lambda x: ops.where(x < 1, ops.acos(x), 0.0), [1.0], [0.0]),
    ("where around acosh", lambda x: ops.where(x > 1, ops.acosh(x), 0.0), [1.0], [0.0]),
    ("where around log1p", lambda x: ops.where(x > -1, ops.log1p(x), 0.0), [-1.0], [0.0]),
    ("where around a remainder by 0", lambda a, b: ops.where(b != 0, a % b, 0.0), [1.0, 0.0], [0.0, 0.0]),
    ("where around sqrt of a product", lambda x: ops.where(x > 0, ops.sqrt(x * x * x), 0.0), [0.0], [0.0]),
    ("where around exp(log)", lambda x: ops.where(x > 0, ops.exp(ops.log(x) * 0.5), 0.0), [0.0], [0.0]),
]

UNCONNECTED: list[tuple[str, Callable[..., Any]]] = [
    ("floor", ops.floor),
    ("ceil", ops.ceil),
    ("round", ops.round),
    ("round to digits", lambda x: ops.round(x, 2)),
    ("trunc", ops.trunc),
    ("sign", ops.sign),
    ("floor division", lambda x: x // 2.0),
    ("stop_gradient", ops.stop_gradient),
    ("comparison", lambda x: ops.cast(x > 0.0, x.dtype)),
    ("cast to integers", lambda x: ops.cast(ops.cast(x, np.dtype(np.int64)), x.dtype)),
]


def derivative_func(call: Callable[..., Any], args: list[Array]) -> Func:
    """Value; cotangents by reverse mode for a cotangent of 1; tangents by forward mode along each argument."""
    params = like(args, "x")
    with Builder(params) as builder:
        y = call(*params)
        stmts = tuple(builder.stmts)
        one, zero = y.literal(1.0, y.type), y.literal(0.0, y.type)
        pulled = backpropagate(stmts, [y], [one], params)
        pushed = [push_forward(stmts, [p], [one]).get(id(y)) for p in params]
        return Func("subgradient", builder.finish([y, *(zero if d is None else d for d in (*pulled, *pushed))]))


@pytest.mark.parametrize(("call", "point", "gradient"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_subgradient(call: Callable[..., Any], point: list[float], gradient: list[float], dtype: type) -> None:
    args = [np.array(x, dtype) for x in point]
    func = derivative_func(call, args)
    for _, *got in (run(func, *args), compile_func(OPTIMIZE(func))(args)):
        np.testing.assert_allclose(got, [*gradient, *gradient], rtol=1e-6)


@pytest.mark.parametrize("call", [row[1] for row in UNCONNECTED], ids=[row[0] for row in UNCONNECTED])
def test_unconnected(call: Callable[..., Any]) -> None:
    params = like([np.array(0.7)], "x")
    with Builder(params) as builder:
        y = call(*params)
        stmts = tuple(builder.stmts)
        one = y.literal(1.0, y.type)
        assert backpropagate(stmts, [y], [one], params) == [None]
        assert id(y) not in push_forward(stmts, params, [one])


def test_second_derivative_of_the_masked_root() -> None:
    """The trap stays shut at second order: where(x > 0, sqrt(x), 0) at 0 and at 4."""
    args = [np.array([0.0, 4.0])]
    params = like(args, "x")
    with Builder(params) as builder:
        y = ops.where(params[0] > 0, ops.sqrt(params[0]), 0.0)
        one = y.literal(1.0, y.type)
        (first,) = backpropagate(tuple(builder.stmts), [y], [one], params)
        assert first is not None
        (second,) = backpropagate(tuple(builder.stmts), [first], [one], params)
        assert second is not None
        func = Func("second", builder.finish([first, second]))
    for got in (run(func, *args), compile_func(OPTIMIZE(func))(args)):
        np.testing.assert_allclose(got, [[0.0, 0.25], [0.0, -1 / 32]], rtol=1e-12)


def test_cast_between_floats_carries_derivatives_back_in_their_own_dtype() -> None:
    args = [np.array([1.0, 2.0])]
    func = derivative_func(lambda x: ops.cast(x, np.dtype(np.float32)) * 3.0, args)
    _, pulled, pushed = run(func, *args)
    assert (pulled.dtype, pushed.dtype) == (np.float64, np.float32)
    assert pulled.tolist() == pushed.tolist() == [3.0, 3.0]
