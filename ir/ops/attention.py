"""Attention, `softmax(q kᵀ) v`, and its derivative, without the matrix of weights. Inserted by `passes.fusion.attention`.

The weights of a few queries for a few keys are a tile, which stays in the cache. Forward, a row of tiles keeps the maximum and the sum of
the powers so far, by which it rescales what it has added up. Backward, each tile is computed again from the maxima and sums of its rows.

Tiles are stored with the queries last, so that the maxima and sums of all rows are computed side by side, and every product reads one
operand by elements and the other one by vectors of neighbours: nothing but the queries has to be packed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..cost import Cost
from ..errors import DTypeError, ShapeError
from ..records import NamedTuple
from ..types import BOOL, I64, TensorType
from .arithmetic import Maximum
from .base import Array, Emitter, Loops, Op, Reg, Window, Writing, with_attributes
from .maps import StrongMul
from .reduce import AllTrue, AnyTrue, Max, Sum

if TYPE_CHECKING:
    from ..operand import Operand

QUERIES, KEYS = 64, 64  # sides of a tile
PARTS = 8  # independent parts into which the derivative of few matrices is cut, at most
INVISIBLE = -1e30  # masked scores that are at most this have the weight 0 in a row with other scores
POWER = 16  # operations of an exponential


@with_attributes
class Attention(Op):
    """`softmax(scale * q kᵀ) v` of q [..., T, d], k [..., U, d] and v [..., U, e], with the row statistics that its derivative needs.

    A mask [..., U, T], the transpose of that of the scores, tells which of them are not replaced by `fill`. Results: the weighted values
    [..., T, e], the maximum of each row (0 if it is not finite) and the sum of its powers, both [..., T].

    Keys that no query of a tile sees are not read: an infinite or undefined value there does not make the result undefined.
    """

    scale: float = 1.0
    fill: float = -math.inf
    differentiable: ClassVar[bool] = False

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        q, _, v = check_operands("attention", types[:3], types[3:])
        rows = q.with_shape(q.shape[:-1])
        return q.with_shape((*q.shape[:-1], v.shape[-1])), rows, rows

    def evaluate(self, *arrays: Array) -> Any:
        with np.errstate(all="ignore"):
            s, v = scores(self, arrays[0], arrays[1], arrays[3:]), arrays[2]
            peak = np.max(s, -1, keepdims=True)
            peak = np.where(np.isfinite(peak), peak, v.dtype.type(0))
            powers = np.exp(s - peak)
            total = np.sum(powers, -1, keepdims=True)
            return (powers / total) @ v, peak[..., 0], total[..., 0]

    def python(self, write: Writing, *args: Operand) -> Any:
        s = write.temporary("scores", written_scores(self, write, args[0], args[1], args[3:]))
        largest = write.temporary("largest", write("np.max({}, -1, keepdims=True)", s))
        peak = write.temporary("peak", write("np.where(np.isfinite({}), {}, {}.dtype.type(0))", largest, largest, largest))
        powers = write.temporary("powers", write("np.exp({} - {})", s, peak))
        total = write.temporary("total", write("np.sum({}, -1, keepdims=True)", powers))
        rows = [write("{}[..., 0]", x) for x in (peak, total)]
        return [write("({} / {}) @ {}", powers, total, write.array(args[2])), *rows]

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, self.work(*types[:3]))

    def work(self, q: TensorType, k: TensorType, v: TensorType) -> float:
        return q.size // q.shape[-1] * k.shape[-2] * (2.0 * (q.shape[-1] + v.shape[-1]) + POWER) if q.size else 0.0

    def lower(self, k: Loops, out: tuple[Window, ...], *args: Window) -> None:
        if not all(w.type.size for w in out):
            return
        q, *_ = args
        work = self.work(*(w.type for w in args[:3]))
        for rows in cut(q.type.shape[-2], QUERIES):
            _Forward(k, self, out, args, rows).emit(work)


@with_attributes
class AttentionGradient(Op):
    """The cotangents of q, k and v, for a cotangent d [..., T, e] of the weighted values.

    Operands: q, k, v, d, then for every row the maximum, the reciprocal of the sum of powers, and the cotangent of that sum, [..., T] each,
    then the mask. The cotangents of k and v are sums of `parts`, along a first axis.
    """

    parts: int
    scale: float = 1.0
    fill: float = -math.inf
    differentiable: ClassVar[bool] = False

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        q, k, v = check_operands("attention_gradient", types[:3], types[7:])
        d, *rows = types[3:7]
        if d != q.with_shape((*q.shape[:-1], v.shape[-1])) or rows != [q.with_shape(q.shape[:-1])] * 3 or self.parts < 1:
            raise ShapeError(f"attention_gradient: {', '.join(map(str, types))} do not belong together")
        return q, *(x.with_shape((self.parts, *x.shape)) for x in (k, v))

    def evaluate(self, *arrays: Array) -> Any:
        q, k, v, d = arrays[:4]
        peak, inverse, delta = (x[..., None] for x in arrays[4:7])
        with np.errstate(all="ignore"):
            powers = np.exp(scores(self, q, k, arrays[7:]) - peak)
            by_score = (StrongMul().evaluate(d @ np.swapaxes(v, -1, -2), inverse) + delta) * powers
            by_score = masked(by_score, arrays[7:], 0.0) * q.dtype.type(self.scale)
            sums = np.swapaxes(by_score, -1, -2) @ q, np.swapaxes(powers * inverse, -1, -2) @ d
        return by_score @ k, *(np.concatenate([x[None], np.zeros((self.parts - 1, *x.shape), x.dtype)]) for x in sums)

    def python(self, write: Writing, *args: Operand) -> Any:
        q, k, v, d = map(write.atom, args[:4])
        peak, inverse, delta = (write("{}[..., None]", write.array(x)) for x in args[4:7])
        inverse = write.temporary("inverse", inverse)
        powers = write.temporary("powers", write("np.exp({} - {})", written_scores(self, write, args[0], args[1], args[7:]), peak))
        by_weight = write("strong_mul({} @ np.swapaxes({}, -1, -2), {})", d, v, inverse)
        by_score = written_mask(write, write("({} + {}) * {}", by_weight, delta, powers), args[7:], 0.0)
        ds = write.temporary("ds", write("{} * {}.dtype.type({})", by_score, q, write.value(self.scale)))
        sums = write("np.swapaxes({}, -1, -2) @ {}", ds, q), write("np.swapaxes({} * {}, -1, -2) @ {}", powers, inverse, d)
        padded = []
        for x, type in zip(sums, (args[1].type, args[2].type), strict=True):
            zeros = write.filled(0.0, type.dtype, (self.parts - 1, *type.shape))
            padded.append(write("np.concatenate([({})[None], {}])", x, zeros))
        return [write("{} @ {}", ds, k), *padded]

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, self.work(*types[:3]))

    def work(self, q: TensorType, k: TensorType, v: TensorType) -> float:
        return q.size // q.shape[-1] * k.shape[-2] * (6.0 * q.shape[-1] + 4.0 * v.shape[-1] + POWER) if q.size else 0.0

    def lower(self, k: Loops, out: tuple[Window, ...], *args: Window) -> None:
        if all(w.type.size for w in out):
            _Backward(k, self, out, args).emit(self.work(*(w.type for w in args[:3])))


def check_operands(name: str, operands: Sequence[TensorType], mask: Sequence[TensorType]) -> Sequence[TensorType]:
    q, k, v = operands
    if not q.is_float or not q.dtype == k.dtype == v.dtype:
        raise DTypeError(f"{name}: takes floats of one dtype, not {q}, {k} and {v}")
    if not q.rank == k.rank == v.rank >= 2 or not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        raise ShapeError(f"{name}: {q}, {k} and {v} differ in their leading axes")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"{name}: sizes of {q}, {k} and {v} differ")
    if len(mask) > 1 or any(m != TensorType(BOOL, (*q.shape[:-2], k.shape[-2], q.shape[-2])) for m in mask):
        raise ShapeError(f"{name}: the mask {', '.join(map(str, mask))} does not fit {q} and {k}")
    return operands


def scores(op: Attention | AttentionGradient, q: Array, k: Array, mask: Sequence[Array]) -> Array:
    return masked((q @ np.swapaxes(k, -1, -2)) * q.dtype.type(op.scale), mask, op.fill)


def masked(x: Array, mask: Sequence[Array], fill: float) -> Array:
    return np.where(np.swapaxes(mask[0], -1, -2), x, x.dtype.type(fill)) if mask else x


def written_scores(op: Attention | AttentionGradient, write: Writing, q: Operand, k: Operand, mask: Sequence[Operand]) -> Any:
    queries = write.atom(q)
    product = write("({} @ np.swapaxes({}, -1, -2)) * {}.dtype.type({})", queries, write.array(k), queries, write.value(op.scale))
    return written_mask(write, product, mask, op.fill)


def written_mask(write: Writing, x: Any, mask: Sequence[Operand], fill: float) -> Any:
    if not mask:
        return x
    whole = write.temporary("whole", x)
    return write("np.where(np.swapaxes({}, -1, -2), {}, {}.dtype.type({}))", write.array(mask[0]), whole, whole, write.value(fill))


# ---- native code


class BlockRange(NamedTuple):
    """Some neighbouring blocks of `length` along an axis."""

    start: int
    blocks: int
    length: int

    def of(self, window: Window, axis: int) -> Window:
        """The window with the axis replaced by two: the blocks, and the elements of a block."""
        part = window.slice(axis, self.start, self.blocks * self.length)
        return part.sliding(axis, self.blocks, self.length, self.length)


def cut(size: int, length: int) -> list[BlockRange]:
    """Whole blocks, and the rest as one block."""
    whole = size // length
    parts = [BlockRange(0, whole, length), BlockRange(whole * length, 1, size % length)]
    return [part for part in parts if part.blocks and part.length]


def unravel(k: Loops, i: Reg, shape: Sequence[int]) -> list[Reg]:
    index: list[Reg] = []
    for n in reversed(shape):
        of = k.scalar.const(I64, n)
        index.insert(0, k.scalar.irem(i, of))
        i = k.scalar.idiv(i, of)
    return index


def in_rows(row: Window, count: int) -> Window:
    """A vector as a matrix of `count` equal rows."""
    return row.sliding(0, count, 0, row.type.shape[0])


def in_columns(column: Window, count: int) -> Window:
    """A vector as a matrix of `count` equal columns."""
    return column.sliding(0, column.type.shape[0], 1, count, 0)


@contextmanager
def only_if(k: Loops, condition: Reg) -> Iterator[None]:
    one, zero = k.scalar.const(I64, 1), k.scalar.const(I64, 0)
    with k.loop(k.scalar.select(condition, one, zero)):
        yield


def pack_columns(k: Loops, target: Window, source: Window, factor: float) -> None:
    """target[j, i] = factor * source[i, j]: in squares, which are transposed in registers, as far as these cover it."""

    def scaled(emit: Emitter, x: Reg) -> list[Reg]:
        return [emit.mul(x, emit.like(x, factor)) if factor != 1 else x]

    (rows, columns), side = source.type.shape, k.lanes(source.type.dtype)
    if rows % side or columns % side:
        k.map(scaled, [target], [source.transposed(1, 0)])
        return
    squares = target.sliding(1, rows // side, side, side).sliding(0, columns // side, side, side).transposed(0, 2, 1, 3)
    sources = source.sliding(1, columns // side, side, side).sliding(0, rows // side, side, side).transposed(2, 0, 3, 1)
    with k.loop(columns // side) as j, k.loop(rows // side) as i:
        k.map(scaled, [squares.at(j, i)], [sources.at(j, i)])


class _Tiles:
    """The parts that forward and backward share: the operands of a tile, and which tiles are left out."""

    def __init__(self, k: Loops, op: Attention | AttentionGradient, args: Sequence[Window], has_mask: bool) -> None:
        self.k, self.op = k, op
        q, _, v = args[:3]
        self.dtype = q.type.dtype
        *self.batch, self.queries, self.size = q.type.shape
        self.keys, self.width = v.type.shape[-2:]
        self.leaves_out = has_mask and op.fill <= INVISIBLE

    def private(self, *shape: int, dtype: Any = None) -> Window:
        return self.k.private(TensorType(self.dtype if dtype is None else dtype, shape))

    def masks(self, rows: BlockRange, mask: Sequence[Window]) -> list[Window]:
        """The mask as [..., blocks, U, R]."""
        n = len(self.batch)
        return [rows.of(m, n + 1).transposed(*range(n), n + 1, n, n + 2) for m in mask]

    def look(self, mask: Sequence[Window], flags: Window) -> list[Window]:
        """Whether every query of a block sees a key; flags has one element a query and one more."""
        if not self.leaves_out:
            return []
        rows, k = mask[0].type.shape[1], self.k
        some, whole = flags.slice(0, 0, rows), flags.slice(0, rows, 1)
        k.sweep(lambda emit, x: [x], [], [(AnyTrue, some)], [mask[0]])
        k.reduce(AllTrue((0,)), lambda emit, x: x, whole, [some])
        return [whole]

    def each_tile(
        self, body: Callable[..., None], windows: Sequence[Window], mask: Sequence[Window], flags: Window, *fixed: Window
    ) -> None:
        """Call `body` on the blocks of keys of the windows, and of the mask [U, R], one after the other. If every query of the block
        sees a key, tiles that no query sees are left out: their weights are 0.
        """
        k, look = self.k, self.look(mask, flags)
        for columns in cut(self.keys, KEYS):
            here = [columns.of(w, 0) for w in (*windows, *mask)]
            with k.loop(columns.blocks) as j:
                at = [w.at(j) for w in here]
                if not look:
                    k.call(body, *fixed, *at, op=self.op)
                    continue
                seen = flags.slice(0, 0, 1)
                k.reduce(AnyTrue((0, 1)), lambda emit, x: x, seen, [at[-1]])
                first = k.scalar.const(I64, 0)
                hidden = k.scalar.xor(k.load(look[0], first), k.scalar.const(BOOL, True))
                with only_if(k, k.scalar.or_(k.load(seen, first), hidden)):
                    k.call(body, *fixed, *at, op=self.op)


class _Forward(_Tiles):
    """The weighted values of one block of queries after the other."""

    def __init__(self, k: Loops, op: Attention, out: Sequence[Window], args: Sequence[Window], rows: BlockRange) -> None:
        super().__init__(k, op, args, len(args) > 3)
        (q, *self.given), n = args[:3], len(self.batch)
        self.by_rows = [*(rows.of(w, n) for w in (*out, q)), *self.masks(rows, args[3:])]
        self.rows = rows

    def emit(self, work: float) -> None:
        r = self.rows.length
        packed, tile, added = self.private(self.size, r), self.private(KEYS, r), self.private(r, self.width)
        state = [self.private(r) for _ in range(5)]
        flags = self.private(r + 1, dtype=BOOL)
        count = math.prod(self.batch) * self.rows.blocks
        self.k.each(count, work, self.block, *self.given, packed, tile, added, *state, flags, *self.by_rows)

    def block(self, i: Reg, key: Window, v: Window, packed: Window, tile: Window, added: Window, *rest: Window) -> None:
        k = self.k
        state, flags, by_rows = rest[:5], rest[5], rest[6:]
        index = unravel(k, i, (*self.batch, self.rows.blocks))
        out, peak_out, total_out, q, *mask = (w.at(*index) for w in by_rows)
        peak, total, base, *_ = state
        pack_columns(k, packed, q, self.op.scale)
        k.fill(peak, -math.inf)
        k.fill(base, 0.0)
        k.fill(total, 0.0)
        k.fill(added, 0.0)
        inner = index[:-1]
        self.each_tile(add_tile, [key.at(*inner), v.at(*inner)], mask, flags, packed, tile, added, *state)
        k.map(lambda emit, x, y: [emit.fdiv(x, y)], [out], [added, in_columns(total, self.width)])
        k.map(lambda emit, x, y: [x, y], [peak_out, total_out], [base, total])


def add_tile(
    k: Loops, packed: Window, whole: Window, added: Window, peak: Window, total: Window, base: Window, factor: Window, found: Window,
    key: Window, v: Window, *mask: Window, op: Attention,
) -> None:  # fmt: skip
    """Add the weighted values of one block of keys to those of the blocks before: `peak` is the largest score so far, `base` what is
    subtracted from scores, `total` the sum of the powers.
    """
    keys, width = key.type.shape[0], v.type.shape[1]
    tile = whole.slice(0, 0, keys)
    k.contract("cr,cd,dr", tile, key, packed)

    def hidden(emit: Emitter, x: Reg, *visible: Reg) -> list[Reg]:
        x = emit.select(visible[0], x, emit.like(x, op.fill)) if visible else x
        return [x, x] if visible else [x]

    k.sweep(hidden, [tile] if mask else [], [(Max, found)], [tile, *mask])

    def moved(emit: Emitter, old: Reg, new: Reg) -> list[Reg]:
        largest = Maximum().scalar(emit, old, new)
        finite = emit.compare("lt", emit.fabs(largest), emit.like(largest, math.inf))
        after = emit.select(finite, largest, emit.like(largest, 0.0))
        return [largest, after, emit.call("exp", emit.sub(old, after))]

    k.map(moved, [peak, base, factor], [peak, found])

    def powers(emit: Emitter, x: Reg, base: Reg) -> list[Reg]:
        power = emit.call("exp", emit.sub(x, base))
        return [power, power]

    k.sweep(powers, [tile], [(Sum, found)], [tile, in_rows(base, keys)])
    k.map(lambda emit, x, f, new: [emit.mad(x, f, new)], [total], [total, factor, found])
    k.map(lambda emit, x, f: [emit.mul(x, f)], [added], [added, in_columns(factor, width)])
    k.contract("re,cr,ce", added, tile, v, accumulate=True)


class _Backward(_Tiles):
    """The cotangents of one matrix of keys and values, or of a part of its queries, after the other."""

    def __init__(self, k: Loops, op: AttentionGradient, out: Sequence[Window], args: Sequence[Window]) -> None:
        super().__init__(k, op, args, len(args) > 7)
        self.parts = op.parts
        self.out, self.args = list(out), list(args)

    def emit(self, work: float) -> None:
        r = min(QUERIES, self.queries)
        room = [self.private(*shape) for shape in ((self.size, r), (self.width, r), (KEYS, r), (KEYS, r))]
        flags = self.private(r + 1, dtype=BOOL)
        self.k.each(self.parts * math.prod(self.batch), work, self.part, *room, flags, *self.out, *self.args)

    def part(self, i: Reg, *windows: Window) -> None:
        k, scalar = self.k, self.k.scalar
        room, (dq, dk, dv), args = windows[:5], windows[5:8], windows[8:]
        part, *index = unravel(k, i, (self.parts, *self.batch))
        sums = [dk.at(part, *index), dv.at(part, *index)]
        for w in sums:
            k.fill(w, 0.0)
        for rows in cut(self.queries, QUERIES):
            by_rows = [rows.of(w.at(*index), 0) for w in (dq, args[0], *args[3:7])]
            by_rows += [rows.of(m.at(*index), 1).transposed(1, 0, 2) for m in args[7:]]
            first, step = (part, scalar.const(I64, self.parts)) if rows.blocks > 1 else (scalar.const(I64, 0), scalar.const(I64, 1))
            if rows.blocks > 1:
                left = scalar.sub(scalar.const(I64, rows.blocks + self.parts - 1), part)
                count = scalar.idiv(left, step)
            else:
                is_mine = scalar.compare("eq", part, scalar.const(I64, self.parts - 1))
                count = scalar.select(is_mine, step, first)
            with k.loop(count) as t:
                block = scalar.add(first, scalar.mul(t, step))
                self.block(room, sums, [w.at(*index) for w in args[1:3]], [w.at(block) for w in by_rows], rows.length)

    def block(self, room: Sequence[Window], sums: Sequence[Window], given: Sequence[Window], by_rows: Sequence[Window], r: int) -> None:
        k = self.k
        packed, packed_d, tile, other = (w.slice(1, 0, r) for w in room[:4])
        dq, q, d, *rows = by_rows
        statistics, mask = rows[:3], rows[3:]
        pack_columns(k, packed, q, self.op.scale)
        pack_columns(k, packed_d, d, 1.0)
        k.fill(dq, 0.0)
        flags = room[4].slice(0, 0, r + 1)
        self.each_tile(pull_tile, [*given, *sums], mask, flags, packed, packed_d, tile, other, dq, q, d, *statistics)


def pull_tile(
    k: Loops, packed: Window, packed_d: Window, whole: Window, other: Window, dq: Window, q: Window, d: Window,
    base: Window, inverse: Window, delta: Window, key: Window, v: Window, dk: Window, dv: Window, *mask: Window, op: AttentionGradient,
) -> None:  # fmt: skip
    """Add the cotangents that pass through one tile."""
    keys = key.type.shape[0]
    tile, by_weight = whole.slice(0, 0, keys), other.slice(0, 0, keys)
    k.contract("cr,cd,dr", tile, key, packed)
    k.contract("cr,ce,er", by_weight, v, packed_d)

    def pulled(emit: Emitter, x: Reg, d: Reg, base: Reg, inverse: Reg, delta: Reg, *visible: Reg) -> list[Reg]:
        x = emit.select(visible[0], x, emit.like(x, op.fill)) if visible else x
        power = emit.call("exp", emit.sub(x, base))
        by_score = emit.mul(emit.add(StrongMul().scalar(emit, d, inverse), delta), power)
        if visible:
            by_score = emit.select(visible[0], by_score, emit.like(x, 0.0))
        return [emit.mul(power, inverse), emit.mul(by_score, emit.like(x, op.scale)) if op.scale != 1 else by_score]

    rows = [in_rows(w, keys) for w in (base, inverse, delta)]
    k.map(pulled, [tile, by_weight], [tile, by_weight, *rows, *mask])
    k.contract("ce,cr,re", dv, tile, d, accumulate=True)
    k.contract("rd,cr,cd", dq, by_weight, key, accumulate=True)
    k.contract("cd,cr,rd", dk, by_weight, q, accumulate=True)
