"""Running totals along an axis: cumulative sums and products, and the linear recurrence that their derivatives are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DTypeError, ShapeError
from ..types import DTYPE_NAMES, I64, TensorType, normalize_axis
from .base import Array, Emitter, Loops, Op, Reg, Window, apply, nest
from .maps import cast
from .reduce import accumulator
from .shape import pad, reshape, slice_

__all__ = ["cumsum", "cumprod"]

if TYPE_CHECKING:
    from ..operand import Operand


@dataclass(frozen=True, eq=False, repr=False)
class Scan(Op, abstract=True):
    """A running total along an axis, from its end when `reverse`."""

    axis: int
    reverse: bool = False

    def infer(self, *types: TensorType) -> TensorType:
        x = types[0]
        if x.dtype.kind not in "fiu":
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

    def position(self, k: Loops, i: Reg, size: int) -> Reg:
        """Where along the axis step `i` of the scan is."""
        return k.scalar.sub(k.scalar.like(i, size - 1), i) if self.reverse else i

    def first(self, k: Loops, size: int) -> Reg:
        return k.scalar.const(I64, size - 1 if self.reverse else 0)

    def delayed(self, x: Operand, value: float = 0.0) -> Operand:
        """Every element moved on by one step of the scan, `value` in the first place."""
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


@dataclass(frozen=True, eq=False, repr=False)
class Cumsum(Scan):
    """Running sum; `exclusive` leaves each element itself out."""

    exclusive: bool = False

    def evaluate(self, *arrays: Array) -> Array:
        x = self.forwards(arrays[0])
        total = np.cumsum(x, self.axis, dtype=x.dtype)
        if self.exclusive:
            total = np.roll(total, 1, self.axis)
            total[(slice(None),) * self.axis + (slice(1),)] = 0
        return self.forwards(total)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self.backwards(), d)

    def lower(self, k: Loops, out: Window, x: Window) -> None:
        n = x.type.shape[self.axis]
        if x.type.size == 0:
            return
        with nest(k, x.type.shape[: self.axis]) as lead:
            first = self.first(k, n)
            if self.exclusive:
                k.fill(out.at(*lead, first), 0)
            else:
                k.copy(out.at(*lead, first), x.at(*lead, first))
            with k.loop(n - 1) as i:
                before = self.position(k, i, n)
                here = self.position(k, k.scalar.add(i, k.scalar.like(i, 1)), n)
                k.copy(out.at(*lead, here), out.at(*lead, before))
                k.accumulate(out.at(*lead, here), x.at(*lead, before if self.exclusive else here))


class Cumprod(Scan):
    """Running product. Its derivatives are recurrences without quotients: zeros are nothing special."""

    def evaluate(self, *arrays: Array) -> Array:
        return self.forwards(np.cumprod(self.forwards(arrays[0]), self.axis, dtype=arrays[0].dtype))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(Recurrence(self.axis, self.reverse), args[0], d * self.delayed(y, 1.0))

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        back = self.backwards()
        return apply(Recurrence(back.axis, back.reverse), back.delayed(args[0]), d) * self.delayed(y, 1.0)

    def lower(self, k: Loops, out: Window, x: Window) -> None:
        lower_stepwise(self, k, out, x)

    def step(self, emit: Emitter, before: Reg, x: Reg) -> Reg:
        return emit.mul(before, x)


class Recurrence(Scan):
    """h[t] = a[t] * h[t-1] + b[t] along an axis, with h before the first step 0 (so that the first `a` is not read)."""

    def evaluate(self, *arrays: Array) -> Array:
        a, b = (np.moveaxis(self.forwards(x), self.axis, 0) for x in arrays)
        out = np.array(b)
        for t in range(1, len(b)):
            out[t] += a[t] * out[t - 1]
        return self.forwards(np.moveaxis(out, 0, self.axis))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, args[0], d * self.delayed(y) if i == 0 else d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        back = self.backwards()
        through = apply(back, back.delayed(args[0]), d)
        return through * self.delayed(y) if i == 0 else through

    def lower(self, k: Loops, out: Window, a: Window, b: Window) -> None:
        lower_stepwise(self, k, out, a, b)

    def step(self, emit: Emitter, before: Reg, a: Reg, b: Reg) -> Reg:
        return emit.add(emit.mul(a, before), b)


def lower_stepwise(op: Cumprod | Recurrence, k: Loops, out: Window, *args: Window) -> None:
    """Each element of the result from the one before it by `op.step`; the first is that of the last argument."""
    shape = out.type.shape
    n = shape[op.axis]
    if out.type.size == 0:
        return
    trailing = shape[op.axis + 1 :]
    with nest(k, shape[: op.axis]) as lead:
        first = op.first(k, n)
        k.copy(out.at(*lead, first), args[-1].at(*lead, first))
        with k.loop(n - 1) as i:
            before, here = op.position(k, i, n), op.position(k, k.scalar.add(i, k.scalar.like(i, 1)), n)
            with nest(k, trailing) as trail:
                xs = [k.load(x, *lead, here, *trail) for x in args]
                k.store(out, op.step(k.scalar, k.load(out, *lead, before, *trail), *xs), *lead, here, *trail)


def cumsum(x: Operand, axis: int | None = None) -> Operand:
    return _cumulative(Cumsum, x, axis)


def cumprod(x: Operand, axis: int | None = None) -> Operand:
    return _cumulative(Cumprod, x, axis)


def _cumulative(op_class: type[Cumsum] | type[Cumprod], x: Operand, axis: int | None) -> Operand:
    """Without an axis, along the flattened operand; integers are accumulated in 64 bits, as NumPy does."""
    wide = cast(x, accumulator(x.type.dtype))
    if axis is None:
        return apply(op_class(0), reshape(wide, -1))
    return apply(op_class(normalize_axis(axis, len(x.type.shape), op_class.name)), wide)
