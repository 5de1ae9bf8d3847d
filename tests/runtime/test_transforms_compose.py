"""Transforms of transforms, over control flow, custom derivatives and each other: eager, compiled and by plain loops."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import GradientError, ShapeError, TraceError

X = np.array([0.3, 1.2, 2.5, 0.9])


def same(got: Any, wanted: Any, rtol: float = 1e-9) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=rtol, atol=1e-12)


def both(fn: Callable[..., Any], *args: Any) -> Any:
    """The same eagerly and compiled."""
    eager, compiled = fn(*args), aj.function(fn)(*args)
    aj.tree_map(same, compiled, eager)
    return eager


# ---- functions of one number, with control flow inside


def branch(x: Any) -> Any:
    return aj.cond(x > 1.0, lambda: np.sin(x) * x, lambda: x * x * x)


def counted(x: Any) -> Any:
    return aj.fori_loop(0, 4, lambda k, c: np.sin(c) * x + c * 0.5, x)


def until(x: Any) -> Any:
    """Ends after a different number of iterations for each x."""
    return aj.while_loop(lambda s: s[0] < 5.0, lambda s: (s[0] * 1.5 + x, s[1] * x), (x, x * 0.0 + 1.0))[1]


def scanned(x: Any) -> Any:
    return aj.scan(lambda c, t: (c * x + t, c * c), x, np.array([1.0, 2.0, 3.0]))[1].sum()


@aj.custom_jvp
def smooth(x: Any) -> Any:
    return np.tanh(x)


@smooth.defjvp
def smooth_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    y = smooth(x)
    return y, (1.0 - y * y) * dx


@aj.custom_gradient
def scaled(x: Any) -> Any:
    y = x * x
    return y, lambda d: d * 2.0 * x


def checkpointed(x: Any) -> Any:
    return aj.checkpoint(lambda x: np.sin(x * x))(x)


FUNCTIONS = [branch, counted, until, scanned, smooth, scaled, checkpointed]
each = pytest.mark.parametrize("fn", FUNCTIONS, ids=[getattr(f, "__name__", "?") for f in FUNCTIONS])


def eagerly(fn: Callable[..., Any]) -> list[Any]:
    return [fn(aj.tensor(x)).item() for x in X]


@each
def test_vmap(fn: Any) -> None:
    same(both(aj.vmap(fn), X), eagerly(fn))


@each
def test_vmap_of_grad(fn: Any) -> None:
    same(both(aj.vmap(aj.grad(fn)), X), eagerly(aj.grad(fn)))


@each
def test_grad_of_vmap(fn: Any) -> None:
    same(both(aj.grad(lambda x: aj.vmap(fn)(x).sum()), X), eagerly(aj.grad(fn)))


@each
def test_vmap_of_second_derivatives(fn: Any) -> None:
    same(both(aj.vmap(aj.grad(aj.grad(fn))), X), eagerly(aj.grad(aj.grad(fn))))


@each
def test_third_derivatives(fn: Any) -> None:
    third = aj.grad(aj.grad(aj.grad(fn)))
    compiled = aj.function(third)
    second = aj.grad(aj.grad(fn))
    for x in X[:2]:
        got = third(x).item()
        same(compiled(x), got)
        h = 1e-4
        slope = (second(x + h).item() - second(x - h).item()) / (2 * h)
        assert got == pytest.approx(slope, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("fn", [f for f in FUNCTIONS if f is not scaled], ids=lambda f: getattr(f, "__name__", "?"))
def test_forward_mode(fn: Any) -> None:
    derivative = aj.grad(fn)
    for x in X[:2]:
        same(both(lambda x, fn=fn: aj.jvp(fn, (x,), (1.0,))[1], x), derivative(x))
        same(both(lambda x, fn=fn: aj.hvp(fn, x, 1.0), x), aj.grad(derivative)(x))
    same(both(aj.vmap(lambda x: aj.jvp(fn, (x,), (x * 0.0 + 1.0,))[1]), X), eagerly(derivative))


def test_jacobians_through_loops() -> None:
    def f(x: Any) -> Any:
        return aj.fori_loop(0, 3, lambda k, c: np.sin(c) * x[0] + c[::-1], x)

    for mode in ("forward", "reverse"):
        got = both(aj.jacobian(f, mode=mode), X)  # type: ignore[arg-type]
        steps = [(f(aj.tensor(X + 1e-6 * e)).numpy() - f(aj.tensor(X - 1e-6 * e)).numpy()) / 2e-6 for e in np.eye(4)]
        same(got, np.stack(steps, -1), rtol=1e-6)


# ---- vmap's arguments


def test_axes() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    same(both(aj.vmap(lambda a, b: a * b, in_axes=(1, 0), out_axes=1), a, b), a * b)
    same(both(aj.vmap(lambda a, b: a @ b, in_axes=(0, None)), a, b), a @ b)
    same(both(aj.vmap(lambda a: a.sum(), in_axes=-1), a), a.sum(0))
    same(both(aj.vmap(lambda p: p["x"] * p["y"][0], in_axes=({"x": 0, "y": (None,)},)), {"x": b, "y": (2.0,)}), b * 2)
    same(aj.vmap(lambda x, *, k: x * k)(b, k=b), b * b)
    same(aj.vmap(aj.vmap(aj.vmap(lambda x: x * 2.0)))(np.ones((2, 3, 4))), np.full((2, 3, 4), 2.0))


def test_results_that_examples_share() -> None:
    out = both(aj.vmap(lambda x: (x, 3.0, aj.ones(2)), out_axes=(0, None, 1)), np.arange(3.0))
    assert [np.asarray(r).shape for r in out] == [(3,), (), (2, 3)]
    with pytest.raises(ShapeError, match="differs between examples"):
        aj.vmap(lambda x: x, out_axes=None)(X)


def test_bad_axes() -> None:
    with pytest.raises(ShapeError, match="argument 1 has 3 examples along axis 0, others 4"):
        aj.vmap(lambda x, y: x)(X, np.ones(3))
    with pytest.raises(ShapeError, match=r"argument 0 is f64\[\], which has no axis 0.*in_axes=None"):
        aj.vmap(lambda x: x)(3.0)
    with pytest.raises(ShapeError, match="no argument has an axis"):
        aj.vmap(lambda x: x, in_axes=None)(X)
    with pytest.raises(ShapeError, match="names 1 axes for 2 values"):
        aj.vmap(lambda x, y: x, in_axes=(0,))(X, X)
    with pytest.raises(ShapeError, match="out_axes=3 is out of range"):
        aj.vmap(lambda x: x, out_axes=3)(X)


def test_variables_in_vmap() -> None:
    w = aj.Variable(2.0)
    with aj.GradientTape() as tape:
        y = aj.vmap(lambda x: x * w)(X).sum()
    assert tape.gradient(y, w).item() == pytest.approx(X.sum())

    def assigns(x: Any) -> Any:
        w.assign(x)
        return x

    for fn in (aj.vmap(assigns), aj.function(aj.vmap(assigns))):
        with pytest.raises(TraceError, match="assigns a Variable"):
            fn(X)
    assert w.item() == 2.0


def test_a_program_that_differs_in_numbers_alone_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from adjit.runtime import vmap as module

    monkeypatch.setattr(module, "_programs", OrderedDict())
    for c in range(5):
        factor = aj.tensor([float(c), 1.0])
        same(aj.vmap(lambda x: x * factor)(X), X[:, None] * factor.numpy())  # noqa: B023 - called at once
    assert len(module._programs) == 1


@dataclass
class Params:
    w: Any
    b: Any


def test_structures() -> None:
    def loss(p: Params, x: Any) -> Any:
        return ((p.w @ x + p.b) ** 2).sum()

    p = Params(np.arange(6.0).reshape(2, 3), np.ones(2))
    x = np.array([1.0, 2.0, 3.0])
    gradient = both(aj.grad(loss), p, x)
    assert isinstance(gradient, Params)
    hessian = both(aj.hessian(loss), p, x)
    assert hessian.w.b.shape == (2, 3, 2)
    same(hessian.b.b, 2 * np.eye(2))
    jacobian, aux = both(aj.jacobian(lambda p: ({"y": p.w @ x}, p.b), has_aux=True), p)
    assert jacobian["y"].w.shape == (2, 2, 3)
    same(aux, p.b)


def test_aux_everywhere() -> None:
    f = lambda x: (x * x, {"seen": x})  # noqa: E731
    value, pull, aux = aj.vjp(f, 3.0, has_aux=True)
    assert (value.item(), pull(1.0)[0].item(), aux["seen"].item()) == (9.0, 6.0, 3.0)
    assert [aj.jvp(f, (3.0,), (2.0,), has_aux=True)[i].item() for i in (0, 1)] == [9.0, 12.0]
    value, linear, aux = aj.linearize(f, 3.0, has_aux=True)
    assert [linear(t).item() for t in (1.0, 2.0)] == [6.0, 12.0]
    hessian, aux = aj.hessian(f, has_aux=True)(3.0)
    assert (hessian.item(), aux["seen"].item()) == (2.0, 3.0)
    with pytest.raises(GradientError, match="must return a pair"):
        aj.grad(lambda x: x, has_aux=True)(1.0)


def test_linearize_runs_the_function_once() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return np.sin(x)

    _, linear = aj.linearize(f, X)
    same(linear(np.ones(4)), np.cos(X))
    same(linear(2 * np.ones(4)), 2 * np.cos(X))
    assert len(calls) == 1


# ---- custom_jvp


def test_custom_jvp_of_structures_and_static_arguments() -> None:
    @aj.custom_jvp
    def f(p: Any, n: int) -> Any:
        return {"y": p["a"] * p["b"], "n": p["a"] ** n}

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (p, n), (t, _) = primals, tangents
        return f(p, n), {"y": 100.0 * (t["a"] * p["b"] + p["a"] * t["b"]), "n": n * p["a"] ** (n - 1) * t["a"]}

    def gradient(a: Any, b: Any) -> Any:
        return aj.grad(lambda p: f(p, n=3)["y"] + f(p, 3)["n"])({"a": a, "b": b})

    out = both(gradient, 2.0, 5.0)
    assert (out["a"].item(), out["b"].item()) == (512.0, 200.0)


def test_errors_of_custom_jvp() -> None:
    @aj.custom_jvp
    def f(x: Any) -> Any:
        return x * x

    with pytest.raises(GradientError, match=r"f: a custom_jvp function needs its derivative.*@f\.defjvp"):
        f(1.0)
    f.defjvp(lambda primals, tangents: f(*primals))
    with pytest.raises(GradientError, match=r"must return \(result, tangent\)"):
        aj.grad(f)(2.0)
    f.defjvp(lambda primals, tangents: (f(*primals), (1.0, 2.0)))
    with pytest.raises(GradientError, match="structure"):
        aj.grad(f)(2.0)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * np.ones(3)))
    with pytest.raises(GradientError, match=r"f64\[3\]"):
        aj.grad(f)(2.0)
    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * tangents[0]))
    with pytest.raises(GradientError, match="not linear"):
        aj.function(aj.grad(f))(2.0)


@pytest.mark.parametrize("x", [X[:1], X[:1].reshape(1, 1), X])
def test_constant_second_derivatives_are_arrays(x: Any) -> None:
    """They depend on no input, but may be passed to NumPy's functions nevertheless."""

    def curvature(u: Any) -> Any:
        second = aj.jacobian(aj.grad(lambda v: np.sum(v[::-1] * v * 0.4)))(u)
        return np.sum(np.sin(second)) + second.reshape(-1)[0]

    both(curvature, x)
    both(aj.grad(curvature), x)
