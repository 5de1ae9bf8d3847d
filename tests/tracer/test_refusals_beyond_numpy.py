"""Refusals of functions that NumPy does not have: the same words eagerly and traced, with the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import adjit as aj
from adjit.ir.errors import DTypeError, ShapeError, UnsupportedError

X = np.arange(1.0, 4.0)
M = np.arange(12.0).reshape(3, 4)
S = np.array([[2.0, 1.0], [0.5, 3.0]])
I = np.array([0, 2, 1])
IMAGE, FILTER = np.ones((1, 5, 2)), np.ones((2, 2, 3))
EYE = scipy.sparse.eye_array(3)
KEY = np.array([1, 2], "u4")

REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], type[Exception]]] = {
    "einsum: needs subscripts and operands": (lambda x: x + aj.einsum(), (X,), ShapeError),
    "isdtype: 'float' is not a kind of dtypes": (lambda x: x * aj.isdtype(x.dtype, "float"), (X,), ValueError),
    "solve_triangular: the matrices must be square, not f64[3]": (lambda x: aj.linalg.solve_triangular(x, x), (X,), ShapeError),
    "the matrix is singular": (lambda x: aj.linalg.solve_triangular(x * 0.0, x), (S,), aj.SingularMatrixError),
    "var, std: dtype=int32: means are not integers": (lambda i: np.std(i + 0.0, dtype=np.int32), (I,), DTypeError),
    "expm: takes square matrices, not f64[3,4]": (lambda x: aj.linalg.expm(x), (M,), ShapeError),
    "sqrtm: takes square matrices, not f64[3]": (lambda x: aj.linalg.sqrtm(x), (X,), ShapeError),
    "solve_triangular: trans must be 0, 1": (lambda x: aj.linalg.solve_triangular(x, x, trans=2), (S,), ShapeError),
    "block_diag: takes matrices, not f64[1,3,4]": (lambda x: aj.linalg.block_diag(x[None]), (M,), ShapeError),
    "matvec: takes matrices and vectors, not f64[3] and f64[3]": (lambda x: np.matvec(x, x), (X,), ShapeError),
    "vecmat: takes vectors and matrices, not f64[3] and f64[3]": (lambda x: np.vecmat(x, x), (X,), ShapeError),
    "put_along_axis: indices of rank 1 for an array of rank 2": (lambda x, i: aj.put_along_axis(x, i, 1.0, 0), (M, I), ShapeError),
    "fill_diagonal: takes a matrix": (lambda x: aj.fill_diagonal(x, 1.0), (X,), ShapeError),
    "additem: f64[] cannot be added to i64[3] without changing its kind of dtype": (lambda i, x: i.at[0].add(x[0]), (I, X), DTypeError),
    "conv: strides (1, 2) for 1 spatial axes": (lambda x, w: aj.conv1d(x, w, (1, 2)), (IMAGE, FILTER), ShapeError),
    "conv: padding is 'valid', 'same', 'causal' or a pair of numbers for each axis, not 'full'": (
        lambda x, w: aj.conv1d(x, w, padding="full"),
        (IMAGE, FILTER),
        ShapeError,
    ),
    "conv: padding [(1, 1), (1, 1)] for 1 spatial axes": (lambda x, w: aj.conv1d(x, w, padding=[(1, 1)] * 2), (IMAGE, FILTER), ShapeError),
    "conv_transpose: padding is 'valid', 'same' or a pair of numbers for each axis, not 'full'": (
        lambda x, w: aj.conv_transpose(x, w, padding="full"),
        (IMAGE, np.ones((2, 3, 2))),
        ShapeError,
    ),
    "both have one or more spatial axes": (lambda x, w: aj.conv_transpose(x, w), (M, M), ShapeError),
    "pool: f64[3]: images are [batch, sizes, channels]": (lambda x: aj.max_pool(x, 2), (X,), ShapeError),
    "one_hot: indices must be integers, not f64[3]": (lambda x: aj.one_hot(x, 3), (X,), DTypeError),
    "arange: start, stop and step set the shape": (lambda x: aj.arange(x), (X,), ShapeError),
    "arange: start, stop and step must be finite, and step not zero: 0, 3, 0": (lambda x: x * aj.arange(0, 3, 0), (X,), ShapeError),
    "arange: bool is not supported": (lambda x: x * aj.arange(0, 3, dtype=bool), (X,), DTypeError),
    "iinfo: float64 is not an integer dtype": (lambda x: x * aj.iinfo(x).max, (X,), DTypeError),
    "asarray: adjit arrays always own their memory": (lambda x: x + aj.asarray([1.0, 2.0, 3.0], copy=False), (X,), ValueError),
    "multigammaln: the dimension must be positive, not 0": (lambda x: aj.special.multigammaln(x, 0), (X,), ShapeError),
    "lambertw: the branches 0 and -1 are real, not 1": (lambda x: aj.special.lambertw(x, 1), (X,), ShapeError),
    "jn: the order must be a Python integer": (lambda x: aj.special.jn(x, x), (X,), DTypeError),
    "fftconvolve: takes arrays of equal rank": (lambda x, y: aj.fft.fftconvolve(x, y), (X, M), ShapeError),
    "fftconvolve: for mode 'valid', one array must be": (lambda x: aj.fft.fftconvolve(x, x.T, "valid"), (M,), ShapeError),
    "of f64[3,4]: a mask of shape [2] on axes of sizes [3]": (lambda x, m: x.at[m > 0.0].set(0.0), (M, X[:2]), aj.IndexingError),
    "convolve: takes two arrays of the same rank, 1 to 3": (lambda x, y: aj.scipy.signal.convolve(x, y), (X, M), ShapeError),
    "convolve: mode is 'full', 'same' or 'valid', not 'most'": (lambda x: aj.scipy.signal.convolve(x, x, "most"), (X,), ValueError),
    "convolve: for mode 'valid', one array must be at least as large": (
        lambda x: aj.scipy.signal.convolve(x, x.T, "valid"),
        (M,),
        ShapeError,
    ),
    "map_coordinates: f64[3,4] needs 2 coordinates, not 1": (lambda x, c: aj.scipy.ndimage.map_coordinates(x, [c]), (M, X), ShapeError),
    "map_coordinates: order 0 and 1 are supported, not 3": (
        lambda x: aj.scipy.ndimage.map_coordinates(x, [x], order=3),
        (X,),
        UnsupportedError,
    ),
    "map_coordinates: mode is one of": (lambda x: aj.scipy.ndimage.map_coordinates(x, [x], mode="edge"), (X,), UnsupportedError),
    "CubicSpline: takes at least two points": (lambda x: aj.scipy.interpolate.CubicSpline(x, x[:2])(1.5), (X,), ShapeError),
    "CubicSpline: bc_type is": (lambda x: aj.scipy.interpolate.CubicSpline(x, x, "periodic")(1.5), (X,), UnsupportedError),
    "CubicSpline: the order of a derivative is 0 to 3": (lambda x: aj.scipy.interpolate.CubicSpline(x, x)(1.5, 4), (X,), UnsupportedError),
    "cdist: takes two matrices with rows of equal length": (lambda x, y: aj.scipy.spatial.cdist(x, y), (M, S), ShapeError),
    "cdist: metric is one of": (lambda x: aj.scipy.spatial.cdist(x, x, "hamming"), (M,), UnsupportedError),
    "the times must be a vector that is not empty": (lambda x: aj.scipy.integrate.odeint(lambda y, t: y, x, x[:0]), (X,), ShapeError),
    "dirichlet: the parameter is a vector": (lambda k: aj.random.dirichlet(k, 1.0), (KEY,), ShapeError),
    "choice: takes an integer, or an array with at least one axis": (lambda k, x: aj.random.choice(k, x[0]), (KEY, X), ShapeError),
    "random_bits: the dtype must be uint32 or uint64, not i64": (lambda k: aj.random.bits(k, (3,), "int64"), (KEY,), DTypeError),
    "random_integers: the dtype must be an integer dtype, not f64": (
        lambda k: aj.random.integers(k, (3,), 0, 5, "float64"),
        (KEY,),
        DTypeError,
    ),
    'all_reduce: op is "sum" or "mean", not \'max\'': (lambda x: aj.distributed.all_reduce(x, op="max"), (X,), ValueError),
    "max_traces must be at least 1, not 0": (lambda x: aj.function(lambda y: y, max_traces=0)(x), (X,), ValueError),
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_refusal_says_why(message: str) -> None:
    program, args, error = REFUSED[message]
    with pytest.raises(error) as eager:
        program(*map(aj.tensor, args))
    assert message in str(eager.value)
    with pytest.raises(error) as traced:
        aj.function(program)(*args)
    assert message in str(traced.value)
    if isinstance(traced.value, aj.AdjitError):
        assert "test_refusals_beyond_numpy.py" in str(traced.value)


def test_refusals_of_traces_alone() -> None:
    """Where eager tensors leave the operation to another library."""

    def multiplied_in_place(i: Any) -> Any:
        y = i * 1
        np.multiply.at(y, [0], 0.5)
        return y

    with pytest.raises(DTypeError, match=r"np.multiply.at: the result, float64, would lose its kind in i64\[3\]"):
        aj.function(multiplied_in_place)(I)
    with pytest.raises(ShapeError, match=r"a sparse array of shape \(3, 3\) @ f64\[2,2,2\]; one with two axes"):
        aj.function(lambda x: EYE @ x)(np.ones((2, 2, 2)))
