"""Factorisations of complex matrices against NumPy: eager and compiled, by LAPACK and by rotations, with gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

RNG = np.random.default_rng(0)
L = aj.linalg


def numbers(*shape: int) -> Any:
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


A, B, W, R = numbers(4, 4), numbers(5, 3), numbers(5, 4), RNG.normal(size=(4, 4))
POSITIVE = A @ A.conj().T + np.eye(4)


def projector(columns: Any) -> Any:
    """The quantities that an eigenvector or a pair of singular vectors determines, whatever the phase."""
    return columns @ aj.conj(columns).T


PROGRAMS: dict[str, tuple[Callable[..., Any], Any]] = {
    "solve": (lambda a: aj.abs(L.solve(a, W[:4])), A),
    "inv": (lambda a: aj.real(L.inv(a) * W[:4]), A),
    "slogdet": (lambda a: L.slogdet(a)[1] + aj.real(L.slogdet(a)[0] * (1 + 2j)), A),
    "det": (lambda a: aj.imag(L.det(a)), A),
    "cholesky": (lambda a: aj.real(L.cholesky(a) * W[:4]), POSITIVE),
    "cholesky upper": (lambda a: aj.real(L.cholesky(a, upper=True) * W[:4]), POSITIVE),
    "qr": (lambda a: aj.real(L.qr(a)[0] @ W[:3]) + aj.imag(L.qr(a)[1][0, 1]), B),
    "qr wide": (lambda a: aj.real(L.qr(a)[1]), B.T.copy()),
    "eigvalsh": (lambda a: L.eigvalsh(a) ** 2, POSITIVE),
    "eigvalsh upper": (lambda a: L.eigvalsh(a, UPLO="U") ** 2, A),
    "eigh": (lambda a: aj.real(projector(L.eigh(a)[1][:, 1:2]) * W[:4]), POSITIVE),
    "svdvals": (lambda a: L.svdvals(a) ** 2, B),
    "svd": (lambda a: (lambda u, s, vh: aj.real(u[:, 1:2] @ vh[1:2]))(*L.svd(a, full_matrices=False)), B),
    "svd wide": (lambda a: (lambda u, s, vh: aj.imag(u[:, 1:2] @ vh[1:2]))(*L.svd(a, full_matrices=False)), B.T.copy()),
    "eigvals": (lambda a: aj.sum(aj.abs(L.eigvals(a)) ** 3), R),
    "eigvals complex": (lambda a: aj.sum(aj.abs(L.eigvals(a)) ** 3), A),
    "eig": (lambda a: aj.sum(aj.abs(L.eig(a)[1]) ** 4), R),
    "pinv": (lambda a: aj.real(L.pinv(a)), B),
    "lstsq": (lambda a: aj.abs(L.lstsq(a, W)[0]), B),
    "roots": (lambda p: aj.sum(aj.abs(aj.roots(p)) ** 3), np.array([2.0, -3.0, 4.0, 1.0])),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_as_eager_and_gradients_as_differences(name: str) -> None:
    function, a = PROGRAMS[name]
    np.testing.assert_allclose(np.asarray(aj.function(function)(a)), np.asarray(function(aj.tensor(a))), rtol=1e-9, atol=1e-12)

    def loss(a: Any) -> Any:
        return aj.sum(aj.sin(function(a)))

    step = 1e-6 * (numbers(*a.shape) if np.iscomplexobj(a) else RNG.normal(size=a.shape))
    change = float(loss(aj.tensor(a + step)) - loss(aj.tensor(a - step)))
    for slope in (aj.grad(loss)(a), aj.function(aj.grad(loss))(a)):
        np.testing.assert_allclose(2 * np.sum(np.real(np.conj(np.asarray(slope)) * step)), change, rtol=5e-6)
    np.testing.assert_allclose(2 * float(aj.jvp(loss, (a,), (step,))[1]), change, rtol=5e-6)


@pytest.mark.parametrize("library", ["own", "openblas"])
@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_factors_multiply_to_the_matrix(monkeypatch: pytest.MonkeyPatch, library: str, dtype: str) -> None:
    monkeypatch.setenv("ADJIT_BLAS", library)
    tolerance = 2e-4 if dtype == "c8" else 1e-11
    for n in (1, 2, 9):
        a = numbers(2, n + 2, n).astype(dtype)
        a[0] = a[0, :, :1] * a[0, :1]  # of rank 1
        gram = a.conj().swapaxes(1, 2) @ a
        w, v, u, s, vh, q, r = map(np.asarray, aj.function(lambda a, g: (*L.eigh(g), *L.svd(a, full_matrices=False), *L.qr(a)))(a, gram))
        scale = np.max(np.abs(gram))
        np.testing.assert_allclose((v * w[:, None]) @ v.conj().swapaxes(1, 2), gram, atol=tolerance * scale)
        np.testing.assert_allclose(v.conj().swapaxes(1, 2) @ v, np.broadcast_to(np.eye(n), v.shape), atol=tolerance)
        np.testing.assert_allclose((u * s[:, None]) @ vh, a, atol=tolerance * scale)
        np.testing.assert_allclose(u.conj().swapaxes(1, 2) @ u, np.broadcast_to(np.eye(n), v.shape), atol=tolerance)
        np.testing.assert_allclose(q @ r, a, atol=tolerance * scale)
        assert w.dtype == s.dtype == np.dtype(dtype).type(0).real.dtype
        assert np.all(np.diff(w) >= 0)
        assert np.all(np.diff(s) <= 0)


def test_values_as_numpy() -> None:
    np.testing.assert_allclose(np.asarray(L.det(A)), np.linalg.det(A))
    np.testing.assert_allclose(np.asarray(aj.function(lambda a: L.slogdet(a)[0])(A)), np.linalg.slogdet(A)[0])
    np.testing.assert_allclose(np.asarray(L.cholesky(POSITIVE)), np.linalg.cholesky(POSITIVE))
    np.testing.assert_allclose(np.asarray(np.linalg.eigvals(aj.tensor(R))), np.linalg.eigvals(R).astype(complex))
    np.testing.assert_allclose(np.asarray(L.pinv(np.ones((2, 3)))), np.linalg.pinv(np.ones((2, 3))))  # of rank 1, but known
    singular = np.ones((2, 2)) + 0j
    assert aj.function(lambda a: L.slogdet(a)[1])(singular) == -np.inf
    assert aj.function(lambda a: L.slogdet(a)[0])(singular) == 0.0


def test_square_factors_of_known_matrices() -> None:
    u, s, vh = map(np.asarray, L.svd(B))
    np.testing.assert_allclose(u[:, :3] * s @ vh, B)
    assert L.qr(B, mode="complete").Q.shape == (5, 5)
    with pytest.raises(aj.UnsupportedError, match="not unique"):
        aj.function(lambda a: L.svd(a))(B)


def test_roots_need_a_leading_coefficient() -> None:
    with pytest.raises(ValueError, match="first coefficient is 0"):
        aj.function(lambda p: np.roots(p))(np.array([0.0, 1.0, 2.0]))
