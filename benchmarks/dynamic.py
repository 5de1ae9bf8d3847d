"""One program for all sizes against programs for each size: time per call at several sizes, and the cost of a new size.

python benchmarks/dynamic.py [--threads N] [--peers] [--seconds S] [MODEL ...]

A row is a size. `static` is the program compiled for that size alone, `general` the one for all sizes; both are run in turn, and the minima
are compared, over several places of their results in memory. Each thread is bound to a core of its own: otherwise the system may put two of
them on the same one for seconds. With --peers, PyTorch (torch.compile(dynamic=True)) and JAX (which compiles each size) are timed too,
where installed.

The first line of a model counts compilations for all sizes together, in a process of its own with an empty disk cache: what they took over
a later call of the same size, in seconds and in processor time of all threads, and by how much the resident memory has grown since the
first size was compiled and called. The working memory for the largest size, which a program for that size needs as well, is given apart.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.3, help="per size")
    parser.add_argument("--cost", action="store_true", help="only the first line of each model")
    OPTIONS = parser.parse_args()
    os.environ["ADJIT_NUM_THREADS"] = OPTIONS.threads
    CACHE = tempfile.TemporaryDirectory()
    os.environ["ADJIT_CACHE_DIR"] = CACHE.name

import numpy as np

import adjit as aj
from adjit.codegen.llvm import residency, toolchain
from adjit.codegen.native import Native
from adjit.ir import ops

if __name__ == "__main__":
    from dynamic_peers import with_jax, with_torch

Arrays = tuple[np.ndarray[Any, Any], ...]
PLACES = 6
SPACERS: list[np.ndarray[Any, Any]] = []
CORES = sorted(os.sched_getaffinity(0))


class Model(NamedTuple):
    call: Callable[..., Any]
    arrays: Callable[[int, int], Arrays]
    sizes: tuple[tuple[int, int], ...]  # B and T
    every: tuple[tuple[int, int], ...]  # those that are counted together


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
BEGIN = ((5, 11), (9, 13))  # the second call differs in sizes, and makes the program for all sizes
ALL = (*BEGIN, *((b, 1) for b in range(2, 1001)))
GRID = (*BEGIN, *((b, t) for b in range(2, 65, 9) for t in range(2, 65, 9)))
MODELS = {
    "elementwise": Model(lambda x, y: np.tanh(x * y) + x, lambda b, t: (drawn(b, 100), drawn(b, 100)), BATCHES, ALL),
    "softmax": Model(lambda x: aj.softmax(x), lambda b, t: (drawn(b, 100),), BATCHES, ALL),
    "mlp": Model(mlp, lambda b, t: (drawn(b, 784), drawn(b, 10), drawn(784, 128), drawn(128), drawn(128, 10), drawn(10)), BATCHES, ALL),
    "lenet": Model(lenet, lambda b, t: (drawn(b, 28, 28, 1), drawn(5, 5, 1, 8), drawn(5, 5, 8, 16), drawn(256, 10)), BATCHES[:6], ALL),
    "lstm": Model(lstm, lambda b, t: (drawn(t, b, 16), drawn(16, 128), drawn(32, 128)), SEQUENCES, GRID),
    "transformer": Model(transformer, lambda b, t: (drawn(b, t, 64), *(drawn(64, 64) for _ in range(4))), SEQUENCES, GRID),
}


def minima(seconds: float, *calls: Callable[[], Any], places: int = 1) -> list[float]:
    """The shortest times of calls that are run in turn, in all `places` of the memory of their results."""
    best = [float("inf")] * len(calls)
    for _ in range(places):
        forget_results()
        for call in calls:
            call()
        end = time.perf_counter() + seconds / places
        rounds = 0
        while time.perf_counter() < end or rounds < 5:
            rounds += 1
            for k, call in enumerate(calls):
                start = time.perf_counter()
                call()
                best[k] = min(best[k], time.perf_counter() - start)
    return best


def forget_results() -> None:
    """Let programs take other memory for their results: pages that displace each other from the cache cost a tenth of a call's time."""
    for native in (x for x in gc.get_objects() if isinstance(x, Native)):
        native.forget_results()
    SPACERS.append(np.empty((1 << 19) + 4096 * len(SPACERS), np.uint8))
    del SPACERS[:-3]


def bind_threads() -> None:
    """Give each thread of this process a core of its own, as far as there are enough. Those of idle libraries share them."""
    main, *others = CORES
    for number, thread in enumerate(sorted(map(int, os.listdir("/proc/self/task")), reverse=True)):
        os.sched_setaffinity(thread, {main if thread == os.getpid() or not others else others[number % len(others)]})


def memory() -> float:
    """The resident memory of this process, in MB, without free memory: arrays of all sizes are allocated and freed in between."""
    residency.give_back(toolchain.LIBRARY, always=True)  # memory of LLVM that is not used after compiling
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
    if trim is not None:
        trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    """Seconds, and processor time."""
    start, spent = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start, time.process_time() - spent


def cost(name: str, model: Model) -> str:
    """Call a function with all sizes, and describe what compiling it cost."""
    aj.function(lambda x: x + 1)(np.ones(3))  # excludes the cost of the first call in a process
    general = aj.function(model.call, dynamic="auto")
    before, seconds, processor = 0.0, 0.0, 0.0
    for b, t in model.every:
        arrays, traces = model.arrays(b, t), general.trace_count
        first = timed(lambda: general(*arrays))  # noqa: B023 - called at once
        if general.trace_count > traces:
            again = timed(lambda: general(*arrays))  # noqa: B023
            seconds, processor = seconds + first[0] - again[0], processor + first[1] - again[1]
        before = before or memory()
    (program,) = (x for x in gc.get_objects() if isinstance(x, Native) and x.symbols)
    arrays = model.arrays(*map(max, zip(*model.every, strict=True)))
    working = program.memory_for([arrays[axis.param].shape[axis.axis] for axis in program.symbols]) / 1e6
    arrays = ()
    return (
        f"{name}: {len(model.every)} sizes with {general.trace_count} compilations: {seconds:.2f} s, {processor:.2f} s of processor time, "
        f"{memory() - before - working:.1f} MB, and {working:.1f} MB of working memory for the largest size"
    )


def compare(name: str, model: Model) -> None:
    general = aj.function(model.call, dynamic="auto")
    for b, t in BEGIN:
        general(*model.arrays(b, t))
    for b, t in model.sizes:
        arrays = model.arrays(b, t)
        static = aj.function(model.call, dynamic=False)
        static(*arrays), general(*arrays)
        bind_threads()
        own, ours = minima(OPTIONS.seconds, lambda: static(*arrays), lambda: general(*arrays), places=PLACES)  # noqa: B023 - called at once
        print(f"{name:12} B={b:5} T={t:3}  static {own * 1e6:9.2f} us  general {ours * 1e6:9.2f} us  ratio {ours / own:5.2f}", flush=True)
    assert general.trace_count == len(BEGIN)


def compare_peers(name: str, model: Model) -> None:
    """The first call with each size, and the time of later ones."""
    os.sched_setaffinity(0, CORES[: int(OPTIONS.threads)])  # of threads that start from now on
    for library, make in (("torch", with_torch), ("jax", with_jax)):
        try:
            bind = make(int(OPTIONS.threads))[name]
        except ImportError:
            print(f"{library} is not installed")
            continue
        total = 0.0
        for b, t in model.sizes:
            call = bind(model.arrays(b, t))
            try:
                first, _ = timed(call)
            except Exception as error:  # such as a compiler of theirs that does not support the sizes of a recurrent layer
                print(f"{name}: {library}: {type(error).__name__}: {error}")
                break
            (best,) = minima(OPTIONS.seconds, call)
            total += first
            print(f"{name:12} B={b:5} T={t:3}  {library:6} {best * 1e6:9.1f} us, first call {first:7.2f} s")
        print(f"{name}: {library}: first calls of these {len(model.sizes)} sizes {total:.2f} s")


if __name__ == "__main__":
    for chosen in OPTIONS.models or MODELS:
        if OPTIONS.cost:
            print(cost(chosen, MODELS[chosen]))
            continue
        os.sched_setaffinity(0, CORES)
        subprocess.run([sys.executable, __file__, "--threads", OPTIONS.threads, "--cost", chosen], check=True)
        compare(chosen, MODELS[chosen])
        if OPTIONS.peers:
            compare_peers(chosen, MODELS[chosen])
