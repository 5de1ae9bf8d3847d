"""Random programs for all sizes: one compiled program for several sizes equals NumPy at each of them, with gradients.

`ADJIT_SIZED_PROGRAMS=1000` runs as many.
"""

import os
import warnings

import numpy as np
import pytest

import adjit as aj

from .sized import inputs_of, make_program

PROGRAMS = int(os.environ.get("ADJIT_SIZED_PROGRAMS", "5"))
SIZES = [(5, 3), (9, 4), (2, 2), (37, 11), (1, 3), (0, 4)]


def check(seed, sizes=SIZES):
    program = make_program(seed)

    def both(*inputs):
        return program(*inputs), aj.grad(program.scalar, argnums=(0, 1, 2))(*inputs)

    general, static = aj.function(both, dynamic=True), aj.function(both, reduce_retracing=True)
    for b, t in sizes:
        inputs = inputs_of(b, t, seed)
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the mean of nothing
                want = program(*inputs)
        except (ValueError, IndexError):  # a step that does not work for so few elements
            with pytest.raises((ValueError, IndexError)):
                general(*inputs)
            continue
        values, gradients = general(*inputs)
        for x, y in zip(values, want, strict=True):
            assert x.shape == y.shape
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-10, err_msg=f"{program}\nat {b}, {t}")
        for x, y in zip(gradients, static(*inputs)[1], strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-9, err_msg=f"{program}\nat {b}, {t}")
    return general


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_sized_programs(seed):
    check(seed)
