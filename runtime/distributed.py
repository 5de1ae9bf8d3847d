"""`adjit.distributed`: programs of several processes, the ranks of MPI.

All ranks run the same program and call the same collectives in the same order. In a compiled function a collective is one call of the MPI
library by native code. A program that is not started by `mpiexec` has one rank.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from adjit.ir.errors import ShapeError
from adjit.ir.operand import Operand
from adjit.ir.ops import collective
from adjit.ir.tracebacks import boundary
from adjit.ir.world import world
from adjit.tracer.convert import to_operand
from adjit.tracer.pytree import tree_map
from adjit.tracer.trace import current_trace

from .data_parallel import averaged, split_for
from .function import Function

__all__ = ["all_gather", "all_reduce", "all_to_all", "barrier", "broadcast", "data_parallel", "part", "rank", "reduce_scatter", "size"]


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
    """Wait until all ranks have reached this call."""
    collective.all_reduce(to_operand(np.zeros(1, np.int32)))


# ---- data-parallel training


def part(x: Any, of: int | None = None, number: int | None = None) -> Any:
    """Return this rank's part of a batch, or part `number` of `of`: arrays, or structures of them, cut equally along the first axis.

    >>> part(np.arange(4.0), of=2, number=1)
    array([2., 3.])
    """
    count, k = (size() if of is None else of), (rank() if number is None else number)

    def cut(a: Any) -> Any:
        n = len(a)
        if n % count:
            raise ShapeError(f"a batch of {n} examples cannot be cut into {count} equal parts")
        return a[k * n // count : (k + 1) * n // count]

    return tree_map(cut, x)


def data_parallel(fn: Callable[..., Any], shards: int | None = None) -> Callable[..., Any]:
    """Return a function of this rank's part of a batch: the mean over all ranks of what `fn` returns, usually a loss and gradients.

    Variables that `fn` assigns become the mean of what the ranks assign; those that are not floats must be assigned the same by all.

    With `shards`, a power of two and a multiple of the number of ranks, the whole batch is cut into that many parts: a compiled loop runs
    `fn` for each part of this rank, and the results of all are added in a fixed order. The means then have the same bits on any number of
    ranks, if rank r has the r-th part of the batch (`part`). The memory for the results of all parts of a rank is needed at the same time.

    >>> mean = data_parallel(lambda x: np.mean(x**2), shards=2)
    >>> mean(part(np.arange(4.0)))
    Tensor(3.5, f64[])
    """
    split = split_for(shards)

    @wraps(fn)
    def mean(*args: Any) -> Any:
        return averaged(fn, split, (), args)

    if not split.ordered:
        return mean
    compiled = Function(mean, name=getattr(fn, "__name__", "shard"), dynamic=False)  # the same bits on any number of ranks

    @wraps(fn)
    def compiled_mean(*args: Any) -> Any:
        return compiled(*args) if current_trace() is None else mean(*args)

    return compiled_mean
