"""Functions of `math` in compiled functions: the numbers, the errors and the derivatives of Python's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.tracer.autograph.mathematics import MATH_OVERLOADS

NUMBERS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.5, -2.5, 1e300, -1e300, 1e-300, math.inf, -math.inf, math.nan, 3, -3, 100.0, 710.0]
OF_TWO = {math.atan2, math.pow, math.hypot, math.copysign, math.fmod, math.isclose}
LARGE = {math.floor, math.ceil, math.trunc}  # of numbers that no integer of 64 bits holds


def outcome(fn: Callable[..., Any], *args: Any) -> Any:
    try:
        return np.asarray(fn(*args))
    except (ValueError, OverflowError) as error:
        return error


@pytest.mark.parametrize("fn", MATH_OVERLOADS, ids=lambda fn: fn.__name__)
def test_results_and_errors_are_those_of_python(fn: Callable[..., Any]) -> None:
    compiled = aj.function((lambda x, y: fn(x, y)) if fn in OF_TWO else (lambda x: fn(x)))
    for x in NUMBERS:
        for args in [(x, y) for y in NUMBERS] if fn in OF_TWO else [(x,)]:
            wanted, got = outcome(fn, *args), outcome(compiled, *args)
            if fn in LARGE and abs(x) > 2**62 and not isinstance(wanted, Exception):
                assert "too large" in str(got)
                continue
            assert isinstance(got, Exception) == isinstance(wanted, Exception), (args, wanted, got)
            if not isinstance(wanted, Exception):
                assert got.dtype.kind == wanted.dtype.kind
                np.testing.assert_allclose(got, wanted, rtol=1e-14)


def test_derivatives() -> None:
    def f(x):
        if math.sin(x) > 0:
            return math.exp(-x) * math.sqrt(x) + math.log(x, 2)
        return math.pow(x, 3) + math.atan2(x, 2.0)

    slope = aj.function(aj.grad(f))
    for x in (0.7, 4.0):
        np.testing.assert_allclose(slope(x), (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rtol=1e-6)


def test_numbers_of_python() -> None:
    def f(x, n):
        return math.sin(x), math.floor(x) + n, math.sqrt(n)

    for a, b in zip(aj.function(f)(np.float32(2.5), 3), f(np.float32(2.5), 3), strict=True):
        assert a.dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-15)


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"math.sqrt: math domain error(.|\n)*math.sqrt\(x\)"):
        aj.function(lambda x: math.sqrt(x))(-1.0)
    with pytest.raises(TypeError, match=r"takes a number, not f64\[2\]; use the one of NumPy"):
        aj.function(lambda x: math.sin(x))(np.ones(2))
    with pytest.raises(aj.TraceError, match=r"float\(\) of it is not known"):
        aj.function(lambda x: math.fsum([x, x]))(1.0)
    assert math.trunc(aj.tensor(2.5)) == 2
