"""Products whose factors stay in the cache: they are read in place, with the same bits on any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.llvm.target import current
from adjit.codegen.products.choice import NEAR_FACTORS, NEAR_ROWS, is_near, packs_factor
from adjit.ir.types import F32, TensorType

RNG = np.random.default_rng(0)
SIZES = [(100, 100, 101), (8, 260, 130), (33, 200, 160), (1000, 36, 200), (17, 513, 31)]  # rows, columns, sums


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_bits_do_not_depend_on_threads(m: int, n: int, k: int, dtype: str) -> None:
    a, b, c = (RNG.normal(size=shape).astype(dtype) for shape in ((m, k), (k, n), (n,)))

    def layer(a: Any, b: Any, c: Any) -> Any:
        return a @ b, np.maximum(a @ b + c, 0.0)

    found = [[x.numpy() for x in aj.function(layer, threads=threads)(a, b, c)] for threads in (1, 2, 3, 4)]
    for others in found[1:]:
        assert [x.tobytes() for x in others] == [x.tobytes() for x in found[0]]
    wanted = a.astype("f8") @ b.astype("f8")
    for x, y in zip(found[0], (wanted, np.maximum(wanted + c, 0.0)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4 if dtype == "f4" else 1e-11, atol=1e-3 if dtype == "f4" else 1e-11)


@pytest.mark.parametrize("registers", NEAR_FACTORS)
def test_what_is_near(registers: int) -> None:
    of_any, of_low = (limit // 4 for limit in NEAR_FACTORS[registers])  # in elements

    def near(m: int, n: int, k: int) -> bool:
        return bool(is_near(m, n, k, 4, True, registers=registers))

    assert near(100, of_any // 128, 128)
    assert not near(100, of_any // 128 + 1, 128)
    assert near(32, of_low // 128, 128)
    assert not near(32, of_low // 128 + 1, 128)
    assert not near(NEAR_ROWS // 4 // 100 + 1, 40, 100)
    left, right = TensorType(F32, (100, 100)), TensorType(F32, (100, 100))
    assert packs_factor(left, right, (1, 100), registers)  # b is transposed
    assert not packs_factor(left, right, (100, 1), registers)


def test_the_registers_of_this_machine_are_known() -> None:
    assert current().vector_registers in NEAR_FACTORS
