"""Names bound by `:=` in operands of `and` and `or`, which are evaluated only if those before them do not decide."""

# ruff: noqa: F841, RET504, SIM - as users write

from __future__ import annotations

import itertools

import numpy as np
import pytest

import adjit as aj


def both(x):
    if (a := x[0]) > 0 and (b := x[1]) > a:
        y = b
    else:
        y = a
    return y


def three(x):
    if x[0] > 0 and (b := x[1]) > 0 and (c := x[2]) > b:
        return b + c
    return 0.0


def either(x):
    if x[0] > 0 or (b := x[1]) > 0:
        y = 1.0
    else:
        y = b
    return y


def returned_ternary(x):
    return x[0] if x[1] > 0 and (b := x[2]) > 0 else -x[0]


def assigned_ternary(x):
    y = 1.0 if x[1] > 0 or (b := x[2]) > 0 else 2.0
    return y


def assigned(x):
    ok = x[0] > 0 and (b := x[1]) > 0
    return 1.0 if ok else 0.0


def returned(x):
    return x[0] > 0 or (b := x[1]) > 0


def negated(x):
    if not (x[0] > 0 and (b := x[1]) > 0):
        return 3.0
    return b


def in_while(x):
    i = 0.0
    while i < 5 and (y := x[0] * i) < 3.0:
        i = i + 1.0
    return i


def in_elif(x):
    if x[0] > 2:
        r = 0.0
    elif x[1] > 0 and (q := x[2]) > 0:
        r = q
    else:
        r = -1.0
    return r


def in_loop(x):
    s = 0.0
    for v in x:
        if v > 0 and (w := v * 2) > 1:
            s = s + w
        else:
            continue
        if v > 5 or (u := s) > 100:
            break
    return s


PROGRAMS = [both, three, either, returned_ternary, assigned_ternary, assigned, returned, negated, in_while, in_elif, in_loop]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_as_python(program) -> None:
    compiled = aj.function(program)
    for values in itertools.product([-1.0, 0.5, 3.0, 7.0], repeat=3):
        x = np.array(values)
        assert np.asarray(compiled(x)) == program(x)


def test_names_bound_on_one_path_only() -> None:
    @aj.function
    def late(x):
        if x[0] > 5.0 or (z := x[1]) > 1.0:
            return z
        return 0.0

    with pytest.raises((aj.TraceError, NameError), match="z"):
        late(np.array([1.0, 2.0]))
