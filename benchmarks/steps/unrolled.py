"""unrolled: K elementwise operations on a 64-vector, value and gradient: how tracing and compiling scale with the size of the program."""

import numpy as np
from common import Prog

import adjit as aj


def chain(x, length):
    for k in range(length):
        match k % 4:
            case 0:
                x = x * (1.5 + 0.001 * (k % 7))
            case 1:
                x = np.sin(x)
            case 2:
                x = x + (0.1 + 0.001 * (k % 11))
            case _:
                x = np.tanh(x)
    return x


def adjit_step(inputs):
    x, length = inputs["x"], inputs["K"]
    f = aj.function(aj.value_and_grad(lambda x: np.sum(chain(x, length))))
    return Prog(lambda: f(x), list)
