"""`adjit.distributed`: programs of several processes, the ranks of MPI.

All ranks run the same program and call the same collectives in the same order. In a compiled function a collective is one call of the MPI
library by native code. A program that is not started by `mpiexec` has one rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError, UnsupportedError
from adjit.ir.operand import Operand
from adjit.ir.ops import collective
from adjit.ir.tracebacks import boundary
from adjit.ir.world import world
from adjit.tracer.convert import to_operand
from adjit.tracer.pytree import tree_map
from adjit.tracer.trace import current_trace

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
    """Wait until all ranks have come here."""
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

    With `shards`, a power of two that the number of ranks divides, the whole batch is cut into that many parts: `fn` is compiled for one of
    them, runs once for each, and the results are added in a fixed order. The means then have the same bits on any number of ranks, if
    rank r has the r-th part of the batch (`part`). Such a function runs outside of compiled functions.
    """
    if shards is None:

        @wraps(fn)
        def mean(*args: Any) -> Any:
            return tree_map(lambda x: all_reduce(x, "mean"), fn(*args))

        return mean
    if shards < 1 or shards & (shards - 1) or shards % size():
        raise ValueError(f"data_parallel: shards={shards} is not a power of two that the number of ranks, {size()}, divides")
    return _sharded(fn, shards)


def _sharded(fn: Callable[..., Any], shards: int) -> Callable[..., Any]:
    own = shards // size()
    compiled = Function(fn, name=getattr(fn, "__name__", "shard"))
    # Only additions, and a product with a power of two: how they are fused does not change a bit.
    combined = Function(lambda parts: tree_map(lambda *xs: _total([to_operand(x) for x in xs]) / shards, *parts), name="mean_of_shards")

    @wraps(fn)
    def mean(*args: Any) -> Any:
        if current_trace() is not None:
            raise UnsupportedError("data_parallel: with shards=, call it outside of compiled functions, whose code differs by context")
        return combined([compiled(*(part(a, own, k) for a in args)) for k in range(own)])

    return mean


def _total(parts: Sequence[Operand]) -> Operand:
    """The sum of the parts of all ranks, by a tree that depends on the number of all parts only: each rank adds one slice for all."""
    here, ranks = _tree(parts), size()
    n = here.type.size
    each = -(-n // ranks)
    flat = ops.concatenate([here.reshape(n), ops.full((each * ranks - n,), 0, here.type.dtype)], 0)
    rows = collective.all_to_all(flat.reshape(ranks, each))
    return collective.all_gather(_tree([rows[r] for r in range(ranks)])).reshape(each * ranks)[:n].reshape(here.type.shape)


def _tree(parts: Sequence[Operand]) -> Operand:
    while len(parts) > 1:
        parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]
