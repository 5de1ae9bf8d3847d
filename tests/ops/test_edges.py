"""Elementwise rows at edge values: infinities, NaNs, zeros, subnormals and extreme integers, in native code against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.ir.operand import Concrete
from adjit.ir.ops import power
from adjit.ir.ops.base import Array
from adjit.ir.ops.powers import NegativePowerError
from adjit.ir.types import DTYPES, DType
from adjit.passes.pipeline import OPTIMIZE
from tests.ops.cases import CASES, Case
from tests.ops.harness import Bundle, assert_close, several


def float_edges(dtype: DType) -> list[float]:
    info = np.finfo(dtype)
    extreme = map(float, (info.smallest_subnormal, info.tiny, info.max))
    sizes = [0.0, *extreme, 1e-3, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.25, 100.0, 1e9, np.inf]
    return [*sizes, *(-s for s in sizes), np.nan]


def int_edges(dtype: DType) -> list[int]:
    info, bits = np.iinfo(dtype), dtype.itemsize * 8
    near = [0, 1, 2, 3, 7, bits - 1, bits, bits + 1, int(info.max) // 2, int(info.max) // 2 + 1, int(info.max) - 1, int(info.max)]
    return near if dtype.kind == "u" else [*near, *(-n for n in near[1:]), int(info.min)]


def grid(case: Case, dtype: DType) -> list[Array]:
    """Every combination of edges for the row's arguments."""
    edges = [False, True] if dtype.kind == "b" else float_edges(dtype) if dtype.kind == "f" else int_edges(dtype)
    columns = zip(*itertools.product(edges, repeat=len(case.domains)), strict=True)
    args = [np.array(c, dtype) for c in columns]
    if case.name == "power" and dtype.kind == "i":
        keep = args[1] >= 0
        args = [a[keep] for a in args]
    return args


@pytest.mark.parametrize("case", [row for row in CASES if row.domains and row.edges], ids=repr)
def test_edges(case: Case) -> None:
    bundle, wanted = Bundle(), []
    assert case.numpy is not None
    for dtype in case.dtypes:
        args = grid(case, DTYPES[dtype])
        bundle.add(case.call, args)
        with np.errstate(all="ignore"):
            wanted += [np.asarray(a) for a in several(case.numpy(*args))]
    interpreted, compiled = bundle.interpreted_and_compiled()
    for got in (interpreted, compiled):
        for a, b in zip(got, wanted, strict=True):
            if a.dtype.kind == "f":
                assert_near(a, b, signs=case.name not in ZEROS_TIE)
            else:
                assert_close([a], [b])


ZEROS_TIE = ("maximum", "minimum", "relu")  # which of 0.0 and -0.0 NumPy takes depends on its vector loops


def assert_near(a: Array, b: Array, signs: bool) -> None:
    """Equal to a few ULP; results that underflow may be off by the smallest number, but zeros have the right sign."""
    np.testing.assert_allclose(a, b, rtol=8 * np.finfo(a.dtype).eps, atol=2 * np.finfo(a.dtype).smallest_subnormal)
    if signs:
        np.testing.assert_array_equal(np.signbit(a)[~np.isnan(a)], np.signbit(b)[~np.isnan(a)])


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64"])
def test_integer_to_a_negative_power_raises(dtype: str) -> None:
    x = Concrete(np.array([1, 2, 3], DTYPES[dtype]))
    for exponent in (-1, Concrete(np.array([1, -1, 0], DTYPES[dtype]))):
        with pytest.raises(NegativePowerError, match="cast the base to a float") as caught:
            power(x, exponent)
        assert isinstance(caught.value, ValueError)


def test_a_compiled_integer_to_a_negative_power_raises() -> None:
    bundle = Bundle()
    bundle.add(power, [np.array([1, -1, 2]), np.array([3, -3, 1])])
    arrays = [np.ascontiguousarray(a) for a in bundle.arrays]
    with pytest.raises(ValueError, match="cast the base to a float"):
        compile_func(OPTIMIZE(bundle.func()))(arrays)
