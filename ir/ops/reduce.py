"""Reductions over axes. A reduction drops its axes; `keepdims` is a reshape after it.

Owns sums, products, extrema and their positions, any and all. Cumulative ops are in `scan`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..cost import Cost
from ..errors import DTypeError, ShapeError
from ..sizes import is_symbolic
from ..types import BOOL, DTYPE_NAMES, F32, F64, I64, U8, U64, DType, TensorType, kept_shape, normalize_axes, normalize_axis, reduced_shape
from . import late
from .arithmetic import Add, Maximum, Minimum
from .base import Array, Emitter, Loops, Op, Reg, Registers, Window, Writing, apply, nest, with_attributes
from .logic import BitwiseAnd, BitwiseOr
from .maps import Mul, cast, where
from .shape import broadcast_to, flip, inverse, pad, reshape, slice_, transpose

__all__ = ["sum", "prod", "max", "min", "any", "all", "argmax", "argmin"]

if TYPE_CHECKING:
    from ..func import Stmt
    from ..operand import Operand


@with_attributes
class Reduce(Op, abstract=True):
    """Combine all elements along `axes` (sorted, static). Lowered inside fused loop nests by `identity` and `combine`."""

    axes: tuple[int, ...]
    kinds: ClassVar[str] = "fiu"
    is_reduction = True
    writes_strided = True
    loses_nan: ClassVar[bool] = False  # `combine_numbers` is cheaper than `combine`, and loses a NaN that a later number follows
    combining: ClassVar[Op | None] = None  # the elementwise op that combines two elements, if there is one

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, float(types[0].size))

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        check_kind(self, x)
        return x.with_shape(reduced_shape(x.shape, normalize_axes(self.axes, x.rank, self.name)))

    def python(self, write: Writing, *args: Operand) -> Any:
        (x,) = args
        every = len(self.axes) == len(x.type.shape) > 0
        axis = "" if every else ", axis={}"
        dtype = ", dtype={}" if self.name in ("sum", "prod") and not x.type.is_float and x.type.dtype.itemsize < 8 else ""
        axes = self.axes[0] if len(self.axes) == 1 else self.axes
        given = [*([] if every else [write.value(axes)]), *([write.dtype(x.type.dtype)] if dtype else [])]
        return write(f"np.{self.name}({{}}{axis}{dtype})", write.array(x), *given)

    def widened(self, size: int) -> Reduce:
        return replace(self, axes=tuple(a + 1 for a in self.axes))

    def scalars(self, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return (*args, *results)

    def run_in_registers(self, kernel: Registers, stmt: Stmt) -> None:
        kernel.same(stmt)

    def identity(self, dtype: DType) -> float | int | bool:
        """The identity element of `combine`."""
        raise NotImplementedError(self.name)

    def combine(self, emit: Emitter, total: Reg, x: Reg) -> Reg:
        raise NotImplementedError(self.name)

    def combine_numbers(self, emit: Emitter, total: Reg, x: Reg) -> Reg:
        """`combine` for numbers other than NaN."""
        return self.combine(emit, total, x)

    def rounds(self, dtype: DType) -> bool:
        """Whether rounding errors grow with the number of elements: native code then combines them in blocks, with results in float64."""
        return False

    def spread(self, reduced: Operand, x: Operand) -> Operand:
        """A reduced value, broadcast over the reduced axes."""
        return broadcast_to(reshape(reduced, kept_shape(x.type.shape, self.axes)), x.type.shape)


class Sum(Reduce):
    """Sum over axes."""

    kinds = "fiuc"
    combining = Add()

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

    def rounds(self, dtype: DType) -> bool:
        return dtype in (F32, F64)


class Prod(Reduce):
    """Product over axes. The derivative is the product of all other elements, never a quotient: zeros need no special case."""

    kinds = "fiuc"
    combining = Mul()

    def evaluate(self, *arrays: Array) -> Array:
        return np.asarray(np.prod(arrays[0], axis=self.axes, dtype=arrays[0].dtype))

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return apply(Sum(self.axes), d * self.others(args[0]))

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        return self.spread(d, args[0]) * self.others(args[0])

    def others(self, x: Operand) -> Operand:
        """For each element, the product of all other elements that are reduced with it."""
        shape = x.type.shape
        order = tuple(a for a in range(len(shape)) if a not in self.axes) + self.axes
        rows = transpose(x, order)
        flat = reshape(rows, (*reduced_shape(shape, self.axes), math.prod(shape[a] for a in self.axes)))
        return transpose(reshape(products_of_others(flat), rows.type.shape), inverse(order))

    def identity(self, dtype: DType) -> float | int | bool:
        return 1

    def combine(self, emit: Emitter, total: Reg, x: Reg) -> Reg:
        return emit.mul(total, x)


def products_of_others(x: Operand) -> Operand:
    """Along the last axis, for each element the product of all others. O(n) work in O(log n) ops: up a tree of pairs and down again.

    The others of an element are its sibling and the others of their parent. The height of a tree must be known; otherwise they are those
    before the element, and those after it.
    """
    *lead, n = x.type.shape
    if is_symbolic(n):
        return products_before(x) * flip(products_before(flip(x, -1)), -1)
    if n <= 1:
        return x.literal(1, x.type)
    half, none, whole = (n + 1) // 2, [0] * len(lead), [slice(None)] * len(lead)
    even = pad(x, [*none, 0], [*none, n % 2], None, 1)
    left, right = (slice_(even, [*whole, slice(k, None, 2)]) for k in (0, 1))
    siblings = flip(reshape(even, (*lead, half, 2)), -1)
    above = reshape(products_of_others(left * right), (*lead, half, 1))
    out = reshape(broadcast_to(above, siblings.type.shape) * siblings, even.type.shape)
    return slice_(out, [*whole, slice(n)])


def products_before(x: Operand) -> Operand:
    """Along the last axis, for each element the product of those before it."""
    *lead, n = x.type.shape
    rest = slice_(x, [*[slice(None)] * len(lead), slice(n - 1)])
    products: Operand = late.function("cumprod")(pad(rest, [*[0] * len(lead), 1], [0] * x.type.rank, None, 1), -1)
    return products


class Extremum(Reduce, abstract=True):
    """Max or min. NaN propagates. Elements that tie for the extremum share its derivative equally."""

    predicate: ClassVar[str]  # holds for (a, b) if a wins over b
    loses_nan = True

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        for axis in normalize_axes(self.axes, x.rank, self.name):
            if x.shape[axis] == 0:
                raise ShapeError(f"{self.name}: axis {axis} of {x} is empty, and the {self.name} of no elements is undefined")
        return super().infer(x)

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        chosen, count = self.ties(y, args[0])
        return apply(Sum(self.axes), where(chosen, d, 0.0)) / count

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand:
        chosen, count = self.ties(y, args[0])
        return where(chosen, self.spread(d / count, args[0]), 0.0)

    def ties(self, y: Operand, x: Operand) -> tuple[Operand, Operand]:
        """Which elements equal the extremum, and how many; if it is NaN, those that are NaN."""
        chosen = (x == self.spread(y, x)) | (x != x)  # x != x holds for NaN only
        return chosen, apply(Sum(self.axes), cast(chosen, x.type.dtype))

    def combine(self, emit: Emitter, total: Reg, x: Reg) -> Reg:
        winner = self.combine_numbers(emit, total, x)
        return emit.select(emit.compare("ne", total, total), total, winner)

    def combine_numbers(self, emit: Emitter, total: Reg, x: Reg) -> Reg:
        return emit.select(emit.compare(self.predicate, total, x), total, x)  # in this order one instruction: a NaN in x is selected


class Max(Extremum):
    """Largest element over axes."""

    predicate = "gt"
    combining = Maximum()

    def evaluate(self, *arrays: Array) -> Array:
        return np.asarray(np.max(arrays[0], axis=self.axes))

    def identity(self, dtype: DType) -> float | int | bool:
        return -np.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)


class Min(Extremum):
    """Smallest element over axes."""

    predicate = "lt"
    combining = Minimum()

    def evaluate(self, *arrays: Array) -> Array:
        return np.asarray(np.min(arrays[0], axis=self.axes))

    def identity(self, dtype: DType) -> float | int | bool:
        return np.inf if dtype.kind == "f" else int(np.iinfo(dtype).max)


class AnyTrue(Reduce):
    """Whether any element is true."""

    name = "any"
    kinds = "b"
    differentiable = False
    combining = BitwiseOr()

    def evaluate(self, *arrays: Array) -> Array:
        return np.asarray(np.any(arrays[0], axis=self.axes))

    def identity(self, dtype: DType) -> float | int | bool:
        return False

    def combine(self, emit: Emitter, total: Reg, x: Reg) -> Reg:
        return emit.or_(total, x)


class AllTrue(Reduce):
    """Whether all elements are true."""

    name = "all"
    kinds = "b"
    differentiable = False
    combining = BitwiseAnd()

    def evaluate(self, *arrays: Array) -> Array:
        return np.asarray(np.all(arrays[0], axis=self.axes))

    def identity(self, dtype: DType) -> float | int | bool:
        return True

    def combine(self, emit: Emitter, total: Reg, x: Reg) -> Reg:
        return emit.and_(total, x)


@with_attributes
class ArgExtremum(Op, abstract=True):
    """The i64 position of the extremum along an axis: the first of several; the first NaN if there is one."""

    axis: int
    differentiable: ClassVar[bool] = False
    kinds: ClassVar[str] = "fiu"
    predicate: ClassVar[str]

    def infer(self, *types: TensorType) -> TensorType:
        (x,) = types
        check_kind(self, x)
        if x.shape[normalize_axis(self.axis, x.rank, self.name)] == 0:
            raise ShapeError(f"{self.name}: axis {self.axis} of {x} is empty, so there is no such position")
        return TensorType(I64, reduced_shape(x.shape, (self.axis,)))

    def python(self, write: Writing, *args: Operand) -> Any:
        return write(f"np.{self.name.replace('_', '')}({{}}, axis={{}})", write.array(args[0]), write.value(self.axis))

    def widened(self, size: int) -> ArgExtremum:
        return replace(self, axis=self.axis + 1)

    def cost(self, *types: TensorType) -> Cost:
        return self.usual_cost(types, float(types[0].size))

    def lower(self, k: Loops, out: Window, x: Window) -> None:
        emit, shape = k.scalar, x.type.shape
        k.fill(out, 0)
        with nest(k, out.type.shape) as index, k.loop(shape[self.axis]) as i:
            lead, trail = index[: self.axis], index[self.axis :]
            best = k.load(out, *index)
            champion, rival = k.load(x, *lead, best, *trail), k.load(x, *lead, i, *trail)
            first_nan = emit.and_(emit.compare("ne", rival, rival), emit.compare("eq", champion, champion))
            wins = emit.or_(emit.compare(self.predicate, rival, champion), first_nan)
            k.store(out, emit.select(wins, i, best), *index)


class ArgMax(ArgExtremum):
    """Position of the largest element along an axis."""

    predicate = "gt"

    def evaluate(self, *arrays: Array) -> Array:
        return np.asarray(np.argmax(arrays[0], axis=self.axis))


class ArgMin(ArgExtremum):
    """Position of the smallest element along an axis."""

    predicate = "lt"

    def evaluate(self, *arrays: Array) -> Array:
        return np.asarray(np.argmin(arrays[0], axis=self.axis))


def check_kind(op: Reduce | ArgExtremum, x: TensorType) -> None:
    if x.dtype.kind not in op.kinds:
        raise DTypeError(f"{op.name}: {DTYPE_NAMES[x.dtype]} operands are not supported")


# ---- frontends


def without_axes(x: Operand, axis: Any) -> bool:
    """Whether a scalar is reduced along axis 0 or -1, which NumPy allows."""
    return not x.type.shape and type(axis) is int and axis in (0, -1)


def reduce(op_class: type[Reduce], x: Operand, axis: Any, keepdims: bool) -> Operand:
    axes = () if without_axes(x, axis) else normalize_axes(axis, len(x.type.shape), op_class.name)
    out = apply(op_class(axes), x) if axes else x
    return reshape(out, kept_shape(x.type.shape, axes)) if keepdims else out


def accumulator(dtype: DType) -> DType:
    """The dtype in which NumPy sums and multiplies: 64 bits for bools and small integers."""
    if dtype == BOOL or dtype.kind == "i":
        return I64
    return U64 if dtype.kind == "u" else dtype


def sum(x: Operand, axis: Any = None, keepdims: bool = False) -> Operand:
    return reduce(Sum, cast(x, accumulator(x.type.dtype)), axis, keepdims)


def prod(x: Operand, axis: Any = None, keepdims: bool = False) -> Operand:
    return reduce(Prod, cast(x, accumulator(x.type.dtype)), axis, keepdims)


def max(x: Operand, axis: Any = None, keepdims: bool = False) -> Operand:
    return _extremum(Max, x, axis, keepdims)


def min(x: Operand, axis: Any = None, keepdims: bool = False) -> Operand:
    return _extremum(Min, x, axis, keepdims)


def _extremum(op_class: type[Extremum], x: Operand, axis: Any, keepdims: bool) -> Operand:
    """Bools are compared as small integers."""
    if x.type.is_complex:
        from . import order  # noqa: PLC0415 - few programs need it

        return order.reduced(x, () if without_axes(x, axis) else axis, keepdims, op_class is Max)
    if x.type.dtype != BOOL:
        return reduce(op_class, x, axis, keepdims)
    return cast(reduce(op_class, cast(x, U8), axis, keepdims), BOOL)


def any(x: Operand, axis: Any = None, keepdims: bool = False) -> Operand:
    return reduce(AnyTrue, cast(x, BOOL), axis, keepdims)


def all(x: Operand, axis: Any = None, keepdims: bool = False) -> Operand:
    return reduce(AllTrue, cast(x, BOOL), axis, keepdims)


def argmax(x: Operand, axis: int | None = None, keepdims: bool = False) -> Operand:
    return _position(ArgMax, x, axis, keepdims)


def argmin(x: Operand, axis: int | None = None, keepdims: bool = False) -> Operand:
    return _position(ArgMin, x, axis, keepdims)


def _position(op_class: type[ArgExtremum], x: Operand, axis: int | None, keepdims: bool) -> Operand:
    """Without an axis, the position in the flattened operand."""
    numbers = cast(x, U8) if x.type.dtype == BOOL else x
    shape = x.type.shape
    if axis is None or without_axes(x, axis):
        out = _argument(op_class, reshape(numbers, -1), 0)
        return reshape(out, (1,) * len(shape)) if keepdims else out
    axis = normalize_axis(axis, len(shape), op_class.name)
    out = _argument(op_class, numbers, axis)
    return reshape(out, kept_shape(shape, (axis,))) if keepdims else out


def _argument(op_class: type[ArgExtremum], x: Operand, axis: int) -> Operand:
    if not x.type.is_complex:
        return apply(op_class(axis), x)
    from . import order  # noqa: PLC0415 - few programs need it

    return order.position(x, axis, op_class is ArgMax)
