"""Comparisons, logic and bitwise ops; and `stop_gradient`, which blocks derivatives. None of these is differentiable."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard

import numpy as np

from ..errors import ShapeError
from ..layout import Layout
from ..types import BOOL, I8, U64, TensorType, float_dtype
from .base import Array, Emitter, Reg, View, Writing, apply
from .complex import imag, real
from .maps import SCALAR, Binary, Unary, binary, cast, common_dtype, has_complex, promoted, where

__all__ = [
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "left_shift", "right_shift",
    "logical_and", "logical_or", "logical_xor", "logical_not",
    "isnan", "isinf", "isfinite", "isclose", "stop_gradient", "assigned",
]  # fmt: skip

if TYPE_CHECKING:
    from ..operand import Operand


# ---- comparisons


class Comparison(Binary, abstract=True):
    """A bool per element. NaN is not equal to, less than or greater than anything."""

    differentiable = False
    predicate: ClassVar[str]
    ufunc: ClassVar[np.ufunc]

    def result(self, operand: TensorType) -> TensorType:
        return operand.with_dtype(BOOL)

    def evaluate(self, *arrays: Array) -> Array:
        return self.ufunc(*arrays)  # type: ignore[no-any-return]

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.compare(self.predicate, *xs)


class Equal(Comparison):
    """a == b."""

    numpy = "{} == {}"
    kinds = "fiubc"
    predicate, ufunc = "eq", np.equal


class NotEqual(Comparison):
    """a != b."""

    numpy = "{} != {}"
    kinds = "fiubc"
    predicate, ufunc = "ne", np.not_equal


class Less(Comparison):
    """a < b."""

    numpy = "{} < {}"
    predicate, ufunc = "lt", np.less


class LessEqual(Comparison):
    """a <= b."""

    numpy = "{} <= {}"
    predicate, ufunc = "le", np.less_equal


class Greater(Comparison):
    """a > b."""

    numpy = "{} > {}"
    predicate, ufunc = "gt", np.greater


class GreaterEqual(Comparison):
    """a >= b."""

    numpy = "{} >= {}"
    predicate, ufunc = "ge", np.greater_equal


def compare(op: Comparison, a: Operand | float, b: Operand | float) -> Operand:
    """A Python integer that the other operand's dtype cannot represent compares the same with all its values, as in NumPy."""
    if isinstance(a, int) and never_holds(b, a):
        return b.filled(bool(op.ufunc(a, 0)), b.type.with_dtype(BOOL))
    if isinstance(b, int) and never_holds(a, b):
        return a.filled(bool(op.ufunc(0, b)), a.type.with_dtype(BOOL))
    signs = ["" if isinstance(x, SCALAR) or x.weak else x.type.dtype.kind for x in (a, b)]
    if sorted(signs) == ["i", "u"] and common_dtype(a, b).kind == "f":
        return compare_signed(op, a, b, signs.index("i"))
    if "c" not in op.kinds and has_complex(a, b):
        from . import order  # noqa: PLC0415 - few programs need it

        return order.compare(op, a, b)
    return binary(op, a, b)


def compare_signed(op: Comparison, a: Any, b: Any, signed: int) -> Operand:
    """Compare int64 with uint64 exactly: no integer dtype holds both, and floats cannot represent all of either."""
    negative = less((a, b)[signed], 0)
    below = bool(op.ufunc(-1, 0) if signed == 0 else op.ufunc(0, -1))
    return where(negative, below, apply(op, *promoted(op.name, (a, b), U64)))


def never_holds(x: Operand | float, value: int) -> TypeGuard[Operand]:
    """Whether an integer is out of range for the dtype of an integer operand."""
    if isinstance(x, SCALAR) or x.type.dtype.kind not in "iu":
        return False
    info = np.iinfo(x.type.dtype)
    return not info.min <= value <= info.max


def equal(a: Operand | float, b: Operand | float) -> Operand:
    return compare(Equal(), a, b)


def not_equal(a: Operand | float, b: Operand | float) -> Operand:
    return compare(NotEqual(), a, b)


def less(a: Operand | float, b: Operand | float) -> Operand:
    return compare(Less(), a, b)


def less_equal(a: Operand | float, b: Operand | float) -> Operand:
    return compare(LessEqual(), a, b)


def greater(a: Operand | float, b: Operand | float) -> Operand:
    return compare(Greater(), a, b)


def greater_equal(a: Operand | float, b: Operand | float) -> Operand:
    return compare(GreaterEqual(), a, b)


# ---- bits


class BitwiseAnd(Binary):
    """a & b; logical and for bools."""

    numpy = "{} & {}"
    kinds = "iub"
    differentiable = False

    def evaluate(self, *arrays: Array) -> Array:
        return np.bitwise_and(*arrays)

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.and_(*xs)


class BitwiseOr(Binary):
    """a | b; logical or for bools."""

    numpy = "{} | {}"
    kinds = "iub"
    differentiable = False

    def evaluate(self, *arrays: Array) -> Array:
        return np.bitwise_or(*arrays)

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.or_(*xs)


class BitwiseXor(Binary):
    """a ^ b; logical exclusive or for bools."""

    numpy = "{} ^ {}"
    kinds = "iub"
    differentiable = False

    def evaluate(self, *arrays: Array) -> Array:
        return np.bitwise_xor(*arrays)

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        return emit.xor(*xs)


class BitwiseNot(Unary):
    """~x; logical not for bools."""

    numpy = "~{}"
    kinds = "iub"
    differentiable = False

    def evaluate(self, *arrays: Array) -> Array:
        return np.invert(arrays[0])

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        (x,) = xs
        ones = True if x.dtype == BOOL else -1 if x.dtype.kind == "i" else int(np.iinfo(x.dtype).max)
        return emit.xor(x, emit.like(x, ones))


class LeftShift(Binary):
    """a << b; 0 if b is negative or at least the bit width, as in NumPy."""

    numpy = "{} << {}"
    kinds = "iu"
    differentiable = False

    def evaluate(self, *arrays: Array) -> Array:
        return np.left_shift(*arrays)

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        a, b = xs
        zero = emit.like(a, 0)
        inside = within_width(emit, b)
        return emit.select(inside, emit.shl(a, emit.select(inside, b, zero)), zero)


class RightShift(Binary):
    """Arithmetic a >> b; only the sign remains if b is negative or at least the bit width, as in NumPy."""

    numpy = "{} >> {}"
    kinds = "iu"
    differentiable = False

    def evaluate(self, *arrays: Array) -> Array:
        return np.right_shift(*arrays)

    def scalar(self, emit: Emitter, *xs: Reg) -> Reg:
        a, b = xs
        inside = within_width(emit, b)
        shifted = emit.shr(a, emit.select(inside, b, emit.like(b, b.dtype.itemsize * 8 - 1)))
        return shifted if a.dtype.kind == "i" else emit.select(inside, shifted, emit.like(a, 0))


def within_width(emit: Emitter, b: Reg) -> Reg:
    """Whether a shift by b is defined by the hardware."""
    below = emit.compare("lt", b, emit.like(b, b.dtype.itemsize * 8))
    return emit.and_(below, emit.compare("ge", b, emit.like(b, 0))) if b.dtype.kind == "i" else below


def bitwise_and(a: Operand | int, b: Operand | int) -> Operand:
    return binary(BitwiseAnd(), a, b)


def bitwise_or(a: Operand | int, b: Operand | int) -> Operand:
    return binary(BitwiseOr(), a, b)


def bitwise_xor(a: Operand | int, b: Operand | int) -> Operand:
    return binary(BitwiseXor(), a, b)


def bitwise_not(x: Operand) -> Operand:
    return apply(BitwiseNot(), x)


def left_shift(a: Operand | int, b: Operand | int) -> Operand:
    return shift(LeftShift(), a, b)


def right_shift(a: Operand | int, b: Operand | int) -> Operand:
    return shift(RightShift(), a, b)


def shift(op: LeftShift | RightShift, a: Operand | int, b: Operand | int) -> Operand:
    dtype = common_dtype(a, b)
    return apply(op, *promoted(op.name, (a, b), I8 if dtype == BOOL else dtype))


# ---- logic: any nonzero value is true


def truth(x: Operand | float) -> Operand | bool:
    return bool(x) if isinstance(x, SCALAR) else cast(x, BOOL)


def logical_and(a: Operand | float, b: Operand | float) -> Operand:
    return binary(BitwiseAnd(), truth(a), truth(b))


def logical_or(a: Operand | float, b: Operand | float) -> Operand:
    return binary(BitwiseOr(), truth(a), truth(b))


def logical_xor(a: Operand | float, b: Operand | float) -> Operand:
    return binary(BitwiseXor(), truth(a), truth(b))


def logical_not(x: Operand) -> Operand:
    return apply(BitwiseNot(), cast(x, BOOL))


# ---- NaN and infinity


def isnan(x: Operand) -> Operand:
    return not_equal(x, x) if x.type.is_inexact else x.filled(False, x.type.with_dtype(BOOL))


def isinf(x: Operand) -> Operand:
    if x.type.is_complex:
        return logical_or(isinf(real(x)), isinf(imag(x)))
    return equal(abs(x), math.inf) if x.type.is_float else x.filled(False, x.type.with_dtype(BOOL))


def isfinite(x: Operand) -> Operand:
    if x.type.is_complex:
        return logical_and(isfinite(real(x)), isfinite(imag(x)))
    return less(abs(x), math.inf) if x.type.is_float else x.filled(True, x.type.with_dtype(BOOL))


def isclose(a: Operand, b: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Operand:
    a, b = promoted("isclose", (a, b), float_dtype(common_dtype(a, b)))
    near = less_equal(abs(a - b), atol + rtol * abs(b))
    out = logical_or(logical_and(near, isfinite(b)), equal(a, b))
    return logical_or(out, logical_and(isnan(a), isnan(b))) if equal_nan else out


# ---- stop_gradient


class Detach(View):
    """x itself, through which no derivative propagates."""

    differentiable = False
    is_transparent = True

    def infer(self, *types: TensorType) -> TensorType:
        return types[0]

    def evaluate(self, *arrays: Array) -> Any:
        return arrays[0]

    def python(self, write: Writing, *args: Operand) -> Any:
        return write.array(args[0])

    def passed(self, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return args

    def widened(self, size: int) -> Detach:
        return self

    def view(self, layout: Layout, source: TensorType) -> Layout:
        return layout


class Assigned(View):
    """`new`, the value that replaces `old` in a variable. Derivatives by the variable pass to `old`; none pass to the assigned value."""

    arity = 2
    is_transparent = True

    def infer(self, *types: TensorType) -> TensorType:
        new, old = types
        if new != old:
            raise ShapeError(f"assigned: types differ: {new} and {old}")
        return new

    def evaluate(self, *arrays: Array) -> Any:
        return arrays[0]

    def python(self, write: Writing, *args: Operand) -> Any:
        return write.array(args[0])

    def passed(self, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return args[:1]

    def followed(self, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return args[1:]

    def jvp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return d if i else None

    def vjp(self, i: int, y: Any, args: tuple[Operand, ...], d: Operand) -> Operand | None:
        return d if i else None

    def widened(self, size: int) -> Assigned:
        return self

    def view(self, layout: Layout, source: TensorType) -> Layout:
        return layout


def assigned(new: Operand, old: Operand) -> Operand:
    return apply(Assigned(), new, old)


def stop_gradient(x: Operand) -> Operand:
    return apply(Detach(), x) if x.type.is_inexact else x
