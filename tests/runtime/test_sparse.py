"""Sparse Jacobians and Hessians: values against dense ones, patterns against the structure of the function."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.parser import parse_func
from adjit.passes.dependencies import Pattern, jacobian_pattern
from adjit.runtime.sparse import colouring

RNG = np.random.default_rng(0)
X, A = RNG.normal(size=30), RNG.normal(size=(4, 30))

# Jacobians whose pattern is exact: none of its elements is zero at a random point
EXACT: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: aj.sin(x) * x,
    "stencil": lambda x: x[2:] - 2 * x[1:-1] ** 2 + x[:-2],
    "parts": lambda x: aj.concatenate([x[::3] ** 2, x[np.array([4, 2, 2])], x[::-1][:2]]),
    "padded": lambda x: aj.pad(x, 2) * 2,
    "transposed": lambda x: x.reshape(5, 6).T,
    "rows": lambda x: aj.sum(x.reshape(5, 6), 1),
    "product with a matrix": lambda x: A @ x,
    "product": lambda x: x.reshape(5, 6) @ x.reshape(6, 5),
    "products": lambda x: x.reshape(5, 2, 3) @ x.reshape(5, 3, 2),
    "matrix and vector": lambda x: x.reshape(5, 6) @ x[:6],
    "vector and matrix": lambda x: x[:5] @ x.reshape(5, 6),
    "branches": lambda x: aj.where(x > 0, x, x**2),
    "steps": lambda x: aj.floor(x) + x[0],
    "scatter": lambda x: x.at[np.array([0, 0, 5])].add(x[:3]),
    "loop": lambda x: aj.fori_loop(0, 3, lambda i, c: c * x, x),
    "diffusion": lambda x: aj.fori_loop(0, 2, lambda i, c: aj.pad(c[2:] + c[:-2] + c[1:-1], 1), x),
    "longer diffusion": lambda x: aj.fori_loop(0, 5, lambda i, c: aj.pad(c[2:] + c[:-2] + c[1:-1], 1), x),
    "structure": lambda x: {"a": x[:3] * 2, "b": (x[3:5].reshape(1, 2),)},
}
SUPERSETS: dict[str, Callable[[Any], Any]] = {
    "solve": lambda x: aj.linalg.solve(x[:25].reshape(5, 5), x[25:]),
    "sorted": aj.sort,
    "running sum": aj.cumsum,
    "convolution": lambda x: aj.convolve(x, x[:3]),
    "indices from values": lambda x: x[aj.argsort(x)],
    "while": lambda x: aj.while_loop(lambda c: aj.max(c) < 100.0, lambda c: 2.0 * c + 1.0, x),
}


def dense(fn: Callable[..., Any], x: Any) -> Any:
    def flat(x: Any) -> Any:
        out = fn(x)
        return aj.concatenate([out["a"], out["b"][0].reshape(-1)]) if isinstance(out, dict) else out.reshape(-1)

    return np.asarray(aj.jacobian(flat)(x))


@pytest.mark.parametrize("name", EXACT)
def test_exact_patterns(name: str) -> None:
    found, wanted = aj.sparse_jacobian(EXACT[name])(X), dense(EXACT[name], X)
    np.testing.assert_allclose(found.toarray(), wanted, rtol=1e-12, atol=1e-14)
    assert found.nnz == np.count_nonzero(wanted)


@pytest.mark.parametrize("name", SUPERSETS)
def test_supersets(name: str) -> None:
    fn = SUPERSETS[name]
    np.testing.assert_allclose(aj.sparse_jacobian(fn)(X).toarray(), dense(fn, X), rtol=1e-12, atol=1e-13)


def rosenbrock(x: Any) -> Any:
    return aj.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def test_hessian_of_a_chain_takes_three_sweeps() -> None:
    compute = aj.sparse_hessian(rosenbrock)
    found = compute(X)
    np.testing.assert_allclose(found.toarray(), np.asarray(aj.hessian(rosenbrock)(X)), rtol=1e-12)
    assert found.nnz == 3 * 30 - 2
    pattern = Pattern.of(30, *map(np.asarray, found.nonzero()))
    assert sorted(set(np.asarray(colouring(pattern, (30, 30))).tolist())) == [0, 1, 2]


def test_many_unknowns() -> None:
    x = RNG.normal(size=100_000)
    found = aj.sparse_hessian(rosenbrock)(x)
    assert found.nnz == 3 * x.size - 2
    direction = RNG.normal(size=x.size)
    np.testing.assert_allclose(found @ direction, np.asarray(aj.hvp(rosenbrock, x, direction)), rtol=1e-9)


def test_few_rows_are_pulled_back() -> None:
    """Three results of many unknowns: as many sweeps as results, not as unknowns."""

    def sums(x: Any) -> Any:
        return aj.stack([aj.sum(x * x), aj.sum(aj.sin(x)), x[0]])

    x = RNG.normal(size=2000)
    found = aj.sparse_jacobian(sums)(x)
    assert found.nnz == 4001
    np.testing.assert_allclose(found.toarray(), dense(sums, x), rtol=1e-12)


def test_a_dense_hessian_of_many_unknowns_is_refused() -> None:
    with pytest.raises(aj.UnsupportedError, match="dense"):
        aj.sparse_hessian(lambda x: aj.sum(x) ** 2)(np.ones(100_000))


def test_other_arguments_and_indices_that_are_arguments() -> None:
    compute = aj.sparse_jacobian(lambda i, x, k: k * x[i] ** 2, argnums=1)
    for i in (np.array([0, 3]), np.array([5, 5])):
        found = compute(i, X, 2.0)
        wanted = np.zeros((2, 30))
        wanted[[0, 1], i] = 4.0 * X[i]
        np.testing.assert_allclose(found.toarray(), wanted)
        assert found.nnz == 2


def test_float32_and_nothing() -> None:
    assert aj.sparse_jacobian(lambda x: x * x)(X.astype("f4")).dtype == np.float32
    assert aj.sparse_jacobian(lambda x: aj.floor(x))(X).nnz == 0


def test_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(aj.UnsupportedError, match="SciPy array"):
        aj.function(lambda x: aj.sparse_jacobian(lambda y: y)(x))(X)
    with pytest.raises(aj.GradientError, match="only floats"):
        aj.sparse_jacobian(lambda x: x)(np.arange(3))
    with pytest.raises(aj.GradientError, match="argnums names argument 2"):
        aj.sparse_jacobian(lambda x: x, 2)(X)
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(ImportError, match="pip install scipy"):
        aj.sparse_jacobian(lambda x: x)(X)


def test_patterns_say_whether_they_hold_for_all_values() -> None:
    """Patterns that do not depend on values are computed once; with an index that is an argument, they differ from call to call."""
    head = "func @f(%x: f64[5], %i: i64[]) -> f64[] {\n  %j: i64[] = add %i, 1\n  %z: i64[] = mul 2, 1\n"
    for index, at, matters in (("2:i64[]", 2, False), ("%z", 2, False), ("%i", 3, True), ("%j", 4, True)):
        func = parse_func(f"{head}  %y: f64[] = gather %x, {index}\n  return %y\n}}\n")
        (pattern,), uses_values = jacobian_pattern(func, 0, [None, np.array(3)])
        assert pattern.keys.tolist() == [at]
        assert uses_values is matters
