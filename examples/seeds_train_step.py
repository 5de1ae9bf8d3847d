"""A training step under `tf.function`: traced once, run often. Variables are passed as arguments, so one trace serves two models.

python examples/seeds_train_step.py
"""

from __future__ import annotations

import time

from adjit import tf


def train_step(x, y, w, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(y - tf.matmul(x, w) - b))
    dw, db = tape.gradient(loss, [w, b])
    w.assign_sub(0.05 * dw)
    b.assign_sub(0.05 * db)
    return loss


def model():
    return tf.Variable(tf.random.normal([3, 1]), name="w"), tf.Variable(tf.zeros([1]), name="b")


tf.random.set_seed(0)
truth = tf.constant([[1.0], [-2.0], [0.5]])
x = tf.random.normal([256, 3])
y = x @ truth + 3.0 + 0.1 * tf.random.normal([256, 1])

compiled = tf.function(train_step)
for name, step in (("eager", train_step), ("compiled", compiled)):
    w, b = model()
    first = step(x, y, w, b)
    started = time.perf_counter()
    for _ in range(300):
        loss = step(x, y, w, b)
    each = (time.perf_counter() - started) / 300
    found = f"w {w.numpy().ravel().round(2)}   b {b.numpy().round(2)}"
    print(f"{name:9s} loss {first:.4f} -> {loss:.4f}   {found}   {each * 1e6:.0f} us a step")

w, b = model()
compiled(x, y, w, b)
print(f"another model, the same trace: traced {compiled.experimental_get_tracing_count()} time")
compiled(x[:100], y[:100], w, b)
print(f"another batch size: traced {compiled.experimental_get_tracing_count()} times")
print("\n" + compiled.inspect(x, y, w, b).traced)
