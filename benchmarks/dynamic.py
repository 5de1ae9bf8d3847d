"""One program for all sizes against programs for each size: time per call at several sizes, and the cost of a new size.

python benchmarks/dynamic.py [--threads N] [--peers] [MODEL ...]

A row is a size. `static` is the program compiled for that size alone, `general` the one for all sizes; both are run in turn, and the minima
are compared. With --peers, PyTorch (torch.compile(dynamic=True)) and JAX (which compiles each size) are timed too, where installed.
The last line of a model counts compilations, seconds and memory for all sizes together.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable
from typing import Any, NamedTuple

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--peers", action="store_true")
    OPTIONS = parser.parse_args()
    os.environ["ADJIT_NUM_THREADS"] = OPTIONS.threads

import numpy as np

import adjit as aj
from adjit.ir import ops

SECONDS = 0.3  # per size
Arrays = tuple[np.ndarray[Any, Any], ...]


class Model(NamedTuple):
    call: Callable[..., Any]
    arrays: Callable[[int, int], Arrays]
    sizes: tuple[tuple[int, int], ...]  # B and T


def drawn(*shape: int) -> np.ndarray[Any, Any]:
    return (0.1 * np.random.default_rng(0).standard_normal(shape)).astype(np.float32)


def mlp(x: Any, y: Any, *weights: Any) -> Any:
    def loss(w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        return np.mean(np.sum((np.maximum(x @ w1 + b1, 0) @ w2 + b2 - y) ** 2, -1))

    value, gradients = aj.value_and_grad(loss, (0, 1, 2, 3))(*weights)
    return value, *(w - 0.01 * d for w, d in zip(weights, gradients, strict=True))


def lenet(x: Any, *weights: Any) -> Any:
    def loss(w1: Any, w2: Any, w3: Any) -> Any:
        h = ops.max_pool(np.maximum(ops.conv(x, w1), 0), 2)
        h = ops.max_pool(np.maximum(ops.conv(h, w2), 0), 2)
        return np.mean((np.reshape(h, (x.shape[0], -1)) @ w3) ** 2)

    return aj.value_and_grad(loss, (0, 1, 2))(*weights)


def lstm(x: Any, *weights: Any) -> Any:
    def loss(w: Any, u: Any) -> Any:
        def step(carry: Any, xt: Any) -> Any:
            h, s = carry
            i, f, o, g = np.split(xt @ w + h @ u, 4, -1)
            s = aj.sigmoid(f) * s + aj.sigmoid(i) * np.tanh(g)
            h = aj.sigmoid(o) * np.tanh(s)
            return (h, s), h

        zero = np.zeros((x.shape[1], 32), np.float32)
        _, hs = aj.scan(step, (zero, zero), x)
        return np.mean(hs * hs)

    return aj.value_and_grad(loss, (0, 1))(*weights)


def transformer(x: Any, *weights: Any) -> Any:
    def loss(wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
        q, k, v = x @ wq, x @ wk, x @ wv
        mixed = aj.softmax(q @ np.swapaxes(k, -1, -2) * 0.125) @ v
        return np.mean((np.maximum(mixed @ wo, 0) + x) ** 2)

    return aj.value_and_grad(loss, (0, 1, 2, 3))(*weights)


BATCHES = tuple((b, 1) for b in (2, 7, 16, 33, 64, 100, 256, 1000))
SEQUENCES = ((2, 20), (7, 33), (16, 64), (33, 50), (64, 20))
MODELS = {
    "elementwise": Model(lambda x, y: np.tanh(x * y) + x, lambda b, t: (drawn(b, 100), drawn(b, 100)), BATCHES),
    "softmax": Model(lambda x: aj.softmax(x), lambda b, t: (drawn(b, 100),), BATCHES),
    "mlp": Model(mlp, lambda b, t: (drawn(b, 784), drawn(b, 10), drawn(784, 128), drawn(128), drawn(128, 10), drawn(10)), BATCHES),
    "lenet": Model(lenet, lambda b, t: (drawn(b, 28, 28, 1), drawn(5, 5, 1, 8), drawn(5, 5, 8, 16), drawn(256, 10)), BATCHES[:6]),
    "lstm": Model(lstm, lambda b, t: (drawn(t, b, 16), drawn(16, 128), drawn(32, 128)), SEQUENCES),
    "transformer": Model(transformer, lambda b, t: (drawn(b, t, 64), *(drawn(64, 64) for _ in range(4))), SEQUENCES),
}


def minima(*calls: Callable[[], Any]) -> list[float]:
    """The shortest times of calls that are run in turn."""
    best = [float("inf")] * len(calls)
    for call in calls:
        call()
    end = time.perf_counter() + SECONDS
    rounds = 0
    while time.perf_counter() < end or rounds < 5:
        rounds += 1
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[k] = min(best[k], time.perf_counter() - start)
    return best


def torch_mlp() -> Callable[[Arrays], Callable[[], Any]] | None:
    """A training step of the same perceptron by torch.compile(dynamic=True)."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(int(OPTIONS.threads))

    @torch.compile(dynamic=True)  # type: ignore[untyped-decorator,unused-ignore]
    def step(x: Any, y: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        loss = ((torch.relu(x @ w1 + b1) @ w2 + b2 - y) ** 2).sum(-1).mean()
        return loss, *torch.autograd.grad(loss, (w1, b1, w2, b2))

    def bound(arrays: Arrays) -> Callable[[], Any]:
        tensors = [torch.tensor(a, requires_grad=k > 1) for k, a in enumerate(arrays)]
        return lambda: step(*tensors)

    return bound


def jax_mlp() -> Callable[[Arrays], Callable[[], Any]] | None:
    """The same by jax.jit, which compiles every size."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return None

    @jax.jit
    def step(x: Any, y: Any, *weights: Any) -> Any:
        def loss(weights: Any) -> Any:
            w1, b1, w2, b2 = weights
            return jnp.mean(jnp.sum((jnp.maximum(x @ w1 + b1, 0) @ w2 + b2 - y) ** 2, -1))

        return jax.value_and_grad(loss)(weights)

    return lambda arrays: lambda: jax.block_until_ready(step(*arrays))


def memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def compare(name: str, model: Model) -> None:
    general = aj.function(model.call, dynamic="auto")
    before, seconds = memory(), 0.0
    for b, t in ((5, 11), (9, 13), *model.sizes):  # the second call differs in sizes, and makes the program for all sizes
        arrays = model.arrays(b, t)
        start = time.perf_counter()
        general(*arrays)
        seconds += time.perf_counter() - start
    cost = f"{name}: all sizes with {general.trace_count} traces, {seconds:.2f} s, {memory() - before:.0f} MB"
    for b, t in model.sizes:
        arrays = model.arrays(b, t)
        static = aj.function(model.call)
        own, ours = minima(lambda: static(*arrays), lambda: general(*arrays))  # noqa: B023 - called at once
        print(f"{name:12} B={b:5} T={t:3}  static {own * 1e6:9.1f} us  general {ours * 1e6:9.1f} us  ratio {ours / own:5.2f}")
    print(cost)


def compare_peers(model: Model) -> None:
    for name, made in (("torch", torch_mlp()), ("jax", jax_mlp())):
        if made is None:
            print(f"{name} is not installed")
            continue
        for b, t in model.sizes:
            call = made(model.arrays(b, t))
            start = time.perf_counter()
            call()
            first = time.perf_counter() - start
            (best,) = minima(call)
            print(f"{name:12} B={b:5}  first call {first:7.2f} s  then {best * 1e6:9.1f} us")


if __name__ == "__main__":
    for chosen in OPTIONS.models or MODELS:
        compare(chosen, MODELS[chosen])
    if OPTIONS.peers:
        compare_peers(MODELS["mlp"])
