"""newton_while: iterate to a tolerance on 1,000-vectors, float64, differentiated: Lambert by Newton, Kepler by fixed point."""

import numpy as np
from common import Prog

import adjit as aj


def lambert(x, a):
    e = np.exp(x)
    return x - (x * e - a) / (e * (x + 1.0))


def kepler(x, mean, eccentricity):
    return mean + eccentricity * np.sin(x)


def adjit_step(inputs):
    kind, tolerance, n = inputs["kind"], inputs["tol"], inputs["n"]
    update = lambert if kind == "lambert" else kepler
    start = np.full(n, 10.0 if kind == "lambert" else 0.0)

    def loss(*p):
        x, change, trips = start, np.inf, 0
        while change >= tolerance:
            new = update(x, *p)
            change = np.max(np.abs(new - x))
            x, trips = new, trips + 1
        return np.sum(x * x), trips

    f = aj.function(aj.value_and_grad(loss, argnums=tuple(range(len(inputs["p"]))), has_aux=True))
    p = inputs["p"]

    def outputs(out):
        (value, trips), gradients = out
        return [value, trips, *gradients]

    return Prog(lambda: f(*p), outputs)
