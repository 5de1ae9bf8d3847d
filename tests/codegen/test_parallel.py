"""Nests on several threads: a long computation over few elements, around the sizes of rows that one axis is cut into."""

from __future__ import annotations

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.parallel import ROW


@pytest.mark.parametrize("size", [ROW - 1, ROW, ROW + 1, 2 * ROW - 1, 2 * ROW, 2 * ROW + 5, 40 * ROW + 3])
def test_one_axis_with_many_ops(size: int) -> None:
    def f(x):
        for _ in range(6):
            x = np.tanh(x * 1.25) + np.sin(x)
        return x, x.sum()

    x = np.random.default_rng(0).normal(size=size)
    values, total = aj.function(f)(x)
    wanted, its_total = f(x)
    np.testing.assert_allclose(values, wanted, rtol=1e-12)
    np.testing.assert_allclose(total, its_total, rtol=1e-9)
