"""Nests on several threads: a long computation over few elements, around the sizes of rows that one axis is cut into."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import tf
from adjit.codegen.compile import compile_func
from adjit.codegen.llvm.target import current
from adjit.codegen.loops.chunks import ROW
from adjit.codegen.products import cutting
from adjit.codegen.threads import library
from adjit.ir import ops
from adjit.ir.ops.base import Op, apply
from adjit.ir.ops.convolution import Convolve, ConvolveFilter, ConvolveInput
from adjit.ir.ops.linalg import Matmul
from adjit.ir.ops.pooling import MaxPool, PickMax, PlaceMax, SpreadPool, SumPool
from adjit.passes.pipeline import OPTIMIZE
from tests.codegen.test_kernels import build


@pytest.mark.parametrize("size", [ROW - 1, ROW, ROW + 1, 2 * ROW - 1, 2 * ROW, 2 * ROW + 5, 40 * ROW + 3])
def test_one_axis_with_many_ops(size: int) -> None:
    def f(x):
        for _ in range(6):
            x = np.tanh(x * 1.25) + np.sin(x)
        return x, x.sum()

    x = np.random.default_rng(0).normal(size=size)
    values, total = aj.function(f)(x)
    wanted, its_total = f(x)
    np.testing.assert_allclose(values, wanted, rtol=1e-12)
    np.testing.assert_allclose(total, its_total, rtol=1e-9)


ONES, TWOS = (1, 1), (2, 2)
IMAGES = {
    "convolve": (Convolve(ONES, ONES, 1), (9, 17, 16, 3), (3, 3, 3, 10)),
    "convolve_one_image": (Convolve((2, 1), ONES, 1), (1, 41, 40, 5), (3, 3, 5, 20)),
    "convolve_packed": (Convolve(TWOS, ONES, 1), (7, 15, 16, 12), (3, 2, 12, 64)),
    "convolve_groups": (Convolve(ONES, TWOS, 4), (5, 18, 16, 8), (3, 3, 2, 20)),
    "convolve_input": (ConvolveInput(ONES, ONES, 1, (12, 13)), (9, 10, 11, 9), (3, 3, 6, 9)),
    "convolve_input_packed": (ConvolveInput(TWOS, ONES, 1, (13, 13)), (9, 6, 6, 24), (3, 3, 32, 24)),
    "convolve_input_groups": (ConvolveInput(ONES, ONES, 3, (20, 20)), (9, 18, 18, 9), (3, 3, 2, 9)),
    "convolve_filter": (ConvolveFilter(ONES, ONES, 1, (5, 5)), (35, 16, 16, 1), (35, 12, 12, 6)),
    "convolve_filter_packed": (ConvolveFilter(ONES, ONES, 1, (3, 3)), (18, 9, 9, 12), (18, 7, 7, 48)),
    "convolve_filter_cut": (ConvolveFilter(ONES, ONES, 1, (3, 3)), (17, 4, 4, 96), (17, 2, 2, 96)),
    "max_pool": (MaxPool(TWOS, TWOS), (80, 21, 20, 7)),
    "sum_pool": (SumPool((3, 2), ONES), (30, 21, 20, 7)),
    "spread_pool": (SpreadPool((3, 2), TWOS, (21, 20)), (40, 10, 10, 17)),
    "pick_max": (PickMax((3, 3), TWOS), (40, 21, 20, 7), (40, 21, 20, 7)),
    "place_max": (PlaceMax(TWOS, TWOS), (40, 20, 20, 14), (40, 10, 10, 14)),
    "place_max_uncovered": (PlaceMax((2, 3), (2, 4)), (60, 21, 20, 14), (60, 10, 5, 14)),
    "place_max_overlapping": (PlaceMax((3, 3), TWOS), (40, 21, 20, 7), (40, 10, 9, 7)),
}


STACKS = [
    ((300, 8, 9), (300, 9, 7)), ((5, 20, 16, 16), (5, 20, 16, 16)), ((2, 3, 33, 64), (2, 3, 64, 65)), ((9, 40, 70), (9, 70, 300)),
    ((3, 64, 512), (3, 512, 128)), ((40, 1, 64), (40, 64, 64)),
]  # fmt: skip


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
@pytest.mark.parametrize("shapes", STACKS, ids=str)
def test_stacks_of_products_are_the_same_bits_on_any_number_of_threads(shapes: Any, dtype: str, transposed: bool) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 8, shape).astype(dtype) for shape in shapes)
    want = np.matmul(a, b)
    if transposed:
        b = np.ascontiguousarray(np.swapaxes(b, -1, -2))
    axes = (*range(b.ndim - 2), b.ndim - 1, b.ndim - 2)
    func = OPTIMIZE(build(lambda a, b: ops.matmul(a, ops.transpose(b, axes) if transposed else b), a, b))
    for threads in (1, 2, 3, 4):
        native = compile_func(func, threads=threads)
        assert ("adjit_parallel" in native.llvm) == (threads > 1), "too small for several threads"
        np.testing.assert_array_equal(native([a, b])[0], want)


IN_PLACE = [(20, 1000, 20), (8, 4096, 8), (5000, 16, 12), (4099, 70, 11), (16, 16, 5003), (31, 64, 900), (100, 2600, 10)]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("sizes", IN_PLACE, ids=str)
def test_narrow_and_low_products_are_computed_in_place_with_the_same_bits_on_any_number_of_threads(
    sizes: tuple[int, int, int], dtype: str, transposed: bool
) -> None:
    m, k, n = sizes
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((k, m) if transposed else (m, k), (k, n)))
    bias = rng.standard_normal(n).astype(dtype)
    left = (lambda a: ops.transpose(a, (1, 0))) if transposed else (lambda a: a)
    func = OPTIMIZE(build(lambda a, b, bias: ops.tanh(ops.matmul(left(a), b) + ops.broadcast_to(bias, (m, n))), a, b, bias))
    exact = np.tanh((a.T if transposed else a).astype("f8") @ b.astype("f8") + bias.astype("f8"))
    results = []
    for threads in (1, 2, 3):
        native = compile_func(func, threads=threads)
        assert not any(name in native.llvm for name in library.NAMES.values())
        results.append(native([a, b, bias])[0])
    np.testing.assert_allclose(results[0], exact, atol=1e-3 if dtype == "f4" else 1e-11)
    assert len({r.tobytes() for r in results}) == 1


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", IMAGES)
def test_images_are_the_same_bits_on_any_number_of_threads(name: str, dtype: str) -> None:
    op: Op
    op, *shapes = IMAGES[name]
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(dtype) for shape in shapes]
    func = OPTIMIZE(build(lambda *args: apply(op, *args), *arrays))
    results = []
    for threads in (1, 2, 3, 4):
        native = compile_func(func, threads=threads)
        assert ("adjit_parallel" in native.llvm) == (threads > 1), "too small for several threads"
        results.append(native(arrays)[0])
    np.testing.assert_allclose(results[0], op.evaluate(*arrays), rtol=1e-9 if dtype == "f8" else 1e-3, atol=1e-9 if dtype == "f8" else 1e-4)
    assert len({r.tobytes() for r in results}) == 1


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("m", [87, 235, 272, 300])
def test_a_product_on_one_thread_packs_into_its_own_buffer(m: int, threads: int) -> None:
    """One thread uses larger blocks of rows than several: its buffer must be large enough, whatever the size of the pool."""
    x, y = np.ones((50, m)), np.ones((60, 50))
    func = OPTIMIZE(build(lambda x, y: apply(Matmul(), x.transpose((1, 0)), y.transpose((1, 0))), x, y))
    native = compile_func(func, threads=threads)
    assert f"call void @{library.NAMES[x.dtype]}(" in native.llvm
    assert native.arena_bytes >= cutting.work_bytes(60, 50, cutting.block_rows(m, 1, current()), 1, x.dtype, current())
    np.testing.assert_array_equal(native([x, y])[0], x.T @ y.T)


PICTURES, FILTERS = (np.random.default_rng(0).standard_normal(shape).astype("f4") for shape in ((16, 28, 28, 6), (5, 5, 6, 16)))
SHARED_OUT = {
    "rows of a running total": (lambda x: np.cumsum(x, 1), (np.ones((1000, 1000), "f4"),)),
    "a stack of products": (np.matmul, (np.ones((64, 40, 40), "f4"), np.ones((64, 40, 40), "f4"))),
    "a convolution": (lambda x, w: tf.nn.conv2d(x, w, 1, "SAME"), (PICTURES, FILTERS)),
    "its gradients": (aj.grad(lambda x, w: aj.sum(tf.nn.conv2d(x, w, 1, "SAME") ** 2), (0, 1)), (PICTURES, FILTERS)),
}


@pytest.mark.parametrize("name", SHARED_OUT)
@pytest.mark.one_size("looks for chunks whose number is known")
def test_what_is_shared_out_goes_to_all_threads(name: str) -> None:
    """The pool runs on that many threads, and the bits are those of one thread, at every call."""
    fn, arrays = SHARED_OUT[name]
    f = aj.function(fn, threads=3)
    told = re.findall(r"call void @adjit_parallel\(.*, i64 (\d+)\)", f.inspect(*arrays).llvm)
    assert told
    assert set(told) == {"3"}
    bits = [[np.asarray(t).tobytes() for t in out] for out in (as_tuple(g(*arrays)) for g in (aj.function(fn, threads=1), *[f] * 20))]
    assert all(each == bits[0] for each in bits)


def as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


POOL_AFTER_FORK = """
import os, signal, threading, numpy as np, adjit as aj

f = aj.function(lambda x: np.exp(x) + 1.0)
x = np.linspace(0.0, 1.0, 2_000_000)
expected = f(x).numpy().copy()
over = threading.Event()

def run():
    while not over.is_set():
        f(x)

def threads():
    return len(os.listdir("/proc/self/task"))

thread = threading.Thread(target=run)
thread.start()
for _ in range(4):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        before = threads()
        fine = all(np.array_equal(f(x).numpy(), expected) for _ in range(3))
        os._exit(0 if fine and (before, threads()) == (1, 3) else 1)
    assert os.waitpid(child, 0)[1] == 0
over.set()
thread.join()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads of a process are counted the way Linux shows them")
def test_a_forked_child_has_workers_again_when_it_needs_them() -> None:
    """Also while another thread of the parent uses the pool."""
    env = {**os.environ, "ADJIT_NUM_THREADS": "3"}
    run = subprocess.run([sys.executable, "-c", POOL_AFTER_FORK], env=env, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
