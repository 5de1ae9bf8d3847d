"""First call of a training step, adjit against JAX: trace, differentiate, optimise, compile and run, in one run.

    python benchmarks/first_call.py --python-jax PEERS/bin/python [--rounds 5]

The step is that of the workload mnist_mlp: a 784-512-256-10 ReLU MLP, batch 128, softmax cross-entropy, Adam. Every first call is made in a
fresh process, after its imports and after the parameters exist; the processes of the two frameworks alternate, so that a disturbance of the
machine affects both alike. Disk caches are cold, except in the row "warm", where another process has left object code. Compare the ratio,
never absolute times.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

SIZES, BATCH = (784, 512, 256, 10), 128


def make_data() -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    weights = [(rng.standard_normal((i, o)) * np.sqrt(2.0 / i)).astype("f4") for i, o in pairwise(SIZES)]
    biases = [(rng.standard_normal(o) * 0.05).astype("f4") for o in SIZES[1:]]
    return weights, biases, rng.uniform(0, 1, (BATCH, SIZES[0])).astype("f4"), rng.integers(0, SIZES[-1], BATCH).astype("i4")


def adjit_step() -> Callable[[], object]:
    sys.path.append(str(Path(__file__).parent / "steps"))
    from adam_mlp import Trainer

    weights, biases, x, y = make_data()
    return Trainer(weights, biases, x, y, classify=True).step


def jax_step() -> Callable[[], object]:
    import jax
    import jax.numpy as jnp

    weights, biases, x, y = make_data()
    params = [(jnp.asarray(w), jnp.asarray(b)) for w, b in zip(weights, biases, strict=True)]
    x, y = jnp.asarray(x), jnp.asarray(y)
    state = params, jax.tree.map(jnp.zeros_like, params), jax.tree.map(jnp.zeros_like, params), jnp.float32(0.0)

    def loss_of(params, x, y):
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w + b)
        w, b = params[-1]
        logits = x @ w + b
        return jnp.mean(jax.nn.logsumexp(logits, axis=1) - jnp.take_along_axis(logits, y[:, None], 1)[:, 0])

    def train(state, x, y):
        params, m, v, t = state
        loss, g = jax.value_and_grad(loss_of)(params, x, y)
        t = t + 1.0
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        c1, c2 = 1 / (1 - 0.9**t), 1 / (1 - 0.999**t)
        params = jax.tree.map(lambda p, m, v: p - 1e-3 * (m * c1) / (jnp.sqrt(v * c2) + 1e-8), params, m, v)
        return (params, m, v, t), loss

    step = jax.jit(train, donate_argnums=(0,))
    return lambda: jax.block_until_ready(step(state, x, y))[1]


def child(framework: str) -> None:
    step = {"adjit": adjit_step, "jax": jax_step}[framework]()
    start = time.perf_counter()
    loss = step()
    print(time.perf_counter() - start, float(np.asarray(loss)))


def first_call(framework: str, python: str, cache: str) -> tuple[float, float]:
    """Seconds of the first call in a fresh process, and its loss."""
    env = {**os.environ, "ADJIT_CACHE_DIR": cache}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # as for users: Python's bytecode is cached on disk
    run = subprocess.run([python, __file__, "--child", framework], env=env, stdout=subprocess.PIPE, text=True, check=True)
    seconds, loss = map(float, run.stdout.split())
    return seconds, loss


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python-jax", help="interpreter of an environment with jax; without it only adjit is measured")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", choices=["adjit", "jax"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return 0
    pythons = {"adjit": sys.executable} | ({"jax": options.python_jax} if options.python_jax else {})
    runs: dict[str, list[float]] = {}
    losses = {}
    for name, python in pythons.items():
        first_call(name, python, os.devnull)
    for _ in range(options.rounds):
        for name, python in pythons.items():
            with tempfile.TemporaryDirectory() as cache:
                for row in [name, "adjit, warm"] if name == "adjit" else [name]:
                    seconds, losses[row] = first_call(name, python, cache)
                    runs.setdefault(row, []).append(seconds)
    print("| framework | min | median | loss |\n|---|--:|--:|--:|")
    for name, times in runs.items():
        print(f"| {name} | {1e3 * min(times):.0f} ms | {1e3 * statistics.median(times):.0f} ms | {losses[name]:.6f} |")
    if "jax" in runs:
        for row in ("adjit", "adjit, warm"):
            ratios = (min(runs[row]) / min(runs["jax"]), statistics.median(runs[row]) / statistics.median(runs["jax"]))
            print(f"\n{row} / jax: {ratios[0]:.2f} (minima), {ratios[1]:.2f} (medians)")
        if not np.isclose(losses["adjit"], losses["jax"], rtol=1e-4):
            print("the losses differ: the two do not compute the same step")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
