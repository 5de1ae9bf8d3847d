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
from tests.autograph.python import algorithms, classes, conditions, data, functions, idioms, learning, science, statements

INPUTS = [([1.0, -2.0, 3.0, 0.5], 3), ([-1.0, 2.0, -3.0, 4.0], 1), ([0.5, 0.25, 5.0, -7.0], 2), ([2.0, 1.0, 4.0, 3.0], 0)]
MODULES = (algorithms, classes, conditions, data, functions, idioms, learning, science, statements)
DIFFERENTIATED = (algorithms, idioms, learning, science)
PROGRAMS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value
    for module in MODULES
    for name, value in vars(module).items()
    if inspect.isfunction(value) and value.__module__ == module.__name__ and list(inspect.signature(value).parameters) == ["x", "n"]
}
REFUSED = {
    f"{module}.{name}"
    for module, names in {
        "classes": "i07 i08 i20 k03 k07 k12 k14 k18 k20 k21 o13 o16 o21 o22 o23",
        "conditions": "z01 z02 z03 z04 z05 z07 z08 z09 z10 z11 z13 z15 z16 z17 z18 z23 z24 z32 z33 z34 z35 z36 z37 z38 z48 z49",
        "data": "a03 a07 a08 a09 a11 d04 d05 d08 d11 d15 s04 s06 s07 sl06 sl07 sl08 sl15 sl16",
        "functions": "c04 f10 g01 r04 w04 w05",
        "algorithms": "dijkstra_by_scan game_scores_table histogram_by_dict tokens_of_signs",
        "idioms": "array_in_place_in_helper match_on_classes",
        "learning": "adam_state k_means nearest_neighbour pid_controller quaternion_product",
        "science": "zero_crossings",
        "statements": "e05 e06 e07 e09 e10 e13 m06 q07 t06 t08",
    }.items()
    for name in names.split()
}


STEPS = {"science.bisection"}  # its result is one of a million numbers, so that differences are not derivatives
OFF = np.array([0.0137, -0.0071, 0.0213, 0.0059])  # away from ties, where there is no derivative


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


def total(value: Any) -> Any:
    """The sum of all floating-point numbers in a result."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return sum((total(item) for item in value), 0.0)
    kind = value.dtype.kind if hasattr(value, "dtype") else type(value).__name__
    return np.sum(value) if kind in ("f", "float") else 0.0


def slopes(function: Callable[..., Any], x: Any, n: int, step: float = 1e-6) -> list[float]:
    return [float(total(function(x + dx, n)) - total(function(x - dx, n))) / (2 * step) for dx in step * np.eye(len(x))]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if PROGRAMS[name].__module__ in {m.__name__ for m in DIFFERENTIATED}])
def test_gradients(name: str) -> None:
    if name in REFUSED | STEPS:
        pytest.skip("refused, or without derivatives")
    program = PROGRAMS[name]
    gradient = aj.function(aj.grad(lambda x, n: total(program(x, n))))
    for x, n in INPUTS[:2]:
        at = np.array(x) + OFF
        np.testing.assert_allclose(gradient(at, n).numpy(), slopes(program, at, n), rtol=1e-4, atol=1e-4)


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
    assert len(PROGRAMS) > 410
    assert set(PROGRAMS) >= REFUSED
