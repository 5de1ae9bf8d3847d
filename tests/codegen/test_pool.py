"""The thread pool: results after a fork, from several Python threads at once, and with no workers."""

from __future__ import annotations

import ctypes
import hashlib
import multiprocessing
import sys
import threading
import time

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.codegen.llvm.target import current
from adjit.codegen.native import Native
from adjit.codegen.threads import library, pool
from adjit.ir import ops
from adjit.ir.target import USUAL
from adjit.passes.pipeline import OPTIMIZE
from tests.codegen.test_kernels import build


def digests(results: list[np.ndarray]) -> list[str]:
    return [hashlib.sha256(r.tobytes()).hexdigest() for r in results]


def compiled(x: np.ndarray) -> Native:
    native = compile_func(OPTIMIZE(build(lambda x: (ops.exp(x * 0.1).sum(), ops.matmul(x, ops.transpose(x))), x)), threads=2)
    assert "adjit_parallel" in native.llvm
    return native


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_computes_alone() -> None:
    x = np.random.default_rng(0).standard_normal((300, 400))
    native = compiled(x)
    want = digests(native([x]))
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put(digests(native([x]))))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert queue.get() == want
    assert digests(native([x])) == want


def test_callers_at_once_share_the_pool() -> None:
    x = np.random.default_rng(0).standard_normal((300, 400))
    native = compiled(x)
    want = digests(native([x]))
    wrong = []

    def run() -> None:
        wrong.extend(1 for _ in range(20) if digests(native([x])) != want)

    callers = [threading.Thread(target=run) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_a_job_runs_on_at_most_the_requested_threads() -> None:
    """Chunks use memory by the number of their worker, and another function may have started more workers."""
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    run = kind(library.addresses(["adjit_parallel"], current().with_threads(4))["adjit_parallel"])
    workers = set()

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    def chunk(argument: int, number: int, worker: int) -> None:
        workers.add(worker)
        time.sleep(0.002)

    for threads in (4, 2):
        workers.clear()
        for _ in range(5):
            run(ctypes.cast(chunk, ctypes.c_void_p), None, 20, None, threads)
        assert workers <= set(range(threads))


def test_waiting_threads_pause_rarely() -> None:
    """A thread that pauses at every look is taken off its core by hypervisors, just when it is needed."""
    lines = pool.pool_ir(USUAL).splitlines()
    label = ""
    for line in lines:
        label = line.removesuffix(":") if line.endswith(":") else label
        if "sse2.pause" in line and not line.startswith("declare"):
            assert label == "breathe"
    conditions = [line for line in lines if "label %breathe" in line]
    assert len(conditions) == 2  # of workers, and of the caller
    assert all(line.strip().startswith("br i1 %breathes, label %breathe") for line in conditions)
    assert sum(f"%more, {pool.PAUSES - 1}" in line or f"%turned, {pool.PAUSES - 1}" in line for line in lines) == 2
