"""`address`: C function pointers for ctypes, SciPy and others."""

from __future__ import annotations

import ctypes
import gc
import math
import threading
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import UnsupportedError

DOUBLES = ctypes.POINTER(ctypes.c_double)


def pointer(array: np.ndarray[Any, Any]) -> Any:
    return array.ctypes.data_as(DOUBLES)


bump = aj.function(lambda x, a: np.exp(-a * x * x) * np.sin(x))


def test_scalars_are_values() -> None:
    found = bump.address(0.0, 0.0)
    assert found.signature == "double (double, double)"
    assert ctypes.cast(found, ctypes.c_void_p).value == found.pointer
    assert found(1.0, 2.0) == float(bump(1.0, 2.0))


@pytest.mark.one_size("compares bits with a program for one size")
def test_arrays_are_pointers() -> None:
    slope = aj.function(aj.value_and_grad(lambda x, n: np.sum(np.sin(x) ** n)))
    found = slope.address(np.zeros(5), 3)
    assert found.signature == "int (const double *, int64_t, double *, double *)"
    x, value, out = np.arange(5.0), np.zeros(()), np.zeros(5)
    assert found(pointer(x), 3, pointer(value), pointer(out)) == 0
    wanted = slope(x, 3)
    assert (float(value), out.tobytes()) == (float(wanted[0]), np.asarray(wanted[1]).tobytes())


def test_scipy_integrates() -> None:
    scipy = pytest.importorskip("scipy")
    from scipy import integrate

    wanted = integrate.quad(lambda x: float(bump(x, 2.0)), 0.0, 1.0)
    packed = bump.address(0.0, 0.0, signature="double (int, double *)")
    assert integrate.quad(scipy.LowLevelCallable(packed), 0.0, 1.0, args=(2.0,)) == wanted
    with_data = bump.address(0.0, 0.0, signature="double (int, double *, void *)")
    assert integrate.quad(scipy.LowLevelCallable(with_data), 0.0, 1.0, args=(2.0,)) == wanted
    one = aj.function(lambda x: bump(x, 2.0)).address(0.0)
    assert integrate.quad(scipy.LowLevelCallable(one), 0.0, 1.0) == wanted


def test_scipy_filters_images() -> None:
    scipy = pytest.importorskip("scipy")
    from scipy import ndimage

    spread = aj.function(lambda w: np.max(w) - np.min(w))
    found = spread.address(np.zeros(9), signature="int (double *, npy_intp, double *, void *)")
    image = np.random.default_rng(0).normal(size=(20, 20))
    got = ndimage.generic_filter(image, scipy.LowLevelCallable(found), size=3)
    np.testing.assert_array_equal(got, ndimage.generic_filter(image, lambda w: w.max() - w.min(), size=3))


def test_other_libraries() -> None:
    cffi = pytest.importorskip("cffi")
    found = bump.address(0.0, 0.0)
    assert cffi.FFI().cast("double (*)(double, double)", found.pointer)(1.0, 2.0) == float(bump(1.0, 2.0))


def test_numba_calls_it() -> None:
    numba = pytest.importorskip("numba")
    found = bump.address(0.0, 0.0)
    total = numba.njit(lambda n: sum([found(0.1 * k, 2.0) for k in range(n)]))
    assert abs(total(10) - sum(float(bump(0.1 * k, 2.0)) for k in range(10))) < 1e-12


def test_loops_and_large_arrays_allocate() -> None:
    @aj.function
    @aj.grad
    def root(a: Any) -> Any:
        x = a
        while abs(x * x - a) > 1e-12:
            x = 0.5 * (x + a / x)
        return x

    assert root.address(2.0)(2.0) == float(root(2.0))
    product = aj.function(lambda a: np.tanh(a @ a) @ a)
    a, out = np.random.default_rng(0).normal(size=(90, 90)), np.zeros((90, 90))
    assert product.address(a)(pointer(a), pointer(out)) == 0
    assert out.tobytes() == np.asarray(product(a)).tobytes()


def test_threads_call_at_once() -> None:
    product = aj.function(lambda a: np.tanh(a @ a) @ a)
    a = np.random.default_rng(0).normal(size=(90, 90))
    found, outs = product.address(a), [np.zeros((90, 90)) for _ in range(4)]
    threads = [threading.Thread(target=lambda out=out: [found(pointer(a), pointer(out)) for _ in range(20)]) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {out.tobytes() for out in outs} == {np.asarray(product(a)).tobytes()}


def test_errors_are_codes_or_nan() -> None:
    pick = aj.function(lambda x, i: x[i] * 2.0)
    found, x, out = pick.address(np.zeros(3), 0), np.arange(3.0), np.zeros(())
    assert found(pointer(x), 2, pointer(out)) == 0
    assert float(out) == 4.0
    code = found(pointer(x), 3, pointer(out))
    assert "out of bounds" in found.errors[code - 1]
    chosen = aj.function(lambda i: np.array([1.0, 2.0])[i])
    assert math.isnan(chosen.address(0)(2))
    counted = aj.function(lambda i: np.array([1, 2])[i])
    assert counted.address(0).signature == "int (int64_t, int64_t *)"
    with pytest.raises(UnsupportedError, match="cannot report errors"):
        counted.address(0, signature="int64_t (int64_t)")


def test_variables_are_as_they_are_now() -> None:
    w = aj.Variable(2.0, name="w")
    scaled = aj.function(lambda x: w * x)
    found = scaled.address(1.0)
    w.assign(5.0)
    assert found(3.0) == 6.0

    @aj.function
    def step(x: Any) -> Any:
        w.assign_add(x)
        return w + 0.0

    with pytest.raises(UnsupportedError, match=r"has no state, but this function assigns w; export\(\)"):
        step.address(1.0)


def test_signatures_that_do_not_fit() -> None:
    with pytest.raises(UnsupportedError, match=r"does not fit this function; possible are int \(double, double, double \*\); "):
        bump.address(0.0, 0.0, signature="float (float)")


def test_the_code_lives_as_long_as_the_pointer() -> None:
    found = [aj.function(lambda x, k=k: x + float(k)).address(0.0) for k in range(3)]
    gc.collect()
    assert [f(1.0) for f in found] == [1.0, 2.0, 3.0]
