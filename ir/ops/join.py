"""Ops that combine several operands into one result: concatenated, or one written into the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..cost import Cost
from ..errors import DTypeError, ShapeError
from ..types import TensorType, identical, normalize_axis
from .base import Array, Loops, Op, Window, Writing, apply, with_attributes
from .maps import cast, common_dtype
from .shape import Span, flip, read_window, reshape, same_bits, window_of, window_shape, window_text

__all__ = ["concatenate"]

if TYPE_CHECKING:
    from ..operand import Operand


@with_attributes
class Concatenate(Op):
    """Concatenate operands along an axis."""

    axis: int
    only_moves = True

    def infer(self, *types: TensorType) -> TensorType:
        first = types[0]
        axis = normalize_axis(self.axis, first.rank, self.name)
        for x in types[1:]:
            if x.dtype != first.dtype:
                raise DTypeError(f"concatenate: dtypes differ: {first} and {x}")
            if x.shape[:axis] + x.shape[axis + 1 :] != first.shape[:axis] + first.shape[axis + 1 :] or x.rank != first.rank:
                raise ShapeError(f"concatenate: {first} and {x} differ in more than axis {axis}")
        return first.with_shape((*first.shape[:axis], sum(x.shape[axis] for x in types), *first.shape[axis + 1 :]))

    def evaluate(self, *arrays: Array) -> Array:
        return np.concatenate(arrays, self.axis)

    def python(self, write: Writing, *args: Operand) -> Any:
        axis = "" if self.axis == 0 else f", axis={self.axis}"
        return write(f"np.concatenate([{', '.join(['{}'] * len(args))}]{axis})", *map(write.array, args))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, *(d if j == i else d.literal(0, x.type) for j, x in enumerate(args)))

    def pushforward(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], tangents: tuple[Operand | None, ...]
    ) -> list[Operand | None]:
        some = next((d for d in tangents if d is not None), None)
        if some is None:
            return [None]
        return [apply(self, *(some.literal(0, x.type) if d is None else d for x, d in zip(args, tangents, strict=True)))]

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        start = sum(x.type.shape[self.axis] for x in args[:i])
        spans = [Span(0, n) for n in d.type.shape]
        spans[self.axis] = Span(start, args[i].type.shape[self.axis])
        return read_window(d, spans)

    def widened(self, size: int) -> Concatenate:
        return replace(self, axis=self.axis + 1)

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types)

    def lower(self, k: Loops, out: Window, *args: Window) -> None:
        start = 0
        for x in args:
            size = x.type.shape[self.axis]
            k.copy(out.slice(self.axis, start, size), x)
            start += size

    def splat(self, *values: Any) -> Any:
        return values[0] if same_bits(*values) else None


def concatenate(xs: Sequence[Operand], axis: int | None = 0) -> Operand:
    """Concatenate operands, promoted to one dtype; `axis=None` flattens them first."""
    if not xs:
        raise ShapeError("concatenate: needs at least one operand")
    if axis is None:
        xs, axis = [reshape(x, -1) for x in xs], 0
    if not xs[0].type.shape:
        raise ShapeError("concatenate: zero-dimensional operands; stack them, or reshape them to [1]")
    given = {x.type.dtype for x in xs}
    dtype = common_dtype(*xs) if len(given) > 1 else given.pop()  # 16-bit floats are joined as they are
    operands = [cast(x, dtype) for x in xs]
    axis = normalize_axis(axis, len(xs[0].type.shape), "concatenate")
    return operands[0] if len(operands) == 1 else apply(Concatenate(axis), *operands)


@with_attributes
class SetSlice(Op):
    """`x` with the elements of a strided window replaced by `update`."""

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    steps: tuple[int, ...]
    in_place: ClassVar[int | None] = 0
    only_moves = True

    def infer(self, *types: TensorType) -> TensorType:
        x, update = types
        window = x.with_shape(window_shape(self.name, x, self.starts, self.stops, self.steps))
        if update != window:
            raise ShapeError(f"set_slice: the window in {x} is {window}, the update {update}")
        return x

    def evaluate(self, *arrays: Array) -> Array:
        out = np.array(arrays[0], order="C")
        out[tuple(map(slice, self.starts, self.stops, self.steps))] = arrays[1]
        return out

    def python(self, write: Writing, *args: Operand) -> Any:
        x, update = args
        given = write.array(update)
        out = write.changed(x, 'np.array({}, order="C")')
        write.run(f"{{}}[{window_text(x.type.shape, self.starts, self.stops, self.steps)}] = {{}}", out, given)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        zero = d.literal(0, args[1 - i].type)
        return apply(self, d, zero) if i == 0 else apply(self, zero, d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        if i == 0:
            return apply(self, d, d.literal(0, args[1].type))
        return read_window(d, list(map(Span.between, self.starts, self.stops, self.steps)))

    def widened(self, size: int) -> SetSlice:
        return SetSlice((0, *self.starts), (size, *self.stops), (1, *self.steps))

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types)

    def lower(self, k: Loops, out: Window, x: Window, update: Window) -> None:
        k.copy(out, x)
        inner = out
        for axis, (start, size, step) in enumerate(zip(self.starts, update.type.shape, self.steps, strict=True)):
            inner = inner.slice(axis, start, size, step)
        k.copy(inner, update)

    def splat(self, *values: Any) -> Any:
        return values[0] if same_bits(*values) else None


def write_window(x: Operand, spans: Sequence[Span], update: Operand) -> Operand:
    """`x` with the elements at the given positions of every axis replaced: the inverse of `read_window`."""
    starts, stops, steps, flips = window_of(spans)
    if identical(update.type.shape, x.type.shape):
        return flip(update, flips)
    return x if update.type.size == 0 else apply(SetSlice(starts, stops, steps), x, flip(update, flips))
