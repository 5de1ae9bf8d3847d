"""The rows of eigenvalues and singular values. Vectors are squared: their signs are arbitrary."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from adjit.ir.ops import spectral as ours
from adjit.ir.ops.base import Array
from adjit.ir.ops.complex import conj, from_parts, imag, real
from adjit.ir.ops.complex_factor import slogdet_complex
from adjit.ir.ops.eig import eig
from adjit.ir.ops.hermitian import eigh_complex, svd_complex
from adjit.ir.ops.lu_parts import lu_parts
from tests.ops.cases import Case


def eigen(a: Any) -> tuple[Any, Any]:
    w, v = ours.eigh(a)
    return w, v * v


def eigen_numpy(a: Array) -> tuple[Array, Array]:
    w, v = np.linalg.eigh(a)
    return w, v * v


def singular(a: Any) -> tuple[Any, Any, Any]:
    u, s, vt = ours.svd(a)
    return u * u, s, vt * vt


def singular_numpy(a: Array) -> tuple[Array, Array, Array]:
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return u * u, s, vt * vt


def spread(rng: np.random.Generator, *shape: int) -> list[Array]:
    """Matrices with well-separated eigenvalues and singular values, so that finite differences are accurate."""
    a = rng.normal(size=shape)
    n = min(shape[-2:])
    a[..., range(n), range(n)] += 3.0 * np.arange(1, n + 1)
    return [a]


def lu_numpy(a: Array) -> tuple[Array, Array]:
    p, left, right = scipy.linalg.lu(a)
    return np.swapaxes(p, -1, -2), np.tril(left, -1) + right


CASES = [
    Case("lu_parts", lu_parts, lu_numpy, dtypes=("f64",), arrays=lambda rng: [rng.normal(size=(4, 4))]),
    Case("lu_parts_stack", lu_parts, lu_numpy, dtypes=("f64",), arrays=lambda rng: [rng.normal(size=(2, 3, 3))]),
    Case("eigh", eigen, eigen_numpy, dtypes=("f64",), arrays=lambda rng: spread(rng, 4, 4)),
    Case("eigh_stack", eigen, eigen_numpy, dtypes=("f64",), arrays=lambda rng: spread(rng, 2, 3, 3)),
    Case("svd", singular, singular_numpy, dtypes=("f64",), arrays=lambda rng: spread(rng, 5, 3)),
    Case("svd_stack", singular, singular_numpy, dtypes=("f64",), arrays=lambda rng: spread(rng, 2, 3, 3)),
    Case("svd_wide", singular, singular_numpy, dtypes=("f64",), arrays=lambda rng: spread(rng, 2, 4)),
]


# ---- complex matrices, given by their parts. Phases of vectors are arbitrary: their magnitudes are compared.


def magnitudes(z: Any) -> Any:
    return real(z * conj(z))


def hermitian(re: Any, im: Any) -> tuple[Any, Any]:
    w, v = eigh_complex(from_parts(re, im))
    return w, magnitudes(v)


def hermitian_numpy(re: Array, im: Array) -> tuple[Array, Array]:
    w, v = np.linalg.eigh(re + 1j * im)
    return w, np.abs(v) ** 2


def unitary(re: Any, im: Any) -> tuple[Any, Any, Any]:
    u, s, vh = svd_complex(from_parts(re, im))
    return magnitudes(u), s, magnitudes(vh)


def unitary_numpy(re: Array, im: Array) -> tuple[Array, Array, Array]:
    u, s, vh = np.linalg.svd(re + 1j * im, full_matrices=False)
    return np.abs(u) ** 2, s, np.abs(vh) ** 2


def general(*parts: Any) -> tuple[Any, ...]:
    w, v = eig(from_parts(*parts) if len(parts) > 1 else parts[0])
    return real(w), imag(w), magnitudes(v)


def general_numpy(*parts: Array) -> tuple[Array, ...]:
    w, v = np.linalg.eig(parts[0] + 1j * parts[1] if len(parts) > 1 else parts[0])
    return w.real, w.imag, np.abs(v) ** 2


def determinant(re: Any, im: Any) -> tuple[Any, ...]:
    sign, size = slogdet_complex(from_parts(re, im))
    return real(sign), imag(sign), size


def determinant_numpy(re: Array, im: Array) -> tuple[Array, ...]:
    sign, size = np.linalg.slogdet(re + 1j * im)
    return sign.real, sign.imag, size


def two(rng: np.random.Generator, *shape: int) -> list[Array]:
    return [*spread(rng, *shape), rng.normal(size=shape)]


CASES += [
    Case("hermitian_eigh", hermitian, hermitian_numpy, dtypes=("f64",), arrays=lambda rng: two(rng, 3, 3)),
    Case("hermitian_eigh_stack", hermitian, hermitian_numpy, dtypes=("f64",), arrays=lambda rng: two(rng, 2, 2, 2)),
    Case("complex_svd", unitary, unitary_numpy, dtypes=("f64",), arrays=lambda rng: two(rng, 4, 3)),
    Case("complex_svd_wide", unitary, unitary_numpy, dtypes=("f64",), arrays=lambda rng: two(rng, 2, 3)),
    Case("eig", general, general_numpy, dtypes=("f64",), arrays=lambda rng: spread(rng, 3, 3)),
    Case("complex_eig", general, general_numpy, dtypes=("f64",), arrays=lambda rng: two(rng, 3, 3)),
    Case("complex_slogdet", determinant, determinant_numpy, dtypes=("f64",), arrays=lambda rng: two(rng, 3, 3)),
    Case("complex_slogdet_stack", determinant, determinant_numpy, dtypes=("f64",), arrays=lambda rng: two(rng, 2, 2, 2)),
]
