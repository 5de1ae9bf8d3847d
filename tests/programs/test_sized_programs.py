"""Random programs for all sizes: one compiled program for several sizes equals NumPy at each of them, with gradients.

`ADJIT_SIZED_PROGRAMS=1000` runs as many, and compares each with the interpreter and with the program for one size at every size;
`ADJIT_SIZED_SEED=5000` begins at another seed.
"""

import os
import warnings

import numpy as np
import pytest

import adjit as aj
from adjit.ir.interpreter import run
from adjit.runtime.signature import take_apart

from .sized import inputs_of, make_program

PROGRAMS = int(os.environ.get("ADJIT_SIZED_PROGRAMS", "5"))
THOROUGH = "ADJIT_SIZED_PROGRAMS" in os.environ
FIRST = int(os.environ.get("ADJIT_SIZED_SEED", "0"))
SIZES = [(5, 3), (9, 4), (2, 2), (37, 11), (1, 3), (0, 4)]


def interpreted(function, inputs):
    """The interpreter's results for the traced program of a call, and their gradients."""
    program = function._concrete(take_apart(tuple(inputs), {})).program
    results = run(program.func, *inputs, *program.captures)
    return results[:-3], results[-3:]


def check(seed, sizes=SIZES, thorough=THOROUGH):
    """Values equal NumPy's, and gradients those computed op by op.

    At one of the sizes, or if `thorough` at all of them, both are compared with the program for this size alone, and with the interpreter.
    """
    program = make_program(seed)

    def gradients_of(*inputs):
        return aj.grad(program.scalar, argnums=(0, 1, 2))(*inputs)

    def both(*inputs):
        return program(*inputs), gradients_of(*inputs)

    general, static = (aj.function(both, dynamic=dynamic, reduce_retracing=True) for dynamic in (True, False))
    only_compiled = any(step.name == "filled" for step in program.steps)  # op by op, NumPy's arrays take no tensors
    for k, (b, t) in enumerate(sizes):
        inputs = inputs_of(b, t, seed)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the mean of nothing
            try:
                want = program(*inputs)
                want_gradients = static(*inputs)[1] if only_compiled else gradients_of(*inputs)
            except (ValueError, IndexError):  # a step that does not work for so few elements
                with pytest.raises((ValueError, IndexError)):
                    general(*inputs)
                continue
            values, gradients = general(*inputs)
            oracles = [(want, want_gradients)]
            if thorough or k == seed % 4:
                oracles += [static(*inputs), interpreted(general, inputs)]
        for wanted, wanted_gradients in oracles:
            for x, y in zip(values, wanted, strict=True):
                assert x.shape == y.shape
                np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-10, err_msg=f"{program}\nat {b}, {t}")
            for x, y in zip(gradients, wanted_gradients, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-9, err_msg=f"{program}\nat {b}, {t}")
    assert "InternalError" not in general.pretty_printed_signature(), program  # what is not compiled for all sizes has a reason
    return general


@pytest.mark.parametrize("seed", range(FIRST, FIRST + PROGRAMS))
def test_sized_programs(seed):
    check(seed)
