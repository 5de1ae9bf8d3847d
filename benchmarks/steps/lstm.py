"""lstm: one layer, T=50, B=32, I=64, H=128; mean squared error on all hidden states; loss and gradients of all weights, float32."""

import numpy as np
from common import Prog

import adjit as aj


def loss(params, x, y, times):
    """`times(n)` is Python's range, which unrolls the loop, or `aj.range`, which keeps it a loop."""
    wx, wh, b = params
    steps, batch, _ = x.shape
    size = wh.shape[0]
    z = np.reshape(np.reshape(x, (steps * batch, -1)) @ wx + b, (steps, batch, 4 * size))
    h = c = np.zeros((batch, size), np.float32)
    total = np.float32(0)
    for t in times(steps):
        gates = z[t] + h @ wh
        i, f = aj.sigmoid(gates[:, :size]), aj.sigmoid(gates[:, size : 2 * size])
        g, o = np.tanh(gates[:, 2 * size : 3 * size]), aj.sigmoid(gates[:, 3 * size :])
        c = f * c + i * g
        h = o * np.tanh(c)
        d = h - y[t]
        total = total + np.sum(d * d)
    return total / y.size


def program(inputs, times, note):
    params = tuple(inputs[name] for name in ("wx", "wh", "b"))
    x, y = inputs["x"], inputs["y"]
    f = aj.function(aj.value_and_grad(lambda params, x, y: loss(params, x, y, times)))

    def outputs(out):
        value, gradients = out
        return [value, *gradients]

    return Prog(lambda: f(params, x, y), outputs, note=note)


def adjit_step(inputs):
    return program(inputs, aj.range, "a loop over time")


def adjit_unroll_step(inputs):
    return program(inputs, range, "the loop unrolled")
