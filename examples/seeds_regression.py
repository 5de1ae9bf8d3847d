"""A line through points, fitted by hand: a tape, two gradients, two assignments. Then the same step compiled.

python examples/seeds_regression.py
"""

from __future__ import annotations

import time

from adjit import tf

x = tf.constant([1.0, 2.0, 3.0, 4.0])
y = tf.constant([5.0, 8.0, 11.0, 14.0])  # 3 x + 2
slope, offset = tf.Variable(0.0, name="slope"), tf.Variable(0.0, name="offset")


def step(rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(slope * x + offset - y))
    for variable, gradient in zip((slope, offset), tape.gradient(loss, [slope, offset]), strict=True):
        variable.assign_sub(rate * gradient)
    return loss


def fit(step, steps=1000):
    slope.assign(0.0)
    offset.assign(0.0)
    step(0.0)  # a compiled step is traced and compiled here
    started = time.perf_counter()
    for n in range(steps):
        loss = step(0.01)
        if n % 250 == 0 or n == steps - 1:
            print(f"  step {n:4d}   loss {loss:9.5f}   y = {slope.numpy():.4f} x + {offset.numpy():.4f}")
    print(f"  {(time.perf_counter() - started) / steps * 1e6:.0f} microseconds a step")


print("eager")
fit(step)
print("compiled")
fit(tf.function(step))
