"""Ops that move elements without computing on them. All except `pad` are views: they cost nothing in native code.

Joining several operands, and writing into one, is in `join`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cost import Cost
from ..errors import AdjitError, DTypeError, ShapeError
from ..layout import Layout
from ..records import NamedTuple
from ..sizes import at_least, is_symbolic, maximum, minimum
from ..types import (
    I64,
    Shape,
    TensorType,
    as_shape,
    as_size,
    broadcast_shapes,
    checked_type,
    identical,
    normalize_axes,
    normalize_axis,
    resolve_reshape,
    strided_size,
)
from ..vocabulary import functions
from .base import Array, Loops, Op, View, Window, Writing, apply, with_attributes

__all__ = ["broadcast_to", "reshape", "transpose", "slice_", "flip", "pad"]

if TYPE_CHECKING:
    from ..operand import Operand


@with_attributes
class Broadcast(View):
    """Repeat along new leading axes and along axes of size 1."""

    shape: Shape

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if broadcast_shapes("broadcast", x.shape, self.shape) != self.shape:
            raise ShapeError(f"broadcast: {x} does not broadcast to {list(self.shape)}")
        return x.with_shape(self.shape)

    def evaluate(self, *arrays: Array) -> Array:
        return np.broadcast_to(arrays[0], self.shape)

    def python(self, write: Writing, *args: Operand) -> Any:
        return write.loose(write.array(args[0]), args[0].type.shape)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        source = args[0].type.shape
        lead = len(self.shape) - len(source)
        axes = tuple(range(lead)) + tuple(lead + a for a, n in enumerate(source) if n == 1 and self.shape[lead + a] != 1)
        return reshape(d.summed(axes), source)

    def batch(self, size: int, args: tuple[Operand, ...], batched: Sequence[bool]) -> Operand:
        source = args[0].type.shape[1:]
        aligned = reshape(args[0], (size, *(1,) * (len(self.shape) - len(source)), *source))
        return broadcast_to(aligned, (size, *self.shape))

    def view(self, layout: Layout, source: TensorType) -> Layout:
        return layout.broadcast(source.shape, self.shape)


def broadcast_to(x: Operand, shape: Shape) -> Operand:
    return x if identical(x.type.shape, shape) else apply(Broadcast(shape), x)


def lead(x: Operand, size: int) -> Operand:
    """`x` repeated along a new leading axis."""
    return apply(Broadcast((size, *x.type.shape)), x)


def trail(x: Operand, shape: Shape) -> Operand:
    """`x` repeated along the axes that `shape` has after those of `x`."""
    rank = len(x.type.shape)
    return broadcast_to(reshape(x, (*x.type.shape, *(1,) * (len(shape) - rank))), shape)


def move_lead(x: Operand, places: int) -> Operand:
    """Move the leading axis behind the `places` axes that follow it."""
    rank = len(x.type.shape)
    return transpose(x, (*range(1, places + 1), 0, *range(places + 1, rank)))


def move_to_lead(x: Operand, axis: int) -> Operand:
    """Move the axis to the front: the inverse of `move_lead`."""
    return transpose(x, (axis, *(a for a in range(len(x.type.shape)) if a != axis)))


@with_attributes
class Reshape(View):
    """The same elements, in row-major order, under another shape."""

    shape: Shape

    def infer(self, *types: TensorType) -> TensorType:
        return types[0].with_shape(resolve_reshape(types[0].shape, self.shape))

    def evaluate(self, *arrays: Array) -> Array:
        return arrays[0].reshape(self.shape)

    def python(self, write: Writing, *args: Operand) -> Any:
        (x,) = args
        stmt = write.inside(x)
        if stmt is not None and isinstance(stmt.op, Slice):
            key = stmt.op.dropped(stmt.args[0].type.shape, self.shape)
            if key is not None:
                return write(f"{{}}[{', '.join(key)}]", write.array(stmt.args[0]))
        key = inserted_ones(x.type.shape, self.shape)
        if key is not None:
            return write(f"{{}}[{', '.join(key)}]", write.array(x))
        return write(f"{{}}.reshape({', '.join(map(str, self.shape)) or '()'})", write.array(x))

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return reshape(d, args[0].type.shape)

    def widened(self, size: int) -> Reshape:
        return Reshape((size, *self.shape))

    def view(self, layout: Layout, source: TensorType) -> Layout | None:
        return layout.reshaped(source.shape, self.shape)


def reshape(x: Operand, shape: Any) -> Operand:
    target = resolve_reshape(x.type.shape, shape)
    return x if identical(target, x.type.shape) else apply(Reshape(target), x)


@with_attributes
class Transpose(View):
    """Permute the axes: axis k of the result is axis `axes[k]` of the operand."""

    axes: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if sorted(self.axes) != list(range(x.rank)):
            raise ShapeError(f"transpose: axes {list(self.axes)} are not a permutation of the axes of {x}")
        return x.with_shape(tuple(x.shape[a] for a in self.axes))

    def evaluate(self, *arrays: Array) -> Array:
        return arrays[0].transpose(self.axes)

    def python(self, write: Writing, *args: Operand) -> Any:
        if self.axes == tuple(range(len(self.axes)))[::-1]:
            return write("{}.T", write.array(args[0]))
        return write(f"{{}}.transpose({', '.join(map(str, self.axes))})", write.array(args[0]))

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return transpose(d, inverse(self.axes))

    def widened(self, size: int) -> Transpose:
        return Transpose((0, *(a + 1 for a in self.axes)))

    def view(self, layout: Layout, source: TensorType) -> Layout:
        return layout.permuted(self.axes)


def inverse(axes: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes `axes`."""
    return tuple(sorted(range(len(axes)), key=axes.__getitem__))


def transpose(x: Operand, axes: Sequence[int] | None = None) -> Operand:
    rank = len(x.type.shape)
    order = tuple(range(rank))[::-1] if axes is None else tuple(normalize_axis(a, rank, "transpose") for a in axes)
    return x if order == tuple(range(rank)) else apply(Transpose(order), x)


@with_attributes
class Slice(View):
    """Elements `start, start + step, ...` below `stop` of every axis; 0 <= start, stop <= size and step >= 1."""

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    steps: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        return x.with_shape(window_shape(self.name, x, self.starts, self.stops, self.steps))

    def evaluate(self, *arrays: Array) -> Array:
        return arrays[0][tuple(map(slice, self.starts, self.stops, self.steps))]

    def python(self, write: Writing, *args: Operand) -> Any:
        return write(f"{{}}[{window_text(args[0].type.shape, self.starts, self.stops, self.steps)}]", write.array(args[0]))

    def dropped(self, shape: Shape, wanted: Shape) -> list[str] | None:
        """The key that selects the same without the axes of size 1, if `wanted` is the shape of that."""
        sizes = window_shape(self.name, TensorType(I64, shape), self.starts, self.stops, self.steps)
        single = [n == 1 != size for n, size in zip(sizes, shape)]
        if tuple(n for n, drop in zip(sizes, single) if not drop) != wanted:
            return None
        key = [str(a) if drop else slice_text(n, a, b, c) for n, a, b, c, drop in zip(shape, self.starts, self.stops, self.steps, single)]
        while len(key) > 1 and key[-1] == ":":
            key.pop()
        return key

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        low, high = [], []
        for start, step, size, kept in zip(self.starts, self.steps, args[0].type.shape, d.type.shape, strict=True):
            low.append(start if kept else size)
            high.append(size - start - (kept - 1) * step - 1 if kept else 0)
        return pad(d, low, high, [step - 1 for step in self.steps])

    def widened(self, size: int) -> Slice:
        return Slice((0, *self.starts), (size, *self.stops), (1, *self.steps))

    def view(self, layout: Layout, source: TensorType) -> Layout:
        return layout.sliced(self.starts, self.steps)


def window_shape(name: str, x: TensorType, starts: Shape, stops: Shape, steps: Shape) -> Shape:
    """The shape of a strided window in `x`; raises ShapeError if the window exceeds `x`."""
    if not len(starts) == len(stops) == len(steps) == x.rank:
        raise ShapeError(f"{name}: {x} takes {x.rank} starts, stops and steps, not {list(starts)}, {list(stops)}, {list(steps)}")
    for start, stop, step, size in zip(starts, stops, steps, x.shape, strict=True):
        if not (0 <= start <= size and 0 <= stop <= size and step >= 1):
            raise ShapeError(f"{name}: {start}:{stop}:{step} is not a window of an axis of size {size}, in {x}")
    return tuple(map(strided_size, starts, stops, steps))


def slice_(x: Operand, slices: Sequence[slice]) -> Operand:
    """`x[s0, s1, ...]` for Python slices with static bounds; a negative step reverses. Axes that are not named stay whole.

    >>> slice_(x, [slice(None, None, -1)])          # doctest: +SKIP
    """
    shape = x.type.shape
    if len(slices) > len(shape):
        raise ShapeError(f"slice: {len(slices)} slices for {x.type}")
    spans = [span(s, n) for s, n in zip(slices, shape)] + [Span(0, n) for n in shape[len(slices) :]]
    return read_window(x, spans)


def slice_text(size: int, start: int, stop: int, step: int) -> str:
    """`start:stop:step` for an axis, without parts that equal their defaults."""
    last = "" if stop >= size else str(stop)
    return f"{start or ''}:{last}" + ("" if step == 1 else f":{step}")


def window_text(shape: Shape, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int]) -> str:
    """The key of a window, as Python: `1:, :3`."""
    key = [slice_text(*each) for each in zip(shape, starts, stops, steps, strict=True)]
    while len(key) > 1 and key[-1] == ":":
        key.pop()
    return ", ".join(key)


def inserted_ones(shape: Shape, wanted: Shape) -> list[str] | None:
    """The key that inserts axes of size 1 to get the wanted shape, as Python: `[":", "None"]`; None if they are not all that is added."""
    rest = list(shape)
    key = []
    for n in wanted:
        same = bool(rest) and n == rest[0]
        if not same and n != 1:
            return None
        key.append(":" if same else "None")
        del rest[: int(same)]
    while key and key[-1] == ":":
        key.pop()
    return None if rest or not key else key


class Span(NamedTuple):
    """`length` positions along an axis: start, start + step, ..."""

    start: int
    length: int
    step: int = 1

    @staticmethod
    def between(start: int, stop: int, step: int = 1) -> Span:
        """The positions below `stop`, for a positive step."""
        return Span(start, strided_size(start, stop, step), step)

    @property
    def stop(self) -> int:
        """The position after the last one, for a positive step."""
        return self.start + (self.length - 1) * self.step + 1 if self.length else self.start

    def ascending(self) -> Span:
        if self.length == 0:
            return Span(0, 0)
        start = self.start if self.step > 0 else self.start + (self.length - 1) * self.step
        step = abs(self.step)
        return Span(start, self.length, 1 if at_least(1, self.length) else step)


def span(s: slice, size: int) -> Span:
    """The positions that a slice selects along an axis."""
    try:
        if any(map(is_symbolic, (size, s.start, s.stop))):
            return symbolic_span(s, size)
        found = range(*s.indices(size))
        return Span(found.start, len(found), found.step)
    except AdjitError:
        raise  # a traced bound; its error already has a remedy
    except (TypeError, ValueError) as error:
        raise ShapeError(f"slice: {s} is not a slice of Python integers with a nonzero step ({error})") from None


def symbolic_span(s: slice, size: int) -> Span:
    """`slice.indices` on sizes that are known only when the program runs."""
    step = 1 if s.step is None else operator.index(s.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, size) if step > 0 else (-1, size - 1)  # of a bound

    def bound(given: Any, otherwise: int) -> int:
        if given is None:
            return otherwise
        n = as_size(given)
        return maximum(n + size, low) if n < 0 else minimum(n, high)

    start, stop = (bound(s.start, low), bound(s.stop, high)) if step > 0 else (bound(s.start, high), bound(s.stop, low))
    count = strided_size(start, stop, step) if step > 0 else strided_size(stop, start, -step)
    return Span(start, count, step)


def window_of(spans: Sequence[Span]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Starts, stops and steps of the ascending window over `spans`, and the axes to flip to restore their direction."""
    ascending = [s.ascending() for s in spans]
    starts = tuple(s.start for s in ascending)
    stops = tuple(s.stop for s in ascending)
    steps = tuple(s.step for s in ascending)
    return starts, stops, steps, tuple(axis for axis, s in enumerate(spans) if s.step < 0 and not at_least(1, s.length))


def read_window(x: Operand, spans: Sequence[Span]) -> Operand:
    """The elements of `x` at the given positions of every axis."""
    starts, stops, steps, flips = window_of(spans)
    whole = identical(tuple(s.length for s in spans), x.type.shape)
    return flip(x if whole else apply(Slice(starts, stops, steps), x), flips)


@with_attributes
class Flip(View):
    """Reverse the order of the elements along axes (sorted)."""

    axes: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        normalize_axes(self.axes, types[0].rank, self.name)
        return types[0]

    def evaluate(self, *arrays: Array) -> Array:
        return np.flip(arrays[0], self.axes)

    def python(self, write: Writing, *args: Operand) -> Any:
        return write("np.flip({}, {})", write.array(args[0]), write.value(self.axes[0] if len(self.axes) == 1 else self.axes))

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return flip(d, self.axes)

    def widened(self, size: int) -> Flip:
        return Flip(tuple(a + 1 for a in self.axes))

    def view(self, layout: Layout, source: TensorType) -> Layout:
        return layout.flipped(self.axes, source.shape)


def flip(x: Operand, axis: Any = None) -> Operand:
    axes = tuple(a for a in normalize_axes(axis, len(x.type.shape), "flip") if not at_least(1, x.type.shape[a]))
    return apply(Flip(axes), x) if axes else x


@with_attributes
class Pad(Op):
    """`low` and `high` elements of `value` before and after every axis, and `interior` ones between any two neighbours."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    interior: tuple[int, ...]
    value: float | int | bool = 0
    only_moves = True
    shifts = True

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if not len(self.low) == len(self.high) == len(self.interior) == x.rank:
            raise ShapeError(f"pad: {x} takes {x.rank} widths, not {list(self.low)}, {list(self.high)}, {list(self.interior)}")
        if any(n < 0 for n in (*self.low, *self.high, *self.interior)):
            raise ShapeError(f"pad: negative width in {list(self.low)}, {list(self.high)}, {list(self.interior)}; slice instead")
        shape = tuple(b + e + maximum(0, n + (n - 1) * k) for n, b, e, k in zip(x.shape, self.low, self.high, self.interior))
        return checked_type(x.dtype, shape, "pad")

    def evaluate(self, *arrays: Array) -> Array:
        (x,) = arrays
        out = np.full(self.infer(TensorType(x.dtype, x.shape)).shape, self.value, x.dtype)
        out[tuple(map(slice, *self._window(x.shape)))] = x
        return out

    def python(self, write: Writing, *args: Operand) -> Any:
        (x,) = args
        type = self.infer(x.type)
        inner = write.array(x)
        out = write.new(write.filled(self.value, type.dtype, type.shape))
        write.run(f"{{}}[{window_text(type.shape, *self._window(x.type.shape))}] = {{}}", out, inner)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(replace(self, value=type(self.value)(0)), d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return read_window(d, list(map(Span.between, *self._window(args[0].type.shape))))

    def widened(self, size: int) -> Pad:
        return replace(self, low=(0, *self.low), high=(0, *self.high), interior=(0, *self.interior))

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types)

    def lower(self, k: Loops, out: Window, x: Window) -> None:
        k.fill(out, self.value)
        inner = out
        for axis, (start, _, step) in enumerate(zip(*self._window(x.type.shape))):
            inner = inner.slice(axis, start, x.type.shape[axis], step)
        k.copy(inner, x)

    def splat(self, *values: Any) -> Any:
        return values[0] if same_bits(values[0], self.value) else None

    def _window(self, shape: Shape) -> tuple[list[int], list[int], list[int]]:
        """Starts, stops and steps of the operand in the result."""
        steps = [k + 1 for k in self.interior]
        return list(self.low), [b + (n - 1) * s + 1 if n else b for b, n, s in zip(self.low, shape, steps)], steps


def same_bits(*values: Any) -> bool:
    """Whether the values (the first a NumPy scalar) are bitwise the same constant: 0.0 is not -0.0, and NaN equals itself."""
    return len({values[0].dtype.type(v).tobytes() for v in values}) == 1


def pad(
    x: Operand, low: Sequence[int], high: Sequence[int], interior: Sequence[int] | None = None, value: float | int | bool = 0
) -> Operand:
    """`x` with constants around it (and between its elements); one width per axis."""
    before, after, between = (as_shape(w, "pad") for w in (low, high, interior or (0,) * len(x.type.shape)))
    if not any(is_symbolic(n) or n for n in (*before, *after, *between)):
        return x
    try:
        fill = x.type.dtype.type(value).item()
    except (OverflowError, TypeError, ValueError):
        raise DTypeError(f"pad: {value!r} does not fit {x.type}") from None
    if isinstance(fill, complex):  # attributes are real numbers
        if fill.imag or math.copysign(1.0, fill.imag) < 0 or (fill == 0 and math.copysign(1.0, fill.real) < 0):
            parts = (functions.real(x), fill.real), (functions.imag(x), fill.imag)
            return functions.from_parts(*(pad(part, low, high, interior, v) for part, v in parts))  # type: ignore[no-any-return]
        fill = fill.real
    if fill == 0 and math.copysign(1.0, fill) < 0:  # attributes are compared by value, where 0.0 and -0.0 are equal
        return -pad(-x, low, high, interior, 0.0)
    return apply(Pad(before, after, between, fill), x)
