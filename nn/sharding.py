"""The state of an optimizer divided among ranks: each of R ranks stores one R-th of it, and updates only that part of the variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.ir.ops import collective
from adjit.ir.types import TensorType
from adjit.ir.world import world
from adjit.runtime.data_parallel import number
from adjit.runtime.variable import Variable
from adjit.tracer.control import row_at
from adjit.tracer.convert import to_operand

if TYPE_CHECKING:
    from .optimizers import Optimizer


class Sharding:
    """Slices of arrays: their elements in row-major order, padded with zeros, are cut into equal parts, one for each rank."""

    def __init__(self) -> None:
        self.rank, self.size = world().rank, world().size

    def length(self, type: TensorType) -> int:
        return -(-type.size // self.size)

    def own(self, x: Operand) -> Operand:
        """This rank's slice of an array that all ranks have."""
        each = self.length(x.type)
        missing = each * self.size - x.type.size
        flat = x.reshape(x.type.size)
        if missing:
            flat = ops.concatenate([flat, ops.full((missing,), 0, x.type.dtype)], 0)
        return row_at(flat.reshape(self.size, each), number(self.rank).read_operand())

    def whole(self, part: Operand, type: TensorType) -> Operand:
        """Return the whole array, of which each rank has a slice."""
        return collective.all_gather(part).reshape(self.length(type) * self.size)[: type.size].reshape(*type.shape)

    def norms(self, parts: Sequence[Operand]) -> list[Operand]:
        """Return the Euclidean norms of whole arrays, given this rank's slices."""
        return [ops.sqrt(collective.all_reduce(ops.sum(part * part))) for part in parts]

    def norm(self, parts: Sequence[Operand]) -> Operand:
        """Return the Euclidean norm of all arrays together, given this rank's slices."""
        squares = [ops.sum(part * part) for part in parts]
        return ops.sqrt(collective.all_reduce(sum(squares[1:], squares[0])))


@contextmanager
def whole_state(optimizer: Optimizer) -> Iterator[None]:
    """Within this context, all ranks have the whole state of an optimizer, for files and copies. All ranks must enter it together."""
    sharding, slices = optimizer.sharding, optimizer.state
    if sharding is None or not optimizer.built:
        yield
        return
    types = [store.type for store in optimizer.targets]
    optimizer.state = {
        slot: [
            Variable(np.asarray(sharding.whole(part.value(), type)), trainable=False, name=part.name)
            for part, type in zip(parts, types, strict=True)
        ]
        for slot, parts in slices.items()
    }
    try:
        yield
        for slot, parts in slices.items():
            for part, full in zip(parts, optimizer.state[slot], strict=True):
                part.assign(sharding.own(to_operand(full.value())))
    finally:
        optimizer.state = slices
