"""Random programs that work for any sizes: plain NumPy code on arrays f64[B,T], f64[B,4] and f64[T], drawn from a seed.

A program is drawn by running it on samples of several sizes: a step is kept if it works for all of them, and its results are finite and
neither large nor long. Sizes appear in the code only as `x.shape[...]`, so that the same function serves every B and T.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np

SAMPLES = [(5, 3), (8, 6), (6, 7)]
LONGEST, LARGEST = 3000, 40.0


class Step(NamedTuple):
    name: str
    inputs: tuple[int, ...]
    apply: Callable[..., Any]


class Program(NamedTuple):
    seed: int
    steps: list[Step]
    outputs: tuple[int, ...]

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        values = list(inputs)
        for step in self.steps:
            values.append(step.apply(*(values[i] for i in step.inputs)))
        return tuple(values[i] for i in self.outputs)

    def scalar(self, *inputs: Any) -> Any:
        return sum(np.sum(np.sin(x)) for x in self(*inputs))

    def __repr__(self) -> str:
        lines = [f"  v{i} = {s.name}({', '.join(f'v{k}' for k in s.inputs)})" for i, s in enumerate(self.steps, 3)]
        return "\n".join([f"program {self.seed}:", *lines, f"  return {', '.join(f'v{k}' for k in self.outputs)}"])


def inputs_of(b: int, t: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng((seed, b, t))
    return [rng.normal(size=(b, t)), rng.normal(size=(b, 4)), rng.normal(size=t)]


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


def running(x: Any) -> Any:
    h = np.zeros(x.shape[1:])
    for row in x:
        h = np.tanh(h + row)
    return h


def reversed_loop(x: Any) -> Any:
    total = np.zeros(x.shape[1:])
    for i in range(x.shape[0] - 1, -1, -1):
        total = total * 0.5 + x[i]
    return total


def filled(x: Any) -> Any:
    y = np.zeros((x.shape[0] + 1, *x.shape[1:]))
    y[1:] = np.tanh(x)
    y[0] = x[-1]
    return y


UNARY: dict[str, Callable[[Any], Any]] = {
    "tanh": np.tanh,
    "sin": np.sin,
    "square": lambda x: np.tanh(x) ** 2,
    "positive": lambda x: np.maximum(x, 0.1),
    "masked": lambda x: np.where(x > 0.3, x, 0.5 * x),
    "sum 0": lambda x: np.sum(x, 0),
    "mean last": lambda x: np.mean(x, -1),
    "mean kept": lambda x: x - np.mean(x, 0, keepdims=True),
    "var": lambda x: np.var(x, -1),
    "max": lambda x: np.max(x, 0),
    "softmax": softmax,
    "transpose": np.transpose,
    "flat": lambda x: np.reshape(x, -1),
    "column": lambda x: np.reshape(x, (-1, 1)),
    "unflatten": lambda x: np.reshape(x, (*x.shape, 1)),
    "tail": lambda x: x[1:],
    "body": lambda x: x[:-1],
    "every other": lambda x: x[::2],
    "odd": lambda x: x[1::2],
    "backwards": lambda x: x[::-1],
    "last": lambda x: x[-1],
    "last axis": lambda x: x[..., -1],
    "cumsum": lambda x: np.cumsum(x, 0) * 0.1,
    "cumsum last": lambda x: np.cumsum(x, -1) * 0.1,
    "sorted": lambda x: np.sort(x, 0),
    "numbered": lambda x: x * np.arange(x.shape[-1]) * 0.1,
    "padded": lambda x: np.pad(x, [(1, 2)] + [(0, 0)] * (x.ndim - 1)),
    "doubled": lambda x: np.concatenate([x, 2 * x]),
    "stacked": lambda x: np.stack([x, -x]),
    "repeated": lambda x: np.repeat(x, 2, 0),
    "rolled": lambda x: np.roll(x, 1, 0),
    "differences": lambda x: x[1:] - x[:-1],
    "gram": lambda x: x.T @ x * 0.1,
    "similarities": lambda x: softmax(x @ x.T),
    "by number": lambda x: x / x.shape[0],
    "scaled": lambda x: x * (1.0 + 1.0 / np.sqrt(x.shape[-1])),
    "with ones": lambda x: np.concatenate([x, np.ones((1, *x.shape[1:]))]),
    "identity": lambda x: np.eye(x.shape[0]) @ x,
    "picked": lambda x: x[np.arange(x.shape[0]), np.zeros(x.shape[0], int)],
    "loop": running,
    "loop backwards": reversed_loop,
    "filled": filled,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / (1.5 + np.sin(b)),
    "max of both": np.maximum,
    "matmul": lambda a, b: a @ b * 0.2,
    "matmul T": lambda a, b: a @ b.T * 0.2,
    "T matmul": lambda a, b: a.T @ b * 0.2,
    "outer": lambda a, b: a[:, None] * b[None],
    "join": lambda a, b: np.concatenate([a, b], 0),
    "beside": lambda a, b: np.concatenate([a, b], -1),
    "chosen": lambda a, b: np.where(a > b, a, b),
}


def make_program(seed: int) -> Program:
    random = Random(seed)
    values = [[x] for x in inputs_of(*SAMPLES[0], seed)]
    for b, t in SAMPLES[1:]:
        for value, x in zip(values, inputs_of(b, t, seed), strict=True):
            value.append(x)
    steps: list[Step] = []
    for _ in range(400):
        if len(steps) == 7:
            break
        two = random.random() < 0.4
        name, fn = random.choice(list((BINARY if two else UNARY).items()))
        inputs = tuple(random.randrange(len(values)) for _ in range(2 if two else 1))
        made = attempted(fn, [[values[i][s] for i in inputs] for s in range(len(SAMPLES))])
        if made is not None:
            steps.append(Step(name, inputs, fn))
            values.append(made)
    count = len(values)
    return Program(seed, steps, tuple(sorted({count - 1, count - 2, random.randrange(3, count)})))


def attempted(fn: Callable[..., Any], samples: list[list[Any]]) -> list[Any] | None:
    """The results for all samples, if they are fine."""
    out = []
    for args in samples:
        try:
            with np.errstate(all="ignore"):
                y = fn(*args)
        except (ValueError, IndexError, TypeError):
            return None
        if (
            not isinstance(y, np.ndarray)
            or not 0 < y.size <= LONGEST
            or not np.isfinite(y).all()
            or np.abs(y).max() > LARGEST
            or y.ndim > 3
        ):
            return None
        out.append(y)
    return out if len({y.ndim for y in out}) == 1 else None
