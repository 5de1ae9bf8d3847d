"""Classes that random programs use: both sides run them, NumPy on arrays and adjit on tensors and traced values."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Pair = namedtuple("Pair", ["first", "second"])


@dataclass
class State:
    value: Any
    speed: Any = 0.5
    steps: int = 0

    def advance(self, force: Any) -> State:
        self.speed = self.speed * 0.5 + force
        self.value = self.value + self.speed * 0.1
        self.steps += 1
        return self

    @property
    def energy(self) -> Any:
        return np.sum(self.value * self.value) * 0.5

    def __add__(self, other: Any) -> State:
        return State(self.value + (other.value if isinstance(other, State) else other), self.speed, self.steps)


@dataclass(frozen=True)
class Setting:
    scale: float = 0.5
    kind: str = "sin"
    weights: tuple[float, ...] = (0.5, -0.25)
    shift: Any = None

    def apply(self, x: Any) -> Any:
        y = np.sin(x) if self.kind == "sin" else np.tanh(x) if self.kind == "tanh" else x * 0.5
        return y * self.scale if self.shift is None else y * self.scale + self.shift


class Layer:
    __slots__ = ("bias", "calls", "inner")

    def __init__(self, inner: Layer | None = None, bias: Any = 0.25) -> None:
        self.inner = inner
        self.bias = bias
        self.calls = 0

    def __call__(self, x: Any, *, scale: Any = 1.0) -> Any:
        self.calls += 1
        y = x if self.inner is None else self.inner(x, scale=scale)
        return np.tanh(y * scale + self.bias)


class Best:
    """Keeps the largest sum that it has seen, and how often it changed."""

    count = 0

    def __init__(self, value: Any) -> None:
        self.value = value
        self.changes = 0
        self.history: list[Any] = []

    def see(self, value: Any) -> None:
        if np.sum(value) > np.sum(self.value):
            self.value = value
            self.changes = self.changes + 1

    def remember(self, value: Any) -> Any:
        self.history.append(value)
        return self.history[-1]

    def __getitem__(self, k: int) -> Any:
        return self.history[k]

    def __len__(self) -> int:
        return len(self.history)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.history)


@dataclass
class Tree:
    leaf: Any
    children: list[Tree] = field(default_factory=list)

    def total(self) -> Any:
        out = np.sum(self.leaf)
        for child in self.children:
            out = out + child.total() * 0.5
        return out


class Scale:
    """A context that changes an object of the program, and changes it back."""

    def __init__(self, holder: dict[str, Any], by: float) -> None:
        self.holder, self.by = holder, by

    def __enter__(self) -> dict[str, Any]:
        self.holder["scale"] = self.holder["scale"] * self.by
        return self.holder

    def __exit__(self, *_: object) -> None:
        self.holder["scale"] = self.holder["scale"] / self.by


@contextmanager
def halved(holder: dict[str, Any]) -> Iterator[Any]:
    before = holder["scale"]
    holder["scale"] = before * 0.5
    try:
        yield holder["scale"]
    finally:
        holder["scale"] = before
