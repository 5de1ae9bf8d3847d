"""Systems of equations beyond their rows in the table: sizes cut into blocks, shared factors, matrices without a solution."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.compile import compile_func
from adjit.ir import ops
from adjit.ir.interpreter import run
from adjit.ir.ops.triangle import UNCUT
from adjit.ir.parser import parse_func
from adjit.passes.pipeline import OPTIMIZE
from adjit.tracer.convert import to_operand

Array = np.ndarray[Any, Any]


def loss(a: Any, b: Any) -> Any:
    return np.sum(np.linalg.solve(a, b) ** 2)


def lu(a: Any) -> Any:
    return ops.lu(to_operand(a))


def system(n: int, m: int, dtype: str = "f8") -> tuple[Array, Array]:
    rng = np.random.default_rng([n, m])
    return rng.normal(size=(n, n)).astype(dtype), rng.normal(size=(n, m)).astype(dtype)


def exchanged(a: Array, exchanges: Array) -> Array:
    out = a.copy()
    for i, ahead in enumerate(exchanges.astype(int)):
        out[[i, i + ahead]] = out[[i + ahead, i]]
    return out


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [1, 2, 23, 24, 25, 32, 48, 72, 131, 255, 256, 257, 288])
def test_factors(n: int, dtype: str) -> None:
    a, _ = system(n, 0, dtype)
    for found in (aj.function(lu)(a).numpy(), lu(aj.tensor(a)).numpy()):
        lower, upper = np.tril(found[:n], -1) + np.eye(n), np.triu(found[:n])
        assert np.abs(lower).max() <= 1.0
        np.testing.assert_allclose(lower @ upper, exchanged(a, found[n]), atol=n * np.abs(upper).max() * np.finfo(dtype).eps)


@pytest.mark.parametrize("m", [0, 1, 5, 48, 100])
@pytest.mark.parametrize("n", [24, 25, UNCUT, UNCUT + 1, 100, 260])
def test_value_and_gradient_by_blocks(n: int, m: int) -> None:
    a, b = system(n, m)
    x = np.linalg.solve(a, b)
    db = np.linalg.solve(a.T, 2 * x)
    np.testing.assert_allclose(aj.function(np.linalg.solve)(a, b), x, rtol=1e-8, atol=1e-8)
    for ours, wanted in zip(aj.function(aj.grad(loss, argnums=(0, 1)))(a, b), (-db @ x.T, db), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-8, atol=1e-8 * max(1.0, np.abs(wanted).max(initial=0.0)))


@pytest.mark.parametrize("of", ["first", "second"])
def test_derivatives_share_the_factors(of: str) -> None:
    a, b = system(3, 2)
    first = aj.grad(loss, argnums=(0, 1))
    f = first if of == "first" else aj.grad(lambda a, b: np.sum(first(a, b)[0] ** 2))
    text = str(aj.function(f).inspect(a, b).optimized)
    assert (text.count(" = lu "), "transposed=true" in text) == (1, True)


def test_determinant_and_solution_share_the_factors() -> None:
    a, b = system(3, 2)
    f = aj.value_and_grad(lambda a: np.sum(np.linalg.solve(a, b)) + np.linalg.slogdet(a)[1])
    assert str(aj.function(f).inspect(a).optimized).count(" = lu ") == 1


@pytest.mark.parametrize("n", [4, 100])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_finite(bad: float, n: int) -> None:
    """Comparisons find no pivot there: the chosen one must still be inside the matrix."""
    for fill in (False, True):
        a, b = system(n, 3)
        a[slice(None) if fill else n // 2, n // 3 :] = bad
        assert not np.isfinite(aj.function(np.linalg.solve)(a, b).numpy()).all()


def test_many_examples_of_one_matrix_are_one_system() -> None:
    a, b = system(4, 6)
    sides = b.T.reshape(6, 4)
    f = aj.function(aj.vmap(np.linalg.solve, in_axes=(None, 0)))
    np.testing.assert_allclose(f(a, sides), np.linalg.solve(a, b).T)
    stacks = np.stack([np.stack([b, 2 * b]), np.stack([3 * b, 4 * b])])
    both = np.stack([a, a.T])
    np.testing.assert_allclose(f(both, stacks), np.stack([np.linalg.solve(both, one) for one in stacks]))
    assert re.search(r"f64\[4,6\].* = solve_with", str(f.inspect(a, sides).optimized))


@pytest.mark.parametrize("n", [3, 60])
@pytest.mark.parametrize("wrap", [aj.function, lambda f: f], ids=["compiled", "eager"])
def test_singular(wrap: Any, n: int) -> None:
    def f(a, b):
        return np.linalg.solve(a, b)

    where = r"\n.*test_solve.py:\d+:16 in f" if wrap is aj.function else ""
    for m in (0, 1):
        with pytest.raises(np.linalg.LinAlgError, match="solve: the matrix is singular: a pivot is 0" + where):
            wrap(f)(aj.tensor(np.zeros((n, n))), aj.tensor(np.ones((n, m))))


def test_examples_that_are_not_active_do_not_fail() -> None:
    def f(a: Any, b: Any) -> Any:
        return aj.cond(np.sum(np.abs(a)) > 0, lambda: np.linalg.solve(a, b), lambda: b)

    a, b = system(3, 1)
    found = aj.function(aj.vmap(f))(np.stack([a, np.zeros((3, 3))]), np.stack([b, b]))
    np.testing.assert_allclose(found, np.stack([np.linalg.solve(a, b), b]))


@pytest.mark.parametrize("exchanges", [[1, 1, 0], [1, 1, 1], [-1, 5, 1e300], [np.nan, -np.inf, 2], [0.5, 1.5, -0.5]], ids=str)
def test_exchanges_of_rows_stay_inside_of_the_matrix(exchanges: list[float]) -> None:
    """A text of the IR can contain any numbers as the factors of a matrix: only those that name a row below exchange two rows."""
    text = """
        func @f(%a: f64[3,3], %f: f64[4,3], %b: f64[3,2]) -> (f64[3,2], f64[3,3]) {
          %0: f64[3,2] = solve_with %a, %f, %b
          %1: f64[3,3] = row_exchanges %f
          return %0, %1
        }
    """
    factors = np.vstack([np.tril(np.full((3, 3), 0.25), -1) + np.diag([2.0, 3.0, 4.0]), exchanges])
    order = [0, 1, 2]
    for i, ahead in enumerate(exchanges):
        other = i + int(ahead) if 0 < ahead < 3 - i else i
        order[i], order[other] = order[other], order[i]
    triangle = np.tril(factors[:3], -1) + np.eye(3)
    matrix = np.eye(3)[order].T @ triangle @ np.diag([2.0, 3.0, 4.0])
    arrays = [matrix, factors, np.arange(6.0).reshape(3, 2)]
    func = parse_func(text)
    for found in (compile_func(OPTIMIZE(func))([a.copy() for a in arrays]), run(func, *arrays)):
        np.testing.assert_allclose(found[0], np.linalg.solve(matrix, arrays[2]))
        np.testing.assert_array_equal(found[1], np.eye(3)[order])
