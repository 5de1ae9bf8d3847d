"""Short axes of components, split off the arrays of all pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import adjit as aj
from adjit.ir.func import Func
from adjit.ir.ops.control import Fuse
from adjit.ir.parser import parse_func
from adjit.passes.fusion.components import MIN_SIZE, split_components
from tests.passes.checks import leaves, rewrites

POINTS = 80


def test_all_pairs_are_split() -> None:
    rewrites(
        split_components,
        """
        func @f(%x: f64[64,2]) -> (f64[64,64], f64[64,2]) {
          %a: f64[64,1,2] = reshape %x
          %left: f64[64,64,2] = broadcast %a
          %right: f64[64,64,2] = broadcast %x
          %d: f64[64,64,2] = sub %left, %right
          %s: f64[64,64,2] = mul %d, 3.0
          %near: f64[64,64] = sum %s {axes=[2]}
          %all: f64[64,2] = sum %s {axes=[0]}
          return %near, %all
        }
        """,
        """
        func @f(%x: f64[64,2]) -> (f64[64,64], f64[64,2]) {
          %a: f64[64,1,2] = reshape %x
          %0: f64[64,1,1] = slice %a {starts=[0, 0, 0], stops=[64, 1, 1], steps=[1, 1, 1]}
          %1: f64[64,1] = reshape %0
          %2: f64[64,1] = copy %1
          %left: f64[64,64] = broadcast %2
          %3: f64[64,1,1] = slice %a {starts=[0, 0, 1], stops=[64, 1, 2], steps=[1, 1, 1]}
          %4: f64[64,1] = reshape %3
          %5: f64[64,1] = copy %4
          %left.1: f64[64,64] = broadcast %5
          %6: f64[1,64,2] = reshape %x
          %7: f64[1,64,1] = slice %6 {starts=[0, 0, 0], stops=[1, 64, 1], steps=[1, 1, 1]}
          %8: f64[1,64] = reshape %7
          %9: f64[1,64] = copy %8
          %right: f64[64,64] = broadcast %9
          %10: f64[1,64,1] = slice %6 {starts=[0, 0, 1], stops=[1, 64, 2], steps=[1, 1, 1]}
          %11: f64[1,64] = reshape %10
          %12: f64[1,64] = copy %11
          %right.1: f64[64,64] = broadcast %12
          %d: f64[64,64] = sub %left, %right
          %d.1: f64[64,64] = sub %left.1, %right.1
          %s: f64[64,64] = mul %d, 3.0
          %s.1: f64[64,64] = mul %d.1, 3.0
          %near: f64[64,64] = add %s, %s.1
          %all: f64[64] = sum %s {axes=[0]}
          %all.1: f64[64] = sum %s.1 {axes=[0]}
          %13: f64[64,1] = reshape %all
          %14: f64[64,1] = reshape %all.1
          %all.2: f64[64,2] = concatenate %13, %14 {axis=1}
          return %near, %all.2
        }
        """,
    )


def test_what_leaves_whole_stays_whole() -> None:
    leaves(
        split_components,
        """
        func @f(%x: f64[64,2]) -> (f64[64,64], f64[64,64,2]) {
          %a: f64[64,1,2] = reshape %x
          %left: f64[64,64,2] = broadcast %a
          %right: f64[64,64,2] = broadcast %x
          %d: f64[64,64,2] = sub %left, %right
          %s: f64[64,64,2] = mul %d, %d
          %near: f64[64,64] = sum %s {axes=[2]}
          return %near, %d
        }
        """,
    )


def test_what_is_read_whole_stays_whole() -> None:
    leaves(
        split_components,
        """
        func @f(%x: f64[64,64,2]) -> f64[64,64] {
          %s: f64[64,64,2] = mul %x, %x
          %near: f64[64,64] = sum %s {axes=[2]}
          return %near
        }
        """,
    )


def test_small_domains_stay() -> None:
    leaves(
        split_components,
        """
        func @f(%x: f64[8,2]) -> f64[8,8] {
          %a: f64[8,1,2] = reshape %x
          %left: f64[8,8,2] = broadcast %a
          %right: f64[8,8,2] = broadcast %x
          %d: f64[8,8,2] = sub %left, %right
          %near: f64[8,8] = sum %d {axes=[2]}
          return %near
        }
        """,
    )


def _gravity(x: Any) -> Any:
    d = x[:, None, :] - x[None, :, :]
    return np.sum(1.0 / np.sqrt(np.sum(d * d, axis=2) + 0.1))


def _components_first(x: Any) -> Any:
    d = x.T[:, :, None] - x.T[:, None, :]
    return np.sum(np.exp(-np.sum(d * d, axis=0)))


def _components_between(x: Any) -> Any:
    d = x[:, :, None] - x.T[None, :, :]
    return np.sum(np.tanh(np.sum(np.sin(d) * d, axis=1)))


def _chebyshev(x: Any) -> Any:
    return np.sum(np.max(np.abs(x[:, None, :] - x[None, :, :]), axis=-1) ** 2)


def _volumes(x: Any) -> Any:
    return np.sum(np.prod(x[:, None, :] * x[None, :, :] + 1.0, axis=-1))


def _two_lengths(x: Any) -> Any:
    """Both a reduction over the components and one that keeps them."""
    d = x[:, None, :] - x[None, :, :]
    centre = np.sum(d * d, axis=0)
    return np.sum(np.sqrt(np.sum(d * d, axis=2) + 1.0)) + np.sum(centre * centre)


PAIRWISE = [_gravity, _components_first, _components_between, _chebyshev, _volumes, _two_lengths]


@pytest.mark.parametrize("f", PAIRWISE, ids=lambda f: f.__name__.lstrip("_"))
@pytest.mark.parametrize("count", [2, 3, 4])
def test_values_and_derivatives(f: Callable[[Any], Any], count: int) -> None:
    x = np.random.default_rng(count).normal(size=(POINTS, count))
    v = np.random.default_rng(1).normal(size=x.shape)
    assert POINTS * POINTS * count > MIN_SIZE
    value, gradient = aj.function(aj.value_and_grad(f))(x)
    want, want_gradient = aj.value_and_grad(f)(x)
    assert_allclose(value, want, rtol=1e-12)
    assert_allclose(gradient, want_gradient, rtol=1e-9, atol=1e-11)
    assert_allclose(aj.function(lambda x: aj.hvp(f, (x,), (v,)))(x), aj.hvp(f, (x,), (v,)), rtol=1e-8, atol=1e-9)


def _largest(func: Func) -> int:
    return max(r.type.size for s in func.block.stmts if isinstance(s.op, Fuse) for r in s.results)


@pytest.mark.one_size("compares sizes of arrays")
def test_no_array_of_all_pairs_is_made() -> None:
    x = np.random.default_rng(0).normal(size=(POINTS, 3))
    optimized = aj.function(aj.value_and_grad(_gravity)).inspect(x).optimized
    assert _largest(parse_func(optimized)) == POINTS * 3


def test_inside_a_loop() -> None:
    def relaxed(x: Any) -> Any:
        for _ in aj.range(5):
            x = x - 1e-3 * aj.grad(_gravity)(x)
        return x

    x = np.random.default_rng(0).normal(size=(POINTS, 3))
    assert_allclose(aj.function(relaxed)(x), relaxed(x), rtol=1e-10)
