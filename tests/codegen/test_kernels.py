"""Native code against the interpreter: loop nests of every shape, reductions over every set of axes, products, buffers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.codegen.loops.nest import ADDITIONS
from adjit.codegen.native import Native
from adjit.ir import ops
from adjit.ir.builder import Builder
from adjit.ir.func import Func, Value
from adjit.ir.interpreter import run
from adjit.ir.operand import Literal
from adjit.ir.types import F32, TensorType
from adjit.passes.autodiff.reverse import backpropagate
from adjit.passes.pipeline import OPTIMIZE


def build(fn: Callable[..., Any], *arrays: np.ndarray, gradient: bool = False) -> Func:
    params = [Value(TensorType(a.dtype, a.shape), f"x{k}") for k, a in enumerate(arrays)]
    with Builder(params) as builder:
        out = fn(*params)
        results = list(out) if isinstance(out, tuple) else [out]
        if gradient:
            sources = [p for p in params if p.type.is_float]
            results += [g for g in backpropagate(builder.stmts, results[:1], [Literal(1.0, results[0].type)], sources) if g is not None]
        return Func("f", builder.finish(results))


def check(fn: Callable[..., Any], *arrays: np.ndarray, gradient: bool = False, rtol: float = 1e-12) -> Native:
    func = build(fn, *arrays, gradient=gradient)
    expected = run(func, *arrays)
    native = compile_func(OPTIMIZE(func))
    for _ in range(2):  # twice: the arena is reused
        for got, want in zip(native(arrays), expected, strict=True):
            assert got.dtype == want.dtype
            scale = float(np.max(np.abs(want), initial=0)) if want.dtype.kind == "f" else 0.0
            tolerance = 1e-5 if want.dtype == np.float32 else rtol
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=scale * tolerance)
    return native


def sample(*shape: int, dtype: str = "f8") -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


SHAPES = [(), (1,), (0,), (3,), (8,), (17,), (64,), (100,), (1000,), (20000,), (7, 5), (33, 10), (1, 6), (6, 1), (0, 4), (2, 3, 4)]


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_fused_map_and_total(shape: tuple[int, ...], dtype: str) -> None:
    check(lambda x: (ops.tanh(x * x + 0.5).sum(), x * 2.0), sample(*shape, dtype=dtype), gradient=True)


@pytest.mark.parametrize("axes", [a for n in range(1, 4) for a in itertools.combinations(range(3), n)], ids=str)
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_reductions_over_any_axes_of_any_layout(axes: tuple[int, ...], order: tuple[int, ...]) -> None:
    check(lambda x: ((x.transpose(order) * 2.0).sum(axes), ops.exp(x.transpose(order)).sum(axes)), sample(4, 5, 9))


@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u1", "u8"])
def test_integer_reductions(dtype: str) -> None:
    x = np.arange(60, dtype=dtype).reshape(5, 12)
    check(lambda x: (x.sum(0), x.sum(1), x.sum(), (x * x).max(1), (x + x).min(0)), x)


def test_long_float_sums_keep_their_digits() -> None:
    x = np.full(3_000_001, 0.1, np.float32)
    (total,) = compile_func(OPTIMIZE(build(lambda x: x.sum(), x)))([x])
    roundings = 2 * ADDITIONS[F32] + 8  # of one element: in its lane, and when the lanes are added; one total would lose four digits
    assert total == pytest.approx(float(x[0]) * 3_000_001, rel=roundings * 2.0**-24)


BIG = [(300_000,), (700, 600), (3, 200_000), (100_000, 5), (40, 50, 300), (8192 * 40,)]


@pytest.mark.parametrize("shape", BIG, ids=str)
def test_large_nests_are_cut_into_chunks(shape: tuple[int, ...]) -> None:
    def fn(x: Any) -> Any:
        e = ops.exp(x * 0.1)
        return (e.sum(), e, *(e.sum(a) for a in range(len(shape))), (x * x).max(), ops.transpose(e) + 1.0)

    native = check(fn, sample(*shape), gradient=True)
    assert "adjit_parallel" in native.llvm or "adjit_serial" in native.llvm


def test_results_are_the_same_bits_for_every_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def fn(x: Any, w: Any) -> Any:
        e = ops.exp(ops.matmul(x, w) * 0.01)
        return e, e.sum(), e.sum(0), e.sum(1)

    arrays = [sample(500, 300, dtype="f4"), sample(300, 700, dtype="f4")]
    answers = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("ADJIT_NUM_THREADS", threads)
        answers.append(compile_func(OPTIMIZE(build(fn, *arrays)))(arrays))
    for other in answers[1:]:
        for a, b in zip(answers[0], other, strict=True):
            assert a.tobytes() == b.tobytes()


def test_both_axes_of_a_pairwise_computation_reduce_in_one_kernel() -> None:
    def pairwise(x: Any, y: Any) -> Any:
        d = x.reshape(-1, 1) - y.reshape(1, -1)
        e = ops.exp(-(d * d))
        return e.sum(0), e.sum(1), e.sum()

    native = check(pairwise, sample(37), sample(21))
    assert native.llvm.count("define hidden") == 1
    assert native.arena_bytes == 0


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4"])
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 4), (4, 5)),
        ((1, 4), (4, 1)),
        ((7,), (7,)),
        ((3, 7), (7,)),
        ((7,), (7, 2)),
        ((2, 3, 4), (2, 4, 5)),
        ((3, 0), (0, 2)),
        ((0, 3), (3, 2)),
        ((40, 50), (50, 60)),
    ],
    ids=str,
)
def test_products(a: tuple[int, ...], b: tuple[int, ...], dtype: str) -> None:
    x, y = (np.random.default_rng(0).integers(-4, 5, s).astype(dtype) for s in (a, b))
    check(ops.matmul, x, y)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("shape", [(64, 33, 96), (64, 512, 784), (13, 400, 257), (200, 600, 513), (7, 1000, 9), (6, 512, 8)], ids=str)
def test_products_in_blocks(shape: tuple[int, int, int], dtype: str) -> None:
    """Packed or not, in several panels or one, with whole and ragged tiles; the same bits on any number of threads."""
    m, n, k = shape

    def f(a: Any, b: Any, at: Any, bt: Any) -> tuple[Any, ...]:
        return ops.matmul(a, b), ops.matmul(at.T, b), ops.matmul(a, bt.T), ops.matmul(at.T, bt.T)

    arrays = [sample(*s, dtype=dtype) for s in ((m, k), (k, n), (k, m), (n, k))]
    check(f, *arrays, rtol=1e-10)
    func = OPTIMIZE(build(f, *arrays))
    bits = [[r.tobytes() for r in compile_func(func, threads=threads)(arrays)] for threads in (1, 2, 3, 4)]
    assert all(b == bits[0] for b in bits)


def test_products_read_transposes_and_slices_as_they_lie() -> None:
    a, b = sample(6, 4), sample(6, 5)
    native = check(lambda a, b: ops.matmul(a.T, b), a, b)
    assert native.arena_bytes == 0
    check(lambda a, b: (ops.matmul(a.T, b), ops.matmul(ops.flip(a.T, (0,)), b)), a, b)


def test_softmax_and_its_gradient() -> None:
    def loss(x: Any, w: Any) -> Any:
        z = ops.matmul(x, w)
        e = ops.exp(z - z.max(1, keepdims=True))
        return ops.log(e / e.sum(1, keepdims=True)).sum()

    check(loss, sample(12, 6), sample(6, 10), gradient=True, rtol=1e-10)


def test_one_value_returned_twice_a_parameter_returned_and_a_literal() -> None:
    def fn(x: Any) -> Any:
        y = x * 2.0
        return y, y, x, x.literal(3.0, x.type), y.reshape(6), y.T

    check(fn, sample(2, 3))


def test_identical_kernels_are_compiled_once() -> None:
    func = build(lambda a, b, w: (ops.matmul(ops.tanh(a), w), ops.matmul(ops.tanh(b), w)), sample(4, 4), sample(4, 4), sample(4, 4))
    native = compile_func(OPTIMIZE(func))
    assert native.llvm.count("define hidden") < native.llvm.count("call void @k")


def test_buffers_of_large_results_are_reused_only_without_references() -> None:
    x = np.zeros(100_000)
    native = compile_func(OPTIMIZE(build(lambda x: x + 1.0, x)))
    (first,) = native([x])
    view = first[10:20]
    (second,) = native([x + 1])
    (third,) = native([x + 2])
    assert (first[0], second[0], third[0]) == (1.0, 2.0, 3.0)
    del first
    (fourth,) = native([x + 3])
    assert view[0] == 1.0
    assert fourth[0] == 4.0
    del view, second, third, fourth
    (fifth,) = native([x])
    assert any(fifth.base is buffer for *_, pool in native._results for buffer in pool or ())


def test_a_result_made_in_place_from_a_view_is_not_made_in_its_operands_buffer() -> None:
    """The operand of an in-place op may already be in the result's buffer, but only if it is read with the same layout."""

    def fn(x: Any) -> Any:
        y = ops.exp(x)
        rows = np.array([1, 1])
        return ops.additem(ops.flip(y, (0, 1)), rows, 2.0), ops.additem(ops.exp(x * 2.0).T, rows, 3.0)

    check(fn, sample(3, 3))
    check(lambda x: ops.additem(ops.exp(x), np.array([1, 1]), 2.0), sample(3, 3))


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("shape", [(300, 6), (40, 5, 7), (300, 16), (50, 30), (60000, 3), (20, 64), (20, 65)], ids=str)
def test_short_rows_reduced_onto_each_other(shape: tuple[int, ...], dtype: str) -> None:
    """Their totals are kept in registers, up to some length."""
    axes = tuple(range(len(shape) - 1))

    def f(x: Any, mask: Any, bias: Any) -> tuple[Any, ...]:
        y = ops.where(mask > 0.0, x + ops.broadcast_to(bias, shape), 0.0)
        return y, y.sum(axes), y.max(axes)

    check(f, sample(*shape, dtype=dtype), sample(*shape, dtype=dtype)[::-1].copy(), sample(shape[-1], dtype=dtype), rtol=1e-10)
