"""The rows of the collectives, with one rank. Several ranks: tests/runtime/test_distributed.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from adjit.ir.ops import collective as ours
from adjit.ir.ops.base import Array, perform
from tests.ops.cases import ALL, FLOATS, Case

NUMBERS = (*FLOATS, "i32", "i64", "u8")


def matrix(rng: np.random.Generator) -> list[Array]:
    return [rng.normal(size=(4, 3))]


def integers(rng: np.random.Generator) -> list[Array]:
    return [rng.integers(0, 2, (1, 5)).astype(np.bool_)]


def with_rank(rng: np.random.Generator) -> list[Array]:
    return [rng.normal(size=(1, 4, 3))]


def overlapped(x: Any) -> Any:
    """The result of the pass `overlap_reductions` for an all-reduce."""
    return perform(ours.FinishAllReduce(3), perform(ours.StartAllReduce(3), x.T))


def deferred(x: Any) -> Any:
    """Its result for the all-reduce of a large array that a region reads."""
    begun = perform(ours.FinishAllReduce(2), perform(ours.DeferAllReduce(2), x * x))
    return perform(ours.SumDeferred(), begun) * 0.5


def product(x: Any) -> Any:
    """Its result for the all-reduce of a product."""
    return perform(ours.MatmulAllReduce(), x.T, x) * 0.5


CASES = [
    Case("all_reduce", lambda x: ours.all_reduce(x * x), lambda x: x * x, arrays=matrix, dtypes=NUMBERS),
    Case("all_reduce_columns", lambda x: ours.all_reduce(x.T), lambda x: x.T, arrays=matrix),
    Case("all_reduce_complex", ours.all_reduce, lambda x: x, arrays=matrix, dtypes=("c128", "c64")),
    Case("overlapped_all_reduce", overlapped, lambda x: x.T, arrays=matrix, dtypes=NUMBERS),
    Case("deferred_all_reduce", deferred, lambda x: x * x * x.dtype.type(0.5), arrays=matrix),
    Case("matmul_all_reduce", product, lambda x: x.T @ x * x.dtype.type(0.5), arrays=matrix),
    Case("broadcast_from", lambda x: ours.broadcast_from(x, 0), lambda x: x, arrays=matrix, dtypes=NUMBERS),
    Case("broadcast_bools", lambda x: ours.broadcast_from(x, 0), lambda x: x, arrays=integers, dtypes=("bool",)),
    Case("reduce_to", lambda x: ours.reduce_to(x.T, 0), lambda x: x.T, arrays=matrix, dtypes=NUMBERS),
    Case("all_gather", lambda x: ours.all_gather(x.T), lambda x: x.T[None], arrays=matrix, dtypes=NUMBERS),
    Case("reduce_scatter", ours.reduce_scatter, lambda x: x[0], arrays=with_rank, dtypes=NUMBERS),
    Case("all_to_all", ours.all_to_all, lambda x: x, arrays=with_rank, dtypes=ALL),
]
