"""The rows of eigenvalues and singular values. Vectors are squared: their signs are arbitrary."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from adjit.ir.ops import spectral as ours
from adjit.ir.ops.base import Array
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
    """Matrices whose eigenvalues and singular values are well apart, so that differences are accurate."""
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
