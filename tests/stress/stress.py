"""Everything that threads, forks and signals can do to compiled functions, at random and at once.

    python -m tests.stress.stress --seconds 60 --seed 1

Eight threads, and the main thread, which is interrupted by Ctrl-C, share functions and variables. Each activity checks what it sees:
results, that two variables which every step changes alike are alike (nothing torn), that all steps were counted, that children of forks
work. A watchdog ends the program with the stacks of all threads when one of them makes no progress. Memory is compared between the middle
and the end.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import random
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

import adjit as aj

THREADS = 8
SIZE = 20_000  # elements of the shared variables: a step takes long enough to be seen in the middle
STUCK = 120.0  # seconds without progress, on a machine that does nothing else
GROWTH = 1.25, 48 << 20  # memory at the end, as a multiple of that in the middle and in bytes: less than one of them
ONE = np.ones(())
STATIC_FACTORS = (0.5, 1.5, 2.5, 3.5)


def polynomial(factor: float) -> aj.Function:
    """A short function, with the GIL."""
    return aj.function(lambda x: factor * x * x + x, reduce_retracing=True, max_traces=4)


def looped(factor: float) -> aj.Function:
    """A longer one, without it."""

    def body(x: Any) -> Any:
        for _ in aj.range(50):
            x = x * factor + 1.0
        return np.sum(x)

    return aj.function(body, reduce_retracing=True, max_traces=4)


def looped_eagerly(x: Any, factor: float) -> float:
    for _ in range(50):
        x = x * factor + 1.0
    return float(np.sum(x))


class Twins:
    """Two variables that are equal in every element between two steps."""

    def __init__(self) -> None:
        self.a, self.b = (aj.Variable(np.zeros(SIZE), name=name) for name in "ab")
        self.steps: Counter[int] = Counter()  # by thread
        self.step = aj.function(self._step)
        self.failing = aj.function(self._failing)
        self.ends = aj.function(lambda: (self.a[0], self.a[SIZE - 1], self.b[0], self.b[SIZE - 1]))
        self.sums = aj.function(lambda x: (np.max(self.a * x), np.min(self.a), np.max(self.b), np.min(self.b)))

    def _step(self, x: Any) -> Any:
        self.a.assign_add(x * np.ones(SIZE))
        self.b.assign_add(x * np.ones(SIZE))
        return x

    def _failing(self, i: Any) -> Any:
        self.a.assign_add(np.ones(SIZE))
        self.b.assign_add(np.ones(SIZE))
        return self.a[i]

    def advance(self) -> None:
        self.step(ONE)
        self.steps[threading.get_ident()] += 1

    def check(self, rng: random.Random) -> None:
        match rng.randrange(3):
            case 0:
                seen = self.ends()
            case 1:
                seen = self.sums(ONE)
            case _:
                array = (self.a if rng.random() < 0.5 else self.b).numpy()
                seen = (array[0], array[SIZE // 2], array[-1], array.max())
        values = {float(x) for x in seen}
        assert len(values) == 1, f"torn: {values}"

    def fail(self) -> None:
        before = float(self.a[0])
        try:
            self.failing(np.array([SIZE + 5]))
        except IndexError:
            assert float(self.a[0]) >= before
        else:
            raise AssertionError("an index out of bounds was not noticed")


class Stress:
    """What the threads share, and the activities."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.over = threading.Event()
        self.errors: list[str] = []
        self.progress: dict[str, float] = {}
        self.done: Counter[str] = Counter()
        self.polynomials = [polynomial(f) for f in STATIC_FACTORS]
        self.loops = [looped(f) for f in STATIC_FACTORS]
        self.twins = Twins()
        self.interrupted = Twins()  # of the main thread: it is unknown which of its steps were counted
        self.weight = aj.Variable(np.ones(8))
        self.tree: dict[str, Any] = {"x": [np.ones(500)], "y": np.zeros(500)}
        self.of_tree = aj.function(lambda tree: self.loops[0](tree["x"][0] + tree["y"]), reduce_retracing=True)
        self.forking = threading.Lock()
        self.exposed = False  # whether Ctrl-C raises now

    # ---- activities

    def first_call(self, rng: random.Random) -> None:
        factor, n = rng.choice([*STATIC_FACTORS, rng.randrange(1, 40) / 8]), rng.randrange(1, 5)
        x = np.full(n, 2.0)
        f = rng.choice([polynomial, looped])(factor)
        expected = factor * x * x + x if f.__name__ == "<lambda>" else looped_eagerly(x, factor)
        for _ in range(rng.randrange(1, 4)):
            np.testing.assert_allclose(np.asarray(f(x)), expected, rtol=1e-9)

    def shared_call(self, rng: random.Random) -> None:
        k, n = rng.randrange(len(STATIC_FACTORS)), rng.choice([3, 100, 101, 102, 103, 104, 20_000])
        x = np.full(n, 2.0)
        for _ in range(rng.randrange(1, 20)):
            if rng.random() < 0.5:
                assert float(self.polynomials[k](x)[n - 1]) == 4.0 * STATIC_FACTORS[k] + 2.0
            else:
                np.testing.assert_allclose(float(self.loops[k](x)), looped_eagerly(x, STATIC_FACTORS[k]), rtol=1e-9)

    def clear(self, rng: random.Random) -> None:
        rng.choice([*self.polynomials, *self.loops]).clear_cache()

    def drop(self, rng: random.Random) -> None:
        k = rng.randrange(len(STATIC_FACTORS))
        self.polynomials[k], self.loops[k] = polynomial(STATIC_FACTORS[k]), looped(STATIC_FACTORS[k])

    def step(self, rng: random.Random) -> None:
        for _ in range(rng.randrange(1, 20)):
            self.twins.advance()

    def read(self, rng: random.Random) -> None:
        for _ in range(rng.randrange(1, 20)):
            self.twins.check(rng)

    def error(self, rng: random.Random) -> None:
        self.twins.fail()

    def eager(self, rng: random.Random) -> None:
        with aj.GradientTape() as tape:
            loss = np.sum(self.weight * self.weight)
        gradient = tape.gradient(loss, self.weight)
        assert len({float(g) for g in gradient}) == 1
        self.weight.assign(np.full(8, rng.random()))

    def gradient(self, rng: random.Random) -> None:
        x = np.full(rng.randrange(1, 4), 3.0)
        np.testing.assert_allclose(aj.function(aj.grad(lambda x: np.sum(x**3)))(x).numpy(), 27.0)

    def tree_call(self, rng: random.Random) -> None:
        with suppress(IndexError, KeyError, ValueError, aj.AdjitError):  # emptied by another thread before it was read
            np.testing.assert_allclose(float(self.of_tree(self.tree)), looped_eagerly(np.ones(500), STATIC_FACTORS[0]), rtol=1e-9)

    def tree_change(self, rng: random.Random) -> None:
        self.tree["x"].clear()
        self.tree["x"] = [np.ones(500)]
        self.tree["y"] = np.zeros(500)

    def collect(self, rng: random.Random) -> None:
        gc.collect()

    def fork(self, rng: random.Random) -> None:
        if not self.forking.acquire(blocking=False):
            return
        try:
            child = os.fork()
            if child == 0:
                os._exit(self._child(rng))
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert code == 0, f"a child ended with {code}"
        finally:
            self.forking.release()

    def _child(self, rng: random.Random) -> int:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        faulthandler.dump_traceback_later(patience(60), exit=True)
        try:
            self.twins.check(rng)
            self.twins.advance()
            self.twins.check(rng)
            for activity in rng.sample([self.first_call, self.shared_call, self.read, self.step, self.gradient], 3):
                activity(rng)
        except BaseException:
            traceback.print_exc()
            return 1
        return 0

    def interruptible(self, rng: random.Random) -> None:
        """Code that Ctrl-C may interrupt anywhere."""
        self.exposed = True
        try:
            for _ in range(5):
                self.interrupted.step(ONE)
                self.interrupted.check(rng)
            rng.choice([self.first_call, self.shared_call, self.read, self.gradient])(rng)
        finally:
            self.exposed = False

    def on_interrupt(self, *_: Any) -> None:
        """Raise as Python does, but only once in each activity, and never in this program's own loop and handlers."""
        if self.exposed:
            self.exposed = False
            raise KeyboardInterrupt

    # ---- running

    def warm_up(self) -> None:
        """Import all modules that are imported late: an interrupt may leave Python's own import lock locked."""
        rng = random.Random(0)
        fresh = int.from_bytes(os.urandom(6), "little") * 1e-20  # what the disk cannot have: it is compiled
        for make in (polynomial, looped, lambda factor: aj.function(aj.grad(lambda x: np.sum(factor * x**3)))):
            make(fresh)(np.ones(3))
        for activity in (self.first_call, self.shared_call, self.step, self.read, self.error, self.eager, self.gradient, self.tree_call):
            for _ in range(5):
                activity(rng)

    def run(self, name: str, activities: list[tuple[int, Callable[[random.Random], None]]], seed: int) -> None:
        rng = random.Random(seed)
        weights, calls = [w for w, _ in activities], [call for _, call in activities]
        while not self.over.is_set():
            call = rng.choices(calls, weights)[0]
            try:
                call(rng)
            except KeyboardInterrupt:
                self.done["interrupts"] += 1
            except BaseException as error:
                self.errors.append(f"{name}, {call.__name__}: {type(error).__name__}: {error}\n{traceback.format_exc()}")
                self.over.set()
            self.done[call.__name__] += 1
            self.progress[name] = time.monotonic()

    def mix(self) -> list[tuple[int, Callable[[random.Random], None]]]:
        return [
            (4, self.first_call), (30, self.shared_call), (2, self.clear), (2, self.drop), (40, self.step), (40, self.read),
            (10, self.error), (10, self.eager), (2, self.gradient), (10, self.tree_call), (10, self.tree_change), (1, self.collect),
            (2, self.fork),
        ]  # fmt: skip

    def watch(self, seconds: float) -> None:
        """Interrupts the main thread, until the time is over or somebody is stuck."""
        try:
            self._watch(seconds)
        except BaseException:
            self.errors.append(f"the watcher ended:\n{traceback.format_exc()}")
        finally:
            self.over.set()

    def _watch(self, seconds: float) -> None:
        rng = random.Random(self.seed)
        end, main = time.monotonic() + seconds, threading.main_thread().ident
        assert main is not None
        while not self.over.is_set() and time.monotonic() < end:
            self.over.wait(rng.uniform(0.01, 0.2))
            signal.pthread_kill(main, signal.SIGINT)
            sys.setswitchinterval(rng.choice([1e-5, 1e-4, 5e-3]))
            late = [name for name, last in list(self.progress.items()) if time.monotonic() - last > patience(STUCK)]
            if late:
                print(f"stuck: {late}", file=sys.stderr, flush=True)
                faulthandler.dump_traceback(all_threads=True)
                os._exit(3)

    def finish(self) -> None:
        expected, found = float(sum(self.twins.steps.values())), float(self.twins.a[0])
        assert expected == found, f"{expected} steps were made, {found} counted"
        self.twins.check(random.Random(0))
        self.interrupted.check(random.Random(0))


def patience(seconds: float) -> float:
    """The time to wait for an operation of at most so many seconds, if other processes use the CPUs as well."""
    return seconds * (1.0 + os.getloadavg()[0] / (os.cpu_count() or 1))


def memory() -> int:
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def phase(stress: Stress, seconds: float, seed: int) -> None:
    stress.over.clear()
    seeds = [seed * 1000 + k for k in range(THREADS)]
    threads = [threading.Thread(target=stress.run, args=(f"thread {s}", stress.mix(), s), daemon=True) for s in seeds]
    watcher = threading.Thread(target=stress.watch, args=(seconds,), daemon=True)
    for thread in (*threads, watcher):
        thread.start()
    stress.run("main", [(1, stress.interruptible)], seed)
    watcher.join()
    for thread in threads:
        thread.join(patience(STUCK))
        if thread.is_alive():
            faulthandler.dump_traceback(all_threads=True)
            os._exit(3)
    stress.progress.clear()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = int.from_bytes(os.urandom(3), "little") if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    faulthandler.enable()
    warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*multi-threaded.*fork")
    stress, sizes = Stress(seed), []
    signal.signal(signal.SIGINT, stress.on_interrupt)
    stress.warm_up()
    for half in range(2):
        phase(stress, given.seconds / 2, seed + half)
        if stress.errors:
            print("\n".join(stress.errors), file=sys.stderr)
            return 1
        sizes.append(memory())
    stress.finish()
    print(f"{sum(stress.done.values())} activities: {dict(stress.done)}; memory {sizes[0] >> 20} -> {sizes[1] >> 20} MB")
    if sizes[1] > sizes[0] * GROWTH[0] and sizes[1] > sizes[0] + GROWTH[1]:
        print("memory grows", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
