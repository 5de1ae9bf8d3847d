"""rosenbrock: value and gradient of sum 100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2, float64."""

import numpy as np
from common import Prog

import adjit as aj


def rosenbrock(x):
    a = x[1:] - x[:-1] * x[:-1]
    b = 1.0 - x[:-1]
    return np.sum(100.0 * a * a + b * b)


def adjit_step(inputs):
    x = inputs["x"]
    f = aj.function(aj.value_and_grad(rosenbrock))
    return Prog(lambda: f(x), list)
