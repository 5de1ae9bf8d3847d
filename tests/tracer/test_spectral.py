"""Eigenvalues, singular values and functions of matrices, against NumPy and SciPy: eager, compiled, by LAPACK and by rotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg as sl

import adjit as aj

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(5, 5)), RNG.normal(size=(6, 4))
SYMMETRIC, POSITIVE, TRIANGLE = A + A.T, A @ A.T + np.eye(5), np.tril(A) + 3 * np.eye(5)
L = aj.linalg

PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = {
    "eigvalsh": (np.linalg.eigvalsh, np.linalg.eigvalsh, (SYMMETRIC,)),
    "eigvalsh upper": (lambda a: np.linalg.eigvalsh(a, UPLO="U"), lambda a: np.linalg.eigvalsh(a, UPLO="U"), (A,)),
    "eigh": (lambda a: aj.sum(np.linalg.eigh(a)[1] ** 4, 0), lambda a: np.sum(np.linalg.eigh(a)[1] ** 4, 0), (SYMMETRIC,)),
    "svdvals": (L.svdvals, lambda a: np.linalg.svd(a, compute_uv=False), (B,)),
    "svdvals wide": (L.svdvals, lambda a: np.linalg.svd(a, compute_uv=False), (B.T,)),
    "svd": (
        lambda a: aj.sum(np.linalg.svd(a, full_matrices=False)[0] ** 4, 0),
        lambda a: np.sum(np.linalg.svd(a, full_matrices=False)[0] ** 4, 0), (B,),
    ),
    "nuclear norm": (lambda a: np.linalg.norm(a, "nuc"), lambda a: np.linalg.norm(a, "nuc"), (B,)),
    "spectral norm": (lambda a: np.linalg.norm(a, 2, axis=(1, 0), keepdims=True), lambda a: np.linalg.norm(a, 2, keepdims=True), (B,)),
    "smallest": (lambda a: np.linalg.norm(a, -2), lambda a: np.linalg.norm(a, -2), (B,)),
    "cond": (np.linalg.cond, np.linalg.cond, (B,)),
    "cond 1": (lambda a: np.linalg.cond(a, 1), lambda a: np.linalg.cond(a, 1), (A,)),
    "expm": (L.expm, sl.expm, (A,)),
    "sqrtm": (L.sqrtm, lambda a: np.real(sl.sqrtm(a)), (POSITIVE,)),
    "solve_triangular": (
        lambda a, b: L.solve_triangular(a, b, lower=True), lambda a, b: sl.solve_triangular(a, b, lower=True), (TRIANGLE, B[:5]),
    ),
    "transposed": (
        lambda a, b: L.solve_triangular(a, b, trans="T"), lambda a, b: sl.solve_triangular(a, b, trans="T"), (TRIANGLE.T, B[:5]),
    ),
    "unit": (
        lambda a, b: L.solve_triangular(a, b, unit_diagonal=True), lambda a, b: sl.solve_triangular(a, b, unit_diagonal=True), (A, B[:5]),
    ),
    "cho_solve": (lambda c, b: L.cho_solve((c, True), b), lambda c, b: sl.cho_solve((c, True), b), (TRIANGLE, B[:5])),
    "lu": (lambda a: aj.concatenate(L.lu(a)[1:]), lambda a: np.concatenate(sl.lu(a)[1:]), (A,)),
    "permuted lu": (lambda a: L.lu(a, True)[0], lambda a: sl.lu(a, True)[0], (A,)),
    "block_diag": (L.block_diag, sl.block_diag, (A, B[0], B)),
    "toeplitz": (L.toeplitz, sl.toeplitz, (A[0], B[0])),
    "tensorinv": (
        lambda a: L.tensorinv(a.reshape(2, 6, 4, 3)), lambda a: np.linalg.tensorinv(a.reshape(2, 6, 4, 3)), (RNG.normal(size=(12, 12)),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name: str) -> None:
    ours, theirs, args = PROGRAMS[name]
    for got in (aj.function(ours)(*args), ours(*map(aj.tensor, args))):
        np.testing.assert_allclose(np.asarray(got), theirs(*args), rtol=1e-9, atol=1e-11)

    def loss(*xs: Any) -> Any:
        return aj.sum(aj.sin(ours(*xs)))

    step = 1e-6 * np.random.default_rng(1).normal(size=args[0].shape)
    change = np.sum(np.sin(theirs(args[0] + step, *args[1:]))) - np.sum(np.sin(theirs(args[0] - step, *args[1:])))
    for slope in (aj.grad(loss)(*args), aj.function(aj.grad(loss))(*args)):
        np.testing.assert_allclose(2 * np.sum(np.asarray(slope) * step), change, rtol=2e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("library", ["own", "openblas"])
def test_decompositions_by_rotations_and_by_lapack(monkeypatch: pytest.MonkeyPatch, library: str, dtype: str) -> None:
    monkeypatch.setenv("ADJIT_BLAS", library)
    tolerance = 2e-4 if dtype == "f4" else 1e-11
    for n in (1, 2, 17):
        a = RNG.normal(size=(2, n, n)).astype(dtype)
        w, v = map(np.asarray, aj.function(lambda a: tuple(L.eigh(a)))(a))
        np.testing.assert_allclose(w, np.linalg.eigvalsh(a), atol=tolerance)
        np.testing.assert_allclose(v * w[:, None] @ v.swapaxes(1, 2), np.tril(a) + np.tril(a, -1).swapaxes(1, 2), atol=tolerance)
    for m, n in ((1, 1), (7, 4), (4, 7)):
        a = RNG.normal(size=(3, m, n)).astype(dtype)
        a[1], a[2, :, -1] = 0.0, a[2, :, 0]  # of rank 0, and of less than full rank
        u, s, vt = map(np.asarray, aj.function(lambda a: tuple(L.svd(a, full_matrices=False)))(a))
        np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), atol=tolerance)
        np.testing.assert_allclose(u * s[:, None] @ vt, a, atol=tolerance)
        for q in (u.swapaxes(1, 2) @ u, vt @ vt.swapaxes(1, 2)):
            np.testing.assert_allclose(q, np.broadcast_to(np.eye(min(m, n)), q.shape), atol=tolerance)


def test_equal_eigenvalues() -> None:
    """Gradients of functions of the values are exact; results that depend on the arbitrary vectors are NaN, not wrong numbers."""
    eye = np.eye(3)
    np.testing.assert_allclose(np.asarray(aj.grad(lambda a: aj.sum(aj.exp(L.eigvalsh(a))))(eye)), np.e * eye)
    np.testing.assert_allclose(np.asarray(aj.function(aj.grad(lambda a: L.norm(a, "nuc")))(2 * eye)), eye, atol=1e-15)
    _, tangent = aj.jvp(lambda a: aj.sum(L.eigvalsh(a)), (eye,), (np.ones((3, 3)),))
    assert float(tangent) == pytest.approx(3.0)
    assert np.isnan(np.asarray(aj.grad(lambda a: L.eigh(a)[1][0, 1])(eye))).any()


def test_second_order_and_vmap() -> None:
    hessian = np.asarray(aj.hessian(lambda a: aj.sum(L.eigvalsh(a) ** 2))(SYMMETRIC)).reshape(25, 25)
    rows, columns = np.divmod(np.arange(25), 5)
    weight = np.where(rows == columns, 2.0, np.where(rows > columns, 4.0, 0.0))  # of the sum of squares, by its lower triangle
    np.testing.assert_allclose(hessian, np.diag(weight), atol=1e-9)
    stack = np.stack([SYMMETRIC, POSITIVE])
    np.testing.assert_allclose(np.asarray(aj.vmap(L.eigvalsh)(stack)), np.linalg.eigvalsh(stack), atol=1e-12)
    np.testing.assert_allclose(np.asarray(aj.function(aj.vmap(L.expm))(stack)), sl.expm(stack), rtol=1e-11)


def test_rank() -> None:
    for rank in (L.matrix_rank, aj.function(np.linalg.matrix_rank)):
        assert int(rank(B @ B.T)) == 4
        assert np.array_equal(np.asarray(rank(np.stack([A, 0 * A]))), [5, 0])
        assert int(rank(A[0])) == 1


def test_lu_puts_the_matrix_together_again() -> None:
    stack = RNG.normal(size=(3, 6, 6))
    p, left, right = map(np.asarray, aj.function(lambda a: L.lu(a))(stack))
    np.testing.assert_allclose(p @ left @ right, stack, atol=1e-14)
    np.testing.assert_allclose(np.asarray(aj.vmap(lambda a: L.lu(a)[2])(stack)), right, atol=1e-14)


def test_errors() -> None:
    with pytest.raises(aj.UnsupportedError, match="reduced form"):
        aj.grad(lambda a: aj.sum(L.svd(a)[1]))(B)
    with pytest.raises(aj.ShapeError, match="square"):
        L.eigh(B)
    with pytest.raises(ValueError, match="UPLO"):
        L.eigh(A, "X")
    assert np.isnan(np.asarray(aj.function(L.eigvalsh)(np.full((3, 3), np.nan)))).all()


def test_general_eigenvalues_need_lapack(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without LAPACK, compiled functions refuse them, with the line; eager ones use NumPy's."""
    monkeypatch.setenv("ADJIT_BLAS", "own")
    a = RNG.normal(size=(4, 4))
    for function in (L.eig, L.eigvals):
        with pytest.raises(aj.UnsupportedError, match=r"eig: native code needs LAPACK[^\n]*\n.*test_spectral\.py"):
            aj.function(lambda a, function=function: function(a))(a)
    np.testing.assert_allclose(np.sort_complex(np.asarray(L.eigvals(a))), np.sort_complex(np.linalg.eigvals(a)))
