"""The work of a first call grows linearly with the program: counted in calls of Python functions, whatever the load of the machine."""

import sys
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

import adjit as aj


def layers(n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A network with n layers, and its parameters as a list of pairs."""
    params = [(np.eye(3, dtype="f4"), np.zeros(3, "f4")) for _ in range(n)]
    network = aj.value_and_grad(lambda params, x: np.sum(reduce(lambda h, p: np.tanh(h @ p[0] + p[1]), params, x)))
    return network, (params, np.ones((2, 3), "f4"))


def scalars(n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A chain of n operations on scalars."""
    return aj.grad(lambda x, y: reduce(lambda x, k: np.sin(x) * y + x / (k + 1.0), range(n), x)), (0.3, 0.7)


def leaves(n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A sum over n arguments in a dict."""
    return aj.grad(lambda xs: sum(x * x for x in xs.values())), ({f"x{k}": float(k) for k in range(n)},)


def items(n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """n elements of an array, each computed on its own."""
    return aj.grad(lambda x: np.sum(np.stack([x[k] ** 2 for k in range(n)]))), (np.arange(float(n)),)


def calls(make: Callable[[int], tuple[Callable[..., Any], tuple[Any, ...]]], n: int, compiled: bool) -> int:
    fn, args = make(n)
    count = 0

    def note(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    fn = aj.function(fn) if compiled else fn
    sys.setprofile(note)
    try:
        fn(*args)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "eager"])
@pytest.mark.parametrize("make", [layers, scalars, leaves, items])
def test_work_is_linear_in_the_size_of_the_program(
    make: Callable[[int], tuple[Callable[..., Any], tuple[Any, ...]]], compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADJIT_CACHE", "0")
    calls(make, 3, compiled)  # imports, and caches per op
    few, some, many = (calls(make, n, compiled) for n in (20, 40, 80))
    assert many - some < 2.5 * (some - few)  # 4 times as many, if it were quadratic
