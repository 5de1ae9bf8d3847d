"""Gradients that the user writes: several inputs and outputs, variables, keyword arguments, higher orders; eager, compiled and in loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import tf

MODES = pytest.mark.parametrize("mode", [lambda f: f, tf.function], ids=["eager", "compiled"])
Mode = Callable[[Callable[..., Any]], Callable[..., Any]]


@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)

    def grad(upstream):
        return upstream * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


def derivatives(f, order):
    """f and its derivatives, by nested tapes."""

    def at(x):
        if order == 0:
            return [f(x)]
        with tf.GradientTape() as tape:
            tape.watch(x)
            lower = derivatives(f, order - 1)(x)
        return [*lower, tape.gradient(lower[-1], x)]

    return at


@MODES
def test_the_gradient_is_the_users_at_any_order(mode: Mode) -> None:
    s = 1 / (1 + np.exp(-0.3))
    expected = [np.log1p(np.exp(0.3)), s, s * (1 - s), s * (1 - s) * (1 - 2 * s)]
    found = mode(derivatives(log1pexp, 3))(tf.constant(0.3, tf.float64))
    np.testing.assert_allclose([float(x) for x in found], expected, rtol=1e-12)
    # where the plain gradient is NaN, and the user's is not
    assert float(mode(derivatives(log1pexp, 1))(tf.constant(100.0))[1]) == 1.0


def test_a_tape_around_a_compiled_call() -> None:
    compiled = tf.function(log1pexp)
    x = tf.constant(0.3, tf.float64)
    s = 1 / (1 + np.exp(-0.3))
    np.testing.assert_allclose([float(v) for v in derivatives(compiled, 2)(x)][1:], [s, s * (1 - s)], rtol=1e-12)


@MODES
def test_several_inputs_and_outputs(mode: Mode) -> None:
    @tf.custom_gradient
    def two(x, y):
        def grad(a, b):
            return 10.0 * a * y + b, a * x

        return (x * y, x + y), grad

    def gradients(x, y):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, y])
            product, total = two(x, y)
            both = 2.0 * product + total
        return tape.gradient(both, [x, y]), tape.gradient(total, [x, y]), tape.gradient(product, x)

    both, total, product = mode(gradients)(tf.constant(2.0), tf.constant(3.0))
    assert [float(g) for g in both] == [61.0, 4.0]
    assert [float(g) for g in total] == [1.0, 0.0]  # the other cotangent is zero
    assert float(product) == 30.0


@MODES
def test_variables(mode: Mode) -> None:
    w = tf.Variable(2.0, name="w")

    @tf.custom_gradient
    def scaled(x):
        def grad(upstream, variables):
            assert [v.name for v in variables] == ["w:0"]
            return upstream * 3.0 * w, [upstream * 5.0 * x]

        return x * w, grad

    def gradients(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = scaled(x)
        return tape.gradient(y, [x, w])

    assert [float(g) for g in mode(gradients)(tf.constant(7.0))] == [6.0, 35.0]

    @tf.custom_gradient
    def forgetful(x):
        return x * w, lambda upstream: upstream

    def wrong(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = forgetful(x)
        return tape.gradient(y, x)

    with pytest.raises(TypeError, match="must accept a 'variables' keyword argument"):
        mode(wrong)(tf.constant(1.0))


@MODES
def test_keyword_arguments_count(mode: Mode) -> None:
    @tf.custom_gradient
    def power(x, *, scale, n=2):
        def grad(upstream):
            return upstream * 100.0, upstream * 7.0

        return scale * x**n, grad

    def gradients(x, scale):
        with tf.GradientTape() as tape:
            tape.watch([x, scale])
            y = power(x, scale=scale, n=3)
        return y, tape.gradient(y, [x, scale])

    y, found = mode(gradients)(tf.constant(2.0), tf.constant(3.0))
    assert [float(y), *map(float, found)] == [24.0, 100.0, 7.0]

    @tf.custom_gradient
    def careless(x, scale):
        return x * scale, lambda upstream: upstream * scale

    def wrong(x, scale):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = careless(x, scale=scale)
        return tape.gradient(y, x)

    with pytest.raises(aj.GradientError, match=r"must return 2 gradients .*keyword arguments, which count too"):
        mode(wrong)(tf.constant(2.0), tf.constant(3.0))


@MODES
def test_none_and_static_arguments(mode: Mode) -> None:
    @tf.custom_gradient
    def mixed(x, n, text, other):
        return x * n + other, lambda upstream: (upstream * 4.0, None, None, None)

    def gradients(x, other):
        with tf.GradientTape() as tape:
            tape.watch([x, other])
            y = mixed(x, 3, "label", other)
        return tape.gradient(y, [x, other], unconnected_gradients=tf.UnconnectedGradients.ZERO)

    assert [float(g) for g in mode(gradients)(tf.constant(1.0), tf.constant(1.0))] == [4.0, 0.0]


@MODES
def test_nested_and_in_control_flow(mode: Mode) -> None:
    @tf.custom_gradient
    def twice_the_slope(x):
        return x * 1.5, lambda upstream: upstream * 3.0

    @tf.custom_gradient
    def outer(x):
        y = twice_the_slope(x)
        return y, lambda upstream: twice_the_slope(upstream) * 2.0

    def gradients(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x
            for _ in tf.range(n):
                if y > 0.0:
                    y = outer(y)
        return y, tape.gradient(y, x)

    y, slope = mode(gradients)(tf.constant(2.0), tf.constant(3))
    assert (float(y), float(slope)) == (2.0 * 1.5**3, 3.0**3)


def test_in_a_compiled_loop_differentiated_from_outside() -> None:
    @tf.function
    def total(n, x):
        out = 0.0
        for k in tf.range(n):
            out += tf.reduce_sum(log1pexp(x * tf.cast(k, tf.float32)))
        return out

    x = tf.constant([0.1, 0.2])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = total(tf.constant(4), x)
    assert y.dtype == tf.float32
    expected = sum(k / (1 + np.exp(-k * x.numpy())) for k in range(4))
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), expected, rtol=1e-5)


@MODES
def test_jacobians(mode: Mode) -> None:
    def jacobian(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = log1pexp(x)
        return tape.jacobian(y, x)

    x = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(mode(jacobian)(tf.constant(x)).numpy(), np.diag(1 / (1 + np.exp(-x))), rtol=1e-12)


def test_wrong_gradients_are_named() -> None:
    @tf.custom_gradient
    def bad_shape(x):
        return tf.reduce_sum(x), lambda upstream: upstream

    @tf.custom_gradient
    def no_pair(x):
        return x

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = bad_shape(x)
    with pytest.raises(aj.GradientError, match=r"bad_shape: grad_fn returned a gradient of type f32\[\] for an argument of type f32\[2\]"):
        tape.gradient(y, x)
    with pytest.raises(aj.GradientError, match="must return its result and a function"):
        no_pair(x)


def test_forward_mode_is_the_transpose_of_the_gradient() -> None:
    @tf.custom_gradient
    def product(x, y, n=None):
        return (x * y, x + 1.0), lambda u, v: (u * y + v, 10.0 * u * x)

    x, y, dx, dy = (tf.constant(v) for v in (2.0, 3.0, 0.5, 0.25))
    for jvp in (aj.jvp, tf.function(lambda f, primals, tangents: aj.jvp(f, primals, tangents))):
        _, (first, second) = jvp(product, (x, y), (dx, dy))
        assert (float(first), float(second)) == (0.5 * 3.0 + 10.0 * 0.25 * 2.0, 0.5)
        assert float(jvp(log1pexp, (x,), (dx,))[1]) == pytest.approx(0.5 / (1 + np.exp(-2.0)), rel=1e-6)


@pytest.mark.parametrize("gradient", [lambda u: tf.clip_by_value(u, -1.0, 1.0), lambda u: tf.where(u > 0, u, 0.0), lambda u: u * u])
def test_forward_mode_refuses_gradients_that_are_not_linear(gradient: Any) -> None:
    clipped = tf.custom_gradient(lambda x: (x * 1.0, gradient))
    for call in (lambda x: aj.jvp(clipped, (x,), (x,))[1], tf.function(lambda x: aj.jvp(clipped, (x,), (x,))[1])):
        with pytest.raises(aj.GradientError, match="not linear in the upstream gradients, so that forward mode cannot follow it"):
            call(tf.constant(0.5))
