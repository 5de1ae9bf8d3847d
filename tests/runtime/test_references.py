"""Memory is reused only if there are no other references to it, in every version of Python: reference counts show this.

From 3.14 on, a local variable that is passed to a function counts or not, as Python's compiler likes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.native import LARGE, any_sized, recycled
from adjit.ir.types import F64, TensorType

COUNT = LARGE // 8


@pytest.mark.parametrize("taking", ["recycled", "any_sized"])
def test_buffers_in_use_are_not_given_again(taking: str) -> None:
    pool: deque[Any] = deque()

    def take() -> Any:
        if taking == "recycled":
            return recycled(TensorType(F64, (COUNT,)), pool)
        return any_sized(F64, pool, (COUNT,), 8 * COUNT)

    first, second = take(), take()
    assert not np.shares_memory(first, second)
    part = first[2:5]  # a view of the user's, which outlives the result
    at = first.ctypes.data
    del first
    third = take()
    assert not any(np.shares_memory(third, held) for held in (part, second))
    del part, third
    again = [take() for _ in range(2)]
    assert at in [array.ctypes.data for array in again]


@pytest.mark.parametrize("held", ["nothing", "tensor", "array", "view", "another variable"])
@pytest.mark.parametrize("by", ["step", "keyword", "eager"])
def test_variables_are_written_in_place_only_if_they_are_not_shared(held: str, by: str) -> None:
    w = aj.Variable(np.zeros(4))
    w.assign(np.arange(4.0))

    @aj.function
    def step(x: Any) -> None:
        w.assign_add(x)

    step(np.zeros(4))
    sharing: dict[str, Callable[[], Any]] = {
        "nothing": lambda: None,
        "tensor": lambda: aj.tensor(w),
        "array": w.numpy,
        "view": lambda: w.numpy()[1:],
        "another variable": lambda: aj.Variable(w),
    }
    shared = sharing[held]()
    before = None if shared is None else np.array(shared)
    for _ in range(3):
        if by == "eager":
            w.assign_add(np.ones(4))
        else:
            step(np.ones(4)) if by == "step" else step(x=np.ones(4))
    np.testing.assert_array_equal(w.numpy(), np.arange(4.0) + 3)
    if shared is not None:
        np.testing.assert_array_equal(np.array(shared), before)


def test_a_step_does_not_copy_unshared_arrays() -> None:
    w = aj.Variable(np.zeros(4))

    @aj.function
    def step(x: Any) -> None:
        w.assign_add(x)

    step(np.ones(4))
    step(np.ones(4))
    at = w.numpy().ctypes.data
    for _ in range(3):
        step(np.ones(4))
        step(x=np.ones(4))
    assert w.numpy().ctypes.data == at
