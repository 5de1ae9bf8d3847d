"""Fourier transforms, decompositions and special functions on adjit, JAX and PyTorch, in float64 or float32.

    PYTHONPATH=. PEERS/bin/python benchmarks/mathematics.py [--only WORD ...] [--seconds 0.3] [--rounds 5] [--processor] [--float32]

All frameworks run in one process, in turns, round by round; the times are minima over all rounds. Transforms and decompositions are timed
with their gradients, special functions without. The ratio is that of adjit to the faster of the others: below 1, adjit is faster.
Frameworks that are not installed, or do not have the function, are left out. Results are compared: a row marked `DIFFERS` is a bug.
`--processor` gives all of them one core and counts processor time, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

rng = numpy.random.default_rng(0)
Call = Callable[[], Any]


class Row(NamedTuple):
    """A function of a framework's namespace and arrays; with `gradient`, its result is a scalar, and the first array is differentiated."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    gradient: bool


# ---- the functions, given a framework's namespace


def transformed(name: str) -> Callable[..., Any]:
    return lambda xp, x, w: xp.sum(xp.abs(getattr(xp.fft, name)(x)) * w)


def fft_row(name: str, *shape: int) -> Row:
    x = rng.standard_normal(shape)
    if not name.startswith("r"):
        x = x + 1j * rng.standard_normal(shape)
    return Row(transformed(name), (x, rng.random(getattr(numpy.fft, name)(x).shape)), True)


def eigenvalues(xp: Any, a: Any, w: Any) -> Any:
    values, vectors = xp.linalg.eigh((a + a.T) / 2)  # frameworks distribute gradients over the triangles differently
    return xp.sum(values * w[0]) + xp.sum(vectors * vectors * w)


def singular(xp: Any, a: Any, w: Any) -> Any:
    u, s, vt = xp.linalg.svd(a, full_matrices=False)
    return xp.sum(s * w[0]) + xp.sum(u * u * w) + xp.sum(vt * vt * w)


def matrix_row(function: Callable[..., Any], n: int) -> Row:
    a = rng.standard_normal((n, n))
    return Row(function, (a + a.T, rng.standard_normal((n, n))), True)


MILLION = 1_000_000
NORMAL, POSITIVE, UNIT = rng.standard_normal(MILLION), rng.gamma(2.0, 3.0, MILLION) + 1e-3, rng.uniform(1e-6, 1.0 - 1e-6, MILLION)
SPECIAL: dict[str, tuple[Any, ...]] = {
    "gammaln": (POSITIVE,), "digamma": (POSITIVE,), "gamma": (POSITIVE,), "gammainc": (POSITIVE, POSITIVE[::-1].copy()),
    "betainc": (POSITIVE, POSITIVE[::-1].copy(), UNIT), "erf": (NORMAL,), "erfc": (NORMAL,), "erfinv": (2.0 * UNIT - 1.0,),
    "ndtr": (NORMAL,), "ndtri": (UNIT,), "log_ndtr": (4.0 * NORMAL,), "expit": (NORMAL,), "logit": (UNIT,), "i0": (NORMAL,),
    "i0e": (NORMAL,), "i1": (NORMAL,), "i1e": (NORMAL,), "zeta": (POSITIVE + 1.5, POSITIVE), "xlogy": (UNIT, POSITIVE),
    "entr": (POSITIVE,), "exp1": (POSITIVE,),
    "j0": (10.0 * NORMAL,), "j1": (10.0 * NORMAL,), "y0": (POSITIVE,), "k0": (POSITIVE,), "k1": (POSITIVE,), "betaln": (POSITIVE, UNIT),
}  # fmt: skip
TORCH = {"gamma": None, "j0": "bessel_j0", "j1": "bessel_j1", "y0": "bessel_y0", "k0": "modified_bessel_k0", "k1": "modified_bessel_k1"}


def special_row(name: str, args: tuple[Any, ...]) -> Row:
    return Row(lambda xp, *args: getattr(xp.special, name)(*args), args, False)


def rows() -> dict[str, Row]:
    out = {f"fft, {n}": fft_row("fft", n) for n in (256, 1024, 4096, 65536, 1048576)}
    out |= {f"fft of a prime, {n}": fft_row("fft", n) for n in (251, 1009, 10007, 100003)}
    out |= {f"rfft, {n}": fft_row("rfft", n) for n in (1024, 65536)}
    out |= {f"fft2, {m} x {n}": fft_row("fft2", m, n) for m, n in ((64, 64), (256, 256), (512, 512), (1024, 1024), (1000, 1000))}
    out |= {f"{what.__name__}, {n}": matrix_row(what, n) for what in (eigenvalues, singular) for n in (100, 500)}
    out["abs, which memory bounds, 1e6"] = Row(lambda xp, x: xp.abs(x), (NORMAL,), False)
    return out | {f"{name}, 1e6": special_row(name, args) for name, args in SPECIAL.items()}


# ---- frameworks


class Namespace(NamedTuple):
    """The names that rows use."""

    sum: Any
    abs: Any
    fft: Any
    linalg: Any
    special: Any


def adjit(row: Row) -> Call:
    aj = importlib.import_module("adjit")
    xp = Namespace(aj.sum, aj.abs, aj.fft, aj.linalg, aj.special)
    function = lambda *args: row.function(xp, *args)  # noqa: E731
    program = aj.function(aj.grad(function) if row.gradient else function)
    return lambda: program(*row.args)


def jax(row: Row) -> Call:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = importlib.import_module("jax.numpy")
    xp = Namespace(jnp.sum, jnp.abs, jnp.fft, jnp.linalg, importlib.import_module("jax.scipy.special"))
    function = lambda *args: row.function(xp, *args)  # noqa: E731
    program = jax.jit(jax.grad(function) if row.gradient else function)
    args = [jnp.asarray(x) for x in row.args]
    return lambda: jax.block_until_ready(program(*args))


class TorchSpecial:
    """torch.special, by SciPy's names."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def __getattr__(self, name: str) -> Any:
        other = TORCH.get(name, name)
        if other is None:
            raise AttributeError(name)
        return getattr(self.torch.special, other)


def torch(row: Row) -> Call:
    torch = importlib.import_module("torch")
    xp = Namespace(torch.sum, torch.abs, torch.fft, torch.linalg, TorchSpecial(torch))
    args = [torch.from_numpy(x) for x in row.args]
    if not row.gradient:
        return lambda: row.function(xp, *args)

    def call() -> Any:
        x = args[0].clone().requires_grad_()
        return torch.autograd.grad(row.function(xp, x, *args[1:]), x)[0]

    return call


FRAMEWORKS: dict[str, Callable[[Row], Call]] = {"adjit": adjit, "jax": jax, "torch": torch}


# ---- measuring


def ready(row: Row) -> tuple[dict[str, Call], dict[str, Any]]:
    """The calls of the frameworks that have the function, compiled, and their results."""
    calls, results = {}, {}
    for name, make in FRAMEWORKS.items():
        try:
            call = make(row)
            results[name] = numpy.asarray(call())
        except (ImportError, AttributeError, NotImplementedError):
            continue
        calls[name] = call
    return calls, results


def best_times(calls: dict[str, Call], seconds: float, rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    best = dict.fromkeys(calls, math.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            until = clock() + seconds / rounds
            while True:
                started = clock()
                call()
                now = clock()
                best[name] = min(best[name], now - started)
                if now > until:
                    break
    return best


def single(x: Any) -> Any:
    """x in half as many bits."""
    return x.astype({"f": numpy.float32, "c": numpy.complex64}[x.dtype.kind])


def agree(results: dict[str, Any], gradient: bool, tolerance: float) -> bool:
    """Whether results agree; JAX's gradients of complex numbers are the conjugates."""
    ours = results["adjit"]
    for name, theirs in results.items():
        other = numpy.conj(theirs) if name == "jax" and gradient else theirs
        scale = numpy.max(numpy.abs(ours[numpy.isfinite(ours)]), initial=1e-300)
        if not numpy.allclose(ours / scale, other / scale, rtol=tolerance, atol=tolerance / 10.0, equal_nan=True):
            return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[""], help="rows with one of these words in their names")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each framework and row")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processor", action="store_true", help="one core, and processor time")
    parser.add_argument("--float32", action="store_true", help="float32 and complex64 instead of float64 and complex128")
    options = parser.parse_args()
    clock = time.process_time if options.processor else time.perf_counter
    if options.processor:  # before the frameworks are imported, which read it then
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print("| row | adjit | JAX | PyTorch | ratio | |\n|---|--:|--:|--:|--:|---|")
    worst = True
    for name, row in rows().items():
        if not any(word in name for word in options.only):
            continue
        if options.float32:
            row = row._replace(args=tuple(single(x) for x in row.args))
        calls, results = ready(row)
        best = best_times(calls, options.seconds, options.rounds, clock)
        times = [f"{best[peer] * 1e3:.3f} ms" if peer in best else "" for peer in FRAMEWORKS]
        peers = [best[peer] for peer in best if peer != "adjit"]
        ratio = f"{best['adjit'] / min(peers):.2f}" if peers else ""
        same = agree(results, row.gradient, 1e-3 if options.float32 else 1e-5)
        worst &= same
        print(f"| {name} | {' | '.join(times)} | {ratio} | {'' if same else 'DIFFERS'} |", flush=True)
    return int(not worst)


if __name__ == "__main__":
    sys.exit(main())
