"""TensorSpec and VariableSpec: the dtype and shape that an argument must have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adjit.ir.operand import Operand, as_operand

from .dtypes import as_dtype, float32
from .shape import TensorShape
from .tensor import EagerTensor, convert_to_tensor, eager
from .text import TextTensor, string


class TensorSpec:
    """`tf.TensorSpec([None, 3], tf.float32)`: a size of None means any size, a shape of None any shape."""

    __slots__ = ("shape", "dtype", "name")

    def __init__(self, shape: Any = None, dtype: Any = float32, name: str | None = None) -> None:
        self.shape = None if shape is None else TensorShape(shape)
        self.dtype: Any = dtype if dtype is string else as_dtype(dtype)
        self.name = name

    @staticmethod
    def from_tensor(tensor: Any, name: str | None = None) -> TensorSpec:
        operand = as_operand(tensor)
        return TensorSpec(operand.type.shape, operand.type.dtype, name)

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        return cls(spec.shape, spec.dtype, name or spec.name)

    def is_compatible_with(self, value: Any) -> bool:
        other = value if isinstance(value, TensorSpec) else spec_of(value)
        return self.dtype == other.dtype and (self.shape is None or other.shape is None or self.shape.is_compatible_with(other.shape))

    def example(self, size: Callable[[], int] = lambda: 1) -> EagerTensor | TextTensor:
        """A tensor of this type, for tracing; `size` returns values for unknown sizes."""
        shape = () if self.shape is None else [size() if d is None else d for d in self.shape]
        if self.dtype is string:
            return TextTensor(np.full(shape, b"", object))
        return eager(np.zeros(shape, self.dtype.dtype))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and (self.shape, self.dtype, self.name) == (other.shape, other.dtype, other.name)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        shape = "<unknown>" if self.shape is None else str(self.shape)
        return f"TensorSpec(shape={shape}, dtype={self.dtype!r}, name={self.name!r})"


class VariableSpec(TensorSpec):
    """A variable of a dtype and shape."""

    __slots__ = ("trainable",)

    def __init__(self, shape: Any, dtype: Any = float32, trainable: bool = True) -> None:
        super().__init__(shape, dtype)
        self.trainable = trainable

    def __repr__(self) -> str:
        return f"VariableSpec(shape={self.shape}, dtype={self.dtype!r}, trainable={self.trainable}, alias_id=0)"


def spec_of(value: Any) -> TensorSpec:
    if isinstance(value, TextTensor):
        return TensorSpec(value.shape, string)
    operand = as_operand(value) if isinstance(value, Operand) else convert_to_tensor(value)
    return TensorSpec(operand.type.shape, operand.type.dtype)
