"""Ops that create values without operands: constants and counters."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ..cost import NOTHING, Cost
from ..errors import DTypeError, NotGeneral, ShapeError
from ..operand import Literal, Operand
from ..sizes import is_symbolic
from ..types import BOOL, F64, I64, DType, Shape, TensorType, as_dtype, checked_type, normalize_axis, real_dtype, strided_size
from .base import Array, Emitter, Op, Reg, Writing, perform, with_attributes
from .maps import Map, cast, checked_scalar
from .shape import broadcast_to, reshape

__all__ = ["iota", "full", "one_hot", "eye", "arange", "size_value"]


@with_attributes
class Constant(Op):
    """A small array, written out in the IR. Larger ones are captured as parameters."""

    arity: ClassVar[int | None] = 0
    is_constant = True

    dtype: DType
    shape: Shape
    data: bytes
    differentiable: ClassVar[bool] = False

    @staticmethod
    def of(array: Array) -> Constant:
        return Constant(array.dtype, array.shape, np.ascontiguousarray(array).tobytes())

    def infer(self, *types: TensorType) -> TensorType:
        out = TensorType(self.dtype, self.shape)
        if len(self.data) != out.nbytes:
            raise ShapeError(f"constant: {len(self.data)} bytes for {out}")
        return out

    def evaluate(self, *arrays: Array) -> Array:
        return np.frombuffer(self.data, self.dtype).reshape(self.shape)

    def python(self, write: Writing, *args: Operand) -> Any:
        return write.constant(self.evaluate())


@with_attributes
class Iota(Map):
    """0, 1, 2, ... along one axis."""

    arity: ClassVar[int | None] = 0

    dtype: DType
    shape: Shape
    axis: int
    differentiable: ClassVar[bool] = False

    @property
    def position_axis(self) -> int:
        return self.axis

    def infer(self, *types: TensorType) -> TensorType:
        if self.dtype.kind in "bc" or not self.shape:
            raise DTypeError(f"iota: {TensorType(self.dtype, self.shape)}: takes an integer or float dtype, and at least one axis")
        return TensorType(self.dtype, self.shape)

    def evaluate(self, *arrays: Array) -> Array:
        line = np.arange(self.shape[self.axis], dtype=self.dtype)
        return np.broadcast_to(line.reshape([-1 if a == self.axis else 1 for a in range(len(self.shape))]), self.shape)

    def python(self, write: Writing, *args: Operand) -> Any:
        size, after = self.shape[self.axis], len(self.shape) - self.axis - 1
        dtype = "" if self.dtype == I64 else f", dtype=np.{self.dtype.name}"
        line = write(f"np.arange({size}{dtype}){'[:' + ', None' * after + ']' if after else ''}")
        return write.loose(line, (size, *(1,) * after))

    def splat(self, *values: object) -> None:
        return None

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.convert(emit.index(self.axis), self.dtype)


@with_attributes
class Fill(Map):
    """A literal in a buffer, for ops that read memory."""

    arity: ClassVar[int | None] = 0

    value: float | int | bool | complex
    dtype: DType
    shape: Shape
    differentiable: ClassVar[bool] = False

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(self.dtype, self.shape)

    def evaluate(self, *arrays: Array) -> Array:
        return np.full(self.shape, self.value, self.dtype)

    def python(self, write: Writing, *args: Operand) -> Any:
        write.new(write.filled(self.value, self.dtype, self.shape))

    def splat(self, *values: object) -> None:
        return None

    def element_cost(self, *dtypes: DType) -> Cost:
        return NOTHING

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        assert not isinstance(self.value, complex)  # pairs of real numbers by then
        return emit.const(self.dtype, self.value)


@with_attributes
class SizeValue(Map):
    """A size that is known only when the program runs, as a number."""

    name: ClassVar[str] = "size"
    arity: ClassVar[int | None] = 0

    value: int
    differentiable: ClassVar[bool] = False

    def infer(self, *types: TensorType) -> TensorType:
        return TensorType(I64)

    def evaluate(self, *arrays: Array) -> Array:
        return np.asarray(self.value, I64)

    def python(self, write: Writing, *args: Operand) -> Any:
        return write.value(self.value)

    def splat(self, *values: object) -> None:
        return None

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.const(I64, self.value)


# ---- frontends


def size_value(n: int) -> Operand:
    """A size as an operand."""
    return perform(SizeValue(n))


def iota(shape: Any, axis: int = 0, dtype: Any = I64) -> Operand:
    """0, 1, 2, ... along one axis of `shape`."""
    type = checked_type(as_dtype(dtype), shape, "iota")
    if type.dtype == BOOL:
        raise DTypeError("iota: bool is not supported; use an integer dtype")
    if type.dtype.kind == "c":
        return cast(iota(shape, axis, real_dtype(type.dtype)), type.dtype)
    return perform(Iota(type.dtype, type.shape, normalize_axis(axis, type.rank, "iota")))


def full(shape: Any, value: Operand | float | int | bool, dtype: Any = None) -> Operand:
    """An array of `shape` filled with one value: a literal, unless the value is itself an operand."""
    if isinstance(value, Operand):
        type = checked_type(value.type.dtype if dtype is None else as_dtype(dtype), shape, "full")
        return broadcast_to(cast(value, type.dtype), type.shape)
    type = checked_type(as_dtype(np.result_type(np.asarray(value)) if dtype is None else dtype), shape, "full")
    return Literal(checked_scalar("full", value, type.dtype), type)


def one_hot(indices: Operand, depth: int, dtype: Any = F64) -> Operand:
    """A last axis of size `depth` that is 1 at the index and 0 elsewhere; an index out of range gives only zeros."""
    if indices.type.dtype.kind not in "iu":
        raise DTypeError(f"one_hot: indices must be integers, not {indices.type}")
    shape = (*indices.type.shape, depth)
    chosen = broadcast_to(reshape(cast(indices, I64), (*indices.type.shape, 1)), shape) == iota(shape, -1, I64)
    return cast(chosen, as_dtype(dtype))


def eye(n: int, m: int | None = None, k: int = 0, dtype: Any = F64) -> Operand:
    """Ones on the k-th diagonal of an n by m matrix."""
    shape = (n, n if m is None else m)
    on_diagonal = iota(shape, 1, I64) - iota(shape, 0, I64) == k
    return cast(on_diagonal, as_dtype(dtype))


def symbolic_arange(start: Any, stop: Any, step: Any, dtype: Any) -> Operand:
    """`arange` of sizes that are known only when the program runs."""
    if not all(isinstance(bound, int) for bound in (start, stop, step)) or is_symbolic(step) or step == 0:
        raise NotGeneral(f"the length of arange({start}, {stop}, {step}) is not an expression of sizes")
    count = strided_size(start, stop, step) if step > 0 else strided_size(stop, start, -step)
    out = iota((count,), 0, as_dtype(I64 if dtype is None else dtype))
    scaled = out if step == 1 else out * step
    return scaled if type(start) is int and start == 0 else scaled + start


def arange(start: float, stop: float | None = None, step: float = 1, dtype: Any = None) -> Operand:
    """NumPy's `arange`, of static numbers."""
    if stop is None:
        start, stop = 0, start
    for bound in (start, stop, step):
        if not isinstance(bound, int | float | np.number):
            raise ShapeError(f"arange: start, stop and step set the shape, so they must be numbers, not {bound!r}")
    if any(map(is_symbolic, (start, stop, step))):
        return symbolic_arange(start, stop, step, dtype)
    if step == 0 or not math.isfinite(stop - start) or math.isnan(step):
        raise ShapeError(f"arange: start, stop and step must be finite, and step not zero: {start}, {stop}, {step}")
    kind = as_dtype(np.result_type(*(np.asarray(b) for b in (start, stop, step))) if dtype is None else dtype)
    if kind == BOOL:
        raise DTypeError("arange: bool is not supported; use an integer dtype")
    if kind.kind == "c":
        return cast(arange(start, stop, step, real_dtype(kind)), kind)
    first = kind.type(start)
    stride = kind.type(start + step) - first  # rounds as NumPy does
    out = iota((max(0, math.ceil((stop - start) / step)),), 0, kind)
    return out if (first, stride) == (0, 1) else out * stride.item() + first.item()
