"""Gradients of shifted slices, and pads inside loop nests."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import adjit as aj
from adjit.ir.ops.control import Fuse
from adjit.ir.parser import parse_func
from adjit.ir.target import USUAL
from adjit.passes.fusion.fuse import fuse
from adjit.passes.fusion.legalize import legalize
from adjit.passes.fusion.stencils import shift_stencils
from tests.passes.checks import QUICK, keeps_meaning, leaves, rewrites


def test_what_is_padded_is_computed_at_each_shift() -> None:
    rewrites(
        shift_stencils,
        """
        func @f(%x: f64[5000]) -> (f64[], f64[5000]) {
          %a: f64[4999] = slice %x {starts=[0], stops=[4999], steps=[1]}
          %b: f64[4999] = slice %x {starts=[1], stops=[5000], steps=[1]}
          %d: f64[4999] = mul %b, %a
          %s: f64[] = sum %d {axes=[0]}
          %p: f64[5000] = pad %d {low=[1], high=[0], interior=[0], value=0.0}
          %n: f64[4999] = neg %d
          %q: f64[5000] = pad %n {low=[0], high=[1], interior=[0], value=0.0}
          %g: f64[5000] = add %p, %q
          return %s, %g
        }
        """,
        """
        func @f(%x: f64[5000]) -> (f64[], f64[5000]) {
          %a: f64[4999] = slice %x {starts=[0], stops=[4999], steps=[1]}
          %b: f64[4999] = slice %x {starts=[1], stops=[5000], steps=[1]}
          %s: bool[5000] = pad true:bool[4999] {low=[1], high=[0], interior=[0], value=false}
          %a.1: f64[5000] = pad %a {low=[1], high=[0], interior=[0], value=0.0}
          %d: f64[5000] = mul %x, %a.1
          %s.1: f64[5000] = where %s, %d, 0.0
          %s.2: f64[] = sum %s.1 {axes=[0]}
          %q: bool[5000] = pad true:bool[4999] {low=[0], high=[1], interior=[0], value=false}
          %b.1: f64[5000] = pad %b {low=[0], high=[1], interior=[0], value=0.0}
          %d.1: f64[5000] = mul %b.1, %x
          %n: f64[5000] = neg %d.1
          %q.1: f64[5000] = where %q, %n, 0.0
          %g: f64[5000] = add %s.1, %q.1
          return %s.2, %g
        }
        """,
    )


def test_what_is_stored_anyway_stays() -> None:
    leaves(
        shift_stencils,
        """
        func @f(%x: f64[5000]) -> (f64[5000], f64[4999]) {
          %a: f64[4999] = slice %x {starts=[0], stops=[4999], steps=[1]}
          %d: f64[4999] = mul %a, %a
          %p: f64[5000] = pad %d {low=[1], high=[0], interior=[0], value=0.0}
          return %p, %d
        }
        """,
    )


def test_what_costs_more_than_memory_stays() -> None:
    text = """
        func @f(%x: f64[5000]) -> f64[5000] {
          %a: f64[4998] = slice %x {starts=[0], stops=[4998], steps=[1]}
          %d: f64[4998] = exp %a
          %e: f64[4998] = tanh %d
          %h: f64[4998] = sin %e
          %i: f64[4998] = cos %h
          %j: f64[4998] = exp %i
          %p: f64[5000] = pad %j {low=[1], high=[1], interior=[0], value=0.0}
          %q: f64[5000] = pad %j {low=[2], high=[0], interior=[0], value=0.0}
          %g: f64[5000] = mul %p, %q
          return %g
        }
        """
    leaves(shift_stencils, text)
    fused = fuse(parse_func(text.replace("\n        ", "\n").lstrip()))
    assert sum(isinstance(s.op, Fuse) for s in fused.block.stmts) == 2, "the pads are read where they lie, in one loop nest"


def test_pads_of_several_groups_meet_in_one() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: f64[4000], %y: f64[4000]) -> f64[5000] {
          %p: f64[5000] = pad %x {low=[1000], high=[0], interior=[0], value=0.0}
          %q: f64[5000] = pad %y {low=[0], high=[1000], interior=[0], value=1.0}
          %g: f64[5000] = add %p, %q
          return %g
        }
        """,
        """
        func @f(%x: f64[4000], %y: f64[4000]) -> f64[5000] {
          %g: f64[5000] = fuse {
            %p: f64[5000] = pad %x {low=[1000], high=[0], interior=[0], value=0.0}
            %q: f64[5000] = pad %y {low=[0], high=[1000], interior=[0], value=1.0}
            %g.1: f64[5000] = add %p, %q
            yield %g.1
          }
          return %g
        }
        """,
    )


def _rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def _second_difference(x: Any) -> Any:
    return np.sum((x[2:] - 2.0 * x[1:-1] + x[:-2]) ** 2)


def _laplacian(u: Any) -> Any:
    d = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]
    return np.sum(d * d)


def _total_variation(u: Any) -> Any:
    return np.sum(np.abs(u[1:] - u[:-1])) + np.sum(np.abs(u[:, 1:] - u[:, :-1]))


def _weighted_rows(u: Any) -> Any:
    """A reduction that keeps the axis along which there are no shifts."""
    d = u[1:] * u[:-1]
    return np.sum(np.sum(d, axis=0) ** 2)


def _maxima(u: Any) -> Any:
    return np.sum(np.max(u[:, 1:] - u[:, :-1] * 0.5, axis=1))


def _in_space(u: Any) -> Any:
    d = u[1:, 1:, 1:] * u[:-1, :-1, :-1] - u[1:, :-1, 1:]
    return np.sum(d**3)


STENCILS = {
    _rosenbrock: (5000,),
    _second_difference: (20_001,),
    _laplacian: (80, 90),
    _total_variation: (70, 65),
    _weighted_rows: (300, 30),
    _maxima: (40, 150),
    _in_space: (20, 18, 25),
}


@pytest.mark.parametrize("f", STENCILS, ids=lambda f: f.__name__.lstrip("_"))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_and_derivatives(f: Callable[[Any], Any], dtype: str) -> None:
    random = np.random.default_rng(0)
    x, v = (random.normal(size=STENCILS[f]).astype(dtype) for _ in range(2))
    rtol = 1e-10 if dtype == "float64" else 2e-4
    value, gradient = aj.function(aj.value_and_grad(f))(x)
    want, want_gradient = aj.value_and_grad(f)(x)
    assert_allclose(value, want, rtol=rtol)
    assert_allclose(gradient, want_gradient, rtol=rtol, atol=rtol * float(np.max(np.abs(want_gradient))))
    product, want = aj.function(lambda x: aj.hvp(f, (x,), (v,)))(x), aj.hvp(f, (x,), (v,))
    assert_allclose(product, want, rtol=rtol, atol=rtol * float(np.max(np.abs(want))))


def test_nothing_is_stored() -> None:
    x = np.zeros(50_000)  # beyond any L1 cache
    text = aj.function(aj.value_and_grad(_rosenbrock)).inspect(x).optimized
    assert sum(isinstance(s.op, Fuse) for s in parse_func(text).block.stmts) == 1
    assert " arena 0 " in text


def test_same_bits_for_every_number_of_threads() -> None:
    x = np.random.default_rng(0).normal(size=300_001)
    first, *others = (aj.function(aj.value_and_grad(_rosenbrock), threads=n)(x) for n in (1, 2, 3))
    for other in others:
        assert_array_equal(first[0], other[0])
        assert_array_equal(first[1], other[1])


@st.composite
def borders(draw: st.DrawFn) -> tuple[tuple[int, ...], list[tuple[tuple[int, ...], tuple[int, ...]]]]:
    """A domain, and pads that fill it."""
    domain = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    pads = []
    for _ in range(draw(st.integers(1, 3))):
        lows = tuple(draw(st.integers(0, n - 1)) for n in domain)
        sizes = tuple(draw(st.integers(1, n - low)) for n, low in zip(domain, lows, strict=True))
        pads.append((lows, sizes))
    return domain, pads


@QUICK
@given(borders(), st.sampled_from(["float32", "float64", "int64", "bool"]), st.data())
def test_random_borders(case: Any, dtype: str, data: st.DataObject) -> None:
    """Pads, their sum, and a reduction of it over any axes, compiled, against NumPy."""
    domain, pads = case
    axes = tuple(data.draw(st.sets(st.integers(0, len(domain) - 1))))
    random = np.random.default_rng(1)
    arrays = [random.integers(0, 2, size).astype(dtype) for _, size in pads]

    def f(*xs: Any) -> Any:
        padded = [np.pad(x, [(b, n - b - m) for b, n, m in zip(low, domain, size)]) for x, (low, size) in zip(xs, pads)]
        total = padded[0]
        for each in padded[1:]:
            total = total | each if dtype == "bool" else total + each
        return total, np.any(total, axis=axes) if dtype == "bool" else np.sum(total, axis=axes)

    for got, want in zip(aj.function(f)(*arrays), f(*arrays), strict=True):
        assert_array_equal(got, want)


def test_a_constant_is_made_before_it_is_padded() -> None:
    rewrites(
        fuse,
        """
        func @f(%x: i64[5]) -> i64[5] {
          %k: i64[3] = iota {axis=0}
          %p: i64[5] = pad %k {low=[1], high=[1], interior=[0]}
          %y: i64[5] = add %p, %x
          return %y
        }
        """,
        """
        func @f(%x: i64[5]) -> i64[5] {
          %k: i64[3] = fuse {
            %k.1: i64[3] = iota {axis=0}
            yield %k.1
          }
          %y: i64[5] = fuse {
            %p: i64[5] = pad %k {low=[1], high=[1], interior=[0]}
            %y.1: i64[5] = add %p, %x
            yield %y.1
          }
          return %y
        }
        """,
    )


@QUICK
@given(st.randoms(use_true_random=False))
def test_random_functions_keep_their_meaning(random: Random) -> None:
    tiny = USUAL._replace(caches=(8, 8))  # nothing stays in its cache
    keeps_meaning(lambda func: fuse(legalize(shift_stencils(func, tiny))), random)


def test_a_padded_array_is_not_overwritten_by_what_it_is_padded_into() -> None:
    """x[:-1] starts where x does, and is read with an offset of one."""

    def f(x: Any) -> Any:
        y = np.exp(x)
        return np.pad(y[:-1], (1, 0)) + y

    x = np.random.default_rng(0).normal(size=50)
    assert_allclose(aj.function(f)(x), f(x), rtol=1e-14)


def test_stencils_of_two_axes_stay_two_nests() -> None:
    """Five shifts along two axes would cut the domain into 25 boxes: too much code for one nest, and several would exchange more memory."""
    x = np.random.default_rng(0).standard_normal((300, 200))

    def roughness(u):
        return np.sum((u[1:-1, 2:] + u[1:-1, :-2] + u[2:, 1:-1] + u[:-2, 1:-1] - 4 * u[1:-1, 1:-1]) ** 2)

    f = aj.function(aj.value_and_grad(roughness))
    value, gradient = f(x)
    np.testing.assert_allclose(float(value), roughness(x))
    r = 2 * (x[1:-1, 2:] + x[1:-1, :-2] + x[2:, 1:-1] + x[:-2, 1:-1] - 4 * x[1:-1, 1:-1])
    want = np.zeros_like(x)
    for rows, columns, factor in ((1, 2, 1), (1, 0, 1), (2, 1, 1), (0, 1, 1), (1, 1, -4)):
        want[rows : rows + 298, columns : columns + 198] += factor * r
    np.testing.assert_allclose(gradient.numpy(), want, rtol=1e-10, atol=1e-10)
    seen = f.inspect(x)
    assert seen.optimized.count(" = fuse") == 2
    assert seen.arena_bytes < 3 * x.nbytes
