"""Arguments that NumPy refuses are refused, and so are those that cannot be traced, while tracing: each function, with its own message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from tests.tracer.running import same

X = np.arange(1.0, 4.0)
M = np.arange(12.0).reshape(3, 4)
S = np.array([[2.0, 1.0], [0.5, 3.0]])
T = np.ones((2, 2, 2))
I = np.array([0, 2, 1])
B = np.array([True, False, True])
ONE = np.float64(1.0)

Case = tuple[Callable[..., Any], tuple[Any, ...]]


# text in the message -> a NumPy program, and its arguments
REFUSED: dict[str, Case] = {
    "geomspace: start and stop must have the same sign": (lambda x: np.geomspace(x * 0.0, x, 3), (X,)),
    "polyfit: the degree must not be negative: -1": (lambda x: np.polyfit(x, x, -1), (X,)),
    "polyder: m must not be negative: -1": (lambda x: np.polyder(x, -1), (X,)),
    "polyint: m must not be negative: -1": (lambda x: np.polyint(x, -1), (X,)),
    "polyint: 2 constants for 3 integrals": (lambda x: np.polyint(x, 3, k=[1.0, 2.0]), (X,)),
    "meshgrid: indexing is 'xy' or 'ij', not 'zz'": (lambda x: np.meshgrid(x, x, indexing="zz"), (X,)),
    "rot90: a plane has two different axes, not (0, -2)": (lambda x: np.rot90(x, 1, (0, -2)), (M,)),
    "searchsorted: a sorter of type i64[2] for f64[3]": (lambda x: np.searchsorted(x, 2.0, sorter=[1, 0]), (X,)),
    "digitize: c128[3]: takes real numbers": (lambda x: np.digitize(x * 1j, x), (X,)),
    "eigh: UPLO must be 'L' or 'U', not 'X'": (lambda x: np.linalg.eigh(x, "X"), (S,)),
    "median: f64[0] has no elements along axis None": (lambda x: np.median(x[:0]), (X,)),
    "concatenate: zero-dimensional operands": (lambda x: np.concatenate([x[0], x[1]]), (X,)),
    "solve: the matrices must be square, not f64[3]": (lambda x: np.linalg.solve(x, x), (X,)),
    "take: mode 'upwards'; raise, wrap and clip": (lambda x: np.take(x, [0], mode="upwards"), (X,)),
    "take_along_axis: indices of rank 1 for an array of rank 2": (lambda x, i: np.take_along_axis(x, i, 0), (M, I)),
    "searchsorted: the sorted operand must be a vector, not f64[3,4]": (lambda x: np.searchsorted(x, 1.0), (M,)),
    "searchsorted: side 'middle' is neither": (lambda x: np.searchsorted(x, 1.0, side="middle"), (X,)),
    "interp: xp and fp must be vectors of one length": (lambda x: np.interp(x, x, x[1:]), (X,)),
    "interp: there are no points": (lambda x: np.interp(x, x[:0], x[:0]), (X,)),
    "interp: x and xp must be real, not c128[3]": (lambda x: np.interp(x * 1j, x, x), (X,)),
    "ldexp: takes real numbers, not c128[3]": (lambda x: np.ldexp(x * 1j, 1), (X,)),
    "frexp: takes real numbers, not c128[3]": (lambda x: np.frexp(x * 1j), (X,)),
    "spacing: takes real numbers, not c128[3]": (lambda x: np.spacing(x * 1j), (X,)),
    "nextafter: complex numbers have no order": (lambda x: np.nextafter(x * 1j, x), (X,)),
    "linalg.outer: takes vectors": (lambda x: np.linalg.outer(x, x), (M,)),
    "qr: takes matrices, not c128[3]": (lambda x: np.linalg.qr(x * 1j), (X,)),
    "polyval: the coefficients must be a vector": (lambda x: np.polyval(x, 2.0), (ONE,)),
    "rfftn: needs at least one axis": (lambda x: np.fft.rfftn(x), (ONE,)),
    "irfftn: needs at least one axis": (lambda x: np.fft.irfftn(x), (ONE,)),
    "np.add.accumulate: a value without axes": (lambda x: np.add.accumulate(x), (ONE,)),
    "tril, triu: takes a matrix, not f64[]": (lambda x: np.tril(x), (ONE,)),
    "diag: takes a vector or a matrix, not f64[2,2,2]": (lambda x: np.diag(x), (T,)),
    "insert: takes one position": (lambda x: np.insert(x, [0, 1], 9.0), (X,)),
    "insert: position 4 is out of bounds for axis 0": (lambda x: np.insert(x, 4, 9.0), (X,)),
    "delete: the shape of its result would depend on values of i64[3]": (lambda x, i: np.delete(x, i), (X, I)),
    "piecewise: 3 functions for 1 conditions": (lambda x: np.piecewise(x, [x > 0], [1.0, 2.0, 3.0]), (X,)),
    "ix_: takes vectors of positions, not f64[3,4]": (lambda x: np.ix_(x), (M,)),
    "ix_: the shape of its result would depend on values of bool[3]": (lambda x: np.ix_(x), (B,)),
    "quantile: method 'lower'; only 'linear'": (lambda x: np.quantile(x, 0.5, method="lower"), (X,)),
    "quantile: quantiles must be in the range [0, 1]": (lambda x: np.quantile(x, 1.5), (X,)),
    "quantile: quantiles must be in the range": (lambda x: np.percentile(x, [50, -1]), (X,)),
    "quantile: quantiles must be in": (lambda x, q: np.quantile(x, q), (X, X)),
    "nanquantile: method 'lower'; only 'linear'": (lambda x: np.nanquantile(x, 0.5, method="lower"), (X,)),
    "nanquantile: quantiles must be in the range [0, 1]": (lambda x: np.nanquantile(x, 1.5), (X,)),
    "nanquantile: quantiles must be in": (lambda x, q: np.nanpercentile(x, q), (X, -X)),
    "digitize: bins must increase or decrease monotonically": (lambda x, bins: np.digitize(x, bins), (X, X[I])),
    "digitize: bins must be a vector, not f64[3,4]": (lambda x: np.digitize(x, x), (M,)),
    "bincount: takes a vector of integers, not f64[3]": (lambda x: np.bincount(x), (X,)),
    "bincount: minlength must not be negative: -1": (lambda i: np.bincount(i, minlength=-1), (I,)),
    "bincount: the integers must not be negative": (lambda i: np.bincount(i, minlength=4), (-I,)),
    "histogram: the number of bins must be known": (lambda x: np.histogram(x, bins="auto"), (X,)),
    "histogram: the edges of bins must increase monotonically": (lambda x: np.histogram(x, x[::-1]), (X,)),
    "histogram: the range must be finite, and its end not below": (lambda x: np.histogram(x, 3, range=(2.0, 1.0)), (X,)),
    "histogram: the range must be finite": (lambda x: np.histogram(x, 3), (X * np.inf,)),
    "cov: takes vectors and matrices, not f64[2,2,2]": (lambda x: np.cov(x), (T,)),
    "average: weights of shape [4] need an axis": (lambda x, w: np.average(x, weights=w), (M, M[0])),
    "average: weights of shape [4] do not fit axis 0": (lambda x, w: np.average(x, 0, weights=w), (M, M[0])),
    "average: the weights sum to zero": (lambda x, w: np.average(x, weights=w - w), (X, X)),
    "partition: kth=5 is out of bounds for an axis of size 3": (lambda x: np.partition(x, 5), (X,)),
    "argpartition: kth=-4 is out of bounds for an axis of size 3": (lambda x: np.argpartition(x, [0, -4], axis=0), (M,)),
    "choose: an index is not in the range from 0 to 1": (lambda i, x: np.choose(i, [x, x]), (-I, X)),
    "choose: indices are integers, not f64[3]": (lambda x: np.choose(x, [x, x]), (X,)),
    "unravel_index: an index is not in the range from 0 to 1": (lambda i: np.unravel_index(i, (1, 2)), (I,)),
    "unravel_index: indices are integers, not f64[3]": (lambda x: np.unravel_index(x, (2, 2)), (X,)),
    "diff: n must not be negative: -1": (lambda x: np.diff(x, -1), (X,)),
    "gradient: coordinates of shape [2] for axis 0": (lambda x: np.gradient(x, x[:2]), (X,)),
    "select: conditions are bools, not f64[3]": (lambda x: np.select([x], [x]), (X,)),
    "unpackbits: count=-20 drops more bits than there are: 16": (lambda x: np.unpackbits(x, count=-20), (np.array([1, 2], "u1"),)),
    "matmul: a scalar operand: f64[3] @ f64[]; use *": (lambda x: np.matmul(x, 2.0), (X,)),
    "multi_dot: takes matrices, and vectors at its ends": (lambda x: np.linalg.multi_dot([x, x, x]), (X,)),
    "qr: mode 'raw'; 'reduced', 'complete' and 'r'": (lambda x: np.linalg.qr(x, mode="raw"), (M,)),
    "lstsq: with a tolerance, the matrix must be known": (lambda x, b: np.linalg.lstsq(x, b, rcond=0.1)[0], (M.T, X[:1].repeat(4))),
    "lstsq: takes a matrix with at least as many rows": (lambda x, b: np.linalg.lstsq(x, b, rcond=None)[0], (M, X)),
    "pinv: takes matrices, not f64[3]": (lambda x: np.linalg.pinv(x), (X,)),
    "pinv: with a tolerance, the matrix must be known": (lambda x: np.linalg.pinv(x, rcond=0.1), (M,)),
    "matrix_power: takes square matrices, not f64[3,4]": (lambda x: np.linalg.matrix_power(x, 2), (M,)),
    "svd: takes matrices, not f64[3]": (lambda x: np.linalg.svd(x), (X,)),
    "tensorinv: ind must be positive": (lambda x: np.linalg.tensorinv(x, ind=0), (S,)),
    "tensorinv: f64[3,4] with ind=1 is not a square map": (lambda x: np.linalg.tensorinv(x, ind=1), (M,)),
    "norm: order 'nuc' is not a vector norm": (lambda x: np.linalg.norm(x, "nuc"), (X,)),
    "norm: order 3 is not a matrix norm": (lambda x: np.linalg.norm(x, 3), (M,)),
    "apply_along_axis: f64[0,4] has no lines along axis 1": (lambda x: np.apply_along_axis(np.sum, 1, x[:0]), (M,)),
    "apply_over_axes: the function must keep the axes": (lambda x: np.apply_over_axes(lambda y, axis: np.sum(y), x, [0]), (T,)),
    "array_split: the number of parts must be positive, not 0": (lambda x: np.array_split(x, 0), (X,)),
    "roll: 3 shifts for 2 axes": (lambda x: np.roll(x, (1, 2, 3), (0, 1)), (M,)),
    "pad: axis 0 is empty, so mode 'edge'": (lambda x: np.pad(x[:0], 1, mode="edge"), (X,)),
    "pad: widths must be integers, not 1.5": (lambda x: np.pad(x, 1.5), (X,)),
    "pad: constant_values that are traced must be one number": (lambda x, v: np.pad(x, 1, constant_values=v), (X, X[:2])),
    "gcd: takes integers, not f64[3], i64[3]": (lambda x, i: np.gcd(x, i), (X, I)),
    "bitwise_count: takes integers, not f64[3]": (lambda x: np.bitwise_count(x), (X,)),
    "packbits: takes integers or bools, not f64[3]": (lambda x: np.packbits(x), (X,)),
    "unpackbits: takes bytes (u8), not i64[3]": (lambda x: np.unpackbits(x), (I,)),
    "packbits, unpackbits: bitorder 'middle'; it is": (lambda x: np.packbits(x, bitorder="middle"), (B,)),
    "ldexp: the exponent must be an integer that int64 holds, not f64[3]": (lambda x: np.ldexp(x, x), (X,)),
    "gradient: 3 distances for 2 axes": (lambda x: np.gradient(x, 1.0, 2.0, 3.0), (M,)),
    "gradient: edge_order=2; only 1": (lambda x: np.gradient(x, edge_order=2), (X,)),
    "gradient: axis 0 of f64[1] has less than 2 samples": (lambda x: np.gradient(x[:1]), (X,)),
    "vander: takes a vector, not f64[3,4]": (lambda x: np.vander(x), (M,)),
    "min: where= needs initial=": (lambda x: np.min(x, where=x > 1.0), (X,)),
    "rfftn: 1 lengths for 2 axes": (lambda x: np.fft.rfftn(x, s=(4,), axes=(0, 1)), (M,)),
    "compress: the condition must be a vector, not bool[3,4]": (lambda x: np.compress(x > 0.0, x, axis=0), (M,)),
    "unique: axis= is not supported": (lambda x: np.unique(x, axis=0), (M,)),
    "select: i64[] among choices of uint8": (lambda u: np.select([u > 1], [u, 1][1:], u[0]), (I.astype(np.uint8),)),
    "deg2rad: takes real numbers, not c128[3]": (lambda x: np.deg2rad(x), (X + 0j,)),
    "out=: f64[3] cannot be cast to the dtype of i64[3]": (lambda x: np.add(x, 1.0, out=np.zeros(3, np.int64)), (X,)),
    "np.add, with the argument dtype=int8: ": (lambda x: np.add(x, 1.0, dtype=np.int8), (X,)),
    "poly: takes a vector of roots, not f64[2,2,2]": (lambda x: np.poly(x), (T,)),
    "roots: takes a vector of coefficients, not f64[3,4]": (lambda x: np.roots(x), (M,)),
    "a polynomial is a vector of coefficients, not f64[3,4]": (lambda x: np.polymul(x, x), (M,)),
    "convolve: takes two vectors that are not empty": (lambda x: np.convolve(x, x[:0]), (X,)),
    "correlate: takes two vectors that are not empty, not f64[3,4]": (lambda x: np.correlate(x, x), (M,)),
    "convolve: mode 'most' is not one of full, same and valid": (lambda x: np.convolve(x, x, "most"), (X,)),
    "sliding_window_view: 1 sizes of windows for 2 axes": (lambda x: np.lib.stride_tricks.sliding_window_view(x, (2,)), (M,)),
    "sliding_window_view: no window of size 4 fits in axis 0": (lambda x: np.lib.stride_tricks.sliding_window_view(x, 4), (X,)),
    "device 'gpu': there is one": (lambda x: np.astype(x, np.float32, device="gpu"), (X,)),
    "real_if_close: whether the result is complex would depend": (lambda x: np.real_if_close(x), (X + 0j,)),
    "cumulative_sum, cumulative_prod: f64[3,4] needs an axis": (lambda x: np.cumulative_sum(x), (M,)),
    "cross: takes vectors of three elements, not 4 and 4": (lambda x: np.cross(x, x), (M,)),
    "more than one ellipsis": (lambda x: x[..., ...], (X,)),
    "too many indices (3 for 2 axes)": (lambda x: x[0, 0, 0], (M,)),
    "a mask of shape [2] on axes of sizes [3]": (lambda x, m: np.where(m[:, None], x, 0.0)[m[:2]], (M, B)),
    "iteration over a 0-d": (lambda x: [*x], (ONE,)),
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_refusal_says_why(message: str) -> None:
    program, args = REFUSED[message]
    try:
        expected = program(*args)
    except Exception as refusal:
        in_numpy = str(refusal)
        with pytest.raises((aj.AdjitError, ValueError, TypeError)) as eager:
            program(*map(aj.tensor, args))
        assert message in str(eager.value) or str(eager.value) == in_numpy
    else:  # it needs values, which eager tensors have
        same(aj.tree_map(np.asarray, program(*map(aj.tensor, args))), expected)
    with pytest.raises((aj.AdjitError, ValueError, TypeError)) as traced:
        aj.function(program)(*args)
    assert message in str(traced.value)
    assert "test_refusals.py" in str(traced.value)


@pytest.mark.parametrize("number", [float, int])
def test_a_complex_number_is_not_a_real_one(number: type) -> None:
    """NumPy drops the imaginary part with a warning."""
    for call in (lambda z: number(aj.tensor(z)[0]), aj.function(lambda z: number(z[0]))):
        with pytest.raises(TypeError, match="complex"):
            call(X * 1j)
