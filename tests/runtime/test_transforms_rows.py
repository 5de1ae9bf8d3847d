"""vmap, jacobian and hessian of every row of the op table, against loops and finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.types import F64
from tests.ops.cases import CASES, Case
from tests.ops.cases_convolution import CASES as CONVOLUTION
from tests.ops.cases_structure import CASES as STRUCTURE
from tests.ops.harness import Array, assert_close, differences, eager, several

ROWS: list[Case] = [*CASES, *STRUCTURE, *CONVOLUTION]
SMOOTH = [row for row in ROWS if row.smooth and "f64" in row.dtypes and row.differentiable(row.draw(F64))]
LARGE = 40  # elements: beyond, a difference for each of them takes too long


def small(case: Case) -> list[Array]:
    return case.draw(F64, (2, 2)) if case.domains else case.draw(F64)


def arrays(result: Any) -> list[Array]:
    return [np.asarray(x) for x in several(result)]


def by_differences(f: Any, x: Array) -> list[Array]:
    """The derivative of each array of f(x), as arrays of shape result + x."""
    columns = []
    for i in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[i] = 1.0
        columns.append(differences(lambda t, e=e: f(x + t * e)))  # type: ignore[misc]
    return [np.stack(c, -1).reshape(c[0].shape + x.shape) for c in zip(*columns, strict=True)]


@pytest.mark.parametrize("case", [r for r in ROWS if "f64" in r.dtypes], ids=repr)
def test_vmap_against_a_loop(case: Case) -> None:
    draws = [case.draw(F64, seed=seed) for seed in range(3)]
    stacked = [np.stack(column) for column in zip(*draws, strict=True)]
    wanted = [np.stack(c) for c in zip(*(eager(case.call, d) for d in draws), strict=True)]
    assert_close(arrays(aj.vmap(case.call)(*stacked)), wanted, absolute=1)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("case", SMOOTH, ids=repr)
def test_jacobian_against_differences(case: Case, mode: Any) -> None:
    args = small(case)
    for i in case.differentiable(args):
        if args[i].size > LARGE or not args[i].size:
            continue

        def f(x: Any, i: int = i) -> list[Array]:
            return [a for a in eager(case.call, [*args[:i], x, *args[i + 1 :]]) if a.dtype.kind == "f"]

        def g(x: Any, i: int = i) -> Any:
            out = case.call(*map(aj.tensor, args[:i]), x, *map(aj.tensor, args[i + 1 :]))
            return tuple(y for y in several(out) if y.dtype.kind == "f")

        assert_close(arrays(aj.jacobian(g, mode=mode)(args[i])), by_differences(f, args[i]), f64=1e-8, absolute=1)


@pytest.mark.parametrize("case", [r for r in SMOOTH if r.second], ids=repr)
def test_hessian_against_differences_of_the_gradient(case: Case) -> None:
    args = small(case)
    i = case.differentiable(args)[0]
    if args[i].size > LARGE // 2 or not args[i].size:
        return

    def scalar(x: Any) -> Any:
        out = case.call(*map(aj.tensor, args[:i]), x, *map(aj.tensor, args[i + 1 :]))
        return sum(((y * y).sum() for y in several(out) if y.dtype.kind == "f"), aj.tensor(0.0))

    (wanted,) = by_differences(lambda x: [np.asarray(aj.grad(scalar)(x))], args[i])
    got = np.asarray(aj.hessian(scalar)(args[i]))
    scale = max(1.0, float(np.abs(wanted).max()))
    np.testing.assert_allclose(got / scale, wanted / scale, rtol=1e-6, atol=1e-7)
