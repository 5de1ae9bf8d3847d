"""Programs as people write them: compiled, each has the same result as in Python, or an error that names its line; never another result.

`REFUSED` lists the programs that are refused for some of the inputs. It may only become shorter.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from tests.autograph.python import classes, conditions, data, functions, statements

INPUTS = [([1.0, -2.0, 3.0, 0.5], 3), ([-1.0, 2.0, -3.0, 4.0], 1), ([0.5, 0.25, 5.0, -7.0], 2), ([2.0, 1.0, 4.0, 3.0], 0)]
MODULES = (classes, conditions, data, functions, statements)
PROGRAMS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value
    for module in MODULES
    for name, value in vars(module).items()
    if inspect.isfunction(value) and value.__module__ == module.__name__ and list(inspect.signature(value).parameters) == ["x", "n"]
}
REFUSED = {
    f"{module}.{name}"
    for module, names in {
        "classes": "i02 i07 i08 i20 k03 k07 k12 k14 k18 k20 k21 o13 o16 o21 o22 o23",
        "conditions": "z01 z02 z03 z04 z05 z07 z08 z09 z10 z11 z13 z15 z16 z17 z18 z23 z24 z32 z33 z34 z35 z36 z37 z38 z48 z49",
        "data": "a03 a07 a08 a09 a11 d04 d05 d08 d11 d15 s04 s06 s07 sl06 sl07 sl08 sl15 sl16",
        "functions": "c04 f10 g01 r04 w04 w05",
        "statements": "e05 e06 e07 e09 e10 e13 m06 q07 t06 t08",
    }.items()
    for name in names.split()
}


def outcome(function: Callable[..., Any], x: list[float], n: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return known(function(np.array(x), n))
        except Exception as error:
            return error


def known(value: Any) -> Any:
    """The value with arrays of numbers instead of tensors, and without the difference between a list and a tuple."""
    if isinstance(value, dict):
        return {str(key): known(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [known(item) for item in value]
    if isinstance(value, str | None):
        return value
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def assert_same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        for key in theirs:
            assert_same(ours[key], theirs[key])
    elif isinstance(theirs, list):
        if not isinstance(ours, list):  # a list whose length is known only when the function runs
            ours = [np.asarray(item) for item in ours]
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b)
    elif isinstance(theirs, str | None):
        assert ours == theirs
    else:
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_python(name: str) -> None:
    program = PROGRAMS[name]
    compiled = aj.function(program)
    refused = False
    for x, n in INPUTS:
        theirs, ours = outcome(program, x, n), outcome(compiled, x, n)
        if not isinstance(ours, Exception):
            assert_same(ours, theirs)
        elif not (isinstance(theirs, Exception) and isinstance(ours, type(theirs))):
            places = ("support.py:", f"{name.partition('.')[0]}.py:")
            assert any(place in str(ours) for place in places), ours
            refused = True
    assert refused == (name in REFUSED)


def test_table() -> None:
    assert len(PROGRAMS) > 250
    assert set(PROGRAMS) >= REFUSED
