"""Gathers and scatters of many rows, on several threads: the same bits as on one, and the same errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import adjit as aj
from adjit.ir.errors import OutOfBoundsError

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(700, 70)).astype("f4")
IDS = {
    "rows": RNG.integers(-700, 700, 4000),
    "unsigned": RNG.integers(0, 700, 4000).astype("u2"),
    "a matrix of rows": RNG.integers(0, 700, (8, 500)),
    "one row many times": np.full(4000, 699),
}


def added(table: Any, ids: Any, updates: Any) -> Any:
    out = table.copy()
    np.add.at(out, ids, updates)
    return out


@pytest.mark.parametrize("name", IDS)
def test_many_rows(name: str) -> None:
    ids = IDS[name]
    updates = RNG.normal(size=(*ids.shape, 70)).astype("f4")
    gather, scatter = lambda x, i: x[i], lambda x, i, u: x.at[i].add(u)
    outs = []
    for threads in (1, 2, 3):
        f, g = aj.function(gather, threads=threads), aj.function(scatter, threads=threads)
        assert ("adjit_parallel" in f.inspect(TABLE, ids).llvm) == (threads > 1)
        assert ("adjit_parallel" in g.inspect(TABLE, ids, updates).llvm) == (threads > 1)
        assert_array_equal(f(TABLE, ids), TABLE[ids])
        outs.append(np.asarray(g(TABLE, ids, updates)))
        assert_array_equal(outs[-1], outs[0])
    assert_array_equal(outs[0], added(TABLE, ids, updates))


def test_the_first_index_out_of_bounds_is_named() -> None:
    ids = IDS["rows"].copy()
    ids[[3000, 3500]] = 700, -701
    updates = np.zeros((4000, 70), "f4")
    for f in (lambda x: x[ids], lambda x: x.at[ids].add(updates)):
        with pytest.raises(OutOfBoundsError, match="index 700 is out of bounds for axis 0"):
            aj.function(f, threads=2)(TABLE)


def test_pairs_of_indices() -> None:
    i, j = RNG.integers(0, 40, (2, 300_000))
    x, updates = RNG.normal(size=(40, 40)), RNG.normal(size=300_000)
    f = aj.function(lambda x, i, j, u: (x[i, j], x.at[i, j].add(u)))
    picked, total = f(x, i, j, updates)
    assert_array_equal(picked, x[i, j])
    assert_array_equal(total, added(x, (i, j), updates))
