"""softmax_xent: mean cross-entropy of 4096 x 1000 logits with integer labels, value and gradient, float32."""

import numpy as np
from common import Prog

import adjit as aj


def loss(logits, labels):
    picked = logits[np.arange(logits.shape[0]), labels]
    return np.mean(aj.logsumexp(logits, axis=1) - picked)


def loss_onehot(logits, labels):
    chosen = aj.one_hot(labels, logits.shape[1])
    return -np.mean(np.sum(chosen * aj.log_softmax(logits, axis=1), axis=1))


def adjit_step(inputs):
    x, y = inputs["x"], inputs["y"]
    f = aj.function(aj.value_and_grad(loss))
    return Prog(lambda: f(x, y), list)


def adjit_onehot_step(inputs):
    """One-hot labels instead of a gather."""
    x, y = inputs["x"], inputs["y"]
    f = aj.function(aj.value_and_grad(loss_onehot))
    return Prog(lambda: f(x, y), list, note="one-hot labels")
