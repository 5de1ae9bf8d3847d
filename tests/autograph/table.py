"""How control-flow programs are listed: a plain Python function on NumPy arrays, and the calls to compare it on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Program(NamedTuple):
    """`calls` are argument tuples: arrays and Python ints and floats are traced, anything else is static.

    `differentiable` programs are smooth at every float argument of every call, and return floats.
    """

    name: str
    fn: Callable[..., Any]
    calls: tuple[tuple[Any, ...], ...]
    differentiable: bool


PROGRAMS: list[Program] = []


def program(*calls: tuple[Any, ...], differentiable: bool = True) -> Callable[[F], F]:
    def register(fn: F) -> F:
        PROGRAMS.append(Program(fn.__name__, fn, calls, differentiable))
        return fn

    return register
