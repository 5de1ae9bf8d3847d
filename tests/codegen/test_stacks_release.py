"""The stacks of an arena are freed together with it, before its own memory is."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen import native


def test_the_memory_outlives_the_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy may free the data of an array before it calls back for weak references to the array."""
    seen = []
    free_after = native.free_after

    def watched(owner: object, calls: list[Any], *kept: Any) -> None:
        (release,) = calls
        (arena,) = release.args
        memory = weakref.ref(kept[-1])

        def look() -> None:
            there = memory()
            seen.append(there is not None and there.ctypes.data <= arena < there.ctypes.data + there.nbytes)

        free_after(owner, [release, look], *kept)  # from the last to the first

    monkeypatch.setattr(native, "free_after", watched)

    @aj.function
    @aj.grad
    def f(x):  # type: ignore[no-untyped-def]
        while x < 100.0:
            x = x * np.sin(x) + 2.0 * x
        return x

    f(1.0)
    f(2.0)
    assert not seen
    del f
    gc.collect()
    assert seen
    assert all(seen)
