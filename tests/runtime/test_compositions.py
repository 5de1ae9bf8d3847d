"""Transforms of transforms: every pair of methods to compute a derivative, and triples, with control flow and custom derivatives, plain and
compiled.

A way takes a function of a vector and gives its derivative, with the axis of the vector behind those of the result. Whatever ways are put
together, the second and third derivatives are the same; they are compared with differences of the first and second.
"""

# ruff: noqa: B007 - loops as people write them

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

Fn = Callable[[Any], Any]

X = np.array([0.4, -0.7])
MANY = np.array([[0.4, -0.7], [-0.3, 0.9], [0.8, 0.2]])  # they take different branches
EYE = np.eye(2)


# ---- functions of a vector that return a number


def settles(x):
    """A loop of unknown trip count."""
    s, total = x, 0.0
    while aj.sum(s * s) > 0.05:
        s = s * 0.6 * aj.cos(x)
        total = total + aj.sum(s * x)
    return total


def parts(x):
    """A loop in one branch, two others in the other."""
    if x[0] > 0:
        s = x
        while aj.sum(s * s) > 0.1:
            s = s * 0.5 * aj.cos(x)
    else:
        s = x * x
        for k in aj.range(2):
            s = s * x + aj.sin(x)
    return aj.sum(s * s * x)


@aj.custom_gradient
def softened(x):
    e = aj.exp(x)
    return aj.log(1.0 + e), lambda d: d * e / (1.0 + e)


@aj.custom_jvp
def bent(x):
    return aj.tanh(x)


@bent.defjvp
def bent_jvp(primals, tangents):
    y = bent(*primals)
    return y, (1.0 - y * y) * tangents[0]


def own(x):
    """Derivatives of the user's in a loop, a checkpoint, and a constant."""
    s = x
    for k in aj.range(3):
        s = softened(s) * bent(x)
    return aj.sum(aj.checkpoint(lambda s: aj.sin(s) * x)(s) * aj.stop_gradient(aj.exp(X)))


FUNCTIONS = [settles, parts, own]

# ---- ways to a derivative


def forward(f: Fn) -> Fn:
    return aj.jacobian(f, mode="forward")


def backward(f: Fn) -> Fn:
    return aj.jacobian(f, mode="reverse")


def by_columns(f: Fn) -> Fn:
    return lambda x: aj.moveaxis(aj.vmap(lambda t: aj.jvp(f, (x,), (t,))[1])(EYE), 0, -1)


def by_rows(f: Fn) -> Fn:
    def rows(x):
        y, pull = aj.vjp(f, x)
        if not y.shape:
            return pull(1.0)[0]
        size = y.size
        seeds = np.eye(size).reshape(size, *y.shape)
        return aj.reshape(aj.vmap(lambda c: pull(c)[0])(seeds), (*y.shape, *x.shape))

    return rows


def linear(f: Fn) -> Fn:
    return lambda x: aj.moveaxis(aj.vmap(aj.linearize(f, x)[1])(EYE), 0, -1)


def gradient(f: Fn) -> Fn:
    return aj.grad(f)


def checkpointed(f: Fn) -> Fn:
    return aj.grad(aj.checkpoint(f))


def compiled(f: Fn) -> Fn:
    return aj.grad(aj.function(f))


def product(f: Fn) -> Fn:
    """The Hessian by products with it."""
    return lambda x: aj.vmap(lambda t: aj.hvp(f, x, t))(EYE)


OF_ANYTHING = [forward, backward, by_columns, by_rows, linear]
OF_NUMBERS = [gradient, checkpointed, compiled]
PAIRS = [*itertools.product(OF_ANYTHING, [*OF_ANYTHING, *OF_NUMBERS]), (product,), (lambda f: aj.hessian(f),)]
TRIPLES = [*itertools.product([forward, by_rows], [backward, linear], [gradient, by_columns])]


def composed(ways: tuple[Callable[[Fn], Fn], ...], f: Fn) -> Fn:
    for way in reversed(ways):
        f = way(f)
    return f


def named(ways: tuple[Any, ...]) -> str:
    return " of ".join(way.__name__.replace("<lambda>", "hessian") for way in ways)


def differences(f: Fn, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    steps = [(np.asarray(f(x + 1e-5 * e)) - np.asarray(f(x - 1e-5 * e))) / 2e-5 for e in EYE]
    return np.stack(steps, -1)


SECOND = {f: [differences(aj.grad(f), x) for x in MANY] for f in FUNCTIONS}
THIRD = {f: differences(aj.jacobian(aj.grad(f)), X) for f in FUNCTIONS}

either = pytest.mark.parametrize("wrap", [lambda f: f, aj.function], ids=["plain", "compiled"])
each = pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
some = pytest.mark.parametrize(("f", "wrap"), [(own, lambda f: f), (parts, aj.function)], ids=["plain", "compiled"])


def close(got: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-6, atol=1e-8)


@either
@each
@pytest.mark.parametrize("way", [*OF_ANYTHING, *OF_NUMBERS], ids=lambda way: way.__name__)
def test_first_derivatives(way: Any, f: Fn, wrap: Any) -> None:
    close(wrap(way(f))(X), differences(f, X))
    close(wrap(aj.vmap(way(f)))(MANY), np.stack([differences(f, x) for x in MANY]))


@some
@pytest.mark.parametrize("ways", PAIRS, ids=named)
def test_pairs(ways: Any, f: Fn, wrap: Any) -> None:
    close(wrap(composed(ways, f))(X), SECOND[f][0])


@either
@each
@pytest.mark.parametrize("ways", [*itertools.product([forward, by_rows], [gradient, by_columns]), (product,)], ids=named)
def test_pairs_of_many_examples(ways: Any, f: Fn, wrap: Any) -> None:
    close(wrap(aj.vmap(composed(ways, f)))(MANY), np.stack(SECOND[f]))


@either
@each
def test_vmap_inside(f: Fn, wrap: Any) -> None:
    """The gradient of a sum over examples, whose summands are gradients: squared, the Hessian times the gradient."""
    wanted = np.stack([2.0 * np.asarray(aj.grad(f)(x)) @ h for x, h in zip(MANY, SECOND[f], strict=True)])
    close(wrap(aj.grad(lambda z: aj.sum(aj.vmap(aj.grad(f))(z) ** 2)))(MANY), wanted)


@some
@pytest.mark.parametrize("ways", TRIPLES, ids=named)
def test_triples(ways: Any, f: Fn, wrap: Any) -> None:
    close(wrap(composed(ways, f))(X), THIRD[f])
