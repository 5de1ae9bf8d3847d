"""Collectives: ops in which all ranks of an MPI program take part.

They are ordered effects with a result. A rank that removed, repeated or reordered one would leave the others waiting, so no pass may, and
a derivative that would have to compute one again is an error. All are linear; the objective that reverse mode differentiates is the sum
over all ranks of each rank's own, so the derivative of a collective is its transpose, again a collective.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..cost import Cost
from ..effects import cannot_repeat
from ..errors import AdjitError, DistributedError, DTypeError, ShapeError, UnsupportedError
from ..sizes import is_symbolic
from ..types import BOOL, F32, F64, TensorType
from ..world import World, world
from .base import Array, Loops, Op, Window, Writing, perform, with_attributes
from .complex import from_parts, imag, real
from .effects import is_repeating
from .linalg import Matmul
from .shape import transpose

__all__ = ["all_gather", "all_reduce", "all_to_all", "broadcast_from", "reduce_scatter", "reduce_to"]

if TYPE_CHECKING:
    from ..operand import Operand

PART = 1 << 20  # bytes of a deferred sum that are made at once, which stay in the cache while they are used
LARGEST = 2**31 - 1  # elements: MPI counts them in an int


class Collective(Op, abstract=True):
    """An op that every rank executes together with all others."""

    effect = True
    is_visible = True
    is_collective = True
    can_fail = True
    error = DistributedError
    sums: ClassVar[bool] = False

    def transposed(self) -> Op:
        raise AdjitError(f"{self.name}: no transpose")

    def exchange(self, ranks: World, x: Array, out: Array) -> None:
        """Call MPI through mpi4py; `out` holds zeros."""
        raise AdjitError(f"{self.name}: no eager evaluation")

    def result(self, x: TensorType) -> TensorType:
        return x

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if x.dtype.kind == "c" or (self.sums and x.dtype == BOOL):
            raise DTypeError(f"{self.name}: does not take {x}" + ("; cast it to integers to count" if x.dtype == BOOL else ""))
        if x.size > LARGEST:
            raise ShapeError(f"{self.name}: {x} has more elements than MPI can count ({LARGEST}); split it")
        return self.result(x)

    def evaluate(self, *arrays: Array) -> Array:
        if is_repeating():
            raise cannot_repeat(self)
        x = np.ascontiguousarray(arrays[0]).reshape(arrays[0].shape)
        type = self.infer(TensorType(x.dtype, x.shape))
        ranks = world()
        if ranks.mpi is None:
            return x.reshape(type.shape).copy()
        out = np.zeros(type.shape, type.dtype)
        try:
            self.exchange(ranks, x, out)
        except ranks.mpi.Exception as error:
            raise DistributedError(f"{self.name}: {error}") from error
        return out

    def python(self, write: Writing, *args: Operand) -> Any:
        raise UnsupportedError(f"{self.name}: needs MPI, and cannot be written as Python that needs NumPy only")

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return perform(self, d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return perform(self.transposed(), d)

    def widened(self, size: int) -> Op:
        return self

    def guarded(
        self, size: int, active: Operand, args: tuple[Operand, ...], batched: Sequence[bool]
    ) -> tuple[tuple[Operand, ...], Sequence[bool]]:
        raise UnsupportedError(f"{self.name}: in a branch or loop that some examples of a vmap take and others do not; move it out")

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, float(max(types[0].size, self.infer(*types).size)))


class InPlace(Collective, abstract=True):
    """A collective whose result replaces its operand in memory."""

    in_place = 0

    def lower(self, k: Loops, out: Window, x: Window) -> None:
        k.copy(out, x)
        k.collective(self.name, out, out, out.type.size, getattr(self, "root", 0))

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, float(types[0].size))


class AllReduce(InPlace):
    """The sum over all ranks, on every rank."""

    sums = True

    def transposed(self) -> Op:
        return self

    def exchange(self, ranks: World, x: Array, out: Array) -> None:
        ranks.comm.Allreduce(x, out)

    def lower(self, k: Loops, out: Window, x: Window) -> None:
        k.collective(self.name, out, in_rows(k, out, x), out.type.size, 0)


@with_attributes
class StartAllReduce(InPlace):
    """Begins an all-reduce: the result may not be read before `finish_all_reduce`, its only use. Passes make it from `all_reduce`.

    `slot` is where the request is kept in between.
    """

    slot: int = 0
    sums: ClassVar[bool] = True

    def transposed(self) -> Op:
        return AllReduce()

    def exchange(self, ranks: World, x: Array, out: Array) -> None:
        ranks.comm.Allreduce(x, out)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return perform(AllReduce(), d)

    def lower(self, k: Loops, out: Window, x: Window) -> None:
        if out.is_row_major:
            k.collective(self.name, out, in_rows(k, out, x), out.type.size, self.slot)
        else:  # through a copy that is gone when the kernel ends
            k.collective("all_reduce", out, in_rows(k, out, x), out.type.size, 0)


class DeferAllReduce(StartAllReduce):
    """Begins an all-reduce that `sum_deferred` completes, a part at a time.

    If ranks sum through shared memory, nothing is added before `sum_deferred`; a sum by MPI is complete at `finish_all_reduce`. That
    statement is between the two in either case, so that nothing fails in the region around `sum_deferred`, which may write to variables.
    """

    def lower(self, k: Loops, out: Window, x: Window) -> None:
        if not out.is_row_major:
            raise AdjitError(f"{self.name}: its result, which only finish_all_reduce reads, has memory of its own")
        k.collective(self.name, out, in_rows(k, out, x), out.type.size, self.slot)


@with_attributes
class SumDeferred(Collective):
    """Completes a deferred all-reduce: the host of a region that reads the sums, which are only stored if another statement needs them.

    The region is computed for each part of the array while its sums are in the cache. `slot` is that of `defer_all_reduce`.
    """

    slot: int = 0
    can_fail = False
    joins_region = True

    def evaluate(self, *arrays: Array) -> Array:
        return arrays[0].copy()  # when evaluated, `defer_all_reduce` has computed the sums

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return d

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return d

    def stores_once(self, *types: TensorType) -> bool:
        (x,) = types
        return x.rank > 0 and not any(map(is_symbolic, x.shape)) and 0 < x.nbytes // x.shape[0] <= PART

    def lower(self, k: Loops, out: Window, x: Window) -> None:
        k.sum_deferred(out, x, max(1, PART * x.type.shape[0] // x.type.nbytes))


@with_attributes
class MatmulAllReduce(Collective):
    """The sum over all ranks of `a @ b`, for ranks of one machine: the host of a region, like `sum_deferred`.

    Blocks of the product are exchanged as they are computed. Neither the product nor the sums are stored. `number` is the position of the
    all-reduce among the collectives of the program: passes move it, and all ranks must take part in the same one.
    """

    number: int = 0
    can_fail = False
    joins_region = True

    def infer(self, *types: TensorType) -> TensorType:
        return AllReduce().infer(Matmul().infer(*types))

    def evaluate(self, *arrays: Array) -> Array:
        return AllReduce().evaluate(Matmul().evaluate(*arrays))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return perform(AllReduce(), Matmul().jvp(i, y, args, d))

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return Matmul().vjp(i, y, args, perform(AllReduce(), d))

    def batch(self, size: int, args: tuple[Operand, ...], batched: Sequence[bool]) -> Any:
        return perform(AllReduce(), Matmul().batch(size, args, batched))

    def stores_once(self, *types: TensorType) -> bool:
        a, b = types
        is_plain = a.rank == 2 and a.dtype in (F32, F64) and not any(map(is_symbolic, (*a.shape, *b.shape)))
        return is_plain and Matmul().stores_once(a, b)

    def cost(self, *types: TensorType) -> Cost:
        return Matmul().cost(*types)

    def lower(self, k: Loops, out: Window, a: Window, b: Window) -> None:
        k.summed_product(out, a, b)


@with_attributes
class FinishAllReduce(InPlace):
    """Waits for the all-reduce that was started in a slot."""

    slot: int = 0

    def evaluate(self, *arrays: Array) -> Array:
        return arrays[0].copy()

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return d

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return d

    def lower(self, k: Loops, out: Window, x: Window) -> None:
        if x.is_row_major:
            k.collective(self.name, x, x, x.type.size, self.slot)
        k.copy(out, x)


@with_attributes
class BroadcastFrom(InPlace):
    """The operand of the rank `root`, on every rank."""

    root: int = 0

    def transposed(self) -> Op:
        return ReduceTo(self.root)

    def exchange(self, ranks: World, x: Array, out: Array) -> None:
        out[...] = x
        ranks.comm.Bcast(out, self.root)


class Moving(Collective, abstract=True):
    """A collective whose result has memory of its own."""

    def count(self, x: TensorType, y: TensorType) -> int:
        """The number of elements that is passed to MPI."""
        return min(x.size, y.size)

    def lower(self, k: Loops, out: Window, x: Window) -> None:
        k.collective(self.name, out, x, self.count(x.type, out.type), getattr(self, "root", 0))

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, float(types[0].size + self.infer(*types).size))


@with_attributes
class ReduceTo(Moving):
    """The sum over all ranks on the rank `root`, and zeros on the others."""

    root: int = 0
    sums: ClassVar[bool] = True

    def transposed(self) -> Op:
        return BroadcastFrom(self.root)

    def exchange(self, ranks: World, x: Array, out: Array) -> None:
        ranks.comm.Reduce(x, out if ranks.rank == self.root else None, root=self.root)

    def lower(self, k: Loops, out: Window, x: Window) -> None:
        k.fill(out, 0)  # MPI writes to it on one rank only
        super().lower(k, out, x)


@with_attributes
class Ranked(Moving, abstract=True):
    """A collective one of whose operands or results has a leading axis with an element for each of the `ranks`."""

    ranks: int

    def check(self, x: TensorType) -> None:
        if x.shape[:1] != (self.ranks,):
            raise ShapeError(f"{self.name}: the first axis of {x} must have an element for each of the {self.ranks} ranks")

    def batch(self, size: int, args: tuple[Operand, ...], batched: Sequence[bool]) -> Any:
        """The axis of ranks stays the first one."""
        (x,) = args
        x = x if isinstance(self, AllGather) else exchanged(x)
        y = perform(self, x)
        return y if isinstance(self, ReduceScatter) else exchanged(y)


class AllGather(Ranked):
    """The operands of all ranks, along a new first axis, on every rank."""

    def result(self, x: TensorType) -> TensorType:
        return x.with_shape((self.ranks, *x.shape))

    def transposed(self) -> Op:
        return ReduceScatter(self.ranks)

    def exchange(self, ranks: World, x: Array, out: Array) -> None:
        ranks.comm.Allgather(x, out)


class ReduceScatter(Ranked):
    """The sum over all ranks of the elements of the first axis, of which each rank gets its own."""

    sums = True

    def result(self, x: TensorType) -> TensorType:
        self.check(x)
        return x.with_shape(x.shape[1:])

    def transposed(self) -> Op:
        return AllGather(self.ranks)

    def exchange(self, ranks: World, x: Array, out: Array) -> None:
        ranks.comm.Reduce_scatter_block(x, out)


class AllToAll(Ranked):
    """Element s of the first axis on rank r becomes element r of the result on rank s."""

    def result(self, x: TensorType) -> TensorType:
        self.check(x)
        return x

    def count(self, x: TensorType, y: TensorType) -> int:
        return x.size // self.ranks

    def transposed(self) -> Op:
        return self

    def exchange(self, ranks: World, x: Array, out: Array) -> None:
        ranks.comm.Alltoall(x, out)


def in_rows(k: Loops, out: Window, x: Window) -> Window:
    """The operand as contiguous memory: in place, or copied to the result's buffer."""
    if x.is_row_major:
        return x
    k.copy(out, x)
    return out


def exchanged(x: Operand) -> Operand:
    """The operand with its first two axes exchanged."""
    return transpose(x, (1, 0, *range(2, x.type.rank)))


def emitted(op: Op, x: Operand) -> Operand:
    """The result; complex numbers are exchanged as two arrays."""
    if x.type.dtype.kind == "c":
        return from_parts(perform(op, real(x)), perform(op, imag(x)))
    return perform(op, x)


def all_reduce(x: Operand) -> Operand:
    return emitted(AllReduce(), x)


def broadcast_from(x: Operand, root: int) -> Operand:
    return emitted(BroadcastFrom(valid(root)), x)


def reduce_to(x: Operand, root: int) -> Operand:
    return emitted(ReduceTo(valid(root)), x)


def all_gather(x: Operand) -> Operand:
    return emitted(AllGather(world().size), x)


def reduce_scatter(x: Operand) -> Operand:
    return emitted(ReduceScatter(world().size), x)


def all_to_all(x: Operand) -> Operand:
    return emitted(AllToAll(world().size), x)


def valid(root: int) -> int:
    if not 0 <= root < world().size:
        raise ShapeError(f"there is no rank {root}: ranks are numbered from 0 to {world().size - 1}")
    return root
