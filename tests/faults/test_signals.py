"""Signals while long kernels run: Python's handlers run meanwhile, Ctrl-C ends the call, and the state is as before."""

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import tf
from adjit.codegen.interrupts import signals
from adjit.codegen.native import Native

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals are sent the way of POSIX")
RNG = np.random.default_rng(0)
TICK = 0.02  # seconds between checks for signals in native code


def normal(*shape: int, dtype: str = "f8") -> Any:
    return RNG.standard_normal(shape).astype(dtype)


# kernels of every kind, of a fraction of a second each
KERNELS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "product": (lambda x: x @ x, lambda: (normal(1700, 1700),)),
    "product and what follows": (lambda x: np.tanh(x @ x + 1.0), lambda: (normal(2000, 2000, dtype="f4"),)),
    "product of integers": (lambda x: x @ x, lambda: (np.ones((900, 900), np.int64),)),
    "small products": (lambda x: x @ x, lambda: (normal(3000, 64, 64),)),
    "narrow product": (lambda x, w: x @ w, lambda: (normal(300_000, 500, dtype="f4"), normal(500, 12, dtype="f4"))),
    "matrix times vector": (lambda x, y: np.sum(x @ y), lambda: (normal(40_000, 1000, dtype="f4"), normal(1000, dtype="f4"))),
    "cholesky": (lambda x: np.linalg.cholesky(x), lambda: (3.0 * np.eye(1200),)),
    "solve": (lambda x: np.linalg.solve(x, x[:, :400]), lambda: (3.0 * np.eye(1500),)),
    "qr": (lambda x: np.linalg.qr(x)[1], lambda: (normal(900, 900),)),
    "long sort": (lambda x: np.sort(x), lambda: (normal(3_000_000),)),
    "short sorts": (lambda x: np.argsort(x, 1), lambda: (normal(60_000, 50),)),
    "running sums": (lambda x: np.cumsum(np.cumsum(np.cumsum(x))), lambda: (np.ones(1 << 25, np.float32),)),
    "running sums of slices": (lambda x: np.cumsum(x, 0), lambda: (np.ones((1 << 19, 64)),)),
    "convolution": (lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), lambda: (normal(8, 96, 96, 32), normal(5, 5, 32, 64))),
    "sum of all pairs": (lambda x, y: np.sum(np.maximum(x[:, None], y)), lambda: (normal(1 << 14), normal(1 << 16))),
    "sums of rows": (lambda x, y: np.sum(np.sin(x[:, None] * y), 1), lambda: (normal(3), normal(1 << 23))),
    "maxima of columns": (lambda x, y: np.max(np.maximum(x[:, None], y), 0), lambda: (normal(1 << 21), normal(300))),
    "a long row": (lambda x: np.max(np.sin(aj.arange(1 << 27) * x)), lambda: (1.0,)),
    "elements": (lambda x: np.sin(np.exp(x)) ** 3.0 + np.tanh(x), lambda: (normal(1 << 25, dtype="f4"),)),
    "transpose": (lambda x: x.T + 1.0, lambda: (normal(5000, 5000, dtype="f4"),)),
    "indexing": (lambda x, i: np.sum(x[i]), lambda: (normal(1 << 22), RNG.integers(0, 1 << 22, 1 << 24))),
}  # fmt: skip


ALONE = ("product", "short sorts", "sum of all pairs", "convolution")
OF_ANY_SIZE = ("product", "small products", "narrow product", "convolution")
CASES = [*((name, 2, False) for name in KERNELS), *((name, 1, False) for name in ALONE), *((name, 1, True) for name in OF_ANY_SIZE)]


@pytest.mark.parametrize(("name", "threads", "dynamic"), CASES)
def test_handlers_run_during_a_kernel(name: str, threads: int, dynamic: bool) -> None:
    """A handler that does not raise is called all the time, and the result is the same bits as without."""
    fn, make = KERNELS[name]
    args = make()
    f = aj.function(fn, threads=threads, dynamic=dynamic)
    wanted = np.array(f(*args))
    calls: list[float] = []
    before = signal.signal(signal.SIGALRM, lambda *_: calls.append(time.perf_counter()))
    try:
        for _ in range(5):
            calls.clear()
            signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
            start = time.perf_counter()
            got = f(*args)
            end = time.perf_counter()
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert np.array_equal(got, wanted)
            if end - start > 6 * TICK:
                break
        else:
            pytest.skip("this machine is too fast to interrupt the kernel")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    moments = [start, *(t for t in calls if t < end), end]
    longest = max(b - a for a, b in itertools.pairwise(moments))
    assert len(moments) > 3, "handlers waited for the end of the kernel"
    assert longest < 1.0 or len(moments) > 10  # a busy machine may stop everything for a while


PRELUDE = """
import faulthandler, os, signal, threading, time
faulthandler.enable()
import adjit as aj, numpy as np
aj.config.threads = THREADS
rng = np.random.default_rng(0)
w = aj.Variable(np.ones(3), name="w")
pressed = [0.0]

def press(seconds=0.3):
    def wait():
        time.sleep(seconds)
        pressed[0] = time.perf_counter()
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=wait)
    thread.start()
    return thread

def interrupted(f, *args):
    thread = press()
    try:
        f(*args)
    except KeyboardInterrupt:
        print(time.perf_counter() - pressed[0])
    else:
        print("not interrupted")
    thread.join()
"""

PROGRAMS = {
    "a product, in a step": """
        @aj.function
        def step(x):
            w.assign_add(1.0 + np.zeros(3))
            y = x @ x
            w.assign(w * 2.0)
            return y
        x = rng.standard_normal((6000, 6000))
        interrupted(step, x)
        assert w.numpy().tolist() == [1.0] * 3
        step(np.ones((3, 3)))
        assert w.numpy().tolist() == [4.0] * 3
    """,
    "an update that a product makes in place": """
        big = aj.Variable(np.ones((5000, 5000)), name="big")
        @aj.function
        def step(x):
            big.assign_sub(0.1 * (x @ x))
        interrupted(step, rng.standard_normal((5000, 5000)))
        assert (big.numpy() == 1.0).all()
        aj.function(lambda: big.assign_add(np.ones((5000, 5000))))()
        assert (big.numpy() == 2.0).all()
    """,
    "a factorisation": """
        f = aj.function(lambda x: np.linalg.cholesky(x))
        interrupted(f, np.eye(6000) * 2.0)
        assert np.allclose(f(np.eye(30) * 4.0), 2.0 * np.eye(30))
    """,
    "through the native entry": """
        f = aj.function(lambda x, y: np.sum(np.sin(x[:, None] * y), 1))
        x, y = np.ones(8000), np.ones(1 << 20)
        f.inspect(x, y).llvm
        interrupted(f, x, y)
        interrupted(f, x, y)
        assert np.allclose(f(np.ones(2), y), np.sin(1.0) * (1 << 20))
    """,
    "a gradient": """
        @aj.function
        def step(x):
            with aj.GradientTape() as tape:
                tape.watch(x)
                y = np.sum(np.tanh(x @ x))
            w.assign_add(np.zeros(3) + y)
            return tape.gradient(y, x)
        interrupted(step, rng.standard_normal((5000, 5000)))
        assert w.numpy().tolist() == [1.0] * 3
    """,
    "another exception of a handler": """
        class TooLong(Exception):
            pass
        def handler(number, frame):
            raise TooLong
        signal.signal(signal.SIGINT, handler)
        f = aj.function(lambda x: x @ x)
        x = rng.standard_normal((6000, 6000))
        thread = press()
        try:
            f(x)
        except TooLong:
            print(time.perf_counter() - pressed[0])
        thread.join()
    """,
    "another thread goes on": """
        f = aj.function(lambda x: x @ x)
        small = np.eye(1500) * 2.0
        f(small)
        results = []
        def others():
            for _ in range(4):
                results.append(np.array(f(small)))
        thread = threading.Thread(target=others)
        thread.start()
        interrupted(f, rng.standard_normal((6000, 6000)))
        thread.join()
        assert len(results) == 4 and all(np.array_equal(r, np.eye(1500) * 4.0) for r in results)
    """,
    "after a fork": """
        f = aj.function(lambda x: x @ x)
        f(np.eye(1500))
        child = os.fork()
        if child == 0:
            interrupted(f, rng.standard_normal((6000, 6000)))
            os.sys.stdout.flush()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    """,
}


ALSO_ALONE = ("a product, in a step", "through the native entry")


@pytest.mark.parametrize(("name", "threads"), [*((name, 2) for name in PROGRAMS), *((name, 1) for name in ALSO_ALONE)])
def test_interrupt(name: str, threads: int) -> None:
    """Ctrl-C raises soon (here within seconds, since the machine may be busy), and leaves variables unchanged; the next call works."""
    program = PRELUDE.replace("THREADS", str(threads)) + dedent(PROGRAMS[name])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()
    assert all(float(seconds) < 2.0 for seconds in done.stdout.split()), done.stdout


class Alarm(Exception):
    pass


@pytest.mark.parametrize("quiet", [False, True])
def test_no_handler_runs_in_a_call_that_needs_python_to_stand_still(quiet: bool) -> None:
    """The native entry makes short calls with borrowed references: nothing may drop these meanwhile."""

    def ring(*_: Any) -> None:
        raise Alarm

    x = normal(1700, 1700)
    f = aj.function(lambda x: x @ x, threads=1)
    f.inspect(x)
    (concrete,) = f._cache.values()
    native, y = concrete.convention.native, np.empty_like(x)
    assert isinstance(native, Native)
    arena = native.new_arena()
    table = (ctypes.c_void_p * 2)(*(a.__array_interface__["data"][0] for a in (x, y)))
    record = (ctypes.c_int64 * signals.RECORD_WORDS)()
    record[signals.QUIET] = int(quiet)
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, TICK)
        native._main(table, arena.__array_interface__["data"][0], record)
        time.sleep(1.0)  # Python sees the signal at the next instruction
    except Alarm:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert record[signals.FLAG] == int(not quiet)
    if quiet:
        np.testing.assert_allclose(y, x @ x, rtol=1e-9, atol=1e-9)
