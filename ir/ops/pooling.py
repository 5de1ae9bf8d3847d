"""Pooling over windows of spatial axes, channels last: sums and maxima of [batch, *sizes, channels], and the ops of their derivatives.

`sum_pool` and `spread_pool` are each other's transposes. `max_pool`'s derivatives read (`pick_max`) or write (`place_max`) at the first
maximum of each window, as in TensorFlow. Padding is a separate `pad`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import source_helpers
from ..cost import Cost
from ..errors import DTypeError, ShapeError
from ..types import Shape, TensorType
from .base import Array, Emitter, Loops, Op, Reg, Window, Writing, apply, evaluated, nest, with_attributes
from .convolution import paddings, per_axis
from .create import Constant
from .shape import lead, pad, reshape

__all__ = ["max_pool", "avg_pool"]

if TYPE_CHECKING:
    from ..operand import Operand

TOGETHER = 16  # elements of a window that one loop reads


def pooled(x: Array, window: Shape, strides: Shape) -> list[Array]:
    """For each place in a window, the elements of x at that place of all windows."""
    sizes = [max(n - r + s, 0) // s for n, r, s in zip(x.shape[1:], window, strides, strict=False)]
    return [x[part] for part in source_helpers.windows(sizes, window, strides, (1,) * len(window))]


@with_attributes
class Pooling(Op, abstract=True):
    """Shared by the ops: the sizes of a window, and the steps between windows."""

    window: tuple[int, ...]
    strides: tuple[int, ...]

    def pooled(self, x: TensorType) -> TensorType:
        rank = len(self.window)
        if not x.is_float:
            raise DTypeError(f"{self.name}: takes floats, not {x}")
        if x.rank != rank + 2 or len(self.strides) != rank or rank < 1:
            raise ShapeError(f"{self.name}: {x} with a window of {rank} axes: images are [batch, sizes, channels]")
        if min(self.window) < 1 or min(self.strides) < 1:
            raise ShapeError(f"{self.name}: sizes and strides of windows are at least 1, not {self.window} and {self.strides}")
        sizes = tuple((n - r) // s + 1 if n >= r else 0 for n, r, s in zip(x.shape[1:-1], self.window, self.strides))
        return x.with_shape((x.shape[0], *sizes, x.shape[-1]))

    def batch(self, size: int, args: tuple[Operand, ...], batched: Sequence[bool]) -> Operand:
        """The images of all examples form one larger batch."""
        wide = [a if has else lead(a, size) for a, has in zip(args, batched, strict=True)]
        images = wide[0].type.shape[1]
        out = apply(self, *(reshape(a, (size * images, *a.type.shape[2:])) for a in wide))
        return reshape(out, (size, images, *out.type.shape[1:]))

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, float(min(t.size for t in (*types, *self.result_types(types))) * math.prod(self.window)))

    def parts(self, write: Writing, x: Operand) -> Any:
        """The elements of an array by their place in a window, as text."""
        sizes, ones = self.pooled(x.type).shape[1:-1], (1,) * len(self.window)
        array = write.named("x", write.array(x))
        return write("[{}[part] for part in windows({}, {}, {}, {})]", array, *map(write.value, (sizes, self.window, self.strides, ones)))

    def spread(self, write: Writing, parts: Any, sizes: Shape) -> Any:
        return write("unpooled({}, {}, {}, {})", parts, *map(write.value, (sizes, self.window, self.strides)))

    def native_places(self, x: Window, sizes: Shape) -> list[Window]:
        """For each position in a window, a view of the elements of an image at that position of all windows."""
        out = []
        for place in np.ndindex(*self.window):
            window = x
            for axis, (r, n, s) in enumerate(zip(place, sizes, self.strides)):
                window = window.slice(axis, r, n, s)
            out.append(window)
        return out

    def each_image(self, k: Loops, pooled: TensorType, body: Callable[..., None], *windows: Window) -> None:
        """Call `body` with every image of the windows, which all have a batch axis, on all threads."""
        work = 1.0 * pooled.size * math.prod(self.window)
        k.each(pooled.shape[0], work, lambda n, *these: body(*(w.at(n) for w in these)), *windows)

    def fold(self, k: Loops, out: Window, x: Window, combine: Callable[[Emitter, Reg, Reg], Reg]) -> None:
        """out = the elements of each window, combined from the first to the last."""

        def together(emit: Emitter, *values: Reg) -> list[Reg]:
            total = values[0]
            for value in values[1:]:
                total = combine(emit, total, value)
            return [total]

        def one(out: Window, x: Window) -> None:
            parts = self.native_places(x, out.type.shape[:-1])
            for start in range(0, len(parts), TOGETHER):
                some = parts[start : start + TOGETHER]
                k.map(together, [out], some if start == 0 else [out, *some])

        self.each_image(k, out.type, one, out, x)


class SumPool(Pooling):
    """Sums over windows."""

    arity: ClassVar[int | None] = 1

    def infer(self, *types: TensorType) -> TensorType:
        return self.pooled(types[0])

    def evaluate(self, *arrays: Array) -> Array:
        return sum(pooled(arrays[0], self.window, self.strides))  # type: ignore[return-value]

    def python(self, write: Writing, *args: Operand) -> Any:
        return write("sum({})", self.parts(write, args[0]))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(SpreadPool(self.window, self.strides, args[0].type.shape[1:-1]), d)

    def stores_once(self, *types: TensorType) -> bool:
        return math.prod(self.window) <= TOGETHER

    def lower(self, k: Loops, out: Window, x: Window) -> None:
        self.fold(k, out, x, lambda emit, a, b: emit.add(a, b))


@with_attributes
class SpreadPool(Pooling):
    """Add every element to all positions of its window, in images of these spatial `sizes`: the transpose of `sum_pool`."""

    sizes: tuple[int, ...]

    def infer(self, *types: TensorType) -> TensorType:
        (d,) = types
        out = d.with_shape((*d.shape[:1], *self.sizes, *d.shape[-1:]))
        if d.rank < 3 or self.pooled(out) != d:
            raise ShapeError(f"{self.name}: windows {self.window} of {out} do not give {d}")
        return out

    def evaluate(self, *arrays: Array) -> Array:
        copies = [arrays[0]] * math.prod(self.window)
        return source_helpers.unpooled(copies, self.sizes, self.window, self.strides)  # type: ignore[no-any-return]

    def python(self, write: Writing, *args: Operand) -> Any:
        copies = write("[{}] * {}", write.array(args[0]), write.value(math.prod(self.window)))
        return self.spread(write, copies, self.sizes)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(SumPool(self.window, self.strides), d)

    def lower(self, k: Loops, out: Window, d: Window) -> None:
        def one(out: Window, d: Window) -> None:
            k.fill(out, 0)
            for part in self.native_places(out, d.type.shape[:-1]):
                k.accumulate(part, d)

        self.each_image(k, d.type, one, out, d)


# ---- maxima


def beats(emit: Emitter, rival: Reg, best: Reg) -> Reg:
    """Whether a later element replaces the best so far: it is larger, or the first NaN."""
    first_nan = emit.and_(emit.compare("ne", rival, rival), emit.compare("eq", best, best))
    return emit.or_(emit.compare("gt", rival, best), first_nan)


class MaxPool(Pooling):
    """The largest element of each window; NaN wins."""

    arity: ClassVar[int | None] = 1

    def infer(self, *types: TensorType) -> TensorType:
        return self.pooled(types[0])

    def evaluate(self, *arrays: Array) -> Array:
        return functools.reduce(np.maximum, pooled(arrays[0], self.window, self.strides))

    def python(self, write: Writing, *args: Operand) -> Any:
        return write("reduce(np.maximum, {})", self.parts(write, args[0]))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(PickMax(self.window, self.strides), args[0], d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(PlaceMax(self.window, self.strides), args[0], d)

    def stores_once(self, *types: TensorType) -> bool:
        return math.prod(self.window) <= TOGETHER

    def lower(self, k: Loops, out: Window, x: Window) -> None:
        self.fold(k, out, x, lambda emit, a, b: emit.select(beats(emit, b, a), b, a))


class PickMax(Pooling):
    """The elements of v at the first maximum of x in each window: args x, v."""

    def infer(self, *types: TensorType) -> TensorType:
        x, v = types
        if x != v:
            raise ShapeError(f"{self.name}: types differ: {x} and {v}")
        return self.pooled(x)

    def evaluate(self, *arrays: Array) -> Array:
        x, v = (pooled(a, self.window, self.strides) for a in arrays)
        return np.asarray(np.take_along_axis(np.stack(v), np.argmax(x, axis=0)[None], 0)[0])

    def python(self, write: Writing, *args: Operand) -> Any:
        at = write.temporary("at", write("np.argmax({}, axis=0)", self.parts(write, args[0])))
        values = write("np.stack({})", self.parts(write, args[1]))
        return write("np.take_along_axis({}, {}[None], 0)[0]", values, at)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return apply(self, args[0], d) if i == 1 else None

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return apply(PlaceMax(self.window, self.strides), args[0], d) if i == 1 else None

    def stores_once(self, *types: TensorType) -> bool:
        return True

    def lower(self, k: Loops, out: Window, x: Window, v: Window) -> None:
        def pick(emit: Emitter, *values: Reg) -> list[Reg]:
            count = len(values) // 2
            best, found = values[0], values[count]
            for rival, its in zip(values[1:count], values[count + 1 :]):
                wins = beats(emit, rival, best)
                best, found = emit.select(wins, rival, best), emit.select(wins, its, found)
            return [found]

        def one(out: Window, x: Window, v: Window) -> None:
            sizes = out.type.shape[:-1]
            with nest(k, sizes) as index:
                k.map(pick, [out.at(*index)], [w.at(*index) for image in (x, v) for w in self.native_places(image, sizes)])

        self.each_image(k, out.type, one, out, x, v)


class PlaceMax(Pooling):
    """d, added to zeros at the first maximum of x in each window: args x, d. The transpose of `pick_max` with respect to v."""

    def infer(self, *types: TensorType) -> TensorType:
        x, d = types
        if self.pooled(x) != d:
            raise ShapeError(f"{self.name}: windows {self.window} of {x} do not give {d}")
        return x

    def evaluate(self, *arrays: Array) -> Array:
        x, d = arrays
        at = np.argmax(pooled(x, self.window, self.strides), axis=0)
        parts = [np.where(at == i, d, 0) for i in range(math.prod(self.window))]
        return source_helpers.unpooled(parts, x.shape[1:-1], self.window, self.strides)  # type: ignore[no-any-return]

    def python(self, write: Writing, *args: Operand) -> Any:
        x, d = args
        at = write.temporary("at", write("np.argmax({}, axis=0)", self.parts(write, x)))
        count = write.value(math.prod(self.window))
        given = write("[np.where({} == i, {}, 0) for i in range({})]", at, write.array(d), count)
        return self.spread(write, given, x.type.shape[1:-1])

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return apply(self, args[0], d) if i == 1 else None

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return apply(PickMax(self.window, self.strides), args[0], d) if i == 1 else None

    def stores_once(self, *types: TensorType) -> bool:
        x, d = types
        return self.is_covering(x.shape[1:-1], d.shape[1:-1])

    def lower(self, k: Loops, out: Window, x: Window, d: Window) -> None:
        """Window by window, vectorised along the channels: overlapping windows add to an element one after the other."""
        apart = all(r <= s for r, s in zip(self.window, self.strides))

        def place(emit: Emitter, d: Reg, best: Reg, *values: Reg) -> list[Reg]:
            count = math.prod(self.window) - 1
            rivals, old = values[:count], values[count:]
            wins = []
            for rival in rivals:
                wins.append(beats(emit, rival, best))
                best = emit.select(wins[-1], rival, best)
            zero = emit.like(d, 0.0)
            placed, beaten = [], None  # from the last to the first: an element is the maximum if it wins, and no later one does
            for won in reversed(wins):
                placed.append(emit.select(won, d, zero) if beaten is None else emit.select(beaten, zero, emit.select(won, d, zero)))
                beaten = won if beaten is None else emit.or_(beaten, won)
            placed.append(d if beaten is None else emit.select(beaten, zero, d))
            placed.reverse()
            return [emit.add(a, b) for a, b in zip(old, placed)] if old else placed

        def one(out: Window, x: Window, d: Window) -> None:
            sizes = d.type.shape[:-1]
            if not self.is_covering(x.type.shape[:-1], sizes):
                k.fill(out, 0)
            with nest(k, sizes) as index:
                targets, seen = ([w.at(*index) for w in self.native_places(image, sizes)] for image in (out, x))
                k.map(place, targets, [d.at(*index), *seen, *([] if apart else targets)])

        self.each_image(k, d.type, one, out, x, d)

    def is_covering(self, sizes: Shape, windows: Shape) -> bool:
        """Whether every element is in exactly one window."""
        return self.window == self.strides and all(n == r * m for n, r, m in zip(sizes, self.window, windows))


# ---- frontends


def windows(x: Operand, window: Any, strides: Any, padding: int | str | Sequence[Any]) -> tuple[Shape, Shape, list[tuple[int, int]]]:
    rank = x.ndim - 2
    if rank < 1:
        raise ShapeError(f"pool: {x.type}: images are [batch, sizes, channels]")
    sizes = per_axis("window", window, rank)
    steps = sizes if strides is None else per_axis("strides", strides, rank)
    return sizes, steps, paddings(padding, x.shape[1:-1], sizes, steps, (1,) * rank)


def padded(x: Operand, widths: Sequence[tuple[int, int]], value: float) -> Operand:
    return pad(x, [0, *(p for p, _ in widths), 0], [0, *(p for _, p in widths), 0], None, value)


def max_pool(
    x: Operand, window: int | Sequence[int], strides: int | Sequence[int] | None = None, padding: int | str | Sequence[Any] = "valid"
) -> Operand:
    """Maxima over windows of the spatial axes of [batch, *sizes, channels]; strides default to the window's sizes."""
    sizes, steps, widths = windows(x, window, strides, padding)
    return apply(MaxPool(sizes, steps), padded(x, widths, -math.inf))


def avg_pool(
    x: Operand, window: int | Sequence[int], strides: int | Sequence[int] | None = None, padding: int | str | Sequence[Any] = "valid"
) -> Operand:
    """Means over windows of the spatial axes of [batch, *sizes, channels]; padding does not count."""
    sizes, steps, widths = windows(x, window, strides, padding)
    total = apply(SumPool(sizes, steps), padded(x, widths, 0.0))
    if not any(map(any, widths)):
        return total * (1.0 / math.prod(sizes))
    ones = np.pad(np.ones(x.shape[1:-1]), widths)[None, ..., None]
    counts = SumPool(sizes, steps).evaluate(ones).astype(x.dtype)
    return total / evaluated(Constant.of(counts))
