"""Sorting: finds the order of the elements of each row along an axis. Sorted values are gathered by it, which makes them differentiable."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cost import Cost
from ..errors import DTypeError
from ..expr import is_static
from ..types import BOOL, I64, U8, TensorType, normalize_axis
from .base import Array, Emitter, Loops, Op, Reg, Window, Writing, apply, nest, with_attributes
from .create import iota
from .index import Gather
from .maps import cast
from .radix import lower_by_digits

__all__ = ["argsort", "sort"]

SHORT = 4  # elements, per byte of an element, up to which a row is sorted by merging

if TYPE_CHECKING:
    from ..operand import Operand


@with_attributes
class Argsort(Op):
    """The indices that sort each row along an axis, stable for equal elements; NaN comes last in both directions."""

    axis: int
    descending: bool = False

    differentiable = False

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if x.is_complex:
            raise DTypeError(f"{self.name}: {x}: takes real numbers")
        normalize_axis(self.axis, x.rank, self.name)
        return TensorType(I64, x.shape)

    def evaluate(self, *arrays: Array) -> Array:
        (x,) = arrays
        if self.descending:
            x = -x if x.dtype.kind == "f" else ~x
        return np.argsort(x, self.axis, kind="stable")

    def python(self, write: Writing, *args: Operand) -> Any:
        (x,) = args
        order = "{}" if not self.descending else "-{}" if x.type.is_float else "~{}"
        return write(f'np.argsort({order}, {{}}, kind="stable")', write.array(x), write.value(self.axis))

    def widened(self, size: int) -> Argsort:
        return replace(self, axis=self.axis + 1)

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, 4.0 * types[0].size * max(1, types[0].shape[-1]).bit_length())

    def lower(self, k: Loops, out: Window, x: Window) -> None:
        """Short rows by bottom-up merge sort: runs of 1, 2, 4, ... positions are merged pairwise, all in loops with fixed trip counts; rows
        are padded to a power of two with positions past their end, which sort after all others. Long rows by radix sort.
        """
        last = [a for a in range(x.type.rank) if a != self.axis] + [self.axis]
        out, x = out.transposed(*last), x.transposed(*last)
        *lines, n = x.type.shape
        if x.type.size == 0:
            return
        if not is_static(n) or n > SHORT * x.type.dtype.itemsize:
            lower_by_digits(k, out, x, self.descending)
            return
        filled = 1 << (n - 1).bit_length()
        source, target = (k.scratch(TensorType(I64, (filled,))) for _ in range(2))
        heads = k.scratch(TensorType(I64, (2,)))
        with nest(k, lines) as line:
            with k.loop(filled) as i:
                k.store(source, i, i)
            width = 1
            while width < filled:
                self.merge(k, x.at(*line), source, target, heads, width)
                source, target = target, source
                width *= 2
            k.copy(out.at(*line), source.slice(0, 0, n))

    def merge(self, k: Loops, row: Window, source: Window, target: Window, heads: Window, width: int) -> None:
        """Merge each pair of neighbouring runs of `width` positions; `heads` holds how many of both runs have been consumed."""
        emit, filled = k.scalar, source.type.shape[0]
        left, right = (emit.const(I64, i) for i in range(2))
        with k.loop(filled // (2 * width)) as pair:
            start = emit.mul(pair, emit.like(pair, 2 * width))
            middle, end = (emit.add(start, emit.like(start, w)) for w in (width, 2 * width))
            k.store(heads, start, left)
            k.store(heads, middle, right)
            with k.loop(2 * width) as step:
                i, j = k.load(heads, left), k.load(heads, right)
                a, b = (k.load(source, smaller(emit, at, filled - 1)) for at in (i, j))
                right_comes = emit.or_(emit.compare("ge", i, middle), self.precedes(k, row, b, a))
                right_comes = emit.and_(emit.compare("lt", j, end), right_comes)
                k.store(target, emit.select(right_comes, b, a), emit.add(start, step))
                one, none = emit.like(i, 1), emit.like(i, 0)
                k.store(heads, emit.add(i, emit.select(right_comes, none, one)), left)
                k.store(heads, emit.add(j, emit.select(right_comes, one, none)), right)

    def precedes(self, k: Loops, row: Window, a: Reg, b: Reg) -> Reg:
        """Whether the element at position `a` sorts before that at `b`, which is earlier in the row."""
        emit, n = k.scalar, row.type.shape[0]
        x, y = (k.load(row, smaller(emit, at, n - 1)) for at in (a, b))
        out = emit.compare("gt" if self.descending else "lt", x, y)
        if row.type.is_float:
            out = emit.or_(out, emit.and_(emit.unordered(y, y), emit.compare("eq", x, x)))
        return emit.and_(emit.compare("lt", a, emit.like(a, n)), out)


def smaller(emit: Emitter, x: Reg, limit: int) -> Reg:
    most = emit.like(x, limit)
    return emit.select(emit.compare("lt", x, most), x, most)


def argsort(x: Operand, axis: int = -1, descending: bool = False) -> Operand:
    """The indices that sort x along an axis."""
    axis = normalize_axis(axis, x.ndim, "argsort")
    if x.type.is_complex:
        from . import order  # noqa: PLC0415 - few programs need it

        return order.argsort(x, axis, descending)
    return apply(Argsort(axis, descending), cast(x, U8) if x.dtype == BOOL else x)


def sort(x: Operand, axis: int = -1, descending: bool = False) -> Operand:
    """x sorted along an axis. Derivatives go back to the original positions of the elements."""
    axis = normalize_axis(axis, x.ndim, "sort")
    order = argsort(x, axis, descending)
    return apply(Gather(), x, *(order if a == axis else iota(x.shape, a) for a in range(x.ndim)))
