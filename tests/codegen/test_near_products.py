"""Products whose factors stay in the cache: they are read in place, with the same bits on any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.llvm.target import current
from adjit.codegen.products.choice import NEAR_ROWS, is_near, near_factors, packs_factor
from adjit.ir.types import F32, TensorType

HOST = current()
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


TARGETS = {
    "16 registers": HOST._replace(vector_bytes=32, vector_registers=16, in_halves=False),
    "in halves": HOST._replace(vector_bytes=64, vector_registers=32, in_halves=True),
    "full width": HOST._replace(vector_bytes=64, vector_registers=32, in_halves=False),
}


@pytest.mark.parametrize("cpu", TARGETS)
def test_what_is_near(cpu: str) -> None:
    factors = near_factors(TARGETS[cpu])
    of_any, of_low = (limit // 4 for limit in factors)  # in elements

    def near(m: int, n: int, k: int) -> bool:
        return bool(is_near(m, n, k, 4, True, near=factors))

    assert near(100, of_any // 128, 128)
    assert not near(100, of_any // 128 + 1, 128)
    assert near(32, of_low // 128, 128)
    assert not near(32, of_low // 128 + 1, 128)
    assert not near(NEAR_ROWS // 4 // 100 + 1, 40, 100)
    left, right = TensorType(F32, (100, 100)), TensorType(F32, (100, 100))
    assert packs_factor(left, right, (1, 100), factors)  # b is transposed
    assert not packs_factor(left, right, (100, 1), factors)
    assert packs_factor(TensorType(F32, (512, 512)), TensorType(F32, (512, 512)), (512, 1), factors) == (cpu != "in halves")
