"""The stacks of an arena are freed when the arena goes, while its memory is still there."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen import native


def test_the_memory_outlives_the_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy may free the data of an array before it calls back for weak references to the array."""
    seen = []
    release = native._release

    def watched(library: Any, function: int, arena: int, memory: Any) -> None:
        seen.append(memory.ctypes.data <= arena < memory.ctypes.data + memory.nbytes)
        ctypes.c_int64.from_address(arena)
        release(library, function, arena, memory)

    monkeypatch.setattr(native, "_release", watched)

    @aj.function
    @aj.grad
    def f(x):  # type: ignore[no-untyped-def]
        while x < 100.0:
            x = x * np.sin(x) + 2.0 * x
        return x

    f(1.0)
    f(2.0)
    del f
    gc.collect()
    assert seen
    assert all(seen)
