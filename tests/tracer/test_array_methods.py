"""The methods and attributes of `np.ndarray` on traced values and tensors: present, or missing for a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.tracer.traced import Traced

OF_MEMORY = {"base", "byteswap", "ctypes", "dump", "dumps", "flags", "getfield", "setfield", "setflags", "strides", "tofile"}
NAMES = {name for name in dir(np.ndarray) if not name.startswith("_")}
X = np.array([3.0, 0.0, 2.0, 0.0])
METHODS: dict[str, Callable[[Any], Any]] = {
    "argpartition": lambda x: x[x.argpartition(1)][1],
    "choose": lambda x: (x > 1).astype(int).choose([x, x * 10]),
    "choose, clipped": lambda x: x.astype(int).choose([x, x * 10], mode="clip"),
    "compress": lambda x: x.compress([True, False, True, False]),
    "compress along an axis": lambda x: x.reshape(2, 2).compress(x[:2] > 0, axis=1),
    "nonzero": lambda x: x.nonzero()[0],
    "view": lambda x: x.view(),
}


def test_nothing_else_is_missing() -> None:
    assert NAMES - set(dir(aj.Tensor)) == OF_MEMORY
    assert NAMES - set(dir(Traced)) == OF_MEMORY | {"data", "tobytes"}


@pytest.mark.parametrize("name", METHODS)
def test_methods_compute_as_numpys(name: str) -> None:
    f = METHODS[name]
    for found in (f(aj.tensor(X)), aj.function(f)(X)):
        np.testing.assert_array_equal(found, f(X))
        assert found.dtype == f(X).dtype


@pytest.mark.parametrize("write", [lambda x: x.partition(1), lambda x: x.resize(2)])
def test_writes_say_what_to_write(write: Callable[[Any], Any]) -> None:
    with pytest.raises(aj.UnsupportedError, match=r"immutable; use x = np\."):
        aj.function(write)(aj.tensor(X))


def test_the_shape_of_a_tensor_does_not_change() -> None:
    with pytest.raises(aj.UnsupportedError, match=r"x\.resize\(shape\).* use x = np\."):
        aj.tensor(X).resize(2)


def test_bits_of_traced_values_are_not_known() -> None:
    np.testing.assert_array_equal(aj.tensor(X).view("i8"), X.view("i8"))
    with pytest.raises(aj.UnsupportedError, match=r"(?s)cannot be read as int64 while tracing.*test_array_methods.py"):
        aj.function(lambda x: x.view("i8"))(X)


@pytest.mark.parametrize("name", ["strides", "flags", "data", "no_such_name"])
def test_missing_attributes_do_not_name_adjits_classes(name: str) -> None:
    because = "" if name == "no_such_name" else ", since its memory exists only when the function runs"
    with pytest.raises(AttributeError, match=f"^a traced array has no attribute '{name}'{because}"):
        aj.function(lambda x: getattr(x, name))(X)
