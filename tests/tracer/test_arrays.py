"""Functional updates, iteration, and the functions that NumPy does not have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adjit.ir.builder import Builder
from adjit.ir.errors import ShapeError
from adjit.ir.func import Block, Func
from adjit.ir.interpreter import run
from adjit.passes.autodiff.reverse import backpropagate
from adjit.tracer.surface import create, elementwise, indexing, reductions
from tests.tracer.running import run_eager, run_traced, same, trace

X = np.array([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]])
RUNNERS = pytest.mark.parametrize("runner", [run_eager, run_traced], ids=["eager", "traced"])


@RUNNERS
def test_updates(runner: Any) -> None:
    def expected(change: Any, key: Any, value: Any) -> Any:
        out = X.copy()
        out[key] = change(out[key], value)
        return out

    changes = {
        "set": lambda old, new: new, "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
        "min": np.minimum, "max": np.maximum, "power": lambda a, b: a**b,
    }  # fmt: skip
    for key in ((0,), (slice(None), 1), (..., slice(None, None, 2)), (np.array([1, 0]), np.array([2, 0]))):
        for method, change in changes.items():
            same(
                runner(lambda x, key=key, method=method: getattr(x.at[key], method)(2.0), X), expected(change, key, 2.0), f"{key} {method}"
            )
    same(runner(lambda x: x.at[0].get(), X), X[0])
    same(runner(lambda x, v: x.at[:, 0].set(v), X, np.array([7.0, 8.0])), expected(lambda old, new: new, (slice(None), 0), [7.0, 8.0]))
    same(runner(lambda x: x.at[0, np.array([1, 1])].add(1.0), X), X + np.array([[0, 2, 0], [0, 0, 0]]))


@RUNNERS
def test_functions_of_machine_learning(runner: Any) -> None:
    e = np.exp(X)
    same(runner(lambda x: reductions.logsumexp(x, axis=1), X), np.log(e.sum(1)))
    same(runner(lambda x: reductions.logsumexp(x), X), np.log(e.sum()))
    same(runner(lambda x: reductions.logsumexp(x, axis=0, keepdims=True), X + 1000.0), np.log(e.sum(0, keepdims=True)) + 1000.0)
    same(runner(reductions.softmax, X), e / e.sum(-1, keepdims=True))
    same(runner(lambda x: reductions.softmax(x, axis=0), X - 1000.0), e / e.sum(0))
    same(runner(reductions.log_softmax, X), np.log(e / e.sum(-1, keepdims=True)))
    same(runner(lambda x: reductions.logsumexp(x), np.full(3, -np.inf)), np.float64(-np.inf))
    same(runner(elementwise.sigmoid, X), 1 / (1 + 1 / e))
    same(runner(elementwise.relu, X), np.maximum(X, 0))
    same(runner(elementwise.softplus, X), np.log1p(e))
    same(runner(elementwise.rsqrt, np.abs(X) + 1), (np.abs(X) + 1) ** -0.5)
    same(runner(lambda i: indexing.one_hot(i, 3), np.array([2, 0])), np.eye(3, dtype="f4")[[2, 0]])
    same(runner(lambda i: indexing.one_hot(i, 3, axis=0), np.array([2, 0])), np.eye(3, dtype="f4")[[2, 0]].T)
    same(runner(lambda x: create.asarray([x[0], [1.0, 2.0, 3.0]]), X), np.array([X[0], [1.0, 2.0, 3.0]]))


@RUNNERS
def test_makers(runner: Any) -> None:
    def f(x: Any) -> Any:
        return [
            create.zeros(2), create.ones((2, 1), "f4"), create.full((2,), 7), create.eye(2, 3, k=1), create.identity(2), create.arange(5),
            create.arange(1.0, 2.0, 0.25), create.linspace(0.0, 1.0, 5), create.tri(3, k=-1), create.full((2,), x[0, 0]),
            create.full_like(x, 2),
        ]  # fmt: skip

    expected = [
        np.zeros(2), np.ones((2, 1), "f4"), np.full((2,), 7), np.eye(2, 3, k=1), np.identity(2), np.arange(5),
        np.arange(1.0, 2.0, 0.25), np.linspace(0.0, 1.0, 5), np.tri(3, k=-1), np.full((2,), X[0, 0]), np.full_like(X, 2),
    ]  # fmt: skip
    same(runner(f, X), expected)


def gradient(fn: Any, x: Any) -> Any:
    program = trace(fn, x)
    with Builder() as builder:
        seed = program.func.results[0].literal(1.0, program.func.results[0].type)
        (d,) = backpropagate(program.func.stmts, program.func.results, [seed], program.func.params[:1])
    assert d is not None
    func = Func("gradient", Block(program.func.params, [*program.func.stmts, *builder.stmts], [d]))
    return run(func, x, *program.captures)[0]


def test_derivatives_where_norms_vanish_are_zero() -> None:
    for fn in (
        np.linalg.norm,
        lambda x: np.linalg.norm(x, axis=1).sum(),
        lambda x: np.linalg.norm(x, 3, axis=1).sum(),
        lambda x: np.std(x),
    ):
        same(gradient(fn, np.zeros((2, 3))), np.zeros((2, 3)))
    same(gradient(np.linalg.norm, X), X / np.linalg.norm(X))


def test_derivatives_of_softmax_and_its_kin() -> None:
    p = np.exp(X) / np.exp(X).sum(1, keepdims=True)
    same(gradient(lambda x: reductions.logsumexp(x, axis=1).sum(), X), p)
    same(gradient(lambda x: reductions.softmax(x)[:, 0].sum(), X), p[:, :1] * (np.eye(3)[0] - p))
    same(gradient(lambda x: reductions.log_softmax(x)[:, 0].sum(), X), np.eye(3)[0] - p)
    same(gradient(lambda x: np.where(x > 0, np.sqrt(x), 0.0).sum(), np.array([0.0, 4.0])), np.array([0.0, 0.25]))


def test_membership_needs_a_value() -> None:
    assert run_eager(lambda x: (x, 3.0 in x), X)[1] is True
    with pytest.raises(TypeError, match="not known while tracing"):
        trace(lambda x: 3.0 in x, X)


@RUNNERS
@pytest.mark.parametrize("axis", [0, -1])
def test_reductions_of_a_scalar_along_its_only_axis(runner: Any, axis: int) -> None:
    """As in NumPy, which allows these two axes, except in a tuple."""
    x = np.array(2.5)
    for name in ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "cumsum", "nansum", "nanmax", "ptp"):
        function = getattr(np, name)
        same(runner(lambda x, function=function: function(x, axis=axis), x), function(x, axis=axis))
    same(runner(lambda x: np.max(x, axis=axis, initial=3.0, keepdims=True), x), np.array(3.0))
    with pytest.raises(ShapeError, match="out of range"):
        runner(lambda x: np.sum(x, axis=(axis,)), x)


def test_iteration_over_a_scalar_is_refused() -> None:
    with pytest.raises(TypeError, match="0-dimensional"):
        trace(lambda x: list(x[0, 0]), X)
