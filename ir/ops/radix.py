"""Radix sort of long rows: as many passes over a row as its elements have digits, whatever their order.

Elements are mapped to unsigned integers in the same order, `keys`. Each pass moves them, with their original indices, to the position of
their digit; equal digits keep their order, so that after the last pass, over the highest digit, all are sorted. Trip counts are fixed.
"""

from __future__ import annotations

from ..expr import hint_of
from ..types import I64, U8, U16, U32, U64, DType, TensorType
from .base import Emitter, Loops, Reg, Window, nest

UNSIGNED = {1: U8, 2: U16, 4: U32, 8: U64}
FEW = 8192  # elements: up to here, smaller tables of counts are faster, despite more passes


def lower_by_digits(k: Loops, out: Window, x: Window, descending: bool, count: Reg | None = None) -> None:
    """The indices that sort each row along the last axis: the first `count` elements of it, if given."""
    *lines, n = x.type.shape
    size = n if count is None else count
    key = UNSIGNED[x.type.dtype.itemsize]
    width = min(8 if hint_of(n) <= FEW else 11, 8 * key.itemsize)
    passes = -(-8 * key.itemsize // width)
    keys = [k.scratch(TensorType(key, (n,))) for _ in range(2)]
    indices = [k.scratch(TensorType(I64, (n,))) for _ in range(2)]
    counts = k.scratch(TensorType(I64, (passes, 1 << width)))
    total = k.scratch(TensorType(I64, (1,)))
    with nest(k, lines) as line:
        k.fill(counts, 0)
        with k.loop(size) as i:
            value = ordered_bits(k.scalar, k.load(x.at(*line), i), key, descending)
            k.store(keys[0], value, i)
            for step in range(passes):
                tally(k, counts, step, digit(k, value, step, width))
        for step in range(passes):
            add_up(k, counts, step, total)
        for step in range(passes):
            last = step == passes - 1
            target = out.at(*line) if last else indices[(step + 1) % 2]
            with k.loop(size) as i:
                value = k.load(keys[step % 2], i)
                place = tally(k, counts, step, digit(k, value, step, width))
                k.store(target, k.load(indices[step % 2], i) if step else i, place)
                if not last:
                    k.store(keys[(step + 1) % 2], value, place)


def ordered_bits(emit: Emitter, x: Reg, key: DType, descending: bool) -> Reg:
    """An unsigned integer that orders like the element (reversed if `descending`); NaN is the largest in both directions."""
    bits = 8 * key.itemsize
    top, ones = emit.const(key, 1 << (bits - 1)), emit.const(key, (1 << bits) - 1)
    if x.dtype.kind != "f":
        out = emit.bitcast(x, key)
        out = emit.xor(out, top) if x.dtype.kind == "i" else out
        return emit.xor(out, ones) if descending else out
    raw = emit.bitcast(emit.add(x, emit.like(x, 0.0)), key)  # maps -0.0 to 0.0
    negative = emit.compare("ge", raw, top)
    out = emit.xor(raw, emit.select(negative, ones, top))
    out = emit.xor(out, ones) if descending else out
    return emit.select(emit.unordered(x, x), ones, out)


def digit(k: Loops, value: Reg, step: int, width: int) -> Reg:
    emit = k.scalar
    moved = emit.shr(value, emit.like(value, step * width)) if step else value
    return emit.convert(emit.and_(moved, emit.like(value, (1 << width) - 1)), I64)


def tally(k: Loops, counts: Window, step: int, at: Reg) -> Reg:
    """Increment a count and return its old value."""
    emit = k.scalar
    row = emit.const(I64, step)
    before = k.load(counts, row, at)
    k.store(counts, emit.add(before, emit.like(before, 1)), row, at)
    return before


def add_up(k: Loops, counts: Window, step: int, total: Window) -> None:
    """Turn the number of elements with each digit into the position of the first of them."""
    emit, zero, row = k.scalar, k.scalar.const(I64, 0), k.scalar.const(I64, step)
    k.store(total, zero, zero)
    with k.loop(counts.type.shape[1]) as at:
        before = k.load(total, zero)
        k.store(total, emit.add(before, k.load(counts, row, at)), zero)
        k.store(counts, before, row, at)
