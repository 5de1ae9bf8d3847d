"""Custom gradients: one that stays finite, one that is clipped in the backward pass, one that passes through rounding.

python examples/seeds_custom_gradient.py
"""

from __future__ import annotations

from adjit import tf


def slope(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def plain(x):
    return tf.math.log(1.0 + tf.exp(x))


@tf.custom_gradient
def stable(x):
    e = tf.exp(x)

    def gradient(upstream):
        return upstream * (1.0 - 1.0 / (1.0 + e))

    return tf.math.log(1.0 + e), gradient


@tf.custom_gradient
def clipped(x):
    return tf.identity(x), lambda upstream: tf.clip_by_norm(upstream, 0.5)


@tf.custom_gradient
def rounded(x):
    return tf.round(x), lambda upstream: upstream  # as if it had not been rounded


large = tf.constant(100.0)
print("d log(1 + exp(x)) at 100          plain", slope(plain, large).numpy(), "  yours", slope(stable, large).numpy())
print("its second derivative at 0.3      plain", slope(lambda x: slope(plain, x), tf.constant(0.3)).numpy(), end="")
print("  yours", slope(lambda x: slope(stable, x), tf.constant(0.3)).numpy())
print("d x^2 at 2, clipped on the way back to 0.5 first:", slope(lambda x: clipped(x * x), tf.constant(2.0)).numpy())

weight, target = tf.Variable(0.0), tf.constant(7.0)


@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.square(rounded(weight) - target)
    weight.assign_sub(0.05 * tape.gradient(loss, weight))
    return loss


losses = [step().numpy() for _ in range(40)]
print(f"training through a rounding: loss {losses[0]:.0f} -> {losses[-1]:.0f}, the weight {weight.numpy():.3f} rounds to 7")
print("\nwhat is compiled, forward and backward:\n" + step.inspect().traced)
