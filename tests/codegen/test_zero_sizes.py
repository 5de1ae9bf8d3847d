"""Arrays without elements through the ops that have their own native code: NumPy's shapes and dtypes, gradients of matching shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj

Z = np.zeros


def attention(x: Any) -> Any:
    scores = x @ np.swapaxes(x, -1, -2)
    weights = np.exp(scores - np.max(scores, -1, keepdims=True))
    return weights / np.sum(weights, -1, keepdims=True) @ x


PROGRAMS: dict[str, tuple[Callable[..., Any], Any]] = {
    "cholesky of no matrices": (lambda x: np.linalg.cholesky(x), Z((0, 3, 3))),
    "cholesky of empty matrices": (lambda x: np.linalg.cholesky(x), Z((2, 0, 0))),
    "qr of no matrices": (lambda x: np.linalg.qr(x), Z((0, 3, 2))),
    "qr of empty matrices": (lambda x: np.linalg.qr(x), Z((2, 3, 0))),
    "eigh of no matrices": (lambda x: np.linalg.eigh(x), Z((0, 3, 3))),
    "eigh of empty matrices": (lambda x: np.linalg.eigh(x), Z((2, 0, 0))),
    "eigh of no complex matrices": (lambda x: np.linalg.eigh(x), Z((0, 2, 2), complex)),
    "eigvals of no matrices": (lambda x: np.linalg.eigvals(x).astype(complex), Z((0, 3, 3))),
    "eigvals of empty complex matrices": (lambda x: np.linalg.eigvals(x), Z((2, 0, 0), complex)),
    "svd of no matrices": (lambda x: np.linalg.svd(x, full_matrices=False), Z((0, 3, 2))),
    "svd of empty matrices": (lambda x: np.linalg.svd(x, full_matrices=False), Z((2, 3, 0))),
    "svd of no complex matrices": (lambda x: np.linalg.svd(x, full_matrices=False), Z((0, 3, 2), complex)),
    "inv of no matrices": (lambda x: np.linalg.inv(x), Z((0, 3, 3))),
    "inv of empty matrices": (lambda x: np.linalg.inv(x), Z((2, 0, 0))),
    "inv of empty complex matrices": (lambda x: np.linalg.inv(x), Z((2, 0, 0), complex)),
    "det of empty matrices": (lambda x: np.linalg.det(x), Z((2, 0, 0))),
    "det of empty complex matrices": (lambda x: np.linalg.det(x), Z((2, 0, 0), complex)),
    "slogdet of no matrices": (lambda x: np.linalg.slogdet(x), Z((0, 2, 2))),
    "slogdet of no complex matrices": (lambda x: np.linalg.slogdet(x), Z((0, 2, 2), complex)),
    "solve of no systems": (lambda x: np.linalg.solve(x, x), Z((0, 2, 2))),
    "solve of no right-hand sides": (lambda x: np.linalg.solve(np.eye(3) + np.sum(x), x), Z((3, 0))),
    "fft of no vectors": (lambda x: np.fft.fft(x), Z((0, 4))),
    "rfft of no vectors": (lambda x: np.fft.rfft(x), Z((0, 4))),
    "irfft of no vectors": (lambda x: np.fft.irfft(x), Z((0, 3), complex)),
    "a product over nothing": (lambda x: x @ x.T, Z((3, 0))),
    "an empty product": (lambda x: x @ x.T, Z((0, 3))),
    "products over nothing": (lambda x: np.einsum("bij,bkj->bik", x, x), Z((2, 3, 0))),
    "complex products of nothing": (lambda x: x @ x, Z((0, 2, 2), complex)),
    "sort": (lambda x: np.sort(x), Z((0, 4))),
    "argsort of empty lines": (lambda x: np.argsort(x, 0), Z((0, 4))),
    "cumsum": (lambda x: np.cumsum(x, 1), Z((0, 4))),
    "median": (lambda x: np.median(x, 1), Z((0, 3))),
    "attention": (attention, Z((0, 4, 3))),
    "gather": (lambda x: x[[0, 1]], Z((3, 0))),
    "outer": (lambda x: np.outer(x, x), Z((0,))),
    "trace": (lambda x: np.trace(x, axis1=1, axis2=2), Z((0, 3, 3))),
    "pinv": (lambda x: np.linalg.pinv(x), Z((0, 3, 2))),
}


def leaves(x: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in (x if isinstance(x, tuple) else (x,))]


def gradient_fits(program: Callable[..., Any], x: Any) -> None:
    """The gradient of the sum of all float results has the shape of x."""
    given = aj.function(aj.grad(lambda x: sum((aj.sum(aj.real(y)) for y in aj.tree_leaves(program(x))), 0.0 * aj.sum(aj.real(x)))))(x)
    np.testing.assert_array_equal(np.asarray(given), np.zeros(x.shape))


@pytest.mark.parametrize("name", PROGRAMS)
def test_empty_arrays_have_numpys_results(name: str) -> None:
    program, x = PROGRAMS[name]
    wanted = leaves(program(x))
    for got in (program(aj.tensor(x)), aj.function(program)(x)):
        for a, b in zip(leaves(got), wanted, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_array_equal(a, b)
    if x.dtype.kind == "f" and x.size == 0:
        gradient_fits(program, x)


# functions that NumPy does not have, the shapes of their results and the argument
BEYOND: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], Any]] = {
    "top_k": (lambda x: aj.top_k(x, 2), [(0, 2), (0, 2)], Z((0, 4))),
    "conv1d": (lambda x: aj.conv1d(x, np.ones((2, 1, 3))), [(0, 4, 3)], Z((0, 5, 1))),
    "max_pool": (lambda x: aj.max_pool(x, 2), [(0, 2, 1)], Z((0, 4, 1))),
    "avg_pool": (lambda x: aj.avg_pool(x, 2), [(0, 2, 1)], Z((0, 4, 1))),
    "lu of no matrices": (lambda x: aj.linalg.lu(x), [(0, 3, 3)] * 3, Z((0, 3, 3))),
    "lu of empty matrices": (lambda x: aj.linalg.lu(x), [(2, 0, 0)] * 3, Z((2, 0, 0))),
    "solve_triangular": (lambda x: aj.linalg.solve_triangular(np.eye(3) + np.sum(x), x), [(3, 0)], Z((3, 0))),
    "expm": (lambda x: aj.linalg.expm(x), [(0, 3, 3)], Z((0, 3, 3))),
    "sqrtm": (lambda x: aj.linalg.sqrtm(x), [(0, 2, 2)], Z((0, 2, 2))),
    "scatter": (lambda x: x.at[[0, 1]].add(1.0), [(3, 0)], Z((3, 0))),
}


@pytest.mark.parametrize("name", BEYOND)
def test_nothing_has_a_shape(name: str) -> None:
    program, shapes, x = BEYOND[name]
    for got in (program(aj.tensor(x)), aj.function(program)(x)):
        assert [a.shape for a in leaves(got)] == shapes
    gradient_fits(program, x)
