"""Cholesky factors and triangular systems of sizes that are cut into blocks: values, unread elements, gradients, threads, code size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir import ops
from adjit.ir.ops.triangle import BLOCKS, UNCUT, cut
from adjit.tracer.convert import to_operand

Array = np.ndarray[Any, Any]
SIZES = [1, 2, UNCUT, UNCUT + 1, 95, 96, 100, BLOCKS[0][0] + 1, 192, 256, 333]  # whose last blocks are full, and others


def positive(n: int, dtype: str = "f8") -> Array:
    a = np.random.default_rng(n).normal(size=(n, n)).astype(dtype)
    return a @ a.T + n * np.eye(n, dtype=dtype)


def without(a: Array, upper: bool) -> Array:
    """NaN in one of the triangles."""
    return np.where(np.tri(len(a), k=-1, dtype=bool).T if upper else np.tri(len(a), k=-1, dtype=bool), np.nan, a)


def test_blocks_cover_all_rows() -> None:
    for n in (*range(1, 300), 1499, 1501, 2000, 10_000):
        width, count, last = cut(n)
        assert width * count + last == n
        assert 0 < last <= width


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", SIZES)
def test_cholesky_reads_the_lower_triangle_only(n: int, dtype: str) -> None:
    a = positive(n, dtype)
    found, wanted = aj.function(np.linalg.cholesky)(without(a, upper=True)).numpy(), np.linalg.cholesky(a)
    np.testing.assert_allclose(found, wanted, atol=20 * np.finfo(dtype).eps * np.abs(wanted).max())
    assert not np.triu(found, 1).any()


@pytest.mark.parametrize("at", [0, 60, 99, 250, 299])
def test_not_positive(at: int) -> None:
    a = positive(300)
    a[at, at] = -1.0
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        aj.function(np.linalg.cholesky)(a)


@pytest.mark.parametrize("upper", [False, True], ids=["lower", "upper"])
@pytest.mark.parametrize("transposed", [False, True], ids=["", "transposed"])
@pytest.mark.parametrize("m", [1, 3, 130])
@pytest.mark.parametrize("n", SIZES)
def test_triangular_systems(n: int, m: int, transposed: bool, upper: bool) -> None:
    low = np.linalg.cholesky(positive(n))
    t, b = low.T if upper else low, np.random.default_rng(m).normal(size=(n, m))
    f = aj.function(lambda a, b: ops.solve_triangular(to_operand(a), to_operand(b), upper, transposed))
    wanted = np.linalg.solve(t.T if transposed else t, b)
    np.testing.assert_allclose(f(without(t, not upper), b), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [5, 70, 200])
def test_gradients_of_a_gaussian_process(n: int) -> None:
    def likelihood(k: Any, y: Any) -> Any:
        low = np.linalg.cholesky(k)
        z = np.linalg.solve(low, y)
        return 0.5 * np.sum(z * z) + np.sum(np.log(np.diag(low)))

    k, y = positive(n), np.random.default_rng(1).normal(size=n)
    dk, dy = aj.function(aj.grad(likelihood, (0, 1)))(k, y)
    w, inverse = np.linalg.solve(k, y), np.linalg.inv(k)
    full = 0.5 * (inverse - np.outer(w, w))  # the gradient reads the lower triangle, in which each element counts for two
    np.testing.assert_allclose(dk, np.tril(full) + np.tril(full, -1), atol=1e-9)
    np.testing.assert_allclose(dy, w, atol=1e-9)


@pytest.mark.parametrize("shape", [(255,), (256,), (2, 261), (300,)], ids=str)
def test_the_gradient_of_a_large_factor(shape: tuple[int, ...]) -> None:
    """By products of triangles in strips: the same as by whole matrices."""
    *batch, n = shape
    a = np.broadcast_to(positive(n), (*batch, n, n)) * 1.0
    weights = np.random.default_rng(0).normal(size=a.shape)
    grad = np.asarray(aj.function(aj.grad(lambda a: np.sum(np.linalg.cholesky(a) * weights)))(a))
    low = np.linalg.cholesky(a)
    inner = np.tril(np.swapaxes(low, -1, -2) @ np.tril(weights))
    inner -= 0.5 * inner * np.eye(n)
    inverse = np.linalg.inv(low)
    outer = np.swapaxes(inverse, -1, -2) @ inner @ inverse
    np.testing.assert_allclose(grad, np.tril(outer) + np.tril(np.swapaxes(outer, -1, -2), -1), rtol=1e-9, atol=1e-12)


def test_the_bits_do_not_depend_on_the_number_of_threads() -> None:
    a, b = positive(400), np.random.default_rng(0).normal(size=(400, 400))

    def both(a: Any, b: Any) -> Any:
        low = np.linalg.cholesky(a)
        return low, np.linalg.solve(low, b), np.linalg.solve(a, b)

    one, three = (aj.function(both, threads=n)(a, b) for n in (1, 3))
    for x, y in zip(one, three, strict=True):
        assert np.array_equal(x, y)


@pytest.mark.parametrize(
    "f",
    [
        np.linalg.cholesky,
        np.linalg.det,  # by elimination
        lambda a: ops.solve_triangular(to_operand(a), to_operand(a)),
    ],
    ids=["cholesky", "lu", "solve_triangular"],
)
def test_the_code_does_not_grow_with_the_matrix(f: Callable[[Any], Any]) -> None:
    few, many = (len(aj.function(f).inspect(np.eye(n)).llvm.splitlines()) for n in (300, 1400))
    assert many < 1.2 * few
