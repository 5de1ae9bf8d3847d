"""Garbage collection is paused during compilations, and continues after them, also if they fail."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj


def test_collection_continues_as_before() -> None:
    seen = []

    def noted(x):
        seen.append(gc.isenabled())
        return x + 1.0

    assert gc.isenabled()
    aj.function(noted)(np.ones(2))
    assert gc.isenabled()
    gc.disable()
    try:
        aj.function(noted)(np.ones(3))
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert seen == [False, False]


def test_an_error_while_tracing_leaves_it_on() -> None:
    def broken(x):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        aj.function(broken)(np.ones(2))
    assert gc.isenabled()


FIRST_CALL = """
import gc, sys
import numpy as np
runs = []
gc.callbacks.append(lambda phase, info: runs.append(sum(len(gc.get_objects(k)) for k in range(info["generation"] + 1))))
{before}
import adjit as aj
{between}
imported = len(sys.modules)
aj.function(lambda x: np.sum(x * x))(np.ones(3))
assert len(sys.modules) > imported + 100
print(max(runs, default=0), gc.get_freeze_count() > 0, gc.isenabled())
"""


def first_call(cache: Path, before: str = "", between: str = "") -> list[str]:
    """What a process prints whose disk cache is empty."""
    code, environment = FIRST_CALL.format(before=before, between=between), os.environ | {"ADJIT_CACHE_DIR": str(cache)}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment).stdout.split()


def test_a_first_call_does_not_search_what_it_has_imported(tmp_path: Path) -> None:
    searched, frozen, enabled = first_call(tmp_path, before="gc.collect()", between="gc.collect(); runs.clear()")
    assert int(searched) < 5000  # what the call itself left behind; with the modules, ten times as many
    assert (frozen, enabled) == ("False", "True")


def test_what_users_have_frozen_stays_frozen(tmp_path: Path) -> None:
    assert first_call(tmp_path, before="gc.freeze()")[1:] == ["True", "True"]


class Captured:
    """An object that a nested function captures."""

    def __init__(self) -> None:
        self.array = np.ones(3)


def recursive(x: Any, captured: Captured) -> Any:
    def again(k: int) -> Any:
        return x * captured.array if k == 0 else again(k - 1)

    return again(3)


def branching(x: Any, captured: Captured) -> Any:
    def loss(y: Any) -> Any:
        if y.sum() > 0:
            y = y * captured.array
        return np.sum(y)

    return aj.grad(loss)(x)


NESTED: dict[str, Callable[[Any, Captured], Any]] = {
    "grad": lambda x, c: aj.grad(lambda y: np.sum(y * c.array))(x),
    "grad of a loop": lambda x, c: aj.grad(lambda y: sum(np.sum(y * c.array) for _ in range(2)))(x),
    "branch": branching,
    "recursion": recursive,
    "vmap": lambda x, c: aj.vmap(lambda y: y * c.array[0])(x),
    "jvp": lambda x, c: aj.jvp(lambda y: y * c.array, (x,), (x,))[1],
    "scan": lambda x, c: aj.scan(lambda s, y: (s + y * c.array[0], s), 0.0, x)[1],
    "cond": lambda x, c: aj.cond(x[0] > 0, lambda: x * c.array, lambda: x),
    "checkpoint": lambda x, c: aj.grad(lambda y: np.sum(aj.checkpoint(lambda z: z * c.array)(y)))(x),
    "custom gradient": lambda x, c: aj.grad(lambda y: np.sum(aj.custom_gradient(lambda z: (z * c.array, lambda d: d * c.array))(y)))(x),
    "function": lambda x, c: aj.function(lambda y: y * c.array)(x),
    "sorted": lambda x, c: sorted([x[0], x[1]], key=lambda u: u * c.array[0])[0],
}


def traced_with_captured(program: Callable[[Any, Captured], Any], compiled: bool) -> weakref.ref[Captured]:
    captured = Captured()

    def call(x: Any) -> Any:
        return program(x, captured)

    assert np.asarray((aj.function(call) if compiled else call)(aj.tensor(np.ones(3)))).size
    return weakref.ref(captured)


@pytest.mark.parametrize("program", NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_captures_of_nested_functions_are_freed(program: Callable[[Any, Captured], Any], compiled: bool) -> None:
    """Tables of functions, such as that of converted ones, keep none of them alive."""
    left = traced_with_captured(program, compiled)
    gc.collect()
    assert left() is None
