"""First calls of programs as people write them: trace, differentiate, optimise, compile and run, in processor time.

    python benchmarks/first_calls.py [--rounds 3] [--limit 2.0] [PROGRAM ...]

Each first call is made in a fresh process with a cold cache; the fastest round counts. Processor time depends on what else the machine
does: a neighbour on the same core can almost double it. The limit is meant for a quiet machine; with `--limit`, a program beyond it is an
error.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Program = tuple[Callable[..., Any], tuple[Any, ...]]

# Dormand and Prince's pair of orders 5 and 4.
STAGES = [
    [],
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
]
FIFTH = [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0]
FOURTH = [5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40]


def lotka_volterra(p, y):
    return np.stack([p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]])


def solved(p, y, t, end):
    """The solution at `end`, by steps whose size follows the estimated error."""
    h = (end - t) * 0.1
    while t < end:
        h = np.minimum(h, end - t)
        slopes = []
        for row in STAGES:
            z = y
            for slope, c in zip(slopes, row):
                z = z + h * c * slope
            slopes.append(lotka_volterra(p, z))
        y5 = y4 = y
        for slope, b5, b4 in zip(slopes, FIFTH, FOURTH):
            y5 = y5 + h * b5 * slope
            y4 = y4 + h * b4 * slope
        error = np.sqrt(np.mean(((y5 - y4) / (1e-6 + 1e-3 * np.abs(y))) ** 2))
        if error <= 1.0:
            t = t + h
            y = y5
        h = h * np.minimum(5.0, np.maximum(0.2, 0.9 * (error + 1e-10) ** -0.2))
    return y


def ode_fit() -> Program:
    """Parameters of an ODE, fitted to ten observations: an adaptive solver between each two, ten loops of unknown length."""
    import adjit as aj

    times, observed = np.linspace(0, 5, 11), np.random.default_rng(0).random((10, 2))

    def loss(p):
        y, total = np.array([1.0, 1.0]), 0.0
        for i in range(10):
            y = solved(p, y, times[i], times[i + 1])
            total = total + np.sum((y - observed[i]) ** 2)
        return total

    return aj.function(aj.value_and_grad(loss)), (np.array([1.5, 1.0, 1.0, 3.0]),)


def fluid() -> Program:
    """Twelve steps of an incompressible fluid on a periodic grid, with 10 relaxations each."""
    import adjit as aj

    n, rng = 64, np.random.default_rng(0)
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    target = rng.random((n, n))

    def projected(u, v):
        divergence = (np.roll(u, -1, 0) - np.roll(u, 1, 0) + np.roll(v, -1, 1) - np.roll(v, 1, 1)) * 0.5
        p = np.zeros_like(divergence)
        for _ in range(10):
            p = (np.roll(p, 1, 0) + np.roll(p, -1, 0) + np.roll(p, 1, 1) + np.roll(p, -1, 1) - divergence) / 4
        return u - (np.roll(p, -1, 0) - np.roll(p, 1, 0)) * 0.5, v - (np.roll(p, -1, 1) - np.roll(p, 1, 1)) * 0.5

    def advected(f, u, v):
        x, y = (i - u) % n, (j - v) % n
        x0, y0 = np.floor(x).astype(int), np.floor(y).astype(int)
        a, b = x - x0, y - y0
        x0, y0 = x0 % n, y0 % n
        x1, y1 = (x0 + 1) % n, (y0 + 1) % n
        return (1 - a) * ((1 - b) * f[x0, y0] + b * f[x0, y1]) + a * ((1 - b) * f[x1, y0] + b * f[x1, y1])

    def loss(u, v):
        smoke = np.exp(-((i - 32.0) ** 2 + (j - 32.0) ** 2) / 50)
        for _ in range(12):
            u, v = advected(u, u, v), advected(v, u, v)
            u, v = projected(u, v)
            smoke = advected(smoke, u, v)
        return np.mean((smoke - target) ** 2)

    return aj.function(aj.value_and_grad(loss)), (rng.normal(size=(n, n)), rng.normal(size=(n, n)))


def lstm() -> Program:
    """A training step of an LSTM over 50 time steps, written with `nn`."""
    import adjit as aj
    from adjit import nn

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(16, 50, 8)).astype("f4"), rng.normal(size=(16, 1)).astype("f4")
    model = nn.Sequential([nn.LSTM(32), nn.Dense(1)])
    model(x[:1])
    optimizer = nn.optimizers.Adam(1e-3)

    @aj.function
    def step(x, y):
        with aj.GradientTape() as tape:
            loss = aj.mean((model(x) - y) ** 2)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    return step, (x, y)


def sinkhorn() -> Program:
    """An entropic optimal transport between two clouds of points: 100 iterations, and its gradient."""
    import adjit as aj

    def cost(x, y):
        distances = np.sum((x[:, None] - y[None]) ** 2, -1)
        kernel = -distances / 0.1
        f, g = np.zeros(len(x)), np.zeros(len(y))
        for _ in range(100):
            f = -np.log(np.sum(np.exp(kernel + g[None]), 1))
            g = -np.log(np.sum(np.exp(kernel + f[:, None]), 0))
        return np.sum(np.exp(f[:, None] + g[None] + kernel) * distances)

    rng = np.random.default_rng(0)
    return aj.function(aj.value_and_grad(cost)), (rng.normal(size=(100, 2)), rng.normal(size=(100, 2)))


def diffusion() -> Program:
    """A hundred steps of sampling from a diffusion model."""
    import adjit as aj
    from adjit import nn

    model = nn.Sequential([nn.Dense(128, activation="swish"), nn.Dense(128, activation="swish"), nn.Dense(2)])
    model(np.zeros((1, 3), "f4"))
    betas = np.linspace(1e-4, 0.02, 100).astype("f4")
    alphas = 1 - betas
    products = np.cumprod(alphas)

    @aj.function
    def sample(key):
        x = aj.random.normal(key, (256, 2), "f4")
        for i in range(99, -1, -1):
            noise = model(np.concatenate([x, np.full((256, 1), i / 100, "f4")], 1))
            x = (x - betas[i] / np.sqrt(1 - products[i]) * noise) / np.sqrt(alphas[i])
            if i > 0:
                key, now = aj.random.split(key)
                x = x + np.sqrt(betas[i]) * aj.random.normal(now, (256, 2), "f4")
        return x

    return sample, (aj.random.key(0),)


PROGRAMS: dict[str, Callable[[], Program]] = {each.__name__: each for each in (ode_fit, fluid, lstm, sinkhorn, diffusion)}


def child(name: str) -> None:
    f, args = PROGRAMS[name]()
    start = time.process_time()
    f(*args)
    print({"first call": time.process_time() - start, **f.inspect(*args).seconds})


def first_call(name: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "ADJIT_CACHE_DIR": cache}
        run = subprocess.run([sys.executable, __file__, "--child", name], env=env, stdout=subprocess.PIPE, text=True, check=True)
    return ast.literal_eval(run.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, help="processor seconds that no first call may exceed")
    parser.add_argument("--child", choices=PROGRAMS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return 0
    beyond = []
    print("| program | first call, processor time | of the clock: trace | optimise | compile |\n|---|--:|--:|--:|--:|")
    for name in options.programs or PROGRAMS:
        best = min((first_call(name) for _ in range(options.rounds)), key=lambda run: run["first call"])
        print(f"| {name} | {best['first call']:.2f} s | {best['trace']:.2f} s | {best['optimize']:.2f} s | {best['compile']:.2f} s |")
        if options.limit is not None and best["first call"] > options.limit:
            beyond.append(name)
    if beyond:
        print(f"beyond {options.limit:g} s: {', '.join(beyond)}")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
