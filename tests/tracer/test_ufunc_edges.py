"""Every elementwise function of NumPy that we take, on every dtype, where numbers end: dtypes, values and errors are NumPy's.

What differs by intent is named here: functions of bools and 8-bit integers are computed in float64, where NumPy has float16,
and what C leaves undefined (a float cast to an integer that does not hold it, the reciprocal of the integer 0) has one result of ours.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.ops.base import Array
from adjit.ir.types import DTYPES
from adjit.tracer.numpy_table import rule_for
from tests.ops.test_edges import float_edges, int_edges

REAL = [d for d in DTYPES.values() if d.kind in "biuf" and d != np.float16]  # complex numbers: test_complex; 16 bits: test_halves
OTHERWISE = (np.conjugate,)  # for bools NumPy returns int8; here, bools
EVERY = {u.__name__: u for u in vars(np).values() if isinstance(u, np.ufunc) and u.signature is None}
UFUNCS = [u for u in EVERY.values() if u not in OTHERWISE and rule_for(u) is not None]
BINARY = [u for u in UFUNCS if u.nin == 2]
ZEROS_TIE = (np.maximum, np.minimum, np.fmax, np.fmin)  # which of 0.0 and -0.0 NumPy takes depends on its vector loops


def edges(dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "b":
        return np.array([False, True])
    return np.array(float_edges(dtype) if dtype.kind == "f" else int_edges(dtype), dtype)


def arguments(ufunc: np.ufunc, *dtypes: np.dtype[Any]) -> list[Array]:
    """Every combination of edges; without those for which the result is undefined, or an error of some elements."""
    args = [a.ravel() for a in np.meshgrid(*map(edges, dtypes))]
    if ufunc is np.power and np.result_type(*dtypes).kind == "i":
        keep = args[1] >= 0
        args = [a[keep] for a in args]
    return [a[a != 0] for a in args] if ufunc is np.reciprocal and dtypes[0].kind in "iub" else args


def by_numpy(ufunc: np.ufunc, args: list[Array]) -> tuple[Array, ...] | None:
    """None where NumPy has no such function of these dtypes."""
    with np.errstate(all="ignore"):
        try:
            out = ufunc(*args)
        except TypeError:
            return None
        out = out if isinstance(out, tuple) else (out,)
        if any(a.dtype == np.float16 for a in out):
            out = ufunc(args[0].astype(np.float64), *(args[1:] if ufunc is np.ldexp else [a.astype(np.float64) for a in args[1:]]))
    return out if isinstance(out, tuple) else (out,)


def check(ufunc: np.ufunc, args: list[Array], got: Any, wanted: tuple[Array, ...]) -> None:
    for a, b in zip(map(np.asarray, got if isinstance(got, tuple) else (got,)), wanted, strict=True):
        assert a.dtype == b.dtype, (ufunc, [x.dtype for x in args])
        if a.dtype.kind == "f":
            info = np.finfo(a.dtype)
            near = np.isclose(a, b, rtol=8 * float(info.eps), atol=2 * float(info.smallest_subnormal), equal_nan=True)
            near &= (a != 0) | (np.signbit(a) == np.signbit(b)) if ufunc not in ZEROS_TIE else True
        else:
            near = a == b
        where = np.flatnonzero(~near)[:3]
        assert near.all(), (ufunc.__name__, [x[where] for x in args], a[where], b[where])


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
def test_every_dtype(ufunc: np.ufunc) -> None:
    cases = []
    for dtype in REAL:
        args = arguments(ufunc, *[dtype] * ufunc.nin)
        wanted = by_numpy(ufunc, args)
        if wanted is None:
            for call in (ufunc, aj.function(lambda *xs: ufunc(*xs))):
                with pytest.raises(TypeError):
                    call(*map(aj.tensor, args))
        else:
            cases.append((args, wanted))
            check(ufunc, args, ufunc(*map(aj.tensor, args)), wanted)
    compiled = aj.function(lambda rows: [ufunc(*args) for args in rows])([args for args, _ in cases])
    for got, (args, wanted) in zip(compiled, cases, strict=True):
        check(ufunc, args, got, wanted)


@pytest.mark.parametrize("ufunc", BINARY, ids=lambda u: u.__name__)
def test_every_pair_of_dtypes(ufunc: np.ufunc) -> None:
    for pair in itertools.permutations(REAL, 2):
        args = arguments(ufunc, *pair)
        wanted = by_numpy(ufunc, args)
        if wanted is None:
            with pytest.raises(TypeError):
                ufunc(*map(aj.tensor, args))
        else:
            check(ufunc, args, ufunc(*map(aj.tensor, args)), wanted)


NUMBERS = np.array([1 + 2j, -0.5, np.nan, 3 - 1j, 0.25])


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
def test_complex_numbers_with_all_others(ufunc: np.ufunc) -> None:
    for dtype in (*map(np.dtype, (np.bool_, np.int8, np.uint64, np.float32, np.float64)), NUMBERS.dtype):
        other = (NUMBERS if dtype.kind == "c" else NUMBERS.real[::-1] if dtype.kind == "f" else np.arange(5)).astype(dtype)
        for args in ((NUMBERS, other), (other, NUMBERS)) if ufunc.nin == 2 else ((NUMBERS,),):
            try:
                with np.errstate(all="ignore"):
                    wanted = ufunc(*args)
            except TypeError:
                with pytest.raises(TypeError):
                    ufunc(*map(aj.tensor, args))
                continue
            got = np.asarray(ufunc(*map(aj.tensor, args)))
            np.testing.assert_allclose(got, wanted, rtol=1e-12, err_msg=f"{ufunc.__name__} of {[x.dtype for x in args]}", strict=True)


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
def test_the_dtype_of_the_results_is_given(ufunc: np.ufunc) -> None:
    """NumPy chooses its loop by it: a comparison with `dtype=bool` compares the numbers, not whether they are zero."""
    for x in (np.array([0.5, 2.0, 7.25]), np.array([1, 2, 7]), np.array([1, 2, 7], np.uint8), np.array([0.5, 2.0], np.float32)):
        for dtype in (np.bool_, np.int8, np.int32, np.int64, np.float32, np.float64, np.complex128):
            for args in [(x,)] if ufunc.nin == 1 else [(x, 2), (2, x), (x, 1.5), (x, x[::-1])]:
                try:
                    with np.errstate(all="ignore"):
                        wanted = ufunc(*args, dtype=dtype)
                except TypeError:
                    with pytest.raises(TypeError):
                        ufunc(*(aj.tensor(a) if isinstance(a, np.ndarray) else a for a in args), dtype=dtype)
                    continue
                got = ufunc(*(aj.tensor(a) if isinstance(a, np.ndarray) else a for a in args), dtype=dtype)
                for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, wanted)), strict=True):
                    said = f"{ufunc.__name__}{args}, {np.dtype(dtype)}"
                    np.testing.assert_allclose(np.asarray(a), b, rtol=1e-6, err_msg=said, strict=True)


@pytest.mark.parametrize("ufunc", [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal], ids=lambda u: u.__name__)
def test_signed_and_unsigned_integers_compare_exactly(ufunc: np.ufunc) -> None:
    args = arguments(ufunc, np.dtype(np.int64), np.dtype(np.uint64))
    for pair in (args, args[::-1]):
        np.testing.assert_array_equal(aj.function(lambda a, b: ufunc(a, b))(*pair), ufunc(*pair))


def saturated(x: float, dtype: np.dtype[Any]) -> int:
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if not np.isfinite(x):
        return 0 if np.isnan(x) else high if x > 0 else low
    return max(low, min(int(x), high))


@pytest.mark.parametrize("source", REAL, ids=str)
def test_every_cast(source: np.dtype[Any]) -> None:
    """As in NumPy; floats outside the range of an integer dtype saturate, and NaN becomes 0."""
    x = edges(source)
    compiled = aj.function(lambda x: [x.astype(target) for target in REAL])(x)
    for target, native in zip(REAL, compiled, strict=True):
        if source.kind == "f" and target.kind in "iu":
            wanted = np.array([saturated(float(v), target) for v in x], target)
        else:
            with np.errstate(all="ignore"):
                wanted = x.astype(target)
        for got in (native, aj.tensor(x).astype(target)):
            np.testing.assert_array_equal(np.asarray(got), wanted, err_msg=f"{source} to {target}", strict=True)
