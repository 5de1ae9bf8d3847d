"""Nests whose sizes are variables: one function for all sizes, planned, checked and rendered like any other."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adjit.codegen.llvm.lanes import Text
from adjit.codegen.llvm.target import current
from adjit.codegen.llvm.toolchain import Library, assemble
from adjit.codegen.loops.checker import check
from adjit.codegen.loops.ir import Access, Chunk, Extent, LoopProgram, Reduction
from adjit.codegen.loops.nest import NestPlan, NestSpec
from adjit.codegen.loops.renderer import render
from adjit.ir.errors import VerifyError
from adjit.ir.expr import Expr, variable
from adjit.ir.ops.reduce import AllTrue, Max, Reduce, Sum
from adjit.ir.types import BOOL, F32, F64, I64, DType

N, T = variable("N"), variable("T")
I16 = np.dtype("i2")
SIZES = [1, 2, 3, 7, 8, 31, 64, 100, 1000, 5003]


def program(spec: NestSpec, **extents: Expr) -> LoopProgram:
    """The program of a nest; `extents` are the numbers of elements of float64 buffers."""
    plan = NestPlan(current().vector_bytes, spec)
    return LoopProgram(plan.nodes(), {f"%{name}": Extent(0, n * 8) for name, n in extents.items()})


def compiled(program: LoopProgram, *names: str) -> Callable[..., None]:
    """A native function of these buffers, N and T."""
    check(program)
    text = Text(current())
    render(text, program.nodes, sizes={N: "%N", T: "%T"})
    params = ", ".join([*(f"ptr %{name}" for name in names), "i64 %N", "i64 %T"])
    body = "\n".join([*text.slots, *text.lines])
    declares = "\n".join(sorted(text.declares))
    code = assemble(f"{declares}\ndefine void @f({params}) nounwind {{\nentry:\n{body}\nret void\n}}\n", current())
    library = Library([code], ["f"], {})
    native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(names), ctypes.c_int64, ctypes.c_int64)(library.address["f"])

    def call(*args: Any) -> None:
        assert library
        native(*(a.ctypes.data if isinstance(a, np.ndarray) else a for a in args))

    return call


def twice(chunk: Chunk) -> None:
    chunk.put(0, chunk.emit.add(chunk.load(0), chunk.load(0)))


def total(chunk: Chunk) -> None:
    chunk.reduce(0, chunk.load(0))


def test_a_map_over_one_axis() -> None:
    spec = NestSpec((N,), [Access("%x", (1,), F64)], [Access("%y", (1,), F64)], [], twice)
    f = compiled(program(spec, x=N, y=N), "x", "y")
    for n in SIZES:
        x, y = np.arange(float(n)), np.zeros(n + 1)
        f(x, y, n, 0)
        np.testing.assert_array_equal(y, [*(2 * x), 0.0])


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("dtype", [F32, F64, BOOL, I16], ids=str)
def test_the_last_vector_of_a_row_ends_with_it(vector_bytes: int, dtype: DType) -> None:
    """Rows with one more element than is computed: the last element is unchanged."""
    spec = NestSpec((N, T), [Access("%x", (T + 1, 1), dtype)], [Access("%y", (T + 1, 1), dtype)], [], lambda c: c.put(0, c.load(0)), 50)
    plan = NestPlan(vector_bytes, spec)
    bytes_ = (N * T + N) * dtype.itemsize
    f = compiled(LoopProgram(plan.nodes(), {"%x": Extent(0, bytes_), "%y": Extent(0, bytes_)}), "x", "y")
    for t in (0, *SIZES[:8]):
        x = np.random.default_rng(t).integers(0, 2, (5, t + 1)).astype(dtype)
        y = np.full_like(x, True if dtype == BOOL else 7)
        want = np.concatenate([x[:, :t], y[:, t:]], 1)
        f(x, y, 5, t)
        np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize(("dtype", "op"), [(F32, Sum), (F64, Sum), (F32, Max), (I64, Max), (BOOL, AllTrue)], ids=str)
@pytest.mark.parametrize("ops", [1, 50])
def test_lanes_behind_the_end_do_not_count(vector_bytes: int, dtype: DType, op: type[Reduce], ops: int) -> None:
    """Reductions of short rows, of those that are longer than a block, and NaN in the last element."""
    reduction = Reduction(op((1,)), (1,), Access("%y", (1, 0), dtype))
    spec = NestSpec((N, T), [Access("%x", (T, 1), dtype)], [], [reduction], total, ops)
    extents = {"%x": Extent(0, N * T * dtype.itemsize), "%y": Extent(0, N * dtype.itemsize)}
    f = compiled(LoopProgram(NestPlan(vector_bytes, spec).nodes(), extents), "x", "y")
    reduce: Any = {Sum: np.sum, Max: np.max, AllTrue: np.all}[op]
    for t in (*SIZES, 2049, 20_001):
        x = np.random.default_rng(t).standard_normal((3, t))
        x = np.ones((3, t), bool) if dtype == BOOL else (-np.abs(10 * x) - 1).astype(dtype)
        if dtype.kind == "f":
            x[-1, -1] = np.nan
        y = np.zeros(3, dtype)
        f(x, y, 3, t)
        np.testing.assert_allclose(y, reduce(x, 1), rtol=1e-5 if dtype == F32 else 1e-12)


def test_a_map_over_rows_and_with_strides() -> None:
    """y[T, N] = 2 x[N, T].T: the strides are sizes too."""
    spec = NestSpec((T, N), [Access("%x", (1, T), F64)], [Access("%y", (N, 1), F64)], [], twice)
    f = compiled(program(spec, x=N * T, y=N * T), "x", "y")
    for n in SIZES[:7]:
        for t in SIZES[:7]:
            x, y = np.random.default_rng(n).standard_normal((n, t)), np.zeros((t, n))
            f(x, y, n, t)
            np.testing.assert_array_equal(y, 2 * x.T)


@pytest.mark.parametrize("op", [Sum, Max])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)], ids=str)
def test_reductions(op: type[Reduce], axes: tuple[int, ...]) -> None:
    """Of x[N, T], over each of its axes, and over both."""
    kept = [axis for axis in (0, 1) if axis not in axes]
    strides = tuple(1 if axis in kept else 0 for axis in (0, 1))
    reduction = Reduction(op(axes), axes, Access("%y", strides, F64))
    spec = NestSpec((N, T), [Access("%x", (T, 1), F64)], [], [reduction], total)
    f = compiled(program(spec, x=N * T, y=[T, N, 1][axes[0] if len(axes) == 1 else 2]), "x", "y")
    for n, t in [(1, 1), (2, 3), (7, 64), (64, 7), (33, 200), (3, 5003)]:
        x = np.random.default_rng(n).standard_normal((n, t))
        want = np.sum(x, axes) if op is Sum else np.max(x, axes)
        y = np.zeros(np.shape(want))
        f(x, y, n, t)
        np.testing.assert_allclose(y, want, rtol=1e-12, atol=1e-12)


def test_long_float32_sums_keep_their_digits() -> None:
    reduction = Reduction(Sum((0,)), (0,), Access("%y", (0,), F32))
    plan = NestPlan(current().vector_bytes, NestSpec((N,), [Access("%x", (1,), F32)], [], [reduction], total))
    f = compiled(LoopProgram(plan.nodes(), {"%x": Extent(0, N * 4), "%y": Extent(0, 4)}), "x", "y")
    x, y = np.full(1_000_003, 0.1, "f4"), np.zeros(1, "f4")
    f(x, y, len(x), 0)
    assert y[0] == pytest.approx(float(x[0]) * len(x), rel=1e-5)


@pytest.mark.parametrize("size", [N - 1, N + T, 2 * T])
def test_buffers_that_are_too_small_are_rejected(size: Expr) -> None:
    spec = NestSpec((N, T), [Access("%x", (T, 1), F64)], [Access("%y", (T, 1), F64)], [], twice)
    check(program(spec, x=N * T, y=N * T))
    with pytest.raises(VerifyError, match="may be outside of %x"):
        check(program(spec, x=size, y=N * T))
