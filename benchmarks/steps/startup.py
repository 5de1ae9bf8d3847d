"""startup: a fresh process that imports adjit, differentiates and compiles a small MLP (8-16-16-1, batch 4), runs it once and exits."""

import numpy as np
from common import Prog

import adjit as aj


def loss(params, x, y):
    w1, b1, w2, b2, w3, b3 = params
    h = np.tanh(x @ w1 + b1)
    h = np.tanh(h @ w2 + b2)
    d = h @ w3 + b3 - y
    return np.mean(d * d)


def adjit_step(inputs):
    params, x, y = inputs["p"], inputs["x"], inputs["y"]
    f = aj.function(aj.value_and_grad(loss))

    def outputs(out):
        value, gradients = out
        return [value, *gradients]

    return Prog(lambda: f(params, x, y), outputs)
