"""Reading and writing at computed indices: the primitives. `keys` translates NumPy's indexing expressions into these.

All three take index arrays of one shape S, one for each leading axis of `x`, and work on whole rows of the remaining axes. Negative indices
count from the end; an index outside its axis raises OutOfBoundsError, eager and in native code, whether or not the result is used: if it is
not, a `check_index` remains. Unsigned indices are never negative: a uint64 of 2^64-1 is out of bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..cost import Cost
from ..errors import Detail, DTypeError, OutOfBoundsError, ShapeError
from ..expr import hint_of
from ..types import I64, U64, DType, TensorType
from .base import Array, Emitter, Loops, Op, Reg, Registers, Window, Writing, apply, nest, with_attributes
from .create import iota
from .maps import where
from .reduce import Max
from .shape import broadcast_to, lead, move_lead, move_to_lead, reshape, trail

__all__: list[str] = []

PARTS = 8  # into which the rows of an array are divided: each is changed by one thread, which reads all indices

if TYPE_CHECKING:
    from ..func import Stmt
    from ..operand import Operand


class Indexing(Op, abstract=True):
    """An op on an array at computed indices, which are its last operands."""

    can_fail = True
    first: ClassVar[int]  # position of the first index among the operands

    def unchecked(self) -> Op:
        """This op for indices that are known to be within bounds."""
        return self

    def indexed(self, *types: TensorType) -> TensorType:
        """The type of the indexed array."""
        return types[0]

    def guard(self, *types: TensorType) -> tuple[Op, slice]:
        return CheckIndex(self.name, types[0]), slice(self.first, None)

    def guarded(
        self, size: int, active: Operand, args: tuple[Operand, ...], batched: Sequence[bool]
    ) -> tuple[tuple[Operand, ...], Sequence[bool]]:
        return harmless(self.first, size, active, args, batched)

    def scalars(self, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return args[1:]  # the array that is read or changed is in memory

    def message(self, axis: int, index: TensorType, *types: TensorType) -> str:
        """The error message for an index out of bounds along an axis, with a placeholder for the index."""
        return out_of_bounds(self.name, self.indexed(*types), axis, index.dtype)


@with_attributes
class Accessing(Indexing, abstract=True):
    """An op that reads or writes rows. With `checked`, earlier statements have found the same indices within bounds."""

    checked: bool = False

    @property
    def can_fail(self) -> bool:  # type: ignore[override]
        return not self.checked

    def unchecked(self) -> Op:
        return type(self)(checked=True)

    def positions(self, k: Loops, x: TensorType, indices: Sequence[Window], index: Sequence[Reg]) -> list[Reg]:
        """The position along each indexed axis of `x`, read from the index arrays at `index`."""
        if self.checked:
            return native_positions(k, x, indices, index)
        return checked_positions(self.name, k, x, indices, index)

    def check(self, k: Loops, x: TensorType, indices: Sequence[Window]) -> None:
        """Fail if any index is out of bounds: by vectors first, and one by one, to name the first, only if one is."""
        if self.checked:
            return
        found = k.scratch(TensorType(I64, (len(indices),)))
        for axis, (window, size) in enumerate(zip(indices, x.shape)):

            def outside(emit: Emitter, index: Reg, dtype: DType = window.type.dtype, size: int = size) -> Reg:
                return emit.convert(native_position(emit, index, dtype, size)[2], I64)

            k.reduce(Max(tuple(range(window.type.rank))), outside, found.slice(0, axis, 1), [window])
        for axis in range(len(indices)):
            with k.loop(k.load(found, k.scalar.const(I64, axis))), nest(k, indices[0].type.shape) as index:
                checked_positions(self.name, k, x, indices, index)


@with_attributes
class Gather(Accessing):
    """`x[i, j, ...]`: args x, *indices. The result has shape S followed by the axes of x that are not indexed."""

    first: ClassVar[int] = 1
    only_moves = True
    reads_rows = True

    def scalars(self, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return (*args[1:], *results)

    def run_in_registers(self, kernel: Registers, stmt: Stmt) -> None:
        kernel.gather(stmt)

    def infer(self, *types: TensorType) -> TensorType:
        return selected(self.name, types[0], types[1:])

    def evaluate(self, *arrays: Array) -> Array:
        x, *indices = arrays
        return x[positions(self.name, TensorType(x.dtype, x.shape), indices)]

    def python(self, write: Writing, *args: Operand) -> Any:
        x, *indices = args
        return write(f"{{}}[{', '.join(['{}'] * len(indices))}]", write.array(x), *write.indices(*indices))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return apply(self, d, *args[1:]) if i == 0 else None

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return apply(ScatterAdd(), d.literal(0, args[0].type), d, *args[1:]) if i == 0 else None

    def batch(self, size: int, args: tuple[Operand, ...], batched: Sequence[bool]) -> Operand:
        x, *indices = args
        if not batched[0]:
            return apply(self, x, *(i if has else lead(i, size) for i, has in zip(indices, batched[1:], strict=True)))
        if any(batched[1:]):
            return apply(self, x, *examples(size, indices, batched[1:]))
        return move_to_lead(apply(self, move_lead(x, len(indices)), *indices), indices[0].ndim)

    def cost(self, *types: TensorType) -> Cost:
        out = self.infer(*types)
        return Cost(bytes=2.0 * out.nbytes + sum(t.nbytes for t in types[1:]), serial=out.size)

    def lower(self, k: Loops, out: Window, x: Window, *indices: Window) -> None:
        shape = indices[0].type.shape

        def row(i: Reg, out: Window, x: Window, *indices: Window) -> None:
            with nest(k, shape[1:]) as rest:
                k.copy(out.at(i, *rest), x.at(*native_positions(k, x.type, indices, (i, *rest))))

        if shape and k.is_large(out.type.size):
            self.check(k, x.type, indices)
            k.each(shape[0], out.type.size, row, out, x, *indices)
            return
        with nest(k, shape) as index:
            k.copy(out.at(*index), x.at(*self.positions(k, x.type, indices, index)))


@with_attributes
class Scatter(Accessing, abstract=True):
    """`x` with rows changed by those of `updates`: args x, updates, *indices; updates has the type that Gather would return."""

    first: ClassVar[int] = 2
    in_place: ClassVar[int | None] = 0

    def run_in_registers(self, kernel: Registers, stmt: Stmt) -> None:
        kernel.scatter(stmt)

    def infer(self, *types: TensorType) -> TensorType:
        x, updates, *indices = types
        wanted = selected(self.name, x, indices)
        if updates != wanted:
            raise ShapeError(f"{self.name}: the updates are {updates}, but the indices select {wanted} of {x}")
        return x

    def batch(self, size: int, args: tuple[Operand, ...], batched: Sequence[bool]) -> Operand:
        x, updates, *indices = args
        x, updates = x if batched[0] else lead(x, size), updates if batched[1] else lead(updates, size)
        if any(batched[2:]):
            return apply(self, x, updates, *examples(size, indices, batched[2:]))
        out = apply(self, move_lead(x, len(indices)), move_lead(updates, indices[0].ndim), *indices)
        return move_to_lead(out, len(indices))


@with_attributes
class ScatterAdd(Scatter):
    """`x[i, j, ...] += updates`; updates at equal indices are all added."""

    def infer(self, *types: TensorType) -> TensorType:
        if types[0].dtype.kind not in "fiuc":
            raise DTypeError(f"scatter_add: {types[0]} operands are not supported")
        return super().infer(*types)

    def evaluate(self, *arrays: Array) -> Array:
        x, updates, *indices = arrays
        out = np.array(x, order="C")
        np.add.at(out, positions(self.name, TensorType(x.dtype, x.shape), indices), updates)
        return out

    def python(self, write: Writing, *args: Operand) -> Any:
        x, updates, *indices = args
        given, places = write.array(updates), write.indices(*indices)
        out = write.changed(x, 'np.array({}, order="C")')
        key = "{}" if len(places) == 1 else f"({', '.join(['{}'] * len(places))})"
        write.run(f"np.add.at({{}}, {key}, {{}})", out, *places, given)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        if i == 1:
            return apply(self, d.literal(0, args[0].type), d, *args[2:])
        return d if i == 0 else None

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        if i == 1:
            return apply(Gather(), d, *args[2:])
        return d if i == 0 else None

    def cost(self, *types: TensorType) -> Cost:
        return updating(types, float(types[1].size))

    def lower(self, k: Loops, out: Window, x: Window, updates: Window, *indices: Window) -> None:
        k.copy(out, x)
        if k.is_large(updates.type.size) and hint_of(x.type.shape[0]) >= PARTS:
            self.check(k, x.type, indices)
            k.each(PARTS, updates.type.size, partial(self._add_part, k), out, updates, *indices)
            return
        with nest(k, indices[0].type.shape) as index:
            k.accumulate(out.at(*self.positions(k, x.type, indices, index)), updates.at(*index))

    def _add_part(self, k: Loops, part: Reg, out: Window, updates: Window, *indices: Window) -> None:
        """Add the updates of one part of the rows, so that rows are added to by one thread, in order."""
        emit, size = k.scalar, out.type.shape[0]
        first, last = (
            emit.idiv(emit.mul(i, emit.const(I64, size)), emit.const(I64, PARTS)) for i in (part, emit.add(part, emit.const(I64, 1)))
        )
        with nest(k, indices[0].type.shape) as index:
            at = native_positions(k, out.type, indices, index)
            inside = emit.and_(emit.compare("ge", at[0], first), emit.compare("lt", at[0], last))
            with k.loop(emit.convert(inside, I64)):
                k.accumulate(out.at(*at), updates.at(*index))


@with_attributes
class ScatterSet(Scatter):
    """`x[i, j, ...] = updates`; of updates at equal indices, the last in row-major order of the index arrays wins."""

    sets_rows = True

    def evaluate(self, *arrays: Array) -> Array:
        x, updates, *indices = arrays
        out = np.array(x, order="C")
        out[positions(self.name, TensorType(x.dtype, x.shape), indices)] = updates
        return out

    def python(self, write: Writing, *args: Operand) -> Any:
        x, updates, *indices = args
        given, places = write.array(updates), write.indices(*indices)
        out = write.changed(x, 'np.array({}, order="C")')
        write.run(f"{{}}[{', '.join(['{}'] * len(places))}] = {{}}", out, *places, given)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        if i > 1:
            return None
        zero = d.literal(0, args[1 - i].type)
        return apply(self, d, zero, *args[2:]) if i == 0 else apply(self, zero, d, *args[2:])

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        x, updates, *indices = args
        if i == 0:
            return apply(self, d, d.literal(0, updates.type), *indices)
        if i > 1:
            return None
        picked = apply(Gather(), d, *indices)
        if indices[0].type.size <= 1:
            return picked
        stays = last_writes(x, indices)
        rows = reshape(stays, stays.type.shape + (1,) * (len(picked.type.shape) - len(stays.type.shape)))
        return where(broadcast_to(rows, picked.type.shape), picked, 0.0)

    def cost(self, *types: TensorType) -> Cost:
        return updating(types)

    def lower(self, k: Loops, out: Window, x: Window, updates: Window, *indices: Window) -> None:
        k.copy(out, x)
        with nest(k, indices[0].type.shape) as index:
            k.copy(out.at(*self.positions(k, x.type, indices, index)), updates.at(*index))


@with_attributes
class CheckIndex(Indexing):
    """The checks of an op on `x` whose result is not read: raises where `of` would. args: *indices. Inserted by `passes.simplify.dce`."""

    of: str
    x: TensorType

    first: ClassVar[int] = 0
    differentiable: ClassVar[bool] = False

    def scalars(self, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return args

    def run_in_registers(self, kernel: Registers, stmt: Stmt) -> None:
        kernel.check_index(stmt)

    def indexed(self, *types: TensorType) -> TensorType:
        return self.x

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        selected(self.name, self.x, types)
        return ()

    def evaluate(self, *arrays: Array) -> tuple[()]:
        positions(self.of, self.x, arrays)
        return ()

    def python(self, write: Writing, *args: Operand) -> Any:
        key = ", ".join(["{}"] * len(args))
        return write(f"np.broadcast_to(0, {{}})[{key}]", write.value(self.x.shape), *write.indices(*args))

    def guard(self, *types: TensorType) -> tuple[Op, slice]:
        return self, slice(None)

    def message(self, axis: int, index: TensorType, *types: TensorType) -> str:
        return out_of_bounds(self.of, self.x, axis, index.dtype)

    def pushforward(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], tangents: tuple[Operand | None, ...]
    ) -> list[Operand | None]:
        return []

    def pullback(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], cotangents: tuple[Operand | None, ...], needed: Sequence[bool]
    ) -> list[Operand | None]:
        return [None] * len(args)

    def batch(self, size: int, args: tuple[Operand, ...], batched: Sequence[bool]) -> Any:
        return apply(self, *(i if has else lead(i, size) for i, has in zip(args, batched, strict=True)))

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, float(sum(t.size for t in types)))

    def lower(self, k: Loops, outs: tuple[Window, ...], *indices: Window) -> None:
        with nest(k, indices[0].type.shape) as index:
            checked_positions(self.of, k, self.x, indices, index)


def updating(types: Sequence[TensorType], flops: float = 0.0) -> Cost:
    """The cost of changing rows of an array in place; at worst all of it is copied before."""
    x, updates, *indices = types
    return Cost(flops, bytes=2.0 * updates.nbytes + sum(t.nbytes for t in indices), serial=updates.size, worst=x.size)


def examples(size: int, indices: Sequence[Operand], batched: Sequence[bool]) -> list[Operand]:
    """Index arrays for a batch of index arrays: the number of the example comes first."""
    wide = [i if has else lead(i, size) for i, has in zip(indices, batched, strict=True)]
    return [trail(iota((size,), 0, I64), wide[0].type.shape), *wide]


def harmless(
    first: int, size: int, active: Operand, args: tuple[Operand, ...], batched: Sequence[bool]
) -> tuple[tuple[Operand, ...], Sequence[bool]]:
    """The arguments with the indices (from `first` on) set to 0 for inactive examples."""
    wide = [i if has else lead(i, size) for i, has in zip(args[first:], batched[first:], strict=True)]
    inside = [where(trail(active, i.type.shape), i, 0) for i in wide]
    return (*args[:first], *inside), (*batched[:first], *(True for _ in inside))


def last_writes(x: Operand, indices: Sequence[Operand]) -> Operand:
    """For each index, whether no later one is equal: every write stores its number, and the number of the last one is found there."""
    shape = indices[0].type.shape
    numbers = reshape(iota((indices[0].type.size,), 0, I64), shape)
    blank = x.literal(0, TensorType(I64, x.type.shape[: len(indices)]))
    left = apply(Gather(), apply(ScatterSet(), blank, numbers, *indices), *indices)
    out: Operand = left == numbers
    return out


def selected(name: str, x: TensorType, indices: Sequence[TensorType]) -> TensorType:
    """The type of what index arrays select from `x`."""
    if not indices or len(indices) > x.rank:
        raise ShapeError(f"{name}: {x} takes 1 to {x.rank} index arrays, not {len(indices)}")
    for index in indices:
        if index.dtype.kind not in "iu":
            raise DTypeError(f"{name}: indices must be integers, not {index}")
        if index.shape != indices[0].shape:
            raise ShapeError(f"{name}: shapes of indices differ: {indices[0]} and {index}")
    return x.with_shape(indices[0].shape + x.shape[len(indices) :])


def out_of_bounds(name: str, x: TensorType, axis: int, index: DType) -> str:
    """The message, with a placeholder for the index, which native code passes as 64 bits."""
    place = "{:unsigned}" if index == U64 else "{}"
    return f"{name}: index {place} is out of bounds for axis {axis} of {x}, of size {x.shape[axis]!s}"


def positions(name: str, x: TensorType, indices: Sequence[Array]) -> tuple[Array, ...]:
    """Indices with negative ones counted from the end; raises OutOfBoundsError."""
    return tuple(wrapped(index, x.shape[axis], out_of_bounds(name, x, axis, index.dtype)) for axis, index in enumerate(indices))


def wrapped(index: Array, size: int, message: str) -> Array:
    signed = index.astype(np.int64)
    bad = index.astype(np.uint64) >= np.uint64(size) if index.dtype.kind == "u" else (signed < -size) | (signed >= size)
    if bad.any():
        raise OutOfBoundsError(message.format(Detail(index[bad].flat[0])))
    return np.where(signed < 0, signed + size, signed)


def native_positions(k: Loops, x: TensorType, indices: Sequence[Window], index: Sequence[Reg]) -> list[Reg]:
    """The position along each indexed axis of `x`, read from the index arrays at `index`, which have been checked."""
    loaded = [(k.load(window, *index), window.type.dtype) for window in indices]
    return [native_position(k.scalar, i, dtype, size)[0] for (i, dtype), size in zip(loaded, x.shape)]


def checked_positions(name: str, k: Loops, x: TensorType, indices: Sequence[Window], index: Sequence[Reg]) -> list[Reg]:
    """The same, failing if an index is out of bounds."""
    out = []
    for axis, (window, size) in enumerate(zip(indices, x.shape)):
        dtype = window.type.dtype
        at, raw, outside = native_position(k.scalar, k.load(window, *index), dtype, size)
        k.fail_if(outside, out_of_bounds(name, x, axis, dtype), raw)
        out.append(at)
    return out


def native_position(emit: Emitter, index: Reg, dtype: DType, size: int) -> tuple[Reg, Reg, Reg]:
    """The position that an index of `dtype` denotes along an axis, the index itself (both i64), and whether it is out of bounds."""
    raw = emit.convert(index, I64)
    at = raw if dtype.kind == "u" else emit.select(emit.compare("lt", raw, emit.const(I64, 0)), emit.add(raw, emit.const(I64, size)), raw)
    return at, raw, emit.compare("ge", emit.convert(at, U64), emit.const(U64, size))  # as unsigned, negative positions are huge
