"""`adjit.distributed`: programs of several processes, the ranks of MPI.

All ranks run the same program and call the same collectives in the same order. In a compiled function a collective is one call of the MPI
library by native code. A program that is not started by `mpiexec` has one rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adjit.ir.operand import Operand
from adjit.ir.ops import collective
from adjit.ir.tracebacks import boundary
from adjit.ir.world import world
from adjit.tracer.convert import to_operand

__all__ = ["all_gather", "all_reduce", "all_to_all", "barrier", "broadcast", "rank", "reduce_scatter", "size"]


def __dir__() -> list[str]:
    return __all__


def rank() -> int:
    """The number of this process among all ranks, from 0."""
    return world().rank


def size() -> int:
    """The number of ranks; 1 for a program that `mpiexec` did not start.

    >>> size()
    1
    """
    return world().size


@boundary
def all_reduce(x: Any, op: str = "sum") -> Operand:
    """The sum (or, with op="mean", the mean) of `x` over all ranks, on every rank.

    >>> all_reduce([1.0, 2.0])
    Tensor([1., 2.], f64[2])
    """
    if op not in ("sum", "mean"):
        raise ValueError(f'all_reduce: op is "sum" or "mean", not {op!r}')
    total = collective.all_reduce(to_operand(x))
    return total / size() if op == "mean" else total


@boundary
def broadcast(x: Any, root: int = 0) -> Operand:
    """The `x` of the rank `root`, on every rank; `x` has the same shape and dtype on all."""
    return collective.broadcast_from(to_operand(x), root)


@boundary
def all_gather(x: Any) -> Operand:
    """The `x` of all ranks, stacked along a new first axis, on every rank."""
    return collective.all_gather(to_operand(x))


@boundary
def reduce_scatter(x: Any) -> Operand:
    """The sum over all ranks of `x[r]`, where r is this rank: `x` has an element for each rank along its first axis."""
    return collective.reduce_scatter(to_operand(x))


@boundary
def all_to_all(x: Any) -> Operand:
    """Send `x[s]` to rank s, for each s; element r of the result is what rank r sent."""
    return collective.all_to_all(to_operand(x))


@boundary
def barrier() -> None:
    """Wait until all ranks have come here."""
    collective.all_reduce(to_operand(np.zeros(1, np.int32)))
