"""A maximum-margin classifier: gradients through `maximum`, which has a kink, and an epoch of steps as one compiled loop.

python examples/seeds_hinge_loss.py
"""

from __future__ import annotations

from adjit import tf

tf.random.set_seed(3)
labels = tf.where(tf.random.uniform([200]) < 0.5, -1.0, 1.0)
points = tf.random.normal([200, 2]) + labels[:, tf.newaxis] * tf.constant([1.5, 1.0])

weights = tf.Variable(tf.zeros([2, 1]), name="weights")
bias = tf.Variable(0.0, name="bias")


def hinge(margin):
    return tf.reduce_mean(tf.maximum(0.0, 1.0 - margin))


@tf.function
def descend(steps, rate):
    """`tf.range` and the assignments become one native loop."""
    loss = tf.constant(0.0)
    for _ in tf.range(steps):
        with tf.GradientTape() as tape:
            scores = tf.squeeze(tf.matmul(points, weights)) + bias
            loss = hinge(labels * scores) + 0.01 * tf.nn.l2_loss(weights)
        dw, db = tape.gradient(loss, [weights, bias])
        weights.assign_sub(rate * dw)
        bias.assign_sub(rate * db)
    return loss


for epoch in range(5):
    loss = descend(tf.constant(60), tf.constant(0.1))
    right = tf.reduce_mean(tf.cast(labels * (tf.squeeze(points @ weights) + bias) > 0, tf.float32))
    print(f"after {60 * (epoch + 1):3d} steps   loss {loss:.4f}   {100 * right.numpy():.1f} % on the right side")

at_corner = tf.Variable(1.0)
with tf.GradientTape() as tape:
    y = tf.maximum(0.0, 1.0 - at_corner)
print(f"at the corner the two sides are equal, and the gradient goes to the first: {tape.gradient(y, at_corner) + 0.0}")
