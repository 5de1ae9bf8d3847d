"""Control flow among everything else: tapes around, inside and across regions, variables, functions in functions, vmap, checkpoints."""

# ruff: noqa: B007 - programs as people write them

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import CheckError
from adjit.tracer.pytree import flatten

V = np.array([0.5, -1.5, 2.0, 3.25])
POSITIVE = np.abs(V)
W = aj.Variable(np.array([0.5, 1.0, -0.25, 0.75]), name="W")
B = aj.Variable(0.25, name="B")


def root(a):
    x = a
    while abs(x * x - a) > 1e-13:
        x = 0.5 * (x + a / x)
    return x


def clip(x):
    if x > 1:
        return 1 + 0.1 * (x - 1)
    return x


def wave(x, n):
    for i in range(n):
        x = np.sin(x) + 0.1 * i
    return x


def mixed(v):
    for _ in aj.range(3):
        v = np.tanh(v) + v[::-1]
    return v


compiled_root = aj.function(root)


# ---- vmap: examples take different branches


def vmap_of_branches(v, n):
    return aj.vmap(clip)(v)


def vmap_of_while(v, n):
    return aj.vmap(root)(np.abs(v))


def vmap_of_gradient_of_while(v, n):
    return aj.vmap(aj.grad(root))(np.abs(v))


def gradient_of_vmap_of_while(v, n):
    return aj.grad(lambda v: np.sum(aj.vmap(root)(v) * v))(np.abs(v))


def vmap_of_loop(v, n):
    return aj.vmap(lambda x: wave(x, n))(v)


def vmap_of_checkpoints(v, n):
    return aj.vmap(aj.grad(lambda x: aj.fori_loop(0, 50, lambda i, s: np.sin(s) + i * 0.01, x, checkpoint="sqrt")))(v)


# ---- tapes


def tape_in_loop(x, n):
    for i in range(n):
        with aj.GradientTape() as tape:
            tape.watch(x)
            y = np.sum(np.sin(x) ** 2)
        x = x - 0.1 * tape.gradient(y, x)
    return x


def gradient_of_tape_in_loop(x, n):
    return aj.grad(lambda x: np.sum(tape_in_loop(x, n)))(x)


def tape_around_loop(x, n):
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = wave(x, n) * 1.5
        z, u = np.sum(y * y), np.sum(y)
    return tape.gradient(z, x), tape.gradient(u, x)


def tapes_around_while(x, n):
    with aj.GradientTape() as outer:
        outer.watch(x)
        with aj.GradientTape() as tape:
            tape.watch(x)
            y = x
            while n > 0:
                y = np.sin(y) * 1.5
                n = n - 1
            z = np.sum(y * y)
        g = tape.gradient(z, x)
        s = np.sum(g * g)
    return outer.gradient(s, x)


def asked_in_branch(x, n):
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = np.sum(x**3)
    if y > 0:
        g = tape.gradient(y, x)
    else:
        g = -x
    return g


def asked_in_loop(x, n):
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = np.sum(x**3)
    g = x * 0
    for i in range(n):
        g = g + tape.gradient(y, x)
    return g


def asked_in_branch_of_what_is_recorded_there(x, n):
    g = x * 0
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(x)
        z = x * x
        if np.sum(z) > 1:
            y = z * x
            with tape.stop_recording():
                blind = z * 2
            g = tape.gradient(y, x)
            if tape.gradient(blind, x) is None:
                g = g + 100
    return g


def asked_in_loop_of_what_is_recorded_there(x, n):
    g = x * 0
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(x)
        z = x * x
        for i in range(n):
            y = z * x * (i + 1)
            g = g + tape.gradient(y, x)
    return g


# ---- variables


def variables_read_in_loop(x, n):
    with aj.GradientTape() as tape:
        h = x
        for i in range(n):
            h = np.tanh(h * W + B)
        loss = np.sum(h * x)
    return tape.gradient(loss, [W, B], unconnected_gradients="zero")


def variables_read_before_and_in_branch(x, n):
    with aj.GradientTape() as tape:
        h = x * B
        if np.sum(h) > 0:
            for i in range(n):
                h = np.tanh(h * W + B)
        loss = np.sum(h * x)
    return tape.gradient(loss, [W, B], unconnected_gradients="zero")


def training_in_loop(x, n):
    W.assign(np.array([0.5, 1.0, -0.25, 0.75]))
    losses = np.zeros(20)
    for k in range(20):
        with aj.GradientTape() as tape:
            loss = np.sum((W * x - 1) ** 2)
        W.assign_sub(0.01 * tape.gradient(loss, W))
        losses[k] = loss if not isinstance(losses, np.ndarray) else float(loss)
        if loss < 0.5:
            break
    out = W + 0
    W.assign(np.array([0.5, 1.0, -0.25, 0.75]))
    return out, losses


# ---- functions, other derivatives, functional forms, checkpoints


def functions_in_loop(x, n):
    s = 0.0
    for i in range(n):
        s = s + compiled_root(np.sum(x * x) + i)
    return s


def gradient_of_functions_in_loop(x, n):
    return aj.grad(functions_in_loop)(x, n)


def forward_mode(x, n):
    return aj.jvp(lambda v: wave(v, n) * root(np.sum(v * v)), (x,), (np.ones(4),))


def third_order(x, n):
    return aj.grad(aj.grad(aj.grad(lambda a: root(a) ** 3)))(np.sum(x * x))


def jacobian_and_hessian(x, n):
    return aj.jacobian(mixed)(x), aj.hessian(lambda v: np.sum(mixed(v) ** 2))(x)


def checkpointed_function(x, n):
    return aj.grad(lambda v: np.sum(aj.checkpoint(mixed)(v) ** 2))(x)


def scanned(x, n):
    return aj.scan(lambda c, v: (c + v, c * v), 0.0, x), aj.grad(lambda x: np.sum(aj.scan(lambda c, v: (c + v, c * v), 0.0, x)[1]))(x)


def mapped(x, n):
    return aj.map(lambda v: v * 2 if v > 0 else -v, x)


def chosen(x, n):
    third = aj.switch(n - 2, [lambda v: v, lambda v: v * 2, lambda v: v * 3], x)
    return third + aj.cond(n > 3, lambda v: v, lambda v: v * 2, x)


def checkpointed_while(x, n):
    return aj.grad(lambda v: np.sum(aj.while_loop(lambda s: np.max(s) > 0.1, lambda s: s * 0.9, v, checkpoint="binomial")))(x)


def second_order_of_checkpoints(x, n):
    inner = aj.grad(lambda v: np.sum(aj.fori_loop(0, 60, lambda i, s: np.sin(s) + i * 0.01, v, checkpoint="binomial")))
    return aj.grad(lambda v: np.sum(inner(v) ** 2))(x)


CASES = [
    vmap_of_branches, vmap_of_while, vmap_of_gradient_of_while, gradient_of_vmap_of_while, vmap_of_loop, vmap_of_checkpoints, tape_in_loop,
    gradient_of_tape_in_loop, tape_around_loop, tapes_around_while, asked_in_branch, asked_in_loop,
    asked_in_branch_of_what_is_recorded_there, asked_in_loop_of_what_is_recorded_there, variables_read_in_loop,
    variables_read_before_and_in_branch, training_in_loop, functions_in_loop, gradient_of_functions_in_loop, forward_mode, third_order,
    jacobian_and_hessian, checkpointed_function, scanned, mapped, chosen, checkpointed_while, second_order_of_checkpoints,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
@pytest.mark.parametrize("n", [4, 0])
def test_compiled_is_eager(case: Callable[..., Any], n: int) -> None:
    (found, tree), (expected, its_tree) = flatten(aj.function(case)(V, n)), flatten(case(aj.tensor(V), n))
    assert tree == its_tree
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_targets_that_a_loop_keeps_in_a_dict() -> None:
    def keep(where, x):
        where["last"] = x

    @aj.function
    def f(x, n):
        kept = {}
        with aj.GradientTape() as tape:
            tape.watch(x)
            for i in range(n):
                keep(kept, x * x)
        return tape.gradient(kept["last"], x)

    assert float(f(2.0, 3)) == 4.0
    with pytest.raises(CheckError, match=r"`kept\['last'\]` has no value"):
        f(2.0, 0)
