"""Arguments that few programs give: the answers of NumPy, eagerly and traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from tests.tracer.running import run_eager, run_traced, same

X = np.array([1.5, -2.0, 0.5, 3.0])
M = np.array([[2.0, 1.0, 0.5], [0.25, -3.0, 1.0], [1.0, 4.0, 2.5]])
W = np.arange(12.0).reshape(3, 4)
C = np.array([[1.0 + 2.0j, 0.5j, 1.0], [2.0 - 1.0j, 1.0, 3.0j]])
I = np.array([2, 0, 1])
EMPTY = np.zeros((0,))

ANSWERS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
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
