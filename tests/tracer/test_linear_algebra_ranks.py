"""Chains of products in the cheapest order, and least squares with linearly dependent columns."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.ops.linalg import Matmul
from adjit.tracer.surface.products import chain_cuts
from tests.tracer.running import trace

RNG = np.random.default_rng(0)


def cheapest(sizes: tuple[int, ...]) -> int:
    """By trying all orders."""
    if len(sizes) < 3:
        return 0
    return min(sizes[i - 1] * sizes[i] * sizes[i + 1] + cheapest(sizes[:i] + sizes[i + 1 :]) for i in range(1, len(sizes) - 1))


@pytest.mark.parametrize("sizes", [(3, 40, 2, 7), (2, 3, 4, 5, 6), (30, 1, 40, 10, 25), (5, 5, 5, 5), (1, 9, 2, 8, 3, 7)], ids=str)
def test_chains_take_the_fewest_multiplications(sizes: tuple[int, ...]) -> None:
    arrays = [RNG.normal(size=pair) for pair in itertools.pairwise(sizes)]
    stmts = trace(lambda *xs: np.linalg.multi_dot(xs), *arrays).func.block.stmts
    cost = sum(s.result.type.size * s.args[0].type.shape[-1] for s in stmts if isinstance(s.op, Matmul))
    assert cost == cheapest(sizes)
    wanted = np.linalg.multi_dot(arrays)
    np.testing.assert_allclose(np.linalg.multi_dot([aj.tensor(a) for a in arrays]), wanted, rtol=1e-10)
    np.testing.assert_allclose(aj.function(lambda *xs: np.linalg.multi_dot(xs))(*arrays), wanted, rtol=1e-10)


def test_chains_may_end_in_vectors() -> None:
    v, a, b, w = RNG.normal(size=4), RNG.normal(size=(4, 5)), RNG.normal(size=(5, 3)), RNG.normal(size=3)
    for chain in ([v, a, b], [a, b, w], [v, a, b, w], [v, v], [v, a @ a.T, v]):
        got = np.linalg.multi_dot([aj.tensor(x) for x in chain])
        np.testing.assert_allclose(got, np.linalg.multi_dot(chain), rtol=1e-12)
        assert np.shape(got) == np.shape(np.linalg.multi_dot(chain))
    with pytest.raises(ValueError, match="at least two"):
        aj.linalg.multi_dot([a])


def test_cuts_of_one_matrix() -> None:
    assert chain_cuts([3, 4]) == {}


DEPENDENT = [
    np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]),
    np.outer(np.arange(1.0, 7.0), np.array([1.0, -2.0, 0.5])),
    np.zeros((3, 2)),
]


@pytest.mark.parametrize("a", DEPENDENT, ids=lambda a: str(a.shape))
def test_dependent_columns_raise(a: np.ndarray[Any, Any]) -> None:
    slope = aj.grad(lambda a: aj.sum(aj.linalg.pinv(a.T)))
    solved = aj.function(lambda a: aj.linalg.lstsq(a, a[:, 0])[0])
    for call in (slope, aj.function(aj.linalg.pinv), solved, aj.grad(lambda a: aj.sum(aj.linalg.lstsq(a, a[:, 0])[0]))):
        with pytest.raises(ValueError, match="depend on each other"):
            call(a)
    for given in (a, a.T):  # known, and not differentiated
        b = np.arange(1.0, len(given) + 1.0)
        for tolerance in (None, 1e-3):
            found, expected = np.linalg.lstsq(aj.tensor(given), b, tolerance), np.linalg.lstsq(given, b, tolerance)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(np.asarray(one), other, atol=1e-15)
    np.testing.assert_allclose(np.asarray(aj.linalg.pinv(a)), np.linalg.pinv(a), atol=1e-15)  # known, and not differentiated


def test_independent_columns_of_very_different_sizes_pass() -> None:
    a = RNG.normal(size=(6, 3)) * np.array([1e-6, 1.0, 1e6])
    for call in (aj.linalg.pinv, aj.function(aj.linalg.pinv)):
        np.testing.assert_allclose(call(a), np.linalg.pinv(a), rtol=1e-8)


def test_the_second_derivative_of_a_power_of_zero() -> None:
    """Nothing of the logarithm of 0 is seen."""
    for base, y in itertools.product((0.0, 2.0), (0.5, 1.0, 2.0)):
        second = aj.grad(aj.grad(lambda y: np.power(base, y)))  # noqa: B023 - called at once
        wanted = np.power(base, y) * np.log(base) ** 2 if base else 0.0
        for f in (second, aj.function(second)):
            np.testing.assert_allclose(float(f(y)), wanted, rtol=1e-12)
