"""Memory is reused only if there are no other references to it, in every version of Python: reference counts show this.

From 3.14 on, a local variable that is passed to a function counts or not, as Python's compiler likes.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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


@pytest.mark.one_size("results of varying sizes go through Python")
@pytest.mark.parametrize("results", [1, 3])
def test_large_results_of_the_native_entry_are_on_buffers_in_use_by_nobody(results: int) -> None:
    f = aj.function(lambda x: [x + float(k) for k in range(results)])
    x = np.zeros(COUNT + 5)

    def python_functions() -> int:
        seen = []
        sys.setprofile(lambda frame, event, _: seen.append(frame) if event == "call" else None)
        try:
            f(x)
        finally:
            sys.setprofile(None)
        return len(seen)

    for _ in range(40):  # Python waits for the native entry from the 20th call on
        f(x)
    assert python_functions() == 0
    held, numbers = [], []
    for i in range(6):
        x[:] = i
        out = [r.numpy() for r in f(x)]
        held.append([out[0][3:7], *out[1:]])  # a view keeps the memory as well
        numbers.append(i)
        if i == 3:
            del held[1:3], numbers[1:3]
    for i, arrays in zip(numbers, held, strict=True):
        for k, array in enumerate(arrays):
            assert np.all(array == i + k)
    everything = [array for arrays in held for array in arrays]
    assert not any(np.shares_memory(a, b) for n, a in enumerate(everything) for b in everything[:n])
    del held, everything, out, array, arrays
    places = {tuple(r.numpy().ctypes.data for r in f(x)) for _ in range(10)}
    assert len(places) <= 2  # two buffers in turn


@pytest.mark.one_size("as above")
def test_threads_do_not_share_large_results() -> None:
    f = aj.function(lambda x: x * 2.0)
    for _ in range(40):
        f(np.zeros(COUNT))

    def work(k: int) -> bool:
        x, good, kept = np.full(COUNT, float(k)), True, None
        for _ in range(200):
            kept, before = f(x).numpy(), kept
            good = good and bool(np.all(kept == 2.0 * k)) and (before is None or bool(np.all(before == 2.0 * k)))
        return good

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(1, 5)))


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
