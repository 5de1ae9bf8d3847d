"""A policy over the arms of a bandit: the exact gradient of the expected reward, and REINFORCE, which estimates it from samples.

python examples/seeds_policy_gradient.py
"""

from __future__ import annotations

from adjit import tf

tf.random.set_seed(1)
rewards = tf.constant([1.0, 2.0, 0.5])


def exact(logits):
    return tf.reduce_sum(tf.nn.softmax(logits) * rewards)


def sampled(logits, count):
    """Its expected gradient is that of the expected reward: log-probabilities weighted by the advantage of an arm over the average."""
    arms = tf.random.categorical(logits[tf.newaxis], count)[0]
    gains = tf.gather(rewards, arms)
    advantage = tf.stop_gradient(gains - tf.reduce_mean(gains))
    return tf.reduce_mean(advantage * tf.gather(tf.nn.log_softmax(logits), arms))


def trained(objective, steps=200, rate=0.2):
    theta = tf.Variable([0.5, -0.5, 0.0])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = -objective(theta)
        theta.assign_sub(rate * tape.gradient(loss, theta))

    for _ in range(steps):
        step()
    return theta


theta = tf.Variable([0.5, -0.5, 0.0])
with tf.GradientTape(persistent=True) as tape:
    value, estimate = exact(theta), sampled(theta, 20000)
print("gradient of the expected reward ", tape.gradient(value, theta).numpy())
print("estimated from 20000 samples    ", tape.gradient(estimate, theta).numpy())
for name, objective in (("exact", exact), ("sampled", lambda theta: sampled(theta, 64))):
    theta = trained(objective)
    print(f"{name:8s} policy after 200 steps  {tf.nn.softmax(theta).numpy().round(3)}   expected reward {exact(theta):.3f} of 2")
