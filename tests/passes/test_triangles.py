"""Systems with triangular matrices are solved by substitution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.passes.simplify.triangles import substitute_triangles
from tests.passes.checks import rewrites

RNG = np.random.default_rng(0)
A = RNG.normal(size=(6, 6)) + 8.0 * np.eye(6)
B = RNG.normal(size=(6, 2))

TRIANGLES: dict[str, Callable[[Any], Any]] = {
    "cholesky": lambda a: np.linalg.cholesky(a @ a.T),
    "transposed": lambda a: np.linalg.cholesky(a @ a.T).T,
    "r": lambda a: np.linalg.qr(a)[1],
    "tril": np.tril,
    "triu": np.triu,
    "tril_transposed": lambda a: np.tril(a).T,
    "stack": lambda a: np.tril(np.stack([a, 2.0 * a])),
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda a: a,
    "tril_above": lambda a: np.tril(a, 1),
    "triu_below": lambda a: np.triu(a, -1),
    "flipped": lambda a: np.tril(a)[::-1],
    "columns_of_q": lambda a: np.linalg.qr(a)[0],
    "unmasked": lambda a: np.where(np.tri(6, dtype=bool), a, 1.0),
}


def solution(make: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda a, b: np.linalg.solve(make(a), b)


def loss(make: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda a, b: np.sum(np.sin(np.linalg.solve(make(a), b)))


@pytest.mark.parametrize("name", [*TRIANGLES, *OTHERS])
def test_values_and_gradients_are_those_of_solve(name: str) -> None:
    make = {**TRIANGLES, **OTHERS}[name]
    np.testing.assert_allclose(aj.function(solution(make))(A, B), solution(make)(A, B), rtol=1e-9, atol=1e-12)
    for argnums in (0, 1):
        g = aj.grad(loss(make), argnums)
        np.testing.assert_allclose(aj.function(g)(A, B), g(A, B), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", [*TRIANGLES, *OTHERS])
def test_only_triangles_are_substituted(name: str) -> None:
    make = {**TRIANGLES, **OTHERS}[name]
    for f in (solution(make), aj.grad(loss(make), (0, 1))):
        text = str(aj.function(f).inspect(A, B).optimized)
        assert (" = lu " in text) == (name in OTHERS)


def test_a_singular_triangle_fails_like_any_matrix() -> None:
    @aj.function
    def f(a, b):  # type: ignore[no-untyped-def]
        return np.linalg.solve(np.tril(a), b)

    with pytest.raises(np.linalg.LinAlgError, match=r"solve: the matrix is singular: a pivot is 0\n.*test_triangles.py:\d+:16 in f"):
        f(np.zeros((4, 4)), np.ones(4))


def test_the_text_of_a_substitution() -> None:
    rewrites(
        substitute_triangles,
        """
        func @f(%a: f64[4,4], %b: f64[4,1]) -> f64[4,1] {
          %0: f64[4,4] = cholesky %a
          %1: f64[5,4] = lu %0
          %2: f64[4,1] = solve_with %0, %1, %b
          return %2
        }
        """,
        """
        func @f(%a: f64[4,4], %b: f64[4,1]) -> f64[4,1] {
          %0: f64[4,4] = cholesky %a
          %1: f64[5,4] = lu %0
          %2: f64[4,1] = solve_triangular %0, %b
          return %2
        }
        """,
    )


def test_a_mask_that_a_batch_shares() -> None:
    rewrites(
        substitute_triangles,
        """
        func @f(%x: f64[3,4,4], %b: f64[3,4,2]) -> f64[3,4,2] {
          %i: i64[4,4] = iota {axis=0}
          %j: i64[4,4] = iota {axis=1}
          %p: bool[4,4] = less_equal %j, %i
          %q: bool[3,4,4] = broadcast %p
          %l: f64[3,4,4] = where %q, %x, 0.0
          %f: f64[3,5,4] = lu %l
          %y: f64[3,4,2] = solve_with %l, %f, %b
          return %y
        }
        """,
        """
        func @f(%x: f64[3,4,4], %b: f64[3,4,2]) -> f64[3,4,2] {
          %i: i64[4,4] = iota {axis=0}
          %j: i64[4,4] = iota {axis=1}
          %p: bool[4,4] = less_equal %j, %i
          %q: bool[3,4,4] = broadcast %p
          %l: f64[3,4,4] = where %q, %x, 0.0
          %f: f64[3,5,4] = lu %l
          %y: f64[3,4,2] = solve_triangular %l, %b
          return %y
        }
        """,
        near=0,
    )


def test_systems_inside_of_loops_and_branches() -> None:
    rewrites(
        substitute_triangles,
        """
        func @f(%a: f64[4,4], %b: f64[4,1], %p: bool[]) -> f64[4,1] {
          %0: f64[4,4] = cholesky %a
          %1: f64[5,4] = lu %0
          %r: f64[4,1] = for %k in 0..3 carry (%c: f64[4,1] = %b) {
            %d: f64[4,1] = if %p {
              %2: f64[4,1] = solve_with %0, %1, %c
              yield %2
            } else {
              yield %c
            }
            yield %d
          }
          return %r
        }
        """,
        """
        func @f(%a: f64[4,4], %b: f64[4,1], %p: bool[]) -> f64[4,1] {
          %0: f64[4,4] = cholesky %a
          %1: f64[5,4] = lu %0
          %r: f64[4,1] = for %k in 0..3 carry (%c: f64[4,1] = %b) {
            %d: f64[4,1] = if %p {
              %2: f64[4,1] = solve_triangular %0, %c
              yield %2
            } else {
              yield %c
            }
            yield %d
          }
          return %r
        }
        """,
        near=0,
    )
