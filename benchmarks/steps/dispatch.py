"""dispatch: f(x) = 2x + 1 on an 8-vector: the cost of a call."""

from common import Prog

import adjit as aj


@aj.function
def affine(x):
    return 2.0 * x + 1.0


def adjit_step(inputs):
    x = inputs["x"]
    return Prog(lambda: affine(x), lambda out: [out], note="numpy argument")


def adjit_tensorarg_step(inputs):
    """A result of an earlier call as the argument, as in a chain of compiled functions."""
    x = aj.tensor(inputs["x"])
    return Prog(lambda: affine(x), lambda out: [out], note="tensor argument")
