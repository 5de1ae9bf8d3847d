"""Operators and ufuncs on tensors of one float dtype, at little more than the cost of NumPy's own calls.

Such calls need no promotion and no type rule: NumPy's ufunc is what the op would evaluate, with the same bits. Everything else (other
dtypes, large integers, arrays, broadcasting under a tape, errors) takes the general way through the functions of `ops`: every method here
falls back to the one that it replaces.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from adjit.ir.operand import Operand
from adjit.ir.ops import arithmetic, elementary, linalg, logic, maps, powers
from adjit.ir.ops.base import Array, Op, apply
from adjit.ir.silence import silence
from adjit.ir.tracebacks import trim
from adjit.ir.types import F32, F64
from adjit.tracer.numpy_fallback import is_users

from .recording import listening

if TYPE_CHECKING:
    from .tensor import Tensor

Method: TypeAlias = Callable[..., Any]

EXACT = 1 << 24  # integers up to here are float32 numbers

# the op whose evaluation each ufunc is, on floats of one dtype
UNARY: dict[np.ufunc, Op] = {
    np.negative: arithmetic.Neg(), np.absolute: arithmetic.Abs(), np.sqrt: elementary.Sqrt(), np.exp: elementary.Exp(),
    np.expm1: elementary.Expm1(), np.log: elementary.Log(), np.log1p: elementary.Log1p(), np.sin: elementary.Sin(),
    np.cos: elementary.Cos(), np.tan: elementary.Tan(), np.arctan: elementary.Atan(), np.sinh: elementary.Sinh(),
    np.cosh: elementary.Cosh(), np.tanh: elementary.Tanh(),
}  # fmt: skip
BINARY: dict[np.ufunc, Op] = {
    np.add: arithmetic.Add(), np.subtract: arithmetic.Sub(), np.multiply: maps.Mul(), np.divide: arithmetic.Div(),
    np.maximum: arithmetic.Maximum(), np.minimum: arithmetic.Minimum(), np.less: logic.Less(), np.less_equal: logic.LessEqual(),
    np.greater: logic.Greater(), np.greater_equal: logic.GreaterEqual(), np.equal: logic.Equal(), np.not_equal: logic.NotEqual(),
}  # fmt: skip
OPERATORS: dict[str, np.ufunc] = {
    "__add__": np.add, "__sub__": np.subtract, "__mul__": np.multiply, "__truediv__": np.divide, "__lt__": np.less,
    "__le__": np.less_equal, "__gt__": np.greater, "__ge__": np.greater_equal, "__eq__": np.equal, "__ne__": np.not_equal,
}  # fmt: skip
REFLECTED: dict[str, np.ufunc] = {"__radd__": np.add, "__rsub__": np.subtract, "__rmul__": np.multiply, "__rtruediv__": np.divide}
MATMUL = linalg.Matmul()
POWERS = {n: powers.IntegerPow(n) for n in (2, 3)}

_tensor: type[Tensor]  # the class that has these methods
_new, _array = object.__new__, np.ndarray


def equip(tensor: type[Tensor], weak: type[Tensor]) -> None:
    """Give a class these methods. Its subclass of weakly typed numbers, which are promoted, keeps the general ones."""
    global _tensor
    _tensor = tensor
    methods: dict[str, Method] = {
        "__neg__": unary(np.negative, tensor.__neg__),
        "__abs__": unary(np.absolute, tensor.__abs__),
        "__matmul__": product(tensor.__matmul__),
        "__pow__": power(tensor.__pow__),
        "__array_ufunc__": ufuncs(tensor.__array_ufunc__),
        **{name: binary(ufunc, getattr(tensor, name)) for name, ufunc in OPERATORS.items()},
        **{name: reflected(ufunc, getattr(tensor, name)) for name, ufunc in REFLECTED.items()},
    }
    for name, method in methods.items():
        setattr(weak, name, getattr(tensor, name))
        setattr(tensor, name, method)


def unary(ufunc: np.ufunc, general: Method) -> Method:
    op = UNARY[ufunc]

    def method(self: Tensor) -> Any:
        array = self.buffer
        if array.dtype is F64 or array.dtype is F32:
            try:
                if listening.recorders:
                    return recorded(op, ufunc, (self,), (array,))
                return wrapped(silence.run(ufunc, array))
            except RuntimeError:  # see `silently`
                pass
        try:
            return general(self)
        except Exception as error:
            trim(error)
            raise

    return method


def binary(ufunc: np.ufunc, general: Method) -> Method:
    op = BINARY[ufunc]

    def method(self: Tensor, other: Any) -> Any:
        kind, a = type(other), self.buffer
        dtype = a.dtype
        if dtype is F64 or dtype is F32:
            try:
                if kind is _tensor:
                    b = other.buffer
                    if b.dtype is dtype:
                        if not listening.recorders:
                            array = silence.run(ufunc, a, b)
                            if type(array) is not _array:
                                return wrapped(array)
                            out = _new(_tensor)  # `wrapped`, without another call
                            out.buffer = array
                            return out
                        if a.shape == b.shape and op.differentiable:
                            return recorded(op, ufunc, (self, other), (a, b))
                elif kind is float or (kind is int and -EXACT <= other <= EXACT):
                    if not listening.recorders:
                        return wrapped(silence.run(ufunc, a, other))
                    if op.differentiable:
                        return recorded(op, ufunc, (self, self.literal(other, self.type)), (a, other))
            except (RuntimeError, ValueError):  # ValueError: shapes that do not fit
                pass
        try:
            return general(self, other)
        except Exception as error:
            trim(error)
            raise

    return method


def reflected(ufunc: np.ufunc, general: Method) -> Method:
    """`other` comes first: a number, since a tensor would have been asked itself."""
    op = BINARY[ufunc]

    def method(self: Tensor, other: Any) -> Any:
        a = self.buffer
        if (a.dtype is F64 or a.dtype is F32) and (type(other) is float or (type(other) is int and -EXACT <= other <= EXACT)):
            try:
                if listening.recorders:
                    return recorded(op, ufunc, (self.literal(other, self.type), self), (other, a))
                return wrapped(silence.run(ufunc, other, a))
            except RuntimeError:
                pass
        try:
            return general(self, other)
        except Exception as error:
            trim(error)
            raise

    return method


def product(general: Method) -> Method:
    def method(self: Tensor, other: Any) -> Any:
        if type(other) is _tensor:
            a, b = self.buffer, other.buffer
            if a.dtype is b.dtype and (a.dtype is F64 or a.dtype is F32) and 0 < a.ndim <= 2 and 0 < b.ndim <= 2:
                try:
                    if listening.recorders:
                        return recorded(MATMUL, np.matmul, (self, other), (a, b))
                    return wrapped(silence.run(np.matmul, a, b))
                except (RuntimeError, ValueError):
                    pass
        try:
            return general(self, other)
        except Exception as error:
            trim(error)
            raise

    return method


def power(general: Method) -> Method:
    def method(self: Tensor, other: Any) -> Any:
        array = self.buffer
        if type(other) is int and other in POWERS and (array.dtype is F64 or array.dtype is F32):
            op = POWERS[other]
            try:
                if listening.recorders:
                    return recorded(op, op.evaluate, (self,), (array,))
                return wrapped(silence.run(op.evaluate, array))
            except RuntimeError:
                pass
        try:
            return general(self, other)
        except Exception as error:
            trim(error)
            raise

    return method


def ufuncs(general: Method) -> Method:
    """`__array_ufunc__`."""

    def by_numpy(ufunc: np.ufunc) -> Method:
        return lambda *inputs: general(inputs[0], ufunc, "__call__", *inputs)

    table: Mapping[np.ufunc, Method] = {
        **{ufunc: unary(ufunc, by_numpy(ufunc)) for ufunc in UNARY},
        **{ufunc: binary(ufunc, by_numpy(ufunc)) for ufunc in BINARY},
        np.matmul: product(by_numpy(np.matmul)),
    }

    def method(self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        try:
            if method == "__call__" and not kwargs and type(inputs[0]) is _tensor and ufunc in table and is_users(sys._getframe(1)):
                return table[ufunc](*inputs)
            return general(self, ufunc, method, *inputs, **kwargs)
        except Exception as error:
            trim(error)
            raise

    return method


def wrapped(array: Array) -> Tensor:
    """Make a tensor whose type is found when it is asked for."""
    out = _new(_tensor)
    out.buffer = array if type(array) is _array else np.asarray(array)  # of operands without axes, NumPy's results are scalars
    return out


def recorded(op: Op, ufunc: Method, args: tuple[Operand, ...], arrays: tuple[Any, ...]) -> Any:
    """Compute an op and report it to the tapes that are recording."""
    recorders = listening.recorders
    for recorder in recorders:
        if recorder.stand_ins(args) is not args:
            return apply(op, *args)
    out = wrapped(silence.run(ufunc, *arrays))
    results = (out,)
    for recorder in recorders:
        recorder.applied(op, args, results)
    return out
