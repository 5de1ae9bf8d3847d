"""Python integers that a dtype cannot represent: every function that takes one raises where NumPy does, and else gives NumPy's result."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

DTYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
INTEGERS = [-(2**63), -(2**31) - 1, -40_000, -129, -1, 0, 100, 200, 40_000, 70_000, 2**31, 2**33, 2**63]
FUNCTIONS: dict[str, Callable[[Any, Any, int], Any]] = {
    "where": lambda x, mask, k: np.where(mask, x, k),
    "where, first": lambda x, mask, k: np.where(mask, k, x),
    "select": lambda x, mask, k: np.select([mask], [x], k),
    "clip from": lambda x, mask, k: np.clip(x, k, None),
    "clip to": lambda x, mask, k: np.clip(x, None, k),
    "insert": lambda x, mask, k: np.insert(x, 0, k),
    "append": lambda x, mask, k: np.append(x, np.int64(k)) if -(2**63) <= k < 2**63 else x,
    "full_like": lambda x, mask, k: np.full_like(x, k),
    "sum": lambda x, mask, k: np.sum(x, initial=k),
    "max": lambda x, mask, k: np.max(x, initial=k),
    "maximum": lambda x, mask, k: np.maximum(x, k),
    **{
        op.__name__: lambda x, mask, k, op=op: op(x, k)
        for op in (operator.add, operator.mul, operator.and_, operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
    },
}  # fmt: skip


def outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        out = function(*args)
    except (OverflowError, aj.DTypeError):
        return "out of range"
    return np.asarray(out).dtype, np.asarray(out).tolist()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_a_python_integer(name: str) -> None:
    function, mask = FUNCTIONS[name], np.array([True, False, True])
    for dtype in DTYPES:
        x = np.array([1, 2, 3], dtype)
        for k in INTEGERS:
            wanted = outcome(function, x, mask, k)
            assert outcome(function, aj.tensor(x), aj.tensor(mask), k) == wanted, (dtype, k)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_compiled(name: str) -> None:
    function, mask = FUNCTIONS[name], np.array([True, False, True])
    x = np.array([1, 2, 3], "u2")
    for k in (-1, 200, 70_000):
        assert outcome(aj.function(lambda x, mask, k=k: function(x, mask, k)), x, mask) == outcome(function, x, mask, k), k


@pytest.mark.parametrize("k", [-1, 300])
def test_padding_out_of_range_raises(k: int) -> None:
    """NumPy raises for signed dtypes and wraps for unsigned ones."""
    for dtype in ("i1" if k > 0 else "u1", "u1"):
        with pytest.raises(aj.DTypeError, match=f"pad: the Python integer {k} is out of bounds"):
            np.pad(aj.tensor(np.ones(2, dtype)), 1, constant_values=k)


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("k", [-1, 300, 2.5, True])
def test_operators_of_tensors_give_tensors(shape: tuple[int, ...], k: Any) -> None:
    x = aj.tensor(np.ones(shape, "u1"))
    for op in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
        for out in (op(x, k), op(k, x)):
            assert type(out) is aj.Tensor
    for out in (x.imag, aj.isnan(x), aj.isinf(x), aj.isfinite(x)):
        assert type(out) is aj.Tensor
