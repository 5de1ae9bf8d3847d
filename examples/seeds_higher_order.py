"""Nested tapes: derivatives of any order, a Hessian, and Newton's method, compiled.

python examples/seeds_higher_order.py
"""

from __future__ import annotations

import math

from adjit import tf


def derivative(f):
    def df(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return df


x = tf.constant(2.0, tf.float64)
f = tf.sin
print("order   derivative of sin at 2   exact")
for order in range(1, 6):
    f = derivative(f)
    print(f"{order:5d}   {tf.function(f)(x).numpy():22.15f}   {math.sin(2.0 + order * math.pi / 2):.15f}")


def rosenbrock(p):
    return tf.reduce_sum(100.0 * tf.square(p[1:] - tf.square(p[:-1])) + tf.square(1.0 - p[:-1]))


@tf.function
def newton(p):
    """One step: the gradient from one tape, the Hessian as its Jacobian from another; a 2x2 system solved by Cramer's rule."""
    with tf.GradientTape() as outer:
        outer.watch(p)
        with tf.GradientTape() as inner:
            inner.watch(p)
            value = rosenbrock(p)
        g = inner.gradient(value, p)
    h = outer.jacobian(g, p)
    determinant = h[0, 0] * h[1, 1] - h[0, 1] * h[1, 0]
    move = tf.stack([h[1, 1] * g[0] - h[0, 1] * g[1], h[0, 0] * g[1] - h[1, 0] * g[0]]) / determinant
    return value, p - move


print("\nNewton's method on Rosenbrock's valley")
p = tf.constant([-1.2, 1.0], tf.float64)
for n in range(8):
    value, after = newton(p)
    print(f"  step {n}   f = {value.numpy():.3e}   at {p.numpy()}")
    p = after
