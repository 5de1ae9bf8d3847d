"""Rarely used arguments: NumPy's results, eagerly and traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from tests.tracer.running import run_eager, run_traced, same, trace

X = np.array([1.5, -2.0, 0.5, 3.0])
M = np.array([[2.0, 1.0, 0.5], [0.25, -3.0, 1.0], [1.0, 4.0, 2.5]])
W = np.arange(12.0).reshape(3, 4)
C = np.array([[1.0 + 2.0j, 0.5j, 1.0], [2.0 - 1.0j, 1.0, 3.0j]])
I = np.array([2, 0, 1])
U = np.array([[3, 255, 0], [7, 7, 1]], np.uint8)
EMPTY = np.zeros((0,))

ANSWERS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "mean that wraps around": (lambda x: np.mean(x, axis=0, dtype=np.uint8), (U,)),
    "mean that wraps around, where": (lambda x: np.mean(x, axis=0, dtype=np.uint8, where=x > 0), (U,)),
    "var of a complex dtype": (lambda x: (np.var(x, axis=0, dtype=np.complex64), np.std(x, dtype=complex)), (U,)),
    "rfftn along one axis twice": (lambda x: (np.fft.rfftn(x, axes=(0, 0)), np.fft.irfftn(x, axes=(1, 1))), (W,)),
    "irfftn of the length that there is": (lambda x: np.fft.irfftn(x, s=(-1, -1), axes=(0, 1)), (W,)),
    "rank of an empty matrix": (lambda x: (np.linalg.matrix_rank(x[:0, :0]), np.linalg.matrix_rank(x[:0])), (W,)),
    "select of a small float and a number": (lambda x: np.select([x > 1.0, x > 0.0], [np.float32(1.5), 2]), (X,)),
    "select with a default that wraps around": (lambda u: np.select([u > 100], [u], -1), (U,)),
    "gcd of the smallest integer": (lambda i: (np.gcd(i, i[::-1]), np.lcm(i, i[::-1])), (np.array([-128, 127, -1, 12], np.int8),)),
    "take_along_axis of the flattened array": (lambda x, i: np.take_along_axis(x, i, None), (W, I)),
    "interp of one point": (lambda x: np.interp(x, x[:1], x[1:2]), (X,)),
    "interp of one point, and of the ends": (lambda x: np.interp(x, x[:1], x[1:2], left=9.0, right=8.0), (X,)),
    "tril of a vector": (lambda x: np.tril(x), (X,)),
    "triu of a vector": (lambda x: np.triu(x, 1), (X,)),
    "ix_ of a mask": (lambda x: x[np.ix_(np.array([True, False, True]), np.array([1, 0]))], (W,)),
    "unravel_index of all axes": (lambda i: np.unravel_index(i, (2, 1, 3)), (I,)),
    "digitize, decreasing": (lambda x: np.digitize(x, np.array([3.0, 1.0, -2.0])), (X,)),
    "corrcoef of one variable": (lambda x: np.corrcoef(x), (X,)),
    "corrcoef of complex variables": (lambda x: np.corrcoef(x), (C,)),
    "corrcoef of two": (lambda x: np.corrcoef(x, x[::-1]), (X,)),
    "nanargmax of integers": (lambda i: np.nanargmax(i), (I,)),
    "nanquantile of no quantiles": (lambda x: np.nanquantile(x, []), (X,)),
    "nanquantile along an axis": (lambda x: np.nanquantile(x, [0.25, 1.0], axis=0, keepdims=True), (W,)),
    "quantile of given quantiles": (lambda x, q: np.quantile(x, q, axis=1), (W, np.array([0.0, 0.3, 1.0]))),
    "histogram of equal elements": (lambda x: np.histogram(x * 0.0, 2), (X,)),
    "bincount of nothing": (lambda i: np.bincount(i[:0], minlength=3), (I,)),
    "partition by several": (lambda x: np.partition(x, [0, -1]), (np.sort(X),)),
    "matrix_rank above a tolerance": (lambda x: np.linalg.matrix_rank(x, tol=2.0), (M,)),
    "matrix_rank above tolerances": (lambda x, tol: np.linalg.matrix_rank(x, tol=tol), (np.stack([M, M]), np.array([2.0, 9.0]))),
    "tensorsolve of other axes": (lambda a, b: np.linalg.tensorsolve(a, b, axes=(0,)), (np.eye(6).reshape(6, 2, 3) + 1.0, np.ones((2, 3)))),
    "roll by given shifts": (lambda x, i: np.roll(x, i, axis=0), (W, I)),
    "roll by a given shift": (lambda x, i: np.roll(x, i, axis=(0, 1)), (W, I[:1])),
    "roll of nothing": (lambda x: np.roll(x, 2, axis=0), (EMPTY,)),
    "roll by the length": (lambda x: np.roll(x, (4, 3), axis=(1, 0)), (W,)),
    "resize of nothing": (lambda x: np.resize(x, (2, 2)), (EMPTY,)),
    "pad of some axes": (lambda x: np.pad(x, {0: (1, 2), -1: 1}), (W,)),
    "pad by a given number": (lambda x, v: np.pad(x, 1, constant_values=v), (X, np.float64(7.0))),
    "trapezoid over points of every line": (lambda x: np.trapezoid(x, x * x, axis=0), (W,)),
    "min of an empty axis": (lambda x: np.min(x[:, :0], axis=1, initial=5.0), (W,)),
    "min where": (lambda x: np.min(x, axis=0, initial=5.0, where=x > 2.0), (W,)),
    "roots of degree one": (lambda x: np.roots(x[:2]).real, (X,)),
    "roots of a constant": (lambda x: np.roots(x[:1]).real, (X,)),
    "poly of a matrix": (lambda x: np.poly(x).real, (M,)),
    "poly of a number": (lambda x: np.poly(x[:0]), (X,)),
    "convolve with a number": (lambda x: np.convolve(x, np.float64(2.0)), (X,)),
    "correlate of complex vectors": (lambda x: np.correlate(x, x[:2], "same"), (C[0],)),
    "einsum of broadcast labels": (lambda x: np.einsum("i...,j->ij...", x[:1], x[0]), (W,)),
    "compress to nothing": (lambda x: np.compress([False] * 4, x), (X,)),
    "index of an empty list": (lambda x: x[[]], (W,)),
    "index of a long list": (lambda x: x[[0, 1, 2, 0, 1, 2, 0, 1, 2, 0]], (W,)),
    "linspace of integers": (lambda x: np.linspace(x[0], x[3], 4, dtype=np.int64), (X,)),
    "gradient of axes in another order": (lambda x: np.gradient(x, 2.0, np.array([0.0, 1.0, 3.0]), axis=(1, 0)), (W,)),
    "gradient of negative axes": (lambda x: np.gradient(x, 2.0, 0.5, axis=(-1, -2)), (W,)),
    "geomspace along the last axis": (lambda x: np.geomspace(x, x * 8.0, 4, axis=-1), (X,)),
    "geomspace of three of three": (lambda x: np.geomspace(x, x * 4.0, 4, axis=1), (X,)),
    "polyint with more constants": (lambda x: np.polyint(x, 1, k=[5.0, 6.0]), (X,)),
    "polyint with one constant": (lambda x: np.polyint(x, 3, k=[5.0]), (X,)),
    "histogram of nothing": (lambda x: np.histogram(x, 3), (EMPTY,)),
    "histogram of one edge": (lambda x: np.histogram(x, np.array([1.0])), (X,)),
    "searchsorted of a permutation": (lambda x: np.searchsorted(x, np.array([0.0, 2.0]), sorter=np.array([1, 2, 0, 3])), (X,)),
    "choose, wrapped": (lambda i, x: np.choose(i, [x, x * 2.0], mode="wrap"), (I - 1, X[:3])),
    "choose, clipped": (lambda i, x: np.choose(i - 1, [x, x * 2.0], mode="clip"), (I, X[:3])),
    "bincount of bytes": (lambda i: np.bincount(i.astype("u1"), minlength=4), (I,)),
    "repeat by an array": (lambda x: np.repeat(x, np.array([1, 0, 2, 1])), (X,)),
    "accumulate": (lambda x: np.maximum.accumulate(x, axis=1), (W,)),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_rare_arguments_have_numpys_answer(what: str) -> None:
    program, args = ANSWERS[what]
    expected = program(*args)
    same(run_eager(program, *args), expected, what)
    same(run_traced(program, *args), expected, what)


def transposed_convolution(x: Any, w: Any, stride: int) -> Any:
    """Every element of a sequence adds its filter to the places from stride times its position on."""
    out = np.zeros((len(x), (x.shape[1] - 1) * stride + len(w), w.shape[1]))
    for n, i, j in np.ndindex(len(x), x.shape[1], len(w)):
        out[n, i * stride + j] += w[j] @ x[n, i]
    return out


@pytest.mark.parametrize(("padding", "before"), [("valid", 0), ("same", 1)])
@pytest.mark.parametrize("extra", [0, 1])
def test_output_padding_extends_the_smallest_result(padding: str, before: int, extra: int) -> None:
    """As in Keras: `same` drops half of the filter at both ends, and the result grows by the padding at its end."""
    x, w = np.arange(8.0).reshape(1, 4, 2), np.arange(18.0).reshape(3, 3, 2)
    whole = transposed_convolution(x, w, 2)
    wanted = np.pad(whole, ((0, 0), (0, extra), (0, 0)))[:, before : whole.shape[1] - before + extra]
    for wrap in (lambda f: f, aj.function):
        got = wrap(lambda x, w: aj.conv_transpose(x, w, 2, padding, output_padding=extra))(x, w)
        np.testing.assert_allclose(np.asarray(got), wanted)


def test_one_of_many_elements_is_deleted_without_a_table() -> None:
    x = np.arange(10_000.0)
    f = aj.function(lambda x: np.delete(x, -3))
    np.testing.assert_array_equal(f(x), np.delete(x, -3))
    assert "gather" not in str(f.inspect(x).traced)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_counting_in_complex_numbers(dtype: str) -> None:
    same(np.asarray(aj.arange(1, 7, 2, dtype=dtype)), np.arange(1, 7, 2, dtype=dtype))


def test_the_largest_of_no_axes_is_the_array() -> None:
    z = np.array([1.0 + 2.0j, 3.0 - 1.0j])
    for call in (np.max, np.min):
        same(np.asarray(call(aj.tensor(z), axis=())), call(z, axis=()))


def test_put_along_no_axis() -> None:
    for f in (aj.put_along_axis, aj.function(aj.put_along_axis, static=("axis",))):
        wanted = W.copy()
        np.put_along_axis(wanted, np.array([1, 7]), -1.0, None)
        same(np.asarray(f(W, np.array([1, 7]), -1.0, axis=None)), wanted)


def test_empty_sets_are_padded() -> None:
    f = aj.function(lambda x: (aj.setdiff1d(x[:0], x, size=2), aj.setdiff1d(x[:0], x, size=2, fill_value=7.0)))
    same(aj.tree_map(np.asarray, f(X)), (np.zeros(2), np.full(2, 7.0)))


def test_a_traced_mask_adds_where_it_holds() -> None:
    f = aj.function(lambda x: x.at[x > 1.0].add(10.0))
    np.testing.assert_array_equal(f(W), np.where(W > 1.0, W + 10.0, W))
    g = aj.function(lambda x: x.at[x[:, 1] > 1.0].add(10.0))
    np.testing.assert_array_equal(g(W), np.where((W[:, 1] > 1.0)[:, None], W + 10.0, W))


@pytest.mark.parametrize(("n", "k"), [(5, 2), (5, 5), (300, 1), (300, 150)])
def test_the_largest_of_few_and_of_many(n: int, k: int) -> None:
    x = np.random.default_rng(n + k).permutation(n).astype(float)
    values, places = aj.function(lambda x: aj.top_k(x, k))(x)
    np.testing.assert_array_equal(values, np.sort(x)[::-1][:k])
    np.testing.assert_array_equal(places, np.argsort(-x)[:k])


def test_prints_of_examples_are_printed_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        print("x =", x)
        return x * 2.0

    for mapped in (aj.vmap(f), aj.function(aj.vmap(f))):
        mapped(np.array([1.5, 2.5]))
        assert capsys.readouterr().out == "x = 1.5\nx = 2.5\n"


def test_more_than_2_to_the_32_elements_are_counted_in_64_bits() -> None:
    key = np.array([1, 2], "u4")
    small, large = (trace(lambda k, n=n: aj.random.bits(k, (n,)), key).func for n in (2**20, 2**33))
    assert [str(s.result.type.dtype) for s in small.stmts if s.op.name == "iota"] == ["uint32"]
    assert [str(s.result.type.dtype) for s in large.stmts if s.op.name == "iota"] == ["uint64"]


@pytest.mark.parametrize("decimals", [400, -400])
def test_rounding_to_more_decimals_than_there_are(decimals: int) -> None:
    with np.errstate(all="ignore"):
        wanted = np.round(X, decimals)
    for got in (aj.round(X, decimals), aj.function(lambda x: np.round(x, decimals))(X)):
        np.testing.assert_array_equal(np.asarray(got), wanted, strict=True)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "i8", "u8"])
@pytest.mark.parametrize("decimals", [-1, -2, -4])
def test_rounding_integers_to_tens(dtype: str, decimals: int) -> None:
    """Small integers wrap around where the rounded number is out of range."""
    info, near = np.iinfo(dtype), np.arange(200)
    ends = [info.min + near, info.max - near] if info.bits < 32 else []
    x = np.unique(np.concatenate([near, *([-near] if info.min else []), *ends])).clip(info.min, info.max).astype(dtype)
    wanted = np.round(x, decimals)
    for got in (aj.round(aj.tensor(x), decimals), aj.function(lambda x: np.round(x, decimals))(x)):
        np.testing.assert_array_equal(np.asarray(got), wanted, strict=True)


@pytest.mark.parametrize("function", [np.union1d, np.intersect1d, np.setdiff1d, np.setxor1d], ids=lambda f: f.__name__)
@pytest.mark.parametrize("other", [I, X, np.array([True, False]), np.array([7], np.int8)], ids=lambda x: x.dtype.name)
def test_sets_of_two_dtypes(function: Callable[..., Any], other: Any) -> None:
    for args in ((U, other), (other, U)):
        for call in (lambda a, b: function(aj.tensor(a), aj.tensor(b)), aj.function(lambda a, b: function(a, b))):
            np.testing.assert_array_equal(np.asarray(call(*args)), function(*args), strict=True)
