"""Products whose factors stay in the cache: they are read in place, with the same bits on any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.compile import compile_func
from adjit.codegen.llvm.target import current
from adjit.codegen.products.choice import NEAR_ROWS, is_near, near_depth, near_factors, packs_factor
from adjit.codegen.products.cutting import FEWEST, PARTS, part_size
from adjit.ir import ops
from adjit.ir.types import F32, TensorType
from adjit.passes.pipeline import OPTIMIZE
from tests.ops.harness import func_of

HOST = current()
RNG = np.random.default_rng(0)
SIZES = [(100, 100, 101), (8, 260, 130), (33, 200, 160), (1000, 36, 200), (17, 513, 31)]  # rows, columns, sums


FLAT = [(1848, 544, 4), (617, 555, 3), (301, 70, 16), (95, 131, 8), (40, 600, 1), (64, 64, 16)]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("m", "n", "k"), FLAT)
def test_flat_products_are_written_a_few_rows_at_a_time(m: int, n: int, k: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every element has the bits that it has in a product of fewer columns, whose tiles are in another order."""
    monkeypatch.setenv("ADJIT_VERIFY", "1")
    a, b, c = (RNG.normal(size=shape).astype(dtype) for shape in ((m, k), (k, n), (n,)))

    def layers(a: Any, b: Any, c: Any) -> Any:
        return a @ b, np.maximum(a @ b + c, 0.0), (a @ b)[::-1]

    found = [[x.numpy() for x in aj.function(layers, threads=threads, dynamic=False)(a, b, c)] for threads in (1, 2, 3)]
    for others in found[1:]:
        assert [x.tobytes() for x in others] == [x.tobytes() for x in found[0]]
    column = aj.function(lambda a, b: a @ b, threads=1, dynamic=False)(a, b[:, :3].copy()).numpy()
    np.testing.assert_array_equal(found[0][0][:, :3], column)
    wanted = a.astype("f8") @ b.astype("f8")
    for x, y in zip(found[0], (wanted, np.maximum(wanted + c, 0.0), wanted[::-1]), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5 if dtype == "f4" else 1e-12, atol=1e-5 if dtype == "f4" else 1e-12)


def test_the_order_of_the_tiles_of_a_flat_product() -> None:
    f = aj.function(lambda a, b: a @ b, threads=1, dynamic=False)
    for (m, n, k), by_rows in {(1848, 544, 4): True, (1848, 544, 400): False, (1848, 8, 4): False}.items():
        loops = f.inspect(np.ones((m, k), "f4"), np.ones((k, n), "f4")).loops
        if "contraction" in loops:
            rows, columns = loops.find(f"..{m} "), loops.find(f"..{n} ")
            assert (0 < rows < columns) is by_rows or n <= 8


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
    "16 registers": HOST._replace(vector_bytes=32, vector_registers=16, in_halves=False, wide_cache=False),
    "in halves": HOST._replace(vector_bytes=64, vector_registers=32, in_halves=True, wide_cache=False),
    "full width": HOST._replace(vector_bytes=64, vector_registers=32, in_halves=False, wide_cache=False),
    "wide cache": HOST._replace(vector_bytes=64, vector_registers=32, in_halves=False, wide_cache=True, caches=(1 << 15, 1 << 20)),
}


@pytest.mark.parametrize("cpu", TARGETS)
def test_what_is_near(cpu: str) -> None:
    factors = near_factors(TARGETS[cpu])
    of_any, of_low = (limit // 4 for limit in factors[:2])  # in elements

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
    assert packs_factor(TensorType(F32, (512, 512)), TensorType(F32, (512, 512)), (512, 1), factors) == (
        cpu not in ("in halves", "wide cache")
    )


def test_rows_that_displace_each_other_are_not_near() -> None:
    """Rows of 4 KiB map to a sixteenth of the sets of a 1 MiB cache, which can store 256 of them; rows of 4,096 + 64 bytes map to all."""
    factors = near_factors(TARGETS["wide cache"])
    assert is_near(511, 1024, 100, 4, True, near=factors)
    assert not is_near(512, 1024, 100, 4, True, near=factors)
    assert is_near(1024, 1024 + 16, 100, 4, True, near=factors)
    assert is_near(32, 65536, 16, 4, True, near=factors)  # of few rows each element is read only a few times


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("unit", [1, 32])
def test_parts_keep_the_threads_equally_busy(unit: int, threads: int) -> None:
    """The busiest thread computes hardly more than its share of the rows, if there are enough of them to divide."""
    for size in (64, 100, 200, 500, 784, 1000, 4096):
        step = part_size(size, unit, threads)
        count, left = divmod(size, step)
        busiest = -(-count // threads) * step + left
        assert step % unit == 0
        assert count <= 2 * PARTS
        if unit == 1 and size >= 12 * FEWEST * threads:
            assert busiest <= 1.05 * size / threads


PRODUCTS = {"plain": lambda a, b: ops.matmul(a, b), "turned": lambda a, b: ops.matmul(a.transpose((1, 0)), b)}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("m", "n", "k"), [(301, 700, 200), (37, 500, 1601), (130, 513, 1100)])
@pytest.mark.parametrize("form", PRODUCTS)
def test_large_factors_on_a_cpu_with_a_wide_cache(form: str, m: int, n: int, k: int, dtype: str) -> None:
    """Read in place, at once or panel by panel: the same bits on any number of threads, and the results of packing within rounding."""
    a, b = RNG.normal(size=(k, m) if form == "turned" else (m, k)).astype(dtype), RNG.normal(size=(k, n)).astype(dtype)
    func = func_of(PRODUCTS[form], [a, b])
    wanted = (a.T if form == "turned" else a).astype("f8") @ b.astype("f8")
    for name in ("wide cache", "full width"):
        machines = [TARGETS[name]._replace(threads=threads) for threads in (1, 2, 3)]
        results = [np.asarray(compile_func(OPTIMIZE(func), machine)([a, b])[0]) for machine in machines]
        assert len({x.tobytes() for x in results}) == 1
        tolerance = 1e-4 if dtype == "f4" else 1e-11
        np.testing.assert_allclose(results[0], wanted, rtol=tolerance, atol=20 * tolerance)


def test_panels_that_are_read_in_place_are_high_and_fit_into_the_cache() -> None:
    wide, row = TARGETS["wide cache"], 700
    for m, k in ((100, 1500), (700, 1500), (4000, 1500)):
        a, b = TensorType(F32, (m, k)), TensorType(F32, (k, row))
        depth = near_depth(a, b, (row, 1), wide)
        assert 4 * row * depth <= wide.caches[1]
        assert (depth >= 128) == (m < 4000)
        assert near_depth(a, b, (1, k), wide) == near_depth(a, b, (row, 1), TARGETS["full width"]) == 0
