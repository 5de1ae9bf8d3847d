"""Code for all sizes at once, against the interpreter at many sizes: loop nests, reductions, rows, and what moves data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adjit.codegen.llvm.target import current
from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.ir.ops.base import apply
from adjit.ir.ops.index import Gather, ScatterAdd
from adjit.ir.types import F32

from .symbolic import F64, B, T, check


def spread(x: Operand, shape: tuple[int, ...]) -> Operand:
    return ops.broadcast_to(ops.reshape(x, (*x.type.shape, 1)), shape)


def softmax(x: Operand) -> Operand:
    e = ops.exp(x - spread(ops.max(x, -1), x.type.shape))
    return e / spread(ops.sum(e, -1), x.type.shape)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "map": (lambda x, y: ops.tanh(x * y + 1.0), ((B, 784), (B, 784))),
    "map_of_odd_rows": (lambda x, y: ops.tanh(x * y + 1.0), ((B, 7), (B, 7))),
    "vector": (lambda x: (x * 2.0, ops.sum(x)), ((B,),)),
    "broadcast": (lambda x, y: ops.exp(x) * ops.broadcast_to(y, x.type.shape), ((B, 10), (10,))),
    "broadcast_rows": (lambda x, y: ops.exp(x) * spread(y, x.type.shape), ((B, T), (B,))),
    "sums": (lambda x, y: (ops.sum(x * y, 0), ops.sum(x, 1), ops.sum(x * 2.0)), ((B, 30), (B, 30))),
    "sums_of_both": (lambda x: (ops.sum(x, 0), ops.sum(x, 1), ops.sum(x * 2.0)), ((B, T),)),
    "extrema": (lambda x: (ops.max(x, 0), ops.min(x, 1)), ((B, T, 3),)),
    "softmax": (softmax, ((B, 20),)),
    "softmax_of_any_length": (softmax, ((B, T),)),
    "softmax_of_batches": (softmax, ((B, T, T),)),
    "transpose": (lambda x: ops.transpose(x, (1, 0)) * 2.0, ((B, 100),)),
    "transpose_both": (lambda x: ops.transpose(x, (1, 0)) * 2.0, ((B, T),)),
    "reshape": (lambda x: ops.exp(ops.reshape(x, (x.type.shape[0] * x.type.shape[1], 4))), ((B, T, 4),)),
    "flip": (lambda x: ops.flip(x, 0) * 2.0, ((B, 10),)),
    "where": (lambda x, y: ops.where(ops.greater(x, y), x, y * 2.0), ((B, 10), (B, 10))),
    "iota": (lambda x: x * ops.cast(ops.iota(x.type.shape[0]), F32), ((B,),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_program_runs_at_all_sizes(name: str) -> None:
    call, shapes = PROGRAMS[name]
    check(call, *shapes)


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_vector_width(vector_bytes: int, threads: int) -> None:
    def call(x: Operand, y: Operand) -> tuple[Operand, ...]:
        return ops.tanh(x * y), ops.sum(x, 0), ops.sum(y, 1), ops.max(x), softmax(x)

    target = current()._replace(vector_bytes=vector_bytes, threads=threads)
    check(call, (B, T), (B, T), dtype=F64, target=target, sizes=(2, 9, 600), lengths=(3, 64, 333))


def test_indices() -> None:
    check(lambda x, i: apply(Gather(), x, i), (10, 4), (B,), indices=(1,), high=10)
    check(lambda x, u, i: apply(ScatterAdd(), x, u, i), (10, 4), (B, 4), (B,), indices=(2,), high=10)
