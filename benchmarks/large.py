"""Workloads at real sizes, compared with NumPy and whichever of SciPy, JAX and PyTorch are installed, in one run.

    python benchmarks/large.py [--only WORD,WORD] [--seconds 2] [--cpu]

On a busy machine, compare processor time on one core: taskset -c 0 python benchmarks/large.py --cpu. Bursts of calls of all frameworks
alternate, so that a busy period affects all; times are minima. "faults" are adjit's page faults a call.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable, Iterator
from typing import Any

import large_models
import numpy as np
from workload import Workload, jitted, peer, rng

import adjit as aj

ROUNDS = 3
PAUSE = 0.25  # seconds


def heat(n: int) -> Workload:
    """200 explicit steps of a reaction-diffusion equation on a periodic n x n grid, with the gradient of the initial state."""
    start = 0.1 * rng.standard_normal((n, n))

    def energy(u: Any) -> Any:
        for _ in range(200):
            around = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
            u = u + 0.1 * (around - 4.0 * u) * (1.0 - u * u)
        return np.sum(u * u)

    f = aj.function(aj.value_and_grad(energy))
    peers: dict[str, Callable[[], Any]] = {"numpy, value only": lambda: energy(start)}
    if (jax := peer("jax")) is not None:
        jax.config.update("jax_enable_x64", True)
        roll = jax.numpy.roll

        def step(_: Any, u: Any) -> Any:
            around = roll(u, 1, 0) + roll(u, -1, 0) + roll(u, 1, 1) + roll(u, -1, 1)
            return u + 0.1 * (around - 4.0 * u) * (1.0 - u * u)

        peers["jax"] = jitted(jax, jax.value_and_grad(lambda u: (jax.lax.fori_loop(0, 200, step, u) ** 2).sum()), start)
    return Workload(f"heat equation {n} x {n}, with gradient", lambda: f(start), peers)


def results() -> Workload:
    """33 results of 249 KiB."""
    arrays = [rng.standard_normal(249 * 128) for _ in range(33)]
    f = aj.function(lambda xs: [2.0 * x for x in xs])
    return Workload("33 results of 249 KiB", lambda: f(arrays), {"numpy": lambda: [2.0 * x for x in arrays]})


def factorisation(name: str, n: int) -> Workload:
    """One of NumPy's functions of square matrices."""
    a, b = rng.standard_normal((2, n, n))
    calls: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "cholesky": (np.linalg.cholesky, (a @ a.T + n * np.eye(n),)),
        "solve": (np.linalg.solve, (a, b[0])),
        "inv": (np.linalg.inv, (a,)),
        "qr": (np.linalg.qr, (a,)),
    }
    function, args = calls[name]
    f = aj.function(lambda *args: function(*args))
    return Workload(f"{name} {n} x {n}", lambda: f(*args), {"numpy": lambda: function(*args)})


def gaussian_process(n: int) -> Workload:
    """Marginal likelihood of n points with a squared exponential kernel, by Cholesky factors; gradient of three parameters."""
    x, y = np.sort(rng.uniform(0.0, 10.0, n)), rng.standard_normal(n)
    squares = (x[:, None] - x[None, :]) ** 2

    def likelihood(p: Any) -> Any:
        kernel = np.exp(p[0] - np.exp(-2.0 * p[1]) * squares) + (np.exp(p[2]) + 1e-6) * np.eye(n)
        low = np.linalg.cholesky(kernel)
        z = np.linalg.solve(low, y)
        return 0.5 * np.sum(z * z) + np.sum(np.log(np.diag(low)))

    p, torch = np.array([0.1, 0.2, -2.0]), peer("torch")
    f = aj.function(aj.value_and_grad(likelihood))
    peers: dict[str, Callable[[], Any]] = {"numpy, value only": lambda: likelihood(p)}
    if torch is not None:
        distances, targets, eye = torch.tensor(squares), torch.tensor(y), torch.eye(n, dtype=torch.float64)

        def step() -> Any:
            q = torch.tensor(p, requires_grad=True)
            low = torch.linalg.cholesky(torch.exp(q[0] - torch.exp(-2.0 * q[1]) * distances) + (torch.exp(q[2]) + 1e-6) * eye)
            z = torch.linalg.solve_triangular(low, targets[:, None], upper=False)
            (0.5 * (z * z).sum() + low.diagonal().log().sum()).backward()
            return q.grad

        peers["torch"] = step
    return Workload(f"Gaussian process, {n} points, with gradient", lambda: f(p), peers)


def top_k(spelling: str) -> Workload:
    """The 100 largest of a million."""
    x, jax = rng.standard_normal(1_000_000).astype("f4"), peer("jax")
    calls: dict[str, Callable[[Any], Any]] = {
        "top_k": lambda x: aj.top_k(x, 100),
        "sort(x)[-k:]": lambda x: np.sort(x)[-100:],
        "argpartition(x, -k)[-k:]": lambda x: np.argpartition(x, -100)[-100:],
    }
    f = aj.function(calls[spelling])
    peers: dict[str, Callable[[], Any]] = {"numpy": lambda: np.argpartition(x, -100)[-100:]}
    if jax is not None:
        on_device, selected = jax.numpy.asarray(x), jax.jit(lambda x: jax.lax.top_k(x, 100))
        peers["jax"] = lambda: jax.block_until_ready(selected(on_device))
    return Workload(f"{spelling}, 100 of 1e6", lambda: f(x), peers)


def workloads() -> Iterator[Callable[[], Workload]]:
    yield results
    for n in (64, 256):
        yield lambda n=n: heat(n)  # type: ignore[misc]
    for name in ("cholesky", "solve", "inv", "qr"):
        for n in (100, 500, 2000):
            yield lambda name=name, n=n: factorisation(name, n)  # type: ignore[misc]
    for spelling in ("top_k", "sort(x)[-k:]", "argpartition(x, -k)[-k:]"):
        yield lambda spelling=spelling: top_k(spelling)  # type: ignore[misc]
    for n in (500, 1000):
        yield lambda n=n: gaussian_process(n)  # type: ignore[misc]
    yield from large_models.workloads()


def page_faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def measure(workload: Workload, seconds: float, clock: Callable[[], float] = time.perf_counter) -> tuple[dict[str, float], float]:
    """The fastest call of each, by name, and the page faults of one of ours.

    In bursts, with a pause before each: the threads of other frameworks spin for up to 200 ms after a call, at the cost of the next one.
    """
    calls = {"adjit": workload.ours, **workload.peers}
    fastest = dict.fromkeys(calls, float("inf"))
    faults = count = 0
    for _ in range(ROUNDS):
        for name, call in calls.items():
            time.sleep(PAUSE)
            call()
            end = time.perf_counter() + seconds / ROUNDS
            while True:
                before, start = page_faults(), clock()
                call()
                fastest[name] = min(fastest[name], clock() - start)
                if name == "adjit":
                    faults += page_faults() - before
                    count += 1
                if time.perf_counter() >= end:
                    break
    return fastest, faults / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="workloads whose name contains one of these words, separated by commas")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each call")
    parser.add_argument("--cpu", action="store_true", help="processor time instead of elapsed time")
    options = parser.parse_args()
    print("| workload | adjit | peers (adjit's time divided by theirs) | faults |\n|---|--:|---|--:|")
    for make in workloads():
        workload = make()
        if not any(word in workload.name for word in options.only.split(",")):
            continue
        fastest, faults = measure(workload, options.seconds, time.process_time if options.cpu else time.perf_counter)
        ours = fastest.pop("adjit")
        others = "; ".join(f"{name} {1e3 * theirs:.3g} ms ({ours / theirs:.2f})" for name, theirs in fastest.items())
        print(f"| {workload.name} | {1e3 * ours:.3g} ms | {others} | {faults:.0f} |", flush=True)


if __name__ == "__main__":
    main()
