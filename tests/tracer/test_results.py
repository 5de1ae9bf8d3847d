"""Results are objects of their own, and copies where NumPy's are: a write to one must not change an argument."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.tracer.numpy_table import rule_for

ARRAYS: dict[str, np.ndarray[Any, Any]] = {
    "matrix": np.arange(1.0, 7.0).reshape(2, 3), "vector": np.arange(1.0, 4.0), "integers": np.array([3, 1, 2]), "scalar": np.array(2.0),
    "complex": np.array([1j, 2.0]), "one": np.array([5.0]), "bools": np.array([True, False]),
}  # fmt: skip
REST: list[tuple[Any, ...]] = [(), (0,), (1,), (None,), ((),), ("f8",), ("i8",), (0, 0), (None, ()), (None, None), ((2, 3),)]
LEFT_OUT = {  # the first ones may return their argument
    "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require", "asarray_chkfinite", "to_device",
    "tree_map", "tree_flatten", "tree_leaves", "stop_gradient", "repeat", "info", "show_config", "show_runtime", "save", "savez",
    "savez_compressed", "savetxt", "tofile", "dump", "dumps", "test",
}  # fmt: skip


def functions(module: Any) -> dict[str, Callable[..., Any]]:
    names = module.__all__[module.__all__.index("arange") :] if module is aj else dir(module)
    found = {name: getattr(module, name) for name in names if not name.startswith("_") and name not in LEFT_OUT}
    again = [rule_for(getattr(np, name)) for name in names if callable(getattr(np, name, None))] if module is aj else []
    return {name: f for name, f in found.items() if callable(f) and not isinstance(f, type | types.ModuleType) and f not in again}


MODULES: dict[str, tuple[Any, Any]] = {
    "np": (np, np), "adjit": (aj, np), "np.linalg": (np.linalg, np.linalg), "np.fft": (np.fft, np.fft),
}  # fmt: skip


def tensors(x: Any) -> Iterator[aj.Tensor]:
    if isinstance(x, aj.Tensor):
        yield x
    elif isinstance(x, list | tuple):
        for each in x:
            yield from tensors(each)


def leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, list | tuple):
        for each in x:
            yield from leaves(each)
    else:
        yield x


def mistakes(f: Callable[..., Any], numpys: Callable[..., Any] | None) -> Iterator[str]:
    for name, array in ARRAYS.items():
        for rest in REST:
            x, a = aj.tensor(array), array.copy()
            try:
                found = list(tensors(f(x, *rest)))
            except Exception:
                continue
            try:
                wanted = [] if numpys is None else list(leaves(numpys(a, *rest)))
            except Exception:
                wanted = []
            for k, y in enumerate(found):
                theirs = wanted[k] if k < len(wanted) else None
                is_same, is_view = theirs is a, isinstance(theirs, np.ndarray) and np.shares_memory(theirs, a)
                if y is x and not is_same:
                    yield f"({name}, {rest}): the argument itself"
                if isinstance(theirs, np.ndarray) and not is_view and y is not x and np.shares_memory(y.numpy(), x.numpy()) and y.ndim:
                    yield f"({name}, {rest}): a view, where NumPy copies"


@pytest.mark.parametrize("module", MODULES)
def test_functions_return_what_is_not_their_argument(module: str) -> None:
    ours, theirs = MODULES[module]
    with np.errstate(all="ignore"):
        found = {name: list(mistakes(f, getattr(theirs, name, None))) for name, f in functions(ours).items()}
    assert {name: each for name, each in found.items() if each} == {}


def test_methods_return_what_is_not_their_object() -> None:
    names = [
        name
        for name in dir(np.ndarray)
        if name not in LEFT_OUT and (not name.startswith("__") or name in ("__pos__", "__abs__", "__copy__"))
    ]
    found: dict[str, list[str]] = {}
    for name in names:
        kind = getattr(np.ndarray, name)
        if hasattr(aj.Tensor, name):
            call = (lambda x, *rest, n=name: getattr(x, n)(*rest)) if callable(kind) else (lambda x, n=name: getattr(x, n))
            found[name] = list(mistakes(call, call))
    assert {name: each for name, each in found.items() if each and name != "flat"} == {}


def test_repeat_and_others_of_numbers() -> None:
    x = aj.tensor(ARRAYS["matrix"])
    for y in (np.repeat(x, 1), np.repeat(x, 1, 0), x.repeat(1, 1), aj.stop_gradient(x), aj.tile(x, 1), x.__deepcopy__({})):
        assert y is not x
        y[...] = -1.0
    np.testing.assert_array_equal(x, ARRAYS["matrix"])
