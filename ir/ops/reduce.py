"""Reductions over axes. A reduction drops its axes; `keepdims` is a reshape after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..errors import DTypeError
from ..types import BOOL, DTYPE_NAMES, I64, U64, DType, TensorType, kept_shape, normalize_axes, reduced_shape
from .base import Array, Emitter, Op, Reg, apply
from .maps import cast
from .shape import broadcast_to, reshape

__all__ = ["sum"]

if TYPE_CHECKING:
    from ..operand import Operand


@dataclass(frozen=True)
class Reduce(Op, abstract=True):
    """Combine all elements along `axes` (sorted, static). Lowered inside fused loop nests by `identity` and `combine`."""

    axes: tuple[int, ...]
    kinds: ClassVar[str] = "fiu"

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        if x.dtype.kind not in self.kinds:
            raise DTypeError(f"{self.name}: {DTYPE_NAMES[x.dtype]} operands are not supported")
        return x.with_shape(reduced_shape(x.shape, normalize_axes(self.axes, x.rank, self.name)))

    def identity(self, dtype: DType) -> float | int | bool:
        """The value that `combine` leaves the other operand with."""
        raise NotImplementedError(self.name)

    def combine(self, emit: Emitter, total: Reg, x: Reg) -> Reg:
        raise NotImplementedError(self.name)

    def spread(self, reduced: Operand, x: Operand) -> Operand:
        """A reduced value, repeated over the axes that were reduced away."""
        return broadcast_to(reshape(reduced, kept_shape(x.type.shape, self.axes)), x.type.shape)


class Sum(Reduce):
    """Sum over axes."""

    def evaluate(self, *arrays: Array) -> Array:
        return np.asarray(np.sum(arrays[0], axis=self.axes, dtype=arrays[0].dtype))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(self, d)

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return self.spread(d, args[0])

    def identity(self, dtype: DType) -> float | int | bool:
        return 0

    def combine(self, emit: Emitter, total: Reg, x: Reg) -> Reg:
        return emit.add(total, x)


def reduce(op_class: type[Reduce], x: Operand, axis: Any, keepdims: bool) -> Operand:
    axes = normalize_axes(axis, len(x.type.shape), op_class.name)
    out = apply(op_class(axes), x) if axes else x
    return reshape(out, kept_shape(x.type.shape, axes)) if keepdims else out


def accumulator(dtype: DType) -> DType:
    """NumPy sums and multiplies bools and small integers in 64 bits."""
    if dtype == BOOL or dtype.kind == "i":
        return I64
    return U64 if dtype.kind == "u" else dtype


def sum(x: Operand, axis: Any = None, keepdims: bool = False) -> Operand:
    return reduce(Sum, cast(x, accumulator(x.type.dtype)), axis, keepdims)
