"""Ops that make values out of nothing: constants and counters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..types import DType, Shape, TensorType
from .base import Array, Emitter, Op, Reg
from .maps import Map

__all__: list[str] = []


@dataclass(frozen=True)
class Constant(Op):
    """A small array, written out in the IR. Larger ones are captured as parameters."""

    dtype: DType
    shape: Shape
    data: bytes
    differentiable: ClassVar[bool] = False

    @staticmethod
    def of(array: Array) -> Constant:
        return Constant(array.dtype, array.shape, np.ascontiguousarray(array).tobytes())

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(self.dtype, self.shape)

    def evaluate(self, *arrays: Array) -> Array:
        return np.frombuffer(self.data, self.dtype).reshape(self.shape)


@dataclass(frozen=True)
class Iota(Map):
    """0, 1, 2, ... along one axis."""

    dtype: DType
    shape: Shape
    axis: int
    differentiable: ClassVar[bool] = False

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(self.dtype, self.shape)

    def evaluate(self, *arrays: Array) -> Array:
        line = np.arange(self.shape[self.axis], dtype=self.dtype)
        return np.broadcast_to(line.reshape([-1 if a == self.axis else 1 for a in range(len(self.shape))]), self.shape)

    def splat(self, *values: object) -> None:
        return None

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.convert(emit.index(self.axis), self.dtype)


@dataclass(frozen=True)
class Fill(Map):
    """A literal given a buffer of its own, for ops that read memory."""

    value: float | int | bool
    dtype: DType
    shape: Shape
    differentiable: ClassVar[bool] = False

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(self.dtype, self.shape)

    def evaluate(self, *arrays: Array) -> Array:
        return np.full(self.shape, self.value, self.dtype)

    def splat(self, *values: object) -> None:
        return None

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.const(self.dtype, self.value)
