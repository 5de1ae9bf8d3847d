"""Exchanges of a distributed trainer with other ranks, besides the gradients that the compiled step averages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from adjit.ir.errors import DistributedError
from adjit.ir.ops.base import Array
from adjit.ir.world import world
from adjit.runtime import distributed
from adjit.runtime.data_parallel import averaged, split_for
from adjit.runtime.variable import Variable

from .data import Parts
from .optimizers import Optimizer
from .sharding import Sharding, whole_state
from .weights import named


class Ranks:
    """The ranks that train one model together. `shards` is the number of parts of a batch, as in `distributed.data_parallel`."""

    def __init__(self, shards: int | None) -> None:
        self.split = split_for(shards)
        self.rank, self.size = world().rank, world().size

    @property
    def parts(self) -> Parts:
        """This rank's part of batches."""
        return Parts(self.rank, self.size, self.split.total)

    def averaged(self, fn: Callable[..., Any], sums: Sequence[Variable], args: Sequence[Any]) -> Any:
        return averaged(fn, self.split, sums, args)

    def shard(self, optimizer: Optimizer) -> None:
        """Let each rank keep a slice of the state of an optimizer."""
        if optimizer.built:
            raise ValueError(f"{optimizer.name}: its state exists already, and is whole on every rank; make a new optimizer")
        optimizer.sharding = Sharding()

    def whole_state(self, optimizer: Optimizer) -> AbstractContextManager[None]:
        return whole_state(optimizer)

    def agreed(self, value: Any) -> Any:
        """The value of rank 0; if it is an exception, raise it."""
        value = self.gathered(value)[0]
        if isinstance(value, Exception):
            raise value
        return value

    def gathered(self, value: Any) -> list[Any]:
        """The values of all ranks."""
        return [value] if self.size == 1 else list(world().comm.allgather(value))

    def synchronize(self, target: Any) -> None:
        """Give all variables the values that they have on rank 0."""
        variables = dict(named(target))
        mine = [f"{name}: {variable.type}" for name, variable in variables.items()]
        for rank, theirs in enumerate(self.gathered(mine)):
            if theirs != mine:
                raise DistributedError(f"ranks {self.rank} and {rank} have different models: {_difference(mine, theirs)}")
        if self.size > 1:
            for variable in variables.values():
                variable.assign(distributed.broadcast(variable.value()))

    def total(self, rows: Iterable[tuple[int, list[Array]]]) -> list[Array] | None:
        """The sums of numbered rows of arrays over all ranks, added in the order of their numbers; None without rows."""
        everything = sorted((row for part in self.gathered(list(rows)) for row in part), key=lambda row: row[0])
        total: list[Array] | None = None
        for _, arrays in everything:
            total = arrays if total is None else [a + b for a, b in zip(total, arrays, strict=True)]
        return total


def _difference(mine: Sequence[str], theirs: Sequence[str]) -> str:
    for a, b in zip(mine, theirs, strict=False):
        if a != b:
            return f"{a}, and {b}"
    return f"{len(mine)} variables, and {len(theirs)}"
