"""Cumulative ops along an axis: sums and products, and the linear recurrence that their derivatives are built from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import source_helpers
from ..cost import Cost
from ..errors import DTypeError, ShapeError
from ..types import DTYPE_NAMES, I64, TensorType, normalize_axis
from .base import Array, Emitter, Loops, Op, Reg, Window, Writing, apply, nest, with_attributes
from .maps import cast
from .reduce import accumulator
from .shape import pad, reshape, slice_

__all__ = ["cumsum", "cumprod"]

if TYPE_CHECKING:
    from ..operand import Operand


@with_attributes
class Scan(Op, abstract=True):
    """A running total along an axis, from its end if `reverse`."""

    axis: int
    reverse: bool = False

    def infer(self, *types: TensorType) -> TensorType:
        x = types[0]
        if x.dtype.kind not in "fiuc":
            raise DTypeError(f"{self.name}: {DTYPE_NAMES[x.dtype]} operands are not supported")
        if any(other != x for other in types):
            raise ShapeError(f"{self.name}: types differ: {', '.join(map(str, types))}")
        normalize_axis(self.axis, x.rank, self.name)
        return x

    def widened(self, size: int) -> Scan:
        return replace(self, axis=self.axis + 1)

    def forwards(self, array: Array) -> Array:
        """The array in the order of the scan; its own inverse."""
        return np.flip(array, self.axis) if self.reverse else array

    def scanned(self, write: Writing, template: str, x: Operand) -> Any:
        return write(template, self.restored(write, write.array(x)), write.value(self.axis), write.dtype(x.type.dtype))

    def restored(self, write: Writing, node: Any) -> Any:
        """`forwards`, as text."""
        return write("np.flip({}, {})", node, write.value(self.axis)) if self.reverse else node

    def position(self, k: Loops, i: Reg, size: int) -> Reg:
        """The position along the axis of step `i` of the scan."""
        return k.scalar.sub(k.scalar.like(i, size - 1), i) if self.reverse else i

    def first(self, k: Loops, size: int) -> Reg:
        return k.scalar.const(I64, size - 1 if self.reverse else 0)

    def delayed(self, x: Operand, value: float = 0.0) -> Operand:
        """Shift every element by one step of the scan, with `value` in the first position."""
        n = x.type.shape[self.axis]
        if n == 0:
            return x
        keep = [slice(None)] * self.axis + [slice(1, None) if self.reverse else slice(n - 1)]
        width = [int(a == self.axis) for a in range(len(x.type.shape))]
        none = [0] * len(width)
        kept = slice_(x, keep)
        return pad(kept, none, width, None, value) if self.reverse else pad(kept, width, none, None, value)

    def backwards(self) -> Scan:
        return replace(self, reverse=not self.reverse)

    def step(self, emit: Emitter, before: Reg, *xs: Reg) -> Reg:
        """The total, from the previous total and the elements of the operands."""
        raise NotImplementedError(self.name)

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, float(types[0].size))

    def lower(self, k: Loops, out: Window, *args: Window) -> None:
        *lead, _ = out.type.shape
        if out.type.size == 0:
            return
        if self.axis < len(lead):
            self.lower_slices(k, out, *args)
        elif not lead:
            self.lower_row(k, [], out, *args)
        else:
            k.each(lead[0], 4.0 * out.type.size, lambda i, *windows: self.lower_rows(k, i, lead[1:], *windows), out, *args)

    def lower_rows(self, k: Loops, i: Reg, inner: Sequence[int], *windows: Window) -> None:
        with nest(k, inner) as rest:
            self.lower_row(k, [i, *rest], *windows)

    def lower_row(self, k: Loops, at: list[Reg], out: Window, *args: Window) -> None:
        """Along the last axis, with the total in a register."""
        n, dtype = out.type.shape[-1], out.type.dtype
        first = self.first(k, n)
        start = k.scalar.const(dtype, 0) if self.leaves_out else k.load(args[-1], *at, first)
        k.store(out, start, *at, first)

        def following(i: Reg, before: Reg) -> Reg:
            here, read = self.places(k, i, n)
            after = self.step(k.scalar, before, *(k.load(x, *at, read) for x in args))
            k.store(out, after, *at, here)
            return after

        k.fold(n - 1, start, following)

    def lower_slices(self, k: Loops, out: Window, *args: Window) -> None:
        """Along another axis, whole slices at a time."""
        n = out.type.shape[self.axis]
        with nest(k, out.type.shape[: self.axis]) as lead:
            first = self.first(k, n)
            if self.leaves_out:
                k.fill(out.at(*lead, first), 0)
            else:
                k.copy(out.at(*lead, first), args[-1].at(*lead, first))
            with k.loop(n - 1) as i:
                here, read = self.places(k, i, n)
                sources = [out.at(*lead, self.position(k, i, n)), *(x.at(*lead, read) for x in args)]
                k.map(lambda emit, *xs: [self.step(emit, *xs)], [out.at(*lead, here)], sources)

    def places(self, k: Loops, i: Reg, n: int) -> tuple[Reg, Reg]:
        """The position of the total after step `i`, and that of the operands of that step."""
        here = self.position(k, k.scalar.add(i, k.scalar.like(i, 1)), n)
        return here, self.position(k, i, n) if self.leaves_out else here

    @property
    def leaves_out(self) -> bool:
        """Whether each element is excluded from its own total."""
        return False


@with_attributes
class Cumsum(Scan):
    """Running sum; `exclusive` excludes each element itself."""

    arity: ClassVar[int | None] = 1

    exclusive: bool = False

    @property
    def leaves_out(self) -> bool:
        return self.exclusive

    def evaluate(self, *arrays: Array) -> Array:
        x = self.forwards(arrays[0])
        total = np.cumsum(x, self.axis, dtype=x.dtype)
        if self.exclusive:
            total = np.roll(total, 1, self.axis)
            total[(slice(None),) * self.axis + (slice(1),)] = 0
        return self.forwards(total)

    def python(self, write: Writing, *args: Operand) -> Any:
        total = self.scanned(write, "np.cumsum({}, {}, dtype={})", *args)
        if not self.exclusive:
            return self.restored(write, total)
        out = write.temporary("total", write("np.roll({}, 1, {})", total, write.value(self.axis)))
        write.run(f"{{}}[{':, ' * self.axis}:1] = 0", out)
        return self.restored(write, out)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self.backwards(), d)

    def step(self, emit: Emitter, before: Reg, *xs: Reg) -> Reg:
        return emit.add(before, xs[0])


class Cumprod(Scan):
    """Running product. Its derivatives are recurrences without quotients: zeros need no special case."""

    arity: ClassVar[int | None] = 1

    def evaluate(self, *arrays: Array) -> Array:
        return self.forwards(np.cumprod(self.forwards(arrays[0]), self.axis, dtype=arrays[0].dtype))

    def python(self, write: Writing, *args: Operand) -> Any:
        return self.restored(write, self.scanned(write, "np.cumprod({}, {}, dtype={})", *args))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(Recurrence(self.axis, self.reverse), args[0], d * self.delayed(y, 1.0))

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        back = self.backwards()
        return apply(Recurrence(back.axis, back.reverse), back.delayed(args[0]), d) * self.delayed(y, 1.0)

    def step(self, emit: Emitter, before: Reg, *xs: Reg) -> Reg:
        return emit.mul(before, xs[0])


class Recurrence(Scan):
    """h[t] = a[t] * h[t-1] + b[t] along an axis, with h = 0 before the first step (so that the first `a` is not read)."""

    arity: ClassVar[int | None] = 2

    def evaluate(self, *arrays: Array) -> Array:
        a, b = map(self.forwards, arrays)
        return self.forwards(source_helpers.recurrence(a, b, self.axis))

    def python(self, write: Writing, *args: Operand) -> Any:
        a, b = (self.restored(write, write.array(x)) for x in args)
        return self.restored(write, write("recurrence({}, {}, {})", a, b, write.value(self.axis)))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, args[0], d * self.delayed(y) if i == 0 else d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        back = self.backwards()
        through = apply(back, back.delayed(args[0]), d)
        return through * self.delayed(y) if i == 0 else through

    def step(self, emit: Emitter, before: Reg, *xs: Reg) -> Reg:
        a, b = xs
        return emit.add(emit.mul(a, before), b)


def cumsum(x: Operand, axis: int | None = None) -> Operand:
    return _cumulative(Cumsum, x, axis)


def cumprod(x: Operand, axis: int | None = None) -> Operand:
    return _cumulative(Cumprod, x, axis)


def _cumulative(op_class: type[Cumsum] | type[Cumprod], x: Operand, axis: int | None) -> Operand:
    """Without an axis, along the flattened operand; integers are accumulated in 64 bits, and a scalar has one axis, as in NumPy."""
    wide = cast(x, accumulator(x.type.dtype))
    if axis is None or not wide.type.shape:
        wide = reshape(wide, -1)
    return apply(op_class(0 if axis is None else normalize_axis(axis, len(wide.type.shape), op_class.name)), wide)
