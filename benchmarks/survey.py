"""A hundred and twenty small functions on adjit and JAX: where is adjit's code slower than it should be?

    python benchmarks/survey.py --python-jax PEERS/bin/python [--only WORD] [--seconds 0.5]

Each function is plain NumPy, or `jax.numpy` under the same name; most are timed with their gradient. Every framework runs in a separate
process; times are minima of repeated calls, "first" is the first call, with cold caches. JAX computes in float32 by default, so all inputs
are float32 or int32. A row marked `slower` is worth a look, and one marked `DIFFERS` is a bug.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
from survey_more import more_cases

rng = numpy.random.default_rng(0)


def normal(*shape: int) -> numpy.ndarray:
    return rng.standard_normal(shape, "f4")


def below(n: int, *shape: int) -> numpy.ndarray:
    return rng.integers(0, n, shape, "i4")


class Case(NamedTuple):
    """A function of `np` and its arguments; it is differentiated, with its value, with respect to the arguments `wrt`."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    wrt: tuple[int, ...] | None = None


def softmax(np: Any, x: Any) -> Any:
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


def attention(np: Any, q: Any, k: Any, v: Any) -> Any:
    return np.sum(np.matmul(softmax(np, np.matmul(q, np.swapaxes(k, -1, -2)) * 0.125), v) ** 2)


def layer_norm(np: Any, x: Any, g: Any, b: Any) -> Any:
    d = x - np.mean(x, -1, keepdims=True)
    return np.sum(np.tanh(d / np.sqrt(np.mean(d * d, -1, keepdims=True) + 1e-5) * g + b))


def gelu(np: Any, x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def transformer_mlp(np: Any, x: Any, w: Any, b: Any, v: Any, c: Any) -> Any:
    return np.sum((gelu(np, x @ w + b) @ v + c) ** 2)


def laplacian(np: Any, u: Any) -> Any:
    return np.sum((u[1:-1, 2:] + u[1:-1, :-2] + u[2:, 1:-1] + u[:-2, 1:-1] - 4 * u[1:-1, 1:-1]) ** 2)


def huber(np: Any, x: Any, y: Any) -> Any:
    d = np.abs(x - y)
    return np.mean(np.where(d < 1, 0.5 * d * d, d - 0.5))


def cross_entropy_of_logits(np: Any, x: Any, y: Any) -> Any:
    return np.mean(np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x))))


def batch_norm(np: Any, x: Any) -> Any:
    axes = (0, 2, 3)
    return np.sum(((x - np.mean(x, axes, keepdims=True)) / np.sqrt(np.var(x, axes, keepdims=True) + 1e-5)) ** 3)


def adam(np: Any, p: Any, g: Any, m: Any, v: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (np.sqrt(v) + 1e-8), m, v


def clipped(np: Any, *gradients: Any) -> Any:
    norm = np.sqrt(sum(np.sum(g * g) for g in gradients))
    return [g * np.minimum(1.0, 1.0 / norm) for g in gradients]


def tree_loss(np: Any, params: Any, x: Any, y: Any) -> Any:
    d = np.tanh(x @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"] - y
    return np.mean(d * d)


def cases() -> dict[str, Case]:
    heads, million = (8, 12, 128, 64), 1_000_000
    params = {"w1": normal(5, 10), "b1": normal(10), "w2": normal(10, 2), "b2": normal(2)}
    well_conditioned = normal(200, 200) + 20 * numpy.eye(200, dtype="f4")
    return {
        "attention, 8 x 12 heads of 128 x 64": Case(attention, (normal(*heads), normal(*heads), normal(*heads)), (0, 1, 2)),
        "layer norm, 4096 x 768": Case(layer_norm, (normal(4096, 768), normal(768), normal(768)), (0, 1, 2)),
        "transformer MLP, 512 x 768 x 3072": Case(
            transformer_mlp, (normal(512, 768), normal(768, 3072) / 50, normal(3072), normal(3072, 768) / 50, normal(768)), (0, 1, 2, 3, 4)
        ),
        "softmax, 32 x 32": Case(lambda np, x: np.sum(softmax(np, x) ** 2), (normal(32, 32),), (0,)),
        "log-sum-exp, 8192 x 512": Case(
            lambda np, x: np.sum(np.log(np.sum(np.exp(x - np.max(x, 1, keepdims=True)), 1))), (normal(8192, 512),), (0,)
        ),
        "batch norm, 256 x 128 x 16 x 16": Case(batch_norm, (normal(256, 128, 16, 16),), (0,)),
        "rows by their norms, 10000 x 128": Case(
            lambda np, x: np.sum(x / np.linalg.norm(x, axis=1, keepdims=True)), (normal(10000, 128),), (0,)
        ),
        "huber, 1e6": Case(huber, (normal(million), normal(million)), (0, 1)),
        "cross-entropy of logits, 1e6": Case(cross_entropy_of_logits, (normal(million), (normal(million) > 0).astype("f4")), (0,)),
        "gelu, 1e6": Case(lambda np, x: np.sum(gelu(np, x)), (normal(million),), (0,)),
        "sin(x) exp(-x²), 1e7": Case(lambda np, x: np.sum(np.sin(x) * np.exp(-x * x)), (normal(10 * million),), (0,)),
        "tanh, 1e6": Case(lambda np, x: np.tanh(x), (normal(million),)),
        "exp, 1e6": Case(lambda np, x: np.exp(x), (normal(million),)),
        "log1p(sqrt) x^1.5, 1e6": Case(lambda np, x: np.sum(np.log1p(np.sqrt(x)) * x**1.5), (numpy.abs(normal(million)),), (0,)),
        "where and clip, 1e6": Case(lambda np, x: np.sum(np.where(x > 0, np.clip(x, 0.1, 0.9), x * 0.01)), (normal(million),), (0,)),
        "integers, 1e6": Case(lambda np, x: (x * 3 + 1) // 2 % 7, (below(1000, million),)),
        "small vector": Case(lambda np, x: np.sum(np.tanh(x * 2 + 1) ** 2), (normal(10),), (0,)),
        "gradient of a dict of parameters": Case(tree_loss, (params, normal(8, 5), normal(8, 2)), (0,)),
        "Adam, 1e6": Case(adam, (normal(million), normal(million), normal(million), numpy.abs(normal(million)))),
        "clip 20 gradients by their norm": Case(clipped, tuple(normal(50_000) for _ in range(20))),
        "sum over columns, 4096 x 4096": Case(lambda np, x: np.sum(x * x, 0), (normal(4096, 4096),)),
        "sum over rows, 4096 x 4096": Case(lambda np, x: np.sum(x * x, 1), (normal(4096, 4096),)),
        "mean over three axes": Case(lambda np, x: np.mean(x, (1, 2, 3)), (normal(64, 64, 32, 32),)),
        "variance and deviation, 3000 x 3000": Case(lambda np, x: np.var(x, 0) + np.std(x, 1), (normal(3000, 3000),)),
        "maximum and minimum, 1e6": Case(lambda np, x: np.max(x) - np.min(x), (normal(million),)),
        "argmax, 4096 x 1000": Case(lambda np, x: np.argmax(x, -1), (normal(4096, 1000),)),
        "any and all, 4096 x 1000": Case(lambda np, x: (np.any(x > 3, 1), np.all(x < 4, 0)), (normal(4096, 1000),)),
        "mean under a mask, 2000 x 2000": Case(lambda np, x: np.mean((x > 0.5) * x), (normal(2000, 2000),)),
        "cumulative sum, 1e6": Case(lambda np, x: np.cumsum(x), (normal(million),)),
        "cumulative sum of rows, 1000 x 1000": Case(lambda np, x: np.sum(np.cumsum(x, 1) ** 2), (normal(1000, 1000),), (0,)),
        "cumulative product, 1e5": Case(lambda np, x: np.sum(np.cumprod(1 + x * 1e-3)), (normal(100_000),), (0,)),
        "sort, 1e5": Case(lambda np, x: np.sort(x), (normal(100_000),)),
        "sort rows, 1000 x 1000": Case(lambda np, x: np.sort(x, axis=-1), (normal(1000, 1000),)),
        "pairwise distances, 1000 x 1000 x 16": Case(
            lambda np, x, y: np.sum(np.sqrt(np.sum((x[:, None] - y[None]) ** 2, -1) + 1e-6)), (normal(1000, 16), normal(1000, 16)), (0, 1)
        ),
        "RBF kernel, 1000 x 1000 x 8": Case(
            lambda np, x: np.sum(np.exp(-np.sum((x[:, None] - x[None]) ** 2, -1))), (normal(1000, 8),), (0,)
        ),
        "tanh of an outer product, 2000": Case(lambda np, x, y: np.sum(np.tanh(np.outer(x, y))), (normal(2000), normal(2000)), (0, 1)),
        "Laplacian, 1000 x 1000": Case(laplacian, (normal(1000, 1000),), (0,)),
        "roll and diff, 1e6": Case(lambda np, x: np.sum((np.roll(x, 1) - x) ** 2) + np.sum(np.diff(x) ** 2), (normal(million),), (0,)),
        "shifted halves joined, 1e6": Case(lambda np, x: np.sum(np.concatenate([x[1:], x[:-1] * 2]) ** 2), (normal(million),), (0,)),
        "stack of 8, 1e5": Case(lambda np, x: np.mean(np.stack([x * k for k in range(1, 9)]) ** 2), (normal(100_000),), (0,)),
        "concatenate 10 of 1e5": Case(lambda np, *xs: np.concatenate(xs), tuple(normal(100_000) for _ in range(10))),
        "pad, 1000 x 1000": Case(lambda np, x: np.pad(x, ((1, 1), (2, 2))) * 2, (normal(1000, 1000),)),
        "repeat and tile, 1e5 x 8": Case(lambda np, x: np.repeat(x, 8) + np.tile(x, 8), (normal(100_000),)),
        "transpose, 4096 x 4096": Case(lambda np, x: np.transpose(x) + 1.0, (normal(4096, 4096),)),
        "NHWC to NCHW, 64 x 32 x 32 x 64": Case(lambda np, x: np.transpose(x, (0, 3, 1, 2)) * 1.0, (normal(64, 32, 32, 64),)),
        "pooling by reshape": Case(lambda np, x: np.sum(np.max(x.reshape(64, 16, 2, 16, 2, 32), (2, 4))), (normal(64, 32, 32, 32),), (0,)),
        "4096 rows of 50000 x 256": Case(
            lambda np, w, i: np.sum(np.take(w, i, axis=0) ** 2), (normal(50000, 256), below(50000, 4096)), (0,)
        ),
        "1e5 elements of 1000 x 1000": Case(
            lambda np, x, i, j: np.sum(x[i, j] ** 2), (normal(1000, 1000), below(1000, 100_000), below(1000, 100_000)), (0,)
        ),
        "product, 1024³": Case(lambda np, a, b: a @ b, (normal(1024, 1024), normal(1024, 1024))),
        "product, 2048 x 64 x 2048": Case(lambda np, a, b: a @ b, (normal(2048, 64), normal(64, 2048))),
        "product, 64 x 2048 x 64": Case(lambda np, a, b: a @ b, (normal(64, 2048), normal(2048, 64))),
        "product, 100³": Case(lambda np, a, b: a @ b, (normal(100, 100), normal(100, 100))),
        "product, 17 x 33 x 65": Case(lambda np, a, b: a @ b, (normal(17, 33), normal(33, 65))),
        "product, 10000 x 64 x 64": Case(lambda np, a, b: np.sum((a @ b) ** 2), (normal(10000, 64), normal(64, 64)), (0, 1)),
        "256 products of 32³": Case(lambda np, a, b: np.sum(np.matmul(a, b) ** 2), (normal(256, 32, 32), normal(256, 32, 32)), (0, 1)),
        "matrix and vector, 4096": Case(lambda np, a, x: np.sum((a @ x) ** 2), (normal(4096, 4096), normal(4096)), (0, 1)),
        "vector and matrix, 128": Case(lambda np, x, a: x @ a, (normal(128), normal(128, 128))),
        "einsum bqhd,bkhd->bhqk": Case(lambda np, q, k: np.einsum("bqhd,bkhd->bhqk", q, k), (normal(4, 256, 8, 64), normal(4, 256, 8, 64))),
        "einsum ijk,jl,km->ilm": Case(
            lambda np, a, b, c: np.einsum("ijk,jl,km->ilm", a, b, c), (normal(32, 64, 64), normal(64, 48), normal(64, 48))
        ),
        "solve, 200 x 200": Case(lambda np, a, b: np.sum(np.linalg.solve(a, b) ** 2), (well_conditioned, normal(200, 5)), (0, 1)),
    } | {name: Case(*made) for name, made in more_cases().items()}  # fmt: skip


def compiled(framework: str, case: Case) -> Callable[[], Any]:
    if framework == "jax":
        import jax
        import jax.numpy as np

        f = lambda *args: case.function(np, *args)  # noqa: E731
        program = jax.jit(jax.value_and_grad(f, case.wrt) if case.wrt else f)
        args = jax.tree.map(np.asarray, case.args)
        return lambda: jax.block_until_ready(program(*args))
    import adjit as aj

    f = lambda *args: case.function(numpy, *args)  # noqa: E731
    program = aj.function(aj.value_and_grad(f, case.wrt) if case.wrt else f)
    return lambda: program(*case.args)


def measured(call: Callable[[], Any], seconds: float) -> tuple[float, float, float]:
    """The best time, the time of the first call, and a number to compare results by."""
    started = time.perf_counter()
    result = call()
    first = time.perf_counter() - started
    best, until, calls = math.inf, time.perf_counter() + seconds, 0
    while calls < 5 or time.perf_counter() < until:
        started = time.perf_counter()
        call()
        best, calls = min(best, time.perf_counter() - started), calls + 1
    while isinstance(result, tuple | list):
        result = result[0]
    return best, first, float(numpy.asarray(result, "f8").sum())


def child(framework: str, only: str, seconds: float) -> None:
    chosen = {name: case for name, case in cases().items() if only in name}
    for name, case in chosen.items():
        print(json.dumps([name, *measured(compiled(framework, case), seconds)]), flush=True)


def run(framework: str, python: str, options: argparse.Namespace) -> dict[str, list[float]]:
    command = [python, __file__, "--child", framework, "--only", options.only, "--seconds", str(options.seconds)]
    with tempfile.TemporaryDirectory() as cache:
        out = subprocess.run(command, env={**os.environ, "ADJIT_CACHE_DIR": cache}, stdout=subprocess.PIPE, text=True, check=True).stdout
    return {name: numbers for name, *numbers in map(json.loads, out.splitlines())}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python-jax", help="interpreter of an environment with jax; without it only adjit is measured")
    parser.add_argument("--only", default="", help="functions with this word in their names")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each function")
    parser.add_argument("--child", choices=["adjit", "jax"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.only, options.seconds)
        return 0
    ours = run("adjit", sys.executable, options)
    theirs = run("jax", options.python_jax, options) if options.python_jax else {}
    print("| function | adjit | JAX | ratio | first call, adjit / JAX | |\n|---|--:|--:|--:|--:|---|")
    differs = False
    for name, (best, first, value) in ours.items():
        if name not in theirs:
            print(f"| {name} | {best * 1e3:.3f} ms | | | {first * 1e3:.0f} ms | |")
            continue
        other, other_first, other_value = theirs[name]
        wrong = not math.isclose(value, other_value, rel_tol=5e-3, abs_tol=1e-3)
        differs |= wrong
        note = "DIFFERS" if wrong else "slower" if best > 1.1 * other else ""
        times = f"{best * 1e3:.3f} ms | {other * 1e3:.3f} ms | {best / other:.2f} | {first * 1e3:.0f} / {other_first * 1e3:.0f} ms"
        print(f"| {name} | {times} | {note} |")
    return int(differs)


if __name__ == "__main__":
    sys.exit(main())
