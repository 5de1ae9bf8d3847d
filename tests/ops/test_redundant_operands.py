"""Operands that are redundant, or without derivatives: factors in addition to their matrix, bits, indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir import ops
from adjit.ir.operand import Concrete
from adjit.ir.ops.base import apply
from adjit.ir.ops.factor import Slogdet
from adjit.ir.ops.index import ScatterAdd, ScatterSet
from adjit.ir.ops.lu import Lu
from adjit.ir.ops.lu_parts import LuParts, RowExchanges
from adjit.ir.ops.random import Uniform
from adjit.ir.ops.solve import SolveWith

A = np.array([[1.0, 4.0], [3.0, -2.0]])
B = np.array([[1.0], [2.0]])
FACTORS = apply(Lu(), Concrete(A)).data
EXCHANGES = apply(RowExchanges(), Concrete(FACTORS)).data
BITS, INDEX = np.array([5, 2**63], "u8"), np.array([1, 0])

# the op, its operands, and which of them have no derivative
CASES: list[tuple[Any, tuple[Any, ...], tuple[int, ...]]] = [
    (SolveWith(), (A, FACTORS, B), (1,)),
    (SolveWith(transposed=True), (A, FACTORS, B), (1,)),
    (Slogdet(), (A, FACTORS), (1,)),
    (LuParts(), (A, FACTORS, EXCHANGES), (1, 2)),
    (Uniform(), (BITS, A[0], A[1]), (0,)),
    (ScatterSet(), (A[0], B[:, 0], INDEX), (2,)),
    (ScatterAdd(), (A[0], B[:, 0], INDEX), (2,)),
]


@pytest.mark.parametrize(("op", "arrays", "without"), CASES, ids=lambda x: x.name if hasattr(x, "name") else "")
def test_operands_without_derivatives(op: Any, arrays: tuple[Any, ...], without: tuple[int, ...]) -> None:
    """With respect to one of them, neither mode has a derivative; with respect to another, both have the same."""
    args = tuple(map(Concrete, arrays))
    y = apply(op, *args)
    d = Concrete(np.linspace(0.5, 1.5, y.type.size).reshape(y.type.shape))
    for i, x in enumerate(arrays):
        seed = Concrete(np.linspace(-1.0, 1.0, x.size).reshape(x.shape))
        if i in without:
            assert op.jvp(i, y, args, seed) is None
            assert op.vjp(i, y, args, d) is None
        else:
            forward, back = op.jvp(i, y, args, seed), op.vjp(i, y, args, d)
            np.testing.assert_allclose(np.sum(forward.data * d.data), np.sum(back.data * seed.data), rtol=1e-12)


def test_a_tape_returns_none_for_factors() -> None:
    factors = aj.tensor(FACTORS)
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(factors)
        x = apply(SolveWith(), aj.tensor(A), factors, aj.tensor(B))
        y = ops.sum(x)
    assert tape.gradient(y, factors) is None
