"""nbody: softened gravitational potential of 512 bodies over all pairs, float64; value and gradient with respect to the positions."""

import math

import numpy as np
from common import Prog

import adjit as aj

SOFTENING = 1e-2


def potential(x, m):
    d = x[:, None, :] - x[None, :, :]
    mm = m[:, None] * m[None, :]
    pairs = np.sum(mm / np.sqrt(np.sum(d * d, axis=2) + SOFTENING))
    return -0.5 * (pairs - np.sum(m * m) / math.sqrt(SOFTENING))


def adjit_step(inputs):
    x, m = inputs["x"], inputs["m"]
    f = aj.function(aj.value_and_grad(potential))
    return Prog(lambda: f(x, m), list)
