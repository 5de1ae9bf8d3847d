"""Ops that move elements without computing on them. All but `pad` and `concatenate` are views: they cost nothing in native code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ShapeError
from ..layout import Layout
from ..types import Shape, TensorType, broadcast_shapes, normalize_axis, resolve_reshape
from .base import Array, View, apply

__all__ = ["broadcast_to", "reshape", "transpose"]

if TYPE_CHECKING:
    from ..operand import Operand


@dataclass(frozen=True)
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

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        source = args[0].type.shape
        lead = len(self.shape) - len(source)
        axes = tuple(range(lead)) + tuple(lead + a for a, n in enumerate(source) if n == 1 and self.shape[lead + a] != 1)
        return d.sum(axes).reshape(source)

    def view(self, layout: Layout, source: TensorType) -> Layout:
        return layout.broadcast(source.shape, self.shape)


def broadcast_to(x: Operand, shape: Shape) -> Operand:
    return x if x.type.shape == shape else apply(Broadcast(shape), x)


@dataclass(frozen=True)
class Reshape(View):
    """The same elements, in row-major order, under another shape."""

    shape: Shape

    def infer(self, *types: TensorType) -> TensorType:
        return types[0].with_shape(resolve_reshape(types[0].shape, self.shape))

    def evaluate(self, *arrays: Array) -> Array:
        return arrays[0].reshape(self.shape)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return reshape(d, args[0].type.shape)

    def view(self, layout: Layout, source: TensorType) -> Layout | None:
        return layout.reshaped(source.shape, self.shape)


def reshape(x: Operand, shape: Any) -> Operand:
    target = resolve_reshape(x.type.shape, shape)
    return x if target == x.type.shape else apply(Reshape(target), x)


@dataclass(frozen=True)
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

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return transpose(d, tuple(int(a) for a in np.argsort(self.axes)))

    def view(self, layout: Layout, source: TensorType) -> Layout:
        return layout.permuted(self.axes)


def transpose(x: Operand, axes: tuple[int, ...] | None = None) -> Operand:
    rank = len(x.type.shape)
    order = tuple(range(rank))[::-1] if axes is None else tuple(normalize_axis(a, rank, "transpose") for a in axes)
    return x if order == tuple(range(rank)) else apply(Transpose(order), x)
