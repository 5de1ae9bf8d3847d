"""The table of NumPy functions: for each, calls that must have NumPy's results, eagerly and traced. A function without a row fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

random = np.random.default_rng(7)

V = random.standard_normal(5)
W = random.standard_normal(5)
M = random.standard_normal((3, 4))
N = random.standard_normal((4, 2))
T = random.standard_normal((2, 3, 4))
S = random.standard_normal((3, 3))
I = np.array([3, -1, 4, 1, -5])
J = np.array([2, 7, 1, 8, 2])
B = np.array([True, False, True, True, False])
U = np.array([1, 2, 3, 250], np.uint8)
F = M.astype(np.float32)
P = np.abs(V) + 0.1
HOLES = np.array([1.0, np.nan, -2.0, np.inf, -np.inf, 0.0, -0.0])
SORTED = np.array([-1.5, -0.2, 0.3, 1.1, 2.0])
PLACES = np.array([2, 0, 2, -1])

Call = tuple[Callable[..., Any], tuple[Any, ...]]


def call(fn: Callable[..., Any], *args: Any) -> Call:
    return fn, args


UNARY: dict[np.ufunc, Sequence[Any]] = {
    **dict.fromkeys(
        [np.exp, np.expm1, np.exp2, np.sin, np.cos, np.tan, np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh], (V, F, I, HOLES)
    ),
    **dict.fromkeys([np.log, np.log2, np.log10, np.sqrt], (P, F * F, J, HOLES)),
    np.log1p: [P, F * F, J],
    np.cbrt: [V, F, I],
    np.square: [V, F, I, U],
    **dict.fromkeys([np.arcsin, np.arccos, np.arctanh], (V / 5, F / 5)),
    np.arccosh: [P + 1, F * F + 1],
    **dict.fromkeys([np.absolute, np.sign, np.negative, np.positive, np.conjugate], (V, F, I, HOLES)),
    np.fabs: [V, F, I],
    np.reciprocal: [V, F, J],
    **dict.fromkeys([np.floor, np.ceil, np.trunc], (V * 3, F, I, HOLES)),
    np.rint: [V * 3, F, HOLES],
    **dict.fromkeys([np.isnan, np.isinf, np.isfinite], (V, F, I, HOLES)),
    np.signbit: [V, F, I, HOLES],
    np.logical_not: [V, B, I, HOLES],
    np.invert: [I, B, U],
    **dict.fromkeys([np.deg2rad, np.rad2deg, np.degrees, np.radians], (V, F, I)),
    np.modf: [V * 3, F * 3, HOLES],
    np.isreal: [V, I, V + 1j * V],
    np.iscomplex: [V, I, V + 1j * V],
    np.imag: [V, F, I],
    np.isposinf: [V, HOLES],
    np.isneginf: [V, HOLES],
}

PAIRS: list[Any] = [(V, W), (F, 2.0), (3, F), (I, J), (M, M[:, :1]), (I, V), (F, V[:4])]
REAL: list[Any] = [(V, W), (F, 2.0), (3.0, F), (M, M[:, :1]), (F, V[:4])]
COMPARED: list[Any] = [(V, W), (I, J), (I, 3), (F, 0.5), (B, I), (HOLES, HOLES)]
BINARY: dict[np.ufunc, Sequence[Any]] = {
    **dict.fromkeys([np.add, np.multiply, np.maximum, np.minimum], (*PAIRS, (B, B), (U, U), (HOLES, 1.0))),
    **dict.fromkeys([np.subtract, np.divide], (*PAIRS, (U, U))),
    **dict.fromkeys([np.floor_divide, np.remainder, np.divmod, np.fmod], ((V, W), (I, J), (F, 2.0), (-I, 3), (U, U))),
    **dict.fromkeys([np.power], ((P, W), (np.abs(F), 2.5), (I, 2), (2.0, V), (J, J % 3))),
    np.float_power: [(P, W), (J, 2), (np.abs(F), 1.5)],
    **dict.fromkeys([np.fmax, np.fmin], ((V, W), (I, J), (HOLES, 1.0), (HOLES, HOLES[::-1]))),
    **dict.fromkeys([np.arctan2, np.hypot, np.copysign, np.logaddexp, np.logaddexp2], REAL),
    np.heaviside: [(V, 0.5), (HOLES, 0.5), (F, np.float32(0.5))],
    **dict.fromkeys([np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal], COMPARED),
    **dict.fromkeys([np.logical_and, np.logical_or, np.logical_xor], ((V, W), (B, I), (I, 0), (B, B))),
    **dict.fromkeys([np.bitwise_and, np.bitwise_or, np.bitwise_xor], ((I, J), (B, B), (U, 3), (I, 5))),
    **dict.fromkeys([np.left_shift, np.right_shift], ((I, J), (J, 2), (U, np.uint8(1)))),
    np.matmul: [(M, N), (V, W), (M, N[:, 0]), (M[0], N), (T, N), (T, T.transpose(0, 2, 1)), (M[0], T.transpose(0, 2, 1)), (F, F.T), (I, J)],
    np.vecdot: [(V, W), (T, M), (I, J)],
}

FUNCTIONS: dict[Callable[..., Any], list[Call]] = {
    np.round: [call(np.round, V * 3), call(lambda x: np.round(x, 2), V), call(lambda x: np.round(x, -1), I * 7), call(np.round, I)],
    np.around: [call(lambda x: np.around(x, decimals=1), F)],
    np.fix: [call(np.fix, V * 3)],
    np.clip: [
        call(lambda x: np.clip(x, -0.5, 0.5), V),
        call(lambda x: np.clip(x, None, 0.5), F),
        call(lambda x: np.clip(x, 0, 3), I),
        call(lambda x, a: np.clip(x, a, a + 1), V, W),
        call(lambda x: np.clip(x, min=0.0), V),
    ],
    np.select: [call(lambda x: np.select([x > 1, x > 0], [x, x * x], -1.0), V)],
    np.nan_to_num: [
        call(np.nan_to_num, HOLES),
        call(lambda x: np.nan_to_num(x, nan=7.0, posinf=1.0, neginf=-1.0), HOLES),
        call(np.nan_to_num, I),
    ],
    np.isclose: [call(np.isclose, V, V + 1e-9), call(lambda a, b: np.isclose(a, b, equal_nan=True), HOLES, HOLES), call(np.isclose, V, W)],
    np.allclose: [call(np.allclose, V, V + 1e-9), call(np.allclose, V, W)],
    np.array_equal: [call(np.array_equal, I, I), call(np.array_equal, V, W), call(np.array_equal, V, M)]
    + [call(lambda a, b, n=n: np.array_equal(a, b, equal_nan=n), HOLES, HOLES) for n in (True, False)],
    np.sinc: [call(np.sinc, V), call(np.sinc, np.array([0.0, 1.0, -0.5]))],
    np.where: [
        call(lambda x: np.where(x > 0, x, 0.0), V),
        call(np.where, B, I, V),
        call(lambda x: np.where(x > 0, 1, 0), V),
        call(lambda x: np.where(x > 0, x, -x), F),
    ],
    np.real: [call(np.real, V)],
    np.result_type: [
        call(lambda x: np.zeros(2, np.result_type(x, np.float32)), F),
        call(lambda x: np.zeros(2, np.result_type(x, np.float32)), V),
    ],
    np.isrealobj: [call(lambda x: (x, np.isrealobj(x)), V)],
    np.iscomplexobj: [call(lambda x: (x, np.iscomplexobj(x)), V)],
    # ---- reductions
    np.sum: [
        call(np.sum, M),
        call(lambda x: np.sum(x, 1), M),
        call(lambda x: np.sum(x, axis=(0, 2), keepdims=True), T),
        call(np.sum, I),
        call(np.sum, B),
        call(np.sum, U),
        call(lambda x: np.sum(x, dtype=np.float32), M),
        call(lambda x: np.sum(x, initial=2.0), V),
        call(np.sum, F),
        call(lambda x, m: np.sum(x, where=m), V, B),
        call(lambda x: np.sum(x, dtype=np.int32), I),
        call(np.sum, np.zeros((0, 3))),
    ],
    np.prod: [call(np.prod, V), call(lambda x: np.prod(x, 0), M), call(np.prod, I), call(lambda x, m: np.prod(x, where=m), V, B)],
    np.max: [
        call(np.max, M),
        call(lambda x: np.max(x, axis=1, keepdims=True), T),
        call(np.max, I),
        call(lambda x: np.max(x, initial=9.0), V),
        call(np.max, B),
    ],
    np.min: [call(np.min, M), call(lambda x: np.min(x, 0), F), call(lambda x, m: np.min(x, where=m, initial=100.0), V, B)],
    np.amax: [call(np.amax, M)],
    np.amin: [call(lambda x: np.amin(x, 1), M)],
    np.any: [call(np.any, B), call(lambda x: np.any(x > 1, axis=0), M), call(np.any, I)],
    np.all: [call(np.all, B), call(lambda x: np.all(x > -9, axis=(0, 1), keepdims=True), M), call(np.all, I)],
    np.argmax: [call(np.argmax, M), call(lambda x: np.argmax(x, 1), M), call(lambda x: np.argmax(x, axis=0, keepdims=True), T)],
    np.argmin: [call(np.argmin, I), call(lambda x: np.argmin(x, axis=-1), T)],
    np.count_nonzero: [call(lambda x: (np.count_nonzero(x, axis=0), x), I.reshape(1, 5))],
    np.cumsum: [
        call(np.cumsum, V),
        call(lambda x: np.cumsum(x, 1), M),
        call(np.cumsum, M),
        call(np.cumsum, B),
        call(lambda x: np.cumsum(x, dtype=np.float32), I),
    ],
    np.cumprod: [call(np.cumprod, V), call(lambda x: np.cumprod(x, axis=0), M), call(np.cumprod, I)],
    np.mean: [
        call(np.mean, M),
        call(lambda x: np.mean(x, 0), F),
        call(lambda x: np.mean(x, axis=(0, 2), keepdims=True), T),
        call(np.mean, I),
        call(np.mean, B),
        call(lambda x: np.mean(x, dtype=np.float32), I),
        call(lambda x, m: np.mean(x, where=m), V, B),
    ],
    np.var: [
        call(np.var, M),
        call(lambda x: np.var(x, axis=0, ddof=1), M),
        call(lambda x: np.var(x, 1, keepdims=True), F),
        call(np.var, I),
    ],
    np.std: [call(np.std, M), call(lambda x: np.std(x, axis=(0, 1)), T), call(lambda x: np.std(x, ddof=1), V), call(np.std, np.ones(4))],
    np.ptp: [call(np.ptp, M), call(lambda x: np.ptp(x, axis=1), I.reshape(1, 5))],
    np.average: [
        call(np.average, M),
        call(lambda x, w: np.average(x, axis=1, weights=w), M, np.abs(N[:, 0])),
        call(lambda x, w: np.average(x, weights=w), V, P),
        call(lambda x, w: np.average(x, weights=w, returned=True), V, P),
        call(np.average, I),
    ],
    np.nansum: [call(np.nansum, HOLES[:3]), call(np.nansum, I)],
    np.nanmean: [call(np.nanmean, HOLES[:3])],
    np.nanmax: [call(np.nanmax, HOLES), call(np.nanmax, I)],
    np.nanmin: [call(np.nanmin, HOLES[:3])],
    np.trapezoid: [
        call(np.trapezoid, V),
        call(lambda y, x: np.trapezoid(y, x), V, SORTED),
        call(lambda y: np.trapezoid(y, dx=0.1, axis=0), M),
        call(lambda y, x: np.trapezoid(y, x, axis=1), T, np.arange(3.0)),
    ],
    np.array_equiv: [call(np.array_equiv, V, V), call(np.array_equiv, M, M[0]), call(lambda a, b: (np.array_equiv(a, b), a), V, M)],
    # ---- statistics
    np.median: [
        call(np.median, V),
        call(lambda x: np.median(x, axis=1), M),
        call(lambda x: np.median(x, axis=(0, 2), keepdims=True), T),
        call(np.median, F),
        call(np.median, I),
        call(np.median, HOLES),
    ],
    np.quantile: [
        call(lambda x: np.quantile(x, 0.3), V),
        call(lambda x: np.quantile(x, [0.0, 0.25, 1.0], axis=0), M),
        call(lambda x, q: np.quantile(x, q, axis=(0, 1), keepdims=True), T, np.array(0.7)),
        call(lambda x: np.quantile(x, 0.5), HOLES),
        call(lambda x: np.quantile(x, 0.5), I),
        call(lambda x: np.quantile(x, 0.9), F),
    ],
    np.percentile: [call(lambda x: np.percentile(x, [25, 60]), V), call(lambda x: np.percentile(x, 10, axis=1), M)],
    np.nanmedian: [call(np.nanmedian, HOLES[:3]), call(lambda x: np.nanmedian(x, axis=1), M), call(np.nanmedian, np.full(3, np.nan))],
    np.digitize: [call(lambda x: np.digitize(x, [-1.0, 0.0, 1.0]), V), call(lambda x: np.digitize(x, [0, 2, 4], right=True), J)],
    np.bincount: [
        call(lambda x: np.bincount(x, minlength=9), J),
        call(lambda x, w: np.bincount(x, weights=w, minlength=9), J, V),
        call(lambda x, w: np.bincount(x, weights=w, minlength=9), J[:0], V[:0]),
    ],
    np.histogram: [
        call(lambda x: np.histogram(x, bins=4, range=(-2, 2)), V),
        call(lambda x: np.histogram(x, bins=3), M),
        call(lambda x: np.histogram(x, bins=[-1.0, 0.0, 0.5, 2.0], density=True), M),
        call(lambda x, w: np.histogram(x, 5, weights=w), V, W),
        call(lambda x: np.histogram(x, bins=2), np.ones(3)),
    ],
    np.cov: [
        call(np.cov, M),
        call(lambda a, b: np.cov(a, b, ddof=0), V, W),
        call(lambda x: np.cov(x, rowvar=False, bias=True), M),
        call(np.cov, V),
    ],
    np.corrcoef: [call(np.corrcoef, M), call(np.corrcoef, V, W), call(lambda x: np.corrcoef(x, rowvar=False), M)],
    np.nanprod: [call(np.nanprod, HOLES[:3]), call(np.nanprod, I)],
    np.nanvar: [call(np.nanvar, HOLES[:2]), call(lambda x: np.nanvar(x, axis=0, ddof=1), M), call(np.nanvar, np.full(2, np.nan))],
    np.nanstd: [call(np.nanstd, HOLES[:2]), call(lambda x: np.nanstd(x, axis=1, keepdims=True), M)],
    np.nancumsum: [call(np.nancumsum, HOLES[:3]), call(lambda x: np.nancumsum(x, axis=1), M)],
    np.nancumprod: [call(np.nancumprod, HOLES[:3])],
    np.nanargmax: [call(np.nanargmax, HOLES), call(lambda x: np.nanargmax(x, axis=1), M)],
    np.nanargmin: [call(np.nanargmin, HOLES)],
    # ---- calculus
    np.gradient: [
        call(np.gradient, V),
        call(np.gradient, M),
        call(lambda x: np.gradient(x, 0.5, axis=1), M),
        call(lambda x: np.gradient(x, 0.5, 2.0), M),
        call(lambda x, at: np.gradient(x, at), V, SORTED),
        call(np.gradient, I),
    ],
    np.unwrap: [call(np.unwrap, 5 * V), call(lambda x: np.unwrap(4 * x, axis=0), M), call(lambda x: np.unwrap(x, period=1.0), V)],
    np.logspace: [call(lambda x: np.logspace(0, x[0], 4), V), call(lambda x: np.logspace(x[0], 2, 3, endpoint=False, base=2), V)],
    np.geomspace: [call(lambda x: np.geomspace(1.0, x[0], 4), P), call(lambda x: np.geomspace(-x[0], -x[1], 3), P)],
    np.vander: [call(np.vander, V), call(lambda x: np.vander(x, 3, increasing=True), V), call(lambda x: np.vander(x, 0), V)],
    np.polyfit: [
        call(lambda x, y: np.polyfit(x, y, 2), SORTED, W),
        call(lambda x, y: np.polyfit(x, y, 1, w=np.arange(1.0, 6.0)), SORTED, W),
    ],
    np.polyder: [call(np.polyder, V), call(lambda p: np.polyder(p, 2), V), call(np.polyder, I)],
    np.polyint: [call(np.polyint, V), call(lambda p: np.polyint(p, 2, k=[3.0, 4.0]), V)],
    # ---- shapes
    np.reshape: [
        call(lambda x: np.reshape(x, (4, -1)), M),
        call(lambda x: np.reshape(x, (6, 2), order="F"), M),
        call(lambda x: np.reshape(x, -1), T),
    ],
    np.ravel: [call(np.ravel, T), call(lambda x: np.ravel(x, order="F"), M)],
    np.transpose: [
        call(np.transpose, T),
        call(lambda x: np.transpose(x, (1, 0, 2)), T),
        call(lambda x: np.transpose(x, axes=[2, 0, 1]), T),
    ],
    np.matrix_transpose: [call(np.matrix_transpose, T)],
    np.swapaxes: [call(lambda x: np.swapaxes(x, 0, -1), T)],
    np.moveaxis: [call(lambda x: np.moveaxis(x, 0, -1), T), call(lambda x: np.moveaxis(x, [0, 1], [-1, 0]), T)],
    np.squeeze: [call(lambda x: np.squeeze(x[None, :, None]), V), call(lambda x: np.squeeze(x[None], axis=0), M)],
    np.expand_dims: [call(lambda x: np.expand_dims(x, 1), V), call(lambda x: np.expand_dims(x, (0, -1)), M)],
    np.atleast_1d: [call(lambda x: np.atleast_1d(x[0]), V), call(lambda x, y: np.atleast_1d(x, y), V, M)],
    np.atleast_2d: [call(np.atleast_2d, V), call(lambda x: np.atleast_2d(x[0]), V)],
    np.atleast_3d: [call(np.atleast_3d, V), call(np.atleast_3d, M), call(lambda x: np.atleast_3d(x[0]), V), call(np.atleast_3d, T)],
    np.broadcast_to: [call(lambda x: np.broadcast_to(x, (2, 5)), V)],
    np.broadcast_arrays: [call(lambda a, b: np.broadcast_arrays(a[:, :1], b[:1]), M, M)],
    np.concatenate: [
        call(lambda a, b: np.concatenate([a, b]), V, W),
        call(lambda a, b: np.concatenate((a, b), axis=1), M, F),
        call(lambda a, b: np.concatenate((a, b), None), M, V),
        call(lambda a: np.concatenate([a, np.ones(3)]), V),
        call(lambda a: np.concatenate([a, a], dtype=np.float32), I),
        call(np.concatenate, T),
    ],
    np.stack: [
        call(lambda a, b: np.stack([a, b]), V, W),
        call(lambda a, b: np.stack([a, b], -1), M, F),
        call(lambda a: np.stack([a, np.zeros(5)], axis=1), V),
    ],
    np.hstack: [call(lambda a, b: np.hstack([a, b]), V, W), call(lambda a: np.hstack([a, a]), M)],
    np.vstack: [call(lambda a, b: np.vstack([a, b]), V, W), call(lambda a: np.vstack([a, a[0]]), M)],
    np.dstack: [call(lambda a, b: np.dstack([a, b]), V, W), call(lambda a: np.dstack([a, a]), M)],
    np.column_stack: [call(lambda a, b: np.column_stack([a, b]), V, W)],
    np.append: [call(np.append, V, M), call(lambda a: np.append(a, a, axis=0), M)],
    np.split: [call(lambda x: np.split(x, 2, axis=1), M), call(lambda x: np.split(x, [1, 3]), V)],
    np.array_split: [call(lambda x: np.array_split(x, 3), V), call(lambda x: np.array_split(x, 4), V[:3])],
    np.hsplit: [call(lambda x: np.hsplit(x, 2), M), call(lambda x: np.hsplit(x, [2]), V)],
    np.vsplit: [call(lambda x: np.vsplit(x, 3), M)],
    np.dsplit: [call(lambda x: np.dsplit(x, 2), T)],
    np.flip: [call(np.flip, M), call(lambda x: np.flip(x, 1), M), call(lambda x: np.flip(x, (0, 2)), T)],
    np.fliplr: [call(np.fliplr, M)],
    np.flipud: [call(np.flipud, M)],
    np.rot90: [call(lambda x, k=k: np.rot90(x, k), M) for k in range(-1, 4)] + [call(lambda x: np.rot90(x, axes=(1, 2)), T)],
    np.roll: [
        call(lambda x: np.roll(x, 2), V),
        call(lambda x: np.roll(x, -7, axis=1), M),
        call(lambda x: np.roll(x, (1, 2), axis=(0, 1)), M),
        call(lambda x: np.roll(x, 3), M),
        call(lambda x: np.roll(x, 1, axis=(0, 1)), M),
    ],
    np.rollaxis: [call(lambda x: np.rollaxis(x, 2), T), call(lambda x: np.rollaxis(x, 0, 2), T), call(lambda x: np.rollaxis(x, -1, 1), T)],
    np.resize: [call(lambda x: np.resize(x, (2, 3)), M), call(lambda x: np.resize(x, 8), V)],
    np.tile: [call(lambda x: np.tile(x, 3), V), call(lambda x: np.tile(x, (2, 1, 2)), M), call(lambda x: np.tile(x, 2), M)],
    np.repeat: [
        call(lambda x: np.repeat(x, 2), M),
        call(lambda x: np.repeat(x, 3, axis=0), M),
        call(lambda x: np.repeat(x, [1, 0, 2], axis=0), M),
    ],
    np.pad: [
        call(lambda x: np.pad(x, 2), V),
        call(lambda x: np.pad(x, ((1, 2), (0, 3)), constant_values=7.0), M),
        call(lambda x: np.pad(x, (1, 2), mode="edge"), M),
        call(lambda x: np.pad(x, 2, mode="reflect"), V),
        call(lambda x: np.pad(x, ((0, 0), (2, 1)), "wrap"), M),
        call(lambda x: np.pad(x, 3, "symmetric"), V),
        call(lambda x: np.pad(x, 1, constant_values=(1.0, 2.0)), M),
        call(lambda x: np.pad(x, 1), I),
    ],
    # ---- picking
    np.take: [
        call(np.take, V, PLACES),
        call(lambda x, i: np.take(x, i, axis=1), M, PLACES),
        call(lambda x: np.take(x, [[0, 1], [2, 0]], axis=0), M),
        call(lambda x: np.take(x, [9, -9], mode="clip"), V),
        call(lambda x: np.take(x, [9, -9], mode="wrap"), V),
    ],
    np.sort: [call(np.sort, V), call(lambda x: np.sort(x, 0), M), call(lambda x: np.sort(x, axis=None, kind="stable"), T)],
    np.argsort: [call(np.argsort, V), call(lambda x: np.argsort(x, axis=0), M), call(lambda x: np.argsort(x, None), M)],
    np.take_along_axis: [
        call(lambda x, i: np.take_along_axis(x, i, 1), M, np.array([[0, 3], [1, 1], [2, 0]])),
        call(lambda x, i: np.take_along_axis(x, i[None], axis=0), M, np.array([0, 2, 1, 0])),
    ],
    np.searchsorted: [call(np.searchsorted, SORTED, V), call(lambda a, v: np.searchsorted(a, v, side="right"), SORTED, SORTED)],
    np.interp: [call(np.interp, V, SORTED, W), call(lambda x, a, f: np.interp(x, a, f, left=-9.0, right=9.0), V * 3, SORTED, W)],
    np.tril: [call(np.tril, M), call(lambda x: np.tril(x, 1), T), call(lambda x: np.tril(x, -1), I.reshape(1, 5))],
    np.triu: [call(np.triu, M), call(lambda x: np.triu(x, -1), T)],
    np.diagonal: [call(np.diagonal, M)] + [call(lambda x, k=k: np.diagonal(x, k, 0, 2), T) for k in (-3, -1, 0, 1, 3, 5)],
    np.trace: [call(np.trace, S), call(lambda x: np.trace(x, offset=1), M), call(lambda x: np.trace(x, axis1=1, axis2=2), T)],
    np.diag: [
        call(np.diag, S),
        call(np.diag, V),
        call(lambda x: np.diag(x, 2), V),
        call(lambda x: np.diag(x, -1), V),
        call(lambda x: np.diag(x, 1), M),
    ],
    np.diagflat: [call(np.diagflat, N)],
    np.diff: [
        call(np.diff, V),
        call(lambda x: np.diff(x, n=2, axis=0), M),
        call(lambda x: np.diff(x, prepend=0.0), V),
        call(lambda x: np.diff(x, append=x[:1]), V),
        call(np.diff, B),
    ],
    np.ediff1d: [call(np.ediff1d, V), call(lambda x: np.ediff1d(x, to_end=3.0, to_begin=[1.0, 2.0]), M)],
    np.delete: [
        call(lambda x: np.delete(x, 1), V),
        call(lambda x: np.delete(x, [0, -1], axis=1), M),
        call(lambda x: np.delete(x, slice(0, 4, 2), axis=1), M),
    ],
    np.insert: [
        call(lambda x: np.insert(x, 1, 7.0), V),
        call(lambda x: np.insert(x, -1, np.arange(4.0), axis=0), M),
        call(lambda x: np.insert(x, 2, [8, 9]), I),
    ],
    np.compress: [call(lambda x: np.compress([True, False, True], x), V), call(lambda x: np.compress([False, True], x, axis=1), M)],
    np.extract: [call(lambda x: np.extract(B, x), V)],
    np.lib.stride_tricks.sliding_window_view: [
        call(lambda x: np.lib.stride_tricks.sliding_window_view(x, 3), V),
        call(lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 3)), M),
        call(lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 2), axis=(-1, 0)), M),
        call(lambda x: np.lib.stride_tricks.sliding_window_view(x, window_shape=2, axis=1), T),
    ],
    np.choose: [
        call(lambda i, a, b: np.choose(i, [a, b]), np.array([0, 1, 1, 0, 1]), V, W),
        call(lambda i: np.choose(i, [10, 20], mode="wrap"), I),
    ],
    np.piecewise: [
        call(lambda x: np.piecewise(x, [x < 0, x >= 0.5], [lambda v: -v, lambda v: v * v]), V),
        call(lambda x: np.piecewise(x, [x < 0, x < 1], [-1, 0, lambda v: v]), V),
    ],
    np.isin: [call(lambda x: np.isin(x, [1, 3]), I), call(lambda x: np.isin(x, np.array([[1.0], [2.0]]), invert=True), V)],
    np.partition: [call(lambda x: np.partition(x, 2)[2], V)],
    np.argpartition: [call(lambda x: np.argpartition(x, 2)[2], V)],
    np.lexsort: [call(lambda a, b: np.lexsort((a, b)), V, np.array([1, 0, 1, 0, 0])), call(lambda a: np.lexsort((a, a > 0), axis=0), M)],
    np.unravel_index: [call(lambda x: np.unravel_index(np.argmax(x), (3, 4)), M), call(lambda i: np.unravel_index(i, (2, 2, 3)), J)],
    np.tril_indices_from: [call(lambda x: x[np.tril_indices_from(x)], M)],
    np.triu_indices_from: [call(lambda x: x[np.triu_indices_from(x, 1)], M)],
    np.diag_indices_from: [call(lambda x: x[np.diag_indices_from(x)], S)],
    # ---- making
    np.zeros_like: [
        call(np.zeros_like, M),
        call(lambda x: np.zeros_like(x, dtype=np.int32), M),
        call(lambda x: np.zeros_like(x, shape=(2,)), F),
    ],
    np.ones_like: [call(np.ones_like, F), call(np.ones_like, I)],
    np.full_like: [call(lambda x: np.full_like(x, 3.5), M), call(lambda x: np.full_like(x, x[0]), V)],
    np.empty_like: [call(lambda x: np.zeros_like(np.empty_like(x)), M)],
    np.linspace: [
        call(lambda a: np.linspace(a[0], a[1], 7), V),
        call(lambda a: np.linspace(a, a + 1, 5), V),
        call(lambda a: np.linspace(a, 2.0, 4, endpoint=False), V),
        call(lambda a: np.linspace(0, a, num=3, axis=1), V),
        call(lambda a: np.linspace(a[0], 3.0, 5, retstep=True), V),
    ],
    np.meshgrid: [
        call(np.meshgrid, V, W[:3]),
        call(lambda a, b, c: np.meshgrid(a, b, c, indexing="ij"), V, W, I),
        call(lambda a, b: np.meshgrid(a, b, sparse=True), V, W),
    ],
    np.copy: [call(np.copy, M)],
    np.shape: [call(lambda x: (x, np.shape(x)), M)],
    np.ndim: [call(lambda x: (x, np.ndim(x)), M)],
    np.size: [call(lambda x: (x, np.size(x), np.size(x, 1)), M)],
    # ---- products
    np.dot: [
        call(np.dot, V, W),
        call(np.dot, M, N),
        call(np.dot, T, N),
        call(np.dot, T, N[:, 0]),
        call(lambda a: np.dot(a, 2.0), V),
        call(np.dot, M, T.transpose(0, 2, 1)),
    ],
    np.vdot: [call(np.vdot, M, M)],
    np.inner: [call(np.inner, V, W), call(np.inner, M, T), call(lambda a: np.inner(a, 3.0), V)],
    np.outer: [call(np.outer, V, W), call(np.outer, M, I)],
    np.tensordot: [
        call(lambda a, b: np.tensordot(a, b, 1), M, N),
        call(lambda a, b: np.tensordot(a, b, axes=([1, 2], [0, 1])), T, M),
        call(lambda a, b: np.tensordot(a, b, 0), V, W),
        call(np.tensordot, M, M),
    ],
    np.kron: [call(np.kron, M, N), call(np.kron, V, W), call(np.kron, V, M)],
    np.cross: [call(np.cross, S, S.T), call(lambda a, b: np.cross(a, b, axis=0), S, S.T), call(np.cross, V[:3], S)],
    np.convolve: [call(lambda a, b, m=m: np.convolve(a, b, m), V, W[:3]) for m in ("full", "same", "valid")]
    + [call(np.convolve, W[:2], V), call(np.convolve, I, J)],
    np.correlate: [call(lambda a, b, m=m: np.correlate(a, b, m), V, W[:3]) for m in ("full", "same", "valid")]
    + [call(lambda a, b: np.correlate(a, b, "full"), W[:2], V)],
    np.polyval: [call(np.polyval, V, M), call(np.polyval, I, J), call(np.polyval, F[:0], V), call(np.polyval, V[:0], J)],
    np.block: [call(lambda a, b: np.block([[a, a], [b.T, b.T]]), S[:2, :2], S[:2, :2]), call(lambda a: np.block([a, a]), V)],
    np.einsum: [call(lambda a, b: np.einsum("ij,jk->ik", a, b), M, N)],
    np.array_repr: [],
    np.array_str: [],  # they return text, tested with `repr`
    # ---- linalg
    np.linalg.slogdet: [call(lambda x: tuple(np.linalg.slogdet(x)), S)],
    np.linalg.det: [call(np.linalg.det, S), call(np.linalg.det, T[:, :, :3]), call(np.linalg.det, np.array([[1, 2], [3, 4]]))],
    np.linalg.cholesky: [
        call(lambda x: np.linalg.cholesky(x @ x.T + np.eye(3)), S),
        call(lambda x: np.linalg.cholesky(x, upper=True), np.diag(P)),
    ],
    np.linalg.qr: [
        call(lambda x: tuple(np.linalg.qr(x)), N),
        call(lambda x: tuple(np.linalg.qr(x)), M),
        call(lambda x: np.linalg.qr(x, mode="r"), T),
    ],
    np.linalg.lstsq: [call(lambda a, b: np.linalg.lstsq(a, b)[:2], N, V[:4]), call(lambda a, b: np.linalg.lstsq(a, b)[:2], N, M.T)],
    np.linalg.pinv: [call(np.linalg.pinv, N), call(np.linalg.pinv, M), call(np.linalg.pinv, T)],
    np.linalg.tensorsolve: [call(lambda a, b: np.linalg.tensorsolve(a.reshape(3, 3, 1), b), S, V[:3])],
    np.linalg.norm: [
        call(np.linalg.norm, V),
        call(np.linalg.norm, T),
        call(lambda x: np.linalg.norm(x, axis=1, keepdims=True), M),
        call(np.linalg.norm, F),
        *[call(lambda x, p=p: np.linalg.norm(x, p), V) for p in (0, 1, 2, 3, 0.5, np.inf, -np.inf)],
        *[call(lambda x, p=p: np.linalg.norm(x, p), M) for p in (1, -1, np.inf, -np.inf, "fro")],
        call(lambda x: np.linalg.norm(x, 1, axis=(0, 2)), T),
    ],
    np.linalg.vector_norm: [call(np.linalg.vector_norm, M), call(lambda x: np.linalg.vector_norm(x, axis=(0, 1), ord=1), T)],
    np.linalg.matrix_norm: [call(np.linalg.matrix_norm, T), call(lambda x: np.linalg.matrix_norm(x, ord=1), M)],
    np.linalg.multi_dot: [call(lambda a, b: np.linalg.multi_dot([a, b, b.T]), M, N)],
    np.linalg.matrix_power: [call(lambda x, n=n: np.linalg.matrix_power(x, n), S) for n in (-2, 0, 1, 2, 5)],
    np.linalg.matmul: [call(np.linalg.matmul, M, N)],
    np.linalg.solve: [call(np.linalg.solve, S, V[:3]), call(lambda a, b: np.linalg.solve(a, b.T), S, M.T)],
    np.linalg.inv: [call(np.linalg.inv, S)],
    np.linalg.tensordot: [call(lambda a, b: np.linalg.tensordot(a, b, axes=1), M, N)],
    np.linalg.vecdot: [call(np.linalg.vecdot, V, W)],
    np.linalg.outer: [call(np.linalg.outer, V, W)],
    np.linalg.cross: [call(np.linalg.cross, S, S.T)],
    np.linalg.trace: [call(np.linalg.trace, T)],
    np.linalg.diagonal: [call(lambda x: np.linalg.diagonal(x, offset=1), T)],
    np.linalg.matrix_transpose: [call(np.linalg.matrix_transpose, T)],
}

BITS = np.array([0, 1, -1, 5, 12, -96, 2**31, -(2**40), 2**62])
EXTREME = np.finfo(np.float64)
FLOATS = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 3.7, -1e300, 1e-310, 5e-324, np.inf, -np.inf, np.nan, EXTREME.max, EXTREME.smallest_normal])
SINGLES = np.array([0.0, 1.0, -0.75, 3e38, 1e-40, 1e-45, np.inf, np.nan], np.float32)
FUNCTIONS.update({
    np.ix_: [
        call(lambda i, j: np.ix_(i, j), np.array([0, 2]), np.array([1, 0, 3])),
        call(lambda x, i: x[np.ix_(i, [1, 3])], M, np.array([2, 0])),
    ],
    np.nanquantile: [
        call(lambda x: np.nanquantile(x, 0.3), HOLES),
        call(lambda x: np.nanquantile(x, [0.25, 0.9], axis=0, keepdims=True), HOLES[:6].reshape(2, 3)),
        call(lambda x: np.nanquantile(x, 0.5, axis=1), M),
    ],
    np.nanpercentile: [call(lambda x: np.nanpercentile(x, 30), HOLES), call(lambda x: np.nanpercentile(x, [25, 90], axis=1), M)],
    np.histogram_bin_edges: [call(lambda x: np.histogram_bin_edges(x, 4), V), call(lambda x: np.histogram_bin_edges(x, [0.0, 1.0]), V)],
    np.histogram2d: [
        call(lambda x, y: np.histogram2d(x, y, 3), V, W),
        call(lambda x, y: np.histogram2d(x, y, (2, 3), range=((-1, 1), (-2, 2)), density=True), V, W),
        call(lambda x, y: np.histogram2d(x, y, [[-1.0, 0.0, 2.0], 3], weights=x * x), V, W),
        call(lambda x, y: np.histogram2d(x, y, np.array([-2.0, -0.5, 0.5, 2.0])), V, W),
    ],
    np.histogramdd: [
        call(lambda x: np.histogramdd(x, 2), M),
        call(lambda x: np.histogramdd(x[:, :2], (2, [-1.0, 0.0, 1.0]), density=True), M),
    ],
    np.angle: [call(np.angle, V), call(lambda x: np.angle(x, deg=True), np.array([-1, 0, 2])), call(np.angle, FLOATS)],
    np.real_if_close: [call(np.real_if_close, V)],
    np.roots: [call(lambda x: np.sort(np.abs(np.roots(x))), np.array([1.0, -6.0, 11.0, -6.5]))],
    np.sort_complex: [call(np.sort_complex, V[0] if V.ndim > 1 else V)],
    np.einsum_path: [call(lambda a, b: np.einsum_path("ij,jk->ik", a, b)[1], M, N)],
    np.poly: [call(np.poly, V), call(np.poly, I)],
    np.polyadd: [call(np.polyadd, V, W[:3]), call(np.polyadd, I, 2)],
    np.polysub: [call(np.polysub, W[:2], V)],
    np.polymul: [call(np.polymul, V, W[:3])],
    np.polydiv: [call(np.polydiv, V, W[:3]), call(np.polydiv, V[:2], W[:4]), call(np.polydiv, I, np.array([2, 1]))],
    np.apply_along_axis: [
        call(lambda x: np.apply_along_axis(np.sum, 0, x), T),
        call(lambda x: np.apply_along_axis(lambda v: np.outer(v, v), 1, x), T),
        call(lambda x: np.apply_along_axis(np.cumsum, -1, x), M),
    ],
    np.apply_over_axes: [call(lambda x: np.apply_over_axes(np.sum, x, [0, 2]), T)],
    np.nonzero: [], np.flatnonzero: [], np.argwhere: [], np.unique: [], np.unique_all: [], np.unique_counts: [], np.unique_inverse: [],
    np.trim_zeros: [],
    np.unique_values: [], np.intersect1d: [], np.union1d: [], np.setdiff1d: [], np.setxor1d: [],  # with size=: see test_sets
    np.packbits: [
        call(np.packbits, np.array([1, 0, 1, 1, 0, 0, 0, 1, 1, 0], bool)),
        call(lambda x: np.packbits(x, axis=1, bitorder="little"), np.arange(30).reshape(3, 10) % 3),
    ],
    np.unpackbits: [
        call(np.unpackbits, np.array([3, 200], np.uint8)),
        call(lambda x: np.unpackbits(x, axis=0, count=11, bitorder="little"), np.arange(6, dtype=np.uint8).reshape(2, 3)),
        call(lambda x: np.unpackbits(x, count=-3), np.array([3, 200], np.uint8)),
        call(lambda x: np.unpackbits(x, count=20), np.array([3, 200], np.uint8)),
    ],
    np.ravel_multi_index: [
        call(lambda i, j: np.ravel_multi_index((i, j), (3, 4)), np.array([0, 2]), np.array([3, 1])),
        call(lambda i, j: np.ravel_multi_index((i, j), (3, 4), mode=("wrap", "clip"), order="F"), np.array([-1, 7]), np.array([9, -1])),
    ],
    np.i0: [call(np.i0, np.array([0.0, -0.5, 3.0, 8.0, 8.5, 50.0]))],
})  # fmt: skip
BINARY.update(
    {
        np.gcd: [(BITS, BITS[::-1].copy()), (np.array([12, 18], np.int32), np.array([8], np.uint8)), (np.arange(6), np.array([[4], [6]]))],
        np.lcm: [(np.arange(-3, 4), np.array([[4], [6]]))],
        np.ldexp: [
            (V, np.arange(-3, 2)),
            (np.array([1.1, 1.1, 1.1, 3e-310, -2.0, 1e300]), np.array([-1074, -1030, 2000, 1030, 1023, -2100])),
            (SINGLES, np.array([3, -149, 10, -3, 20, 40, 1, 1], np.int32)),
        ],
        np.nextafter: [
            *[(FLOATS, towards) for towards in (np.zeros(1), np.full(1, np.inf), -np.ones(1), FLOATS)],
            (SINGLES, np.ones(1, np.float32)),
        ],
    }
)
UNARY.update(
    {
        np.bitwise_count: [BITS, np.array([255, 7], np.uint8), np.array([-128, 3], np.int8)],
        np.spacing: [FLOATS, SINGLES],
        np.frexp: [FLOATS, SINGLES],
    }
)

if hasattr(np, "unstack"):
    FUNCTIONS[np.unstack] = [call(np.unstack, M), call(lambda x: np.unstack(x, axis=1), M)]
if hasattr(np, "cumulative_sum"):
    FUNCTIONS[np.cumulative_sum] = [
        call(np.cumulative_sum, V),
        call(lambda x: np.cumulative_sum(x, axis=1, include_initial=True), M),
        call(np.cumulative_sum, I),
    ]
    FUNCTIONS[np.cumulative_prod] = [call(lambda x: np.cumulative_prod(x, axis=0, include_initial=True), M)]
if hasattr(np, "matvec"):
    BINARY[np.matvec] = [(M, V[:4]), (T, M[:2])]
    BINARY[np.vecmat] = [(V[:3], M), (M[:2], T.transpose(0, 2, 1))]
if hasattr(np, "astype"):
    FUNCTIONS[np.astype] = [call(lambda x: np.astype(x, np.float32), V)]

METHODS: list[Call] = [
    call(lambda x: x.sum(), M),
    call(lambda x: x.sum(0, keepdims=True), M),
    call(lambda x: x.mean(axis=1), M),
    call(lambda x: x.prod(), V),
    call(lambda x: x.max(1), M),
    call(lambda x: x.min(), M),
    call(lambda x: x.argmax(), M),
    call(lambda x: x.argmin(axis=1), M),
    call(lambda x: x.any(), B),
    call(lambda x: x.all(0), B),
    call(lambda x: x.std(), M),
    call(lambda x: x.var(ddof=1), M),
    call(lambda x: x.cumsum(1), M),
    call(lambda x: x.cumprod(), V),
    call(lambda x: x.clip(-1, 1), M),
    call(lambda x: x.dot(x.T), M),
    call(lambda x: x.reshape(2, -1), M),
    call(lambda x: x.reshape((6, 2)), M),
    call(lambda x: x.ravel(), M),
    call(lambda x: x.flatten(), M),
    call(lambda x: x.transpose(), M),
    call(lambda x: x.transpose(1, 0, 2), T),
    call(lambda x: x.transpose((2, 0, 1)), T),
    call(lambda x: x.swapaxes(0, 1), T),
    call(lambda x: x[None].squeeze(), M),
    call(lambda x: x.astype(np.float32), M),
    call(lambda x: x.astype("f4"), I),
    call(lambda x: x.round(1), M),
    call(lambda x: x.take(np.array([0, 2])), V),
    call(lambda x: x.repeat(2), V),
    call(lambda x: x.copy(), M),
    call(lambda x: x.T, M),
    call(lambda x: x.mT, T),
    call(lambda x: x.trace(), S),
    call(lambda x: x.diagonal(), S),
    call(lambda x: x.conj(), V),
    call(lambda x: x.conjugate() + x.imag, V),
    call(lambda x: x.argsort(), M),
    call(lambda x: x.searchsorted(0.3, side="right"), SORTED),
    call(lambda x: (list(x.flat), x.flat[2]), M),
    call(lambda x, k: np.roll(x, k, axis=1), M, 3),
    call(lambda x, k: np.roll(x, k), M, -5),
    call(lambda x: np.maximum.accumulate(x), M),
    call(lambda x: np.minimum.accumulate(x, axis=1), T),
    call(lambda x: np.maximum.accumulate(x), HOLES),
    call(lambda x: np.maximum.accumulate(x), I),
    call(lambda x: np.fmax.reduce(x), HOLES),
    call(lambda x: np.fmin.reduce(x, axis=1), M),
    call(lambda x: x.real, V),
    call(lambda x: (x, x.shape, x.ndim, x.size, x.itemsize, x.nbytes, len(x), str(x.dtype)), M),
    call(lambda x: list(x), M),
    call(lambda x: x[1:, ::-2], M),
    call(lambda x, i: x[i], M, np.array([2, 0, 2])),
    call(lambda x: x[..., None, 1], M),
    call(lambda x: -x + 1 - x * 2 / 3 // 0.5 % 2, M),
    call(lambda x: x**2 + 2**x, V),
    call(lambda x: abs(x) @ x.T, M),
    call(lambda x: (x > 0) & (x < 1) | ~(x == 0), M),
    call(lambda x: x << 1 ^ 3, I),
    call(lambda x: divmod(x, 3), I),
    call(lambda x: np.ones(4) + x, M),
    call(lambda x: np.float64(2.0) * x, F),
    call(lambda x: np.float32(2.0) * x, F),
    call(lambda x: np.add.reduce(x), M),
    call(lambda x: np.add.reduce(x, axis=1, keepdims=True), M),
    call(lambda x: np.multiply.reduce(x, axis=None), M),
    call(lambda x: np.maximum.reduce(x, axis=-1), M),
    call(lambda x: np.minimum.reduce(x), M),
    call(lambda x: np.logical_and.reduce(x), B),
    call(lambda x: np.logical_or.reduce(x), B),
    call(lambda x: np.logaddexp.reduce(x), V),
    call(lambda x: np.add.accumulate(x), M),
    call(lambda x: np.multiply.accumulate(x, axis=1), M),
    call(lambda x, y: np.multiply.outer(x, y), M, V),
    call(lambda x, y: np.subtract.outer(x, y), V, W),
    call(lambda x: np.add(x, 1, dtype=np.float32), M),
]
