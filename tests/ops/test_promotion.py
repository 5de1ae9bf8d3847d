"""Promotion and broadcasting of the elementwise functions: NumPy's, with Python scalars weak."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError
from adjit.ir.operand import Concrete
from adjit.ir.types import DTYPES as NAMES
from adjit.ir.types import F16
from tests.ops.harness import eager

ARITHMETIC = [
    (ops.add, np.add), (ops.mul, np.multiply), (ops.div, np.divide), (ops.maximum, np.maximum), (ops.less, np.less),
    (ops.remainder, np.remainder), (ops.power, np.power),
]  # fmt: skip
DTYPES = [dtype for dtype in NAMES.values() if dtype.kind != "V" and dtype != F16]  # those in which numbers are computed
REAL = [ops.maximum, ops.less, ops.remainder]  # NumPy warns, or has none, for complex numbers


@pytest.mark.parametrize(("ours", "numpys"), ARITHMETIC, ids=[n.__name__ for _, n in ARITHMETIC])
def test_every_pair_of_dtypes(ours: Any, numpys: Any) -> None:
    for a in DTYPES:
        for b in DTYPES:
            x, y = np.array([1, 3], a), np.array([1, 2], b)
            if ours in REAL and np.result_type(a, b).kind == "c":
                continue
            (got,) = eager(ours, [x, y])
            wanted = numpys(x, y)
            assert got.dtype == wanted.dtype, (a, b)
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("ours", "numpys"), ARITHMETIC, ids=[n.__name__ for _, n in ARITHMETIC])
@pytest.mark.parametrize("scalar", [2, 2.5, True, 1 + 2j])
def test_python_scalars_are_weak(ours: Any, numpys: Any, scalar: complex) -> None:
    for dtype in DTYPES:
        x = np.array([1, 3], dtype)
        if ours in REAL and np.result_type(dtype, scalar).kind == "c":
            continue
        if ours is ops.power and isinstance(scalar, bool):
            continue  # NumPy's power of a bool scalar depends on its fast paths
        for left in (False, True):
            (got,) = eager(lambda v, left=left: ours(scalar, v) if left else ours(v, scalar), [x])
            wanted = numpys(scalar, x) if left else numpys(x, scalar)
            assert got.dtype == wanted.dtype, (dtype, left)
            np.testing.assert_allclose(got, wanted, rtol=1e-6 if dtype in (np.float32, np.complex64) else 1e-15)


def test_scalars_out_of_bounds() -> None:
    x = np.array([0, 200], np.uint8)
    for call in (lambda v: v < 300, lambda v: v > -1, lambda v: v == 256, lambda v: v != 256, lambda v: v >= -1, lambda v: v <= 300):
        np.testing.assert_array_equal(eager(call, [x])[0], call(x))
    with pytest.raises(DTypeError, match="out of bounds for u8"):
        Concrete(x) + 300


def test_integers_enter_float_functions_as_numpys_floats() -> None:
    for dtype in DTYPES:
        (got,) = eager(ops.exp, [np.array([0, 1], dtype)])
        assert got.dtype == (np.float64 if dtype.itemsize == 1 else np.exp(np.ones(1, dtype)).dtype)  # of 8 bits, NumPy's would be float16


def test_errors_name_the_op_and_the_types() -> None:
    with pytest.raises(ShapeError, match=r"add: shapes \[3\] and \[4\] do not broadcast"):
        ops.add(Concrete(np.zeros(3)), Concrete(np.zeros(4)))
    with pytest.raises(DTypeError, match="sub: bool operands are not supported"):
        ops.sub(Concrete(np.array(True)), Concrete(np.array(True)))
    with pytest.raises(DTypeError, match="bitwise_and: f64 operands are not supported"):
        ops.bitwise_and(Concrete(np.zeros(3)), Concrete(np.zeros(3)))
