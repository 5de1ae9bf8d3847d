"""What eager ops on small tensors cost beside NumPy's calls on arrays, and eager gradients beside those of autograd, if it is installed.

    python benchmarks/eager.py

Times are the fastest of several rounds of calls that alternate with NumPy's. Goals: at most twice the time of NumPy, and 0.3 of autograd's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from workload import peer, rng

import adjit as aj
from adjit.runtime.quick import settle

ROUNDS = 15

x, y = rng.uniform(0.5, 1.5, (2, 8)).astype("f4")
matrix = rng.standard_normal((8, 8)).astype("f4")

OPS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "x + y": lambda x, y, a: x + y,
    "x / y": lambda x, y, a: x / y,
    "x * 2.0": lambda x, y, a: x * 2.0,
    "x ** 2": lambda x, y, a: x**2,
    "-x": lambda x, y, a: -x,
    "x > y": lambda x, y, a: x > y,
    "np.add(x, y)": lambda x, y, a: np.add(x, y),
    "np.tanh(x)": lambda x, y, a: np.tanh(x),
    "np.maximum(x, 0)": lambda x, y, a: np.maximum(x, 0),
    "np.where(x > y, x, y)": lambda x, y, a: np.where(x > y, x, y),
    "np.sum(x)": lambda x, y, a: np.sum(x),
    "a.sum(axis=1)": lambda x, y, a: a.sum(axis=1),
    "np.mean(x)": lambda x, y, a: np.mean(x),
    "np.max(x)": lambda x, y, a: np.max(x),
    "a @ a": lambda x, y, a: a @ a,
    "np.dot(x, y)": lambda x, y, a: np.dot(x, y),
    "x[2]": lambda x, y, a: x[2],
    "x[2:5]": lambda x, y, a: x[2:5],
    "x[:, None]": lambda x, y, a: x[:, None],
    "a.T": lambda x, y, a: a.T,
    "np.reshape(x, (2, 4))": lambda x, y, a: np.reshape(x, (2, 4)),
    "np.concatenate([x, y])": lambda x, y, a: np.concatenate([x, y]),
    "np.stack([x, y])": lambda x, y, a: np.stack([x, y]),
}


def network(np_: Any, w: Any, x: Any) -> Any:
    h = np_.tanh(np_.dot(w, x) + 0.1)
    return np_.sum(np_.tanh(np_.dot(w, h) + 0.1) ** 2)


def expression(np_: Any, x: Any) -> Any:
    return np_.sum(np_.sin(x) * np_.exp(-(x**2)) + x / (1.0 + x * x))


def fastest(calls: list[Callable[[], Any]], repeat: int) -> list[float]:
    out = [float("inf")] * len(calls)
    for call in calls:
        call()
    for _ in range(ROUNDS):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(repeat):
                call()
            out[k] = min(out[k], (time.perf_counter() - start) / repeat)
    return out


def main() -> None:
    settle()  # as in programs that make many calls
    print("| op on 8 numbers | adjit | NumPy | ratio |\n|---|--:|--:|--:|")
    arrays, tensors = (x, y, matrix), [aj.tensor(v) for v in (x, y, matrix)]
    for name, op in OPS.items():
        ours, theirs = fastest([lambda op=op: op(*tensors), lambda op=op: op(*arrays)], 1000)  # type: ignore[misc]
        print(f"| `{name}` | {1e9 * ours:.0f} ns | {1e9 * theirs:.0f} ns | {ours / theirs:.2f} |", flush=True)
    if (autograd := peer("autograd")) is None:
        return
    anp = peer("autograd.numpy")
    w, v = matrix.astype("f8"), x.astype("f8")
    cases: dict[str, tuple[Callable[[Any], Callable[[Any], Any]], Any]] = {
        "a network of two layers": (lambda np_: lambda w: network(np_, w, v), w),
        "an expression of nine ops": (lambda np_: lambda x: expression(np_, x), v),
    }
    print("\n| gradient of | adjit | autograd | ratio |\n|---|--:|--:|--:|")
    for name, (of, argument) in cases.items():
        ours_of, theirs_of = aj.grad(of(np)), autograd.grad(of(anp))
        np.testing.assert_allclose(ours_of(argument), theirs_of(argument))
        ours, theirs = fastest([lambda f=ours_of, a=argument: f(a), lambda f=theirs_of, a=argument: f(a)], 50)  # type: ignore[misc]
        print(f"| {name} | {1e6 * ours:.0f} us | {1e6 * theirs:.0f} us | {ours / theirs:.2f} |", flush=True)


if __name__ == "__main__":
    main()
