"""The vector math library against NumPy (float32, in float64) and mpmath (float64)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adjit.codegen.llvm.lanes import Lanes, Reg, Text
from adjit.codegen.llvm.target import current
from adjit.codegen.vecmath.functions import FUNCTIONS, function
from adjit.ir.target import Target
from adjit.ir.types import F32, F64, I32

from .vecmath_harness import BINARY, DIVISIONS, Array, build, by_numpy, mp_ulps, native_width, samples, ulps, unit

DTYPES = [pytest.param(F32, id="f32"), pytest.param(F64, id="f64")]
LIMIT = 2.0


def plain() -> Target:
    """The target of this process without what later CPUs have: FMA, and instructions that round to integers."""
    triple, width = current().triple, current().vector_bytes
    return Target(triple, "x86-64" if triple.startswith("x86_64") else "generic", vector_bytes=width)


every_function = pytest.mark.parametrize("name", FUNCTIONS)
every_analytic_function = pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in DIVISIONS])
every_target = pytest.mark.parametrize("target", [current(), plain()], ids=["target", "plain"])
every_dtype = pytest.mark.parametrize("dtype", DTYPES)


def bits(x: Array) -> Array:
    """The bit patterns, with all NaNs made one."""
    return np.where(np.isnan(x), np.array(np.nan, x.dtype), x).view(np.int32 if x.dtype == F32 else np.int64)


def special_values(dtype: np.dtype[Any]) -> Array:
    info = np.finfo(dtype)
    sizes = [0.0, np.inf, info.max, info.tiny, info.smallest_subnormal, info.tiny / 3, info.eps, 0.5, 1 - info.epsneg, 1.0, 1 + info.eps]
    sizes += [1.5, 2.0, 3.0, 4.0, 88.7, 104.0, 709.5, 746.0, np.pi, 2.0**17, 2.0**24 - 1, 2.0**30, 2.0**53 - 1, 2.0**53, 1e22, 1e38]
    values = np.array(sizes, dtype)
    return np.concatenate([values, -values, np.array([np.nan], dtype)])


def special_arguments(name: str, dtype: np.dtype[Any]) -> tuple[Array, ...]:
    x = special_values(dtype)
    if name not in BINARY:
        return (x,)
    a, b = np.meshgrid(x, x)
    return a.ravel(), b.ravel()


@every_target
@every_dtype
@every_analytic_function
def test_within_two_ulps_over_the_whole_range(name: str, dtype: np.dtype[Any], target: Target) -> None:
    args = samples(name, dtype, 20_000 if dtype == F32 and name != "erf" else 700)
    got = build(name, dtype, native_width(dtype), target)(*args)
    if dtype == F32:
        with np.errstate(all="ignore"):
            errors = ulps(got, by_numpy(name)(*(a.astype(F64) for a in args)))
    else:
        errors = mp_ulps(got, name, *args)
    worst = int(np.argmax(errors))
    assert errors[worst] <= LIMIT, f"{name} of {[float(a[worst]) for a in args]} gave {got[worst]!r}, {errors[worst]:.2f} ULP off"


@every_target
@every_dtype
@every_analytic_function
def test_special_values_follow_numpy(name: str, dtype: np.dtype[Any], target: Target) -> None:
    args = special_arguments(name, dtype)
    got = build(name, dtype, native_width(dtype), target)(*args)
    with np.errstate(all="ignore"):
        expected = by_numpy(name)(*(a.astype(F64) for a in args)).astype(dtype)
    assert_matches(name, args, got, expected)


@every_target
@every_dtype
@pytest.mark.parametrize("name", DIVISIONS)
def test_divisions_give_the_bits_of_numpy(name: str, dtype: np.dtype[Any], target: Target) -> None:
    args = tuple(map(np.concatenate, zip(samples(name, dtype, 20_000), special_arguments(name, dtype), strict=True)))
    with np.errstate(all="ignore"):
        expected = by_numpy(name)(*args)
    np.testing.assert_array_equal(bits(build(name, dtype, native_width(dtype), target)(*args)), bits(expected))


def assert_matches(name: str, args: tuple[Array, ...], got: Array, expected: Array) -> None:
    """Equal where the answer is NaN, infinite or zero (with its sign), else near."""
    for i, (y, want) in enumerate(zip(got, expected, strict=True)):
        where = f"{name}({', '.join(repr(float(a[i])) for a in args)}) gave {y!r}, not {want!r}"
        if np.isfinite(want) and want != 0:
            assert abs(float(y) - float(want)) <= 3 * float(unit(np.asarray(want))), where
        else:
            assert bits(np.array([y]))[0] == bits(np.array([want]))[0], where


@every_target
@every_dtype
@every_function
def test_any_width_computes_the_same_bits(name: str, dtype: np.dtype[Any], target: Target) -> None:
    """The scalar tail of a loop must agree with its vector body."""
    args = tuple(map(np.concatenate, zip(samples(name, dtype, 200), special_arguments(name, dtype), strict=True)))
    native = build(name, dtype, native_width(dtype), target)(*args)
    for width in (1, 3):
        np.testing.assert_array_equal(bits(build(name, dtype, width, target)(*args)), bits(native), err_msg=f"width {width}")


@every_dtype
@every_target
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_arguments_next_to_multiples_of_half_pi(name: str, dtype: np.dtype[Any], target: Target) -> None:
    """Where most of the digits cancel: the floats nearest to k π/2, small and huge, and the worst one known for float64."""
    k = np.unique(np.round(np.geomspace(1, 2.0**50, 400)))
    near = (k * np.pi / 2).astype(dtype)
    worst = np.array([6381956970095103.0 * 2.0**797 if dtype == F64 else 1e38], dtype)
    x = np.concatenate([near, np.nextafter(near, dtype.type(np.inf)), worst])
    errors = mp_ulps_of(name, dtype, x, target)
    assert errors.max() <= LIMIT


def mp_ulps_of(name: str, dtype: np.dtype[Any], x: Array, target: Target) -> Array:
    got = build(name, dtype, native_width(dtype), target)(x)
    if dtype == F64:
        return mp_ulps(got, name, x)
    return ulps(got, by_numpy(name)(x.astype(F64)))


@every_dtype
def test_a_huge_lane_does_not_affect_the_others(dtype: np.dtype[Any]) -> None:
    width = native_width(dtype)
    x = np.linspace(-3, 3, width).astype(dtype)
    run = build("sin", dtype, width)
    alone = run(x)
    for lane, value in enumerate([1e30, np.inf, -np.inf, np.nan][:width]):
        mixed = x.copy()
        mixed[lane] = value
        others = np.arange(width) != lane
        np.testing.assert_array_equal(run(mixed)[others], alone[others])


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_of_two_are_exact(dtype: np.dtype[Any]) -> None:
    info = np.finfo(dtype)
    exponents = np.arange(info.minexp - info.nmant, info.maxexp)
    x = np.ldexp(np.ones(len(exponents), dtype), exponents)
    np.testing.assert_array_equal(build("log2", dtype, native_width(dtype))(x), exponents.astype(dtype))
    np.testing.assert_array_equal(build("exp2", dtype, native_width(dtype))(exponents.astype(dtype)), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_log10_of_powers_of_ten_and_roots_of_cubes_are_exact(dtype: np.dtype[Any]) -> None:
    exponents = np.arange(11 if dtype == F32 else 23)  # those whose powers of ten are floats
    np.testing.assert_array_equal(build("log10", dtype, native_width(dtype))(10.0 ** exponents.astype(dtype)), exponents.astype(dtype))
    roots = np.arange(-256 if dtype == F32 else -20_000, 256 if dtype == F32 else 20_000).astype(dtype)
    np.testing.assert_array_equal(build("cbrt", dtype, native_width(dtype))(roots**3), roots)


@every_target
def test_logarithms_of_floats_next_to_one(target: Target) -> None:
    """Every other float from 0.94 to 1.07: there the logarithm is small, and the terms of a sum that is not may cancel."""
    first, last = np.array([0.94, 1.07], F32).view(np.int32)
    x = np.arange(first, last - (last - first) % 32, 2, np.int32).view(F32)
    errors = ulps(build("log", F32, native_width(F32), target)(x), np.log(x.astype(F64)))
    assert errors.max() <= 1.1, x[errors.argmax()]


def test_wrong_dtypes_are_refused_by_name() -> None:
    e = Lanes(Text(current()))
    with pytest.raises(TypeError, match=r"exp: vector math is for float32 or float64.*int32"):
        function("exp")(e, Reg("%x", I32))
    with pytest.raises(TypeError, match=r"pow: .*float32, float64"):
        function("pow")(e, Reg("%a", F32), Reg("%b", F64))
