"""Operators and ufuncs on tensors of one float dtype, at little more than the cost of NumPy's own calls.

Such calls need no promotion and no type rule: NumPy's ufunc is what the op would evaluate, with the same bits. If a tape is recording, an
entry in its log is all that is added (see `log.py`). Everything else (other dtypes, large integers, several tapes, errors) takes the
general path through the functions of `ops`: every method here falls back to the one that it replaces.

The methods repeat a few lines rather than call each other: a call of a Python function is a large part of the time that such an op takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, repeat
from sys import modules as _modules
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from adjit.ir.active import current_builder
from adjit.ir.operand import Operand
from adjit.ir.ops import arithmetic, elementary, linalg, logic, maps, powers
from adjit.ir.ops.base import Array, Op, apply
from adjit.ir.tracebacks import trim
from adjit.ir.types import F32, F64
from adjit.tracer.numpy_fallback import called_by_user, loaded

from .log import LINEAR_NUMBERS, TapeLog, number_of
from .quick_native import QuickRow, native
from .recording import Here, listening

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
PRODUCT = number_of(MATMUL)
SQUARE, CUBE = powers.IntegerPow(2), powers.IntegerPow(3)
POWERS: dict[int, tuple[Op, int, Method]] = {
    2: (SQUARE, number_of(SQUARE), np.square),
    3: (CUBE, number_of(CUBE), CUBE.evaluate),
}

_tensor: type[Tensor]  # the class that has these methods
_weak: type[Tensor]  # of tensors that represent Python numbers
_new, _array, _asarray, _loaded = object.__new__, np.ndarray, np.asarray, loaded

OFTEN = 20_000  # calls after which native code is to replace these methods
calls: Iterator[bool] = chain(repeat(False, OFTEN), repeat(True))  # whether to see to that, for each call


def proceed() -> None:
    """Go on with replacing these methods by native code."""
    global calls
    after = native.proceed(_tensor, rows())
    calls = repeat(False) if after is None else chain(repeat(False, after), repeat(True))


def rows() -> list[QuickRow]:
    """The functions that native code can compute."""
    methods = {ufunc: name for name, ufunc in OPERATORS.items()} | {np.negative: "__neg__", np.absolute: "__abs__"}
    swapped = {ufunc: name for name, ufunc in REFLECTED.items()}
    out = [QuickRow(ufunc, op, methods.get(ufunc), swapped.get(ufunc)) for ufunc, op in {**BINARY, **UNARY}.items()]
    out.append(QuickRow(np.square, SQUARE, "__pow__", "__rpow__"))
    return [*out, QuickRow(np.matmul, MATMUL, "__matmul__", "__rmatmul__"), QuickRow(_array.dot, MATMUL)]


def settle() -> bool:
    """Replace these methods by native code now, and say whether that is possible here: for tests and measurements."""
    return native.settle(_tensor, rows())


def equip(tensor: type[Tensor], weak: type[Tensor]) -> None:
    """Give a class these methods. Its subclass of weakly typed numbers, which are promoted, keeps the general ones."""
    global _tensor, _weak
    _tensor, _weak = tensor, weak
    methods: dict[str, Method] = {
        "__neg__": unary(np.negative, tensor.__neg__),
        "__abs__": unary(np.absolute, tensor.__abs__),
        "__matmul__": product(np.matmul, tensor.__matmul__),
        "__rmatmul__": turned(np.matmul, tensor.__rmatmul__),
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
    number = number_of(op)

    def method(self: Tensor) -> Any:
        array = self.buffer
        dtype = array.dtype
        if dtype is F64 or dtype is F32:
            here = listening.here
            try:
                if not here.recorders:
                    array = here.run(ufunc, array)
                    out = _new(_tensor)
                    out.buffer = (
                        array if type(array) is _array else _asarray(array)
                    )  # of operands without axes, NumPy's results are scalars
                    return out
                if (log := here.log) is not None:
                    return noted(here, log, ufunc, op, number, self, array)
                return recorded(op, ufunc, (self,), (array,))
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
    number = number_of(op)
    follows = op.differentiable

    def method(self: Tensor, other: Any) -> Any:
        if next(calls):
            proceed()
        kind, a = type(other), self.buffer
        dtype = a.dtype
        if dtype is F64 or dtype is F32:
            here = listening.here
            try:
                if kind is _tensor:
                    b = other.buffer
                    if b.dtype is dtype:
                        if not here.recorders:
                            array = here.run(ufunc, a, b)
                            out = _new(_tensor)
                            out.buffer = array if type(array) is _array else _asarray(array)
                            return out
                        if follows and (log := here.log) is not None:
                            return noted_pair(here, log, ufunc, op, number, self, other, a, b)
                        if a.shape == b.shape:
                            return recorded(op, ufunc, (self, other), (a, b))
                elif kind is float or (kind is int and -EXACT <= other <= EXACT) or (kind is _array and other.dtype is dtype):
                    if not here.recorders:
                        array = here.run(ufunc, a, other)
                        out = _new(_tensor)
                        out.buffer = array if type(array) is _array else _asarray(array)
                        return out
                    if follows and (log := here.log) is not None and not log.taken:
                        return noted_pair(here, log, ufunc, op, number, self, other, a, other)
                    if kind is not _array:
                        return recorded(op, ufunc, (self, self.literal(other, self.type)), (a, other))
                elif (known := value_of(other)) is not other:
                    return method(self, known)
            except (RuntimeError, ValueError):  # ValueError: shapes that do not fit
                pass
        try:
            return general(self, other)
        except Exception as error:
            trim(error)
            raise

    return method


def reflected(ufunc: np.ufunc, general: Method) -> Method:
    """Return the reflected operator, whose first operand is a number or an array: for a tensor, Python calls its own operator."""
    op = BINARY[ufunc]
    number = number_of(op)
    follows = op.differentiable

    def method(self: Tensor, other: Any) -> Any:
        a, kind = self.buffer, type(other)
        dtype = a.dtype
        if (dtype is F64 or dtype is F32) and (
            kind is float or (kind is int and -EXACT <= other <= EXACT) or (kind is _array and other.dtype is dtype)
        ):
            here = listening.here
            try:
                if not here.recorders:
                    return wrapped(here.run(ufunc, other, a))
                if follows and (log := here.log) is not None and not log.taken:
                    return noted_pair(here, log, ufunc, op, number, other, self, other, a)
                if kind is not _array:
                    return recorded(op, ufunc, (self.literal(other, self.type), self), (other, a))
            except (RuntimeError, ValueError):
                pass
        try:
            return general(self, other)
        except Exception as error:
            trim(error)
            raise

    return method


def product(multiply: Method, general: Method) -> Method:
    """A product of matrices and vectors: `multiply` is NumPy's, `matmul` or `dot`."""

    def method(self: Tensor, other: Any) -> Any:
        kind, a = type(other), self.buffer
        dtype = a.dtype
        if (kind is _tensor or kind is _array) and (dtype is F64 or dtype is F32):
            b = other.buffer if kind is _tensor else other
            if b.dtype is dtype and 0 < a.ndim <= 2 and 0 < b.ndim <= 2:
                here = listening.here
                try:
                    if not here.recorders:
                        array = here.run(multiply, a, b)
                        out = _new(_tensor)
                        out.buffer = array if type(array) is _array else _asarray(array)
                        return out
                    if (log := here.log) is not None and (kind is _tensor or not log.taken):
                        return noted_pair(here, log, multiply, MATMUL, PRODUCT, self, other, a, b)
                    if kind is _tensor:
                        return recorded(MATMUL, multiply, (self, other), (a, b))
                except (RuntimeError, ValueError):
                    pass
        elif (known := value_of(other)) is not other:
            return method(self, known)
        try:
            return general(self, other)
        except Exception as error:
            trim(error)
            raise

    return method


def turned(multiply: Method, general: Method) -> Method:
    """The same with an array that comes first."""

    def method(self: Tensor, other: Any) -> Any:
        b = self.buffer
        dtype = b.dtype
        if type(other) is _array and other.dtype is dtype and (dtype is F64 or dtype is F32) and 0 < other.ndim <= 2 and 0 < b.ndim <= 2:
            here = listening.here
            try:
                if not here.recorders:
                    return wrapped(here.run(multiply, other, b))
                if (log := here.log) is not None and not log.taken:
                    return noted_pair(here, log, multiply, MATMUL, PRODUCT, other, self, other, b)
            except (RuntimeError, ValueError):
                pass
        try:
            return general(self, other)
        except Exception as error:
            trim(error)
            raise

    return method


def power(general: Method) -> Method:
    def method(self: Tensor, other: Any, modulus: Any = None) -> Any:
        array = self.buffer
        if type(other) is int and other in POWERS and modulus is None and (array.dtype is F64 or array.dtype is F32):
            op, number, evaluate = POWERS[other]
            here = listening.here
            try:
                if not here.recorders:
                    array = here.run(evaluate, array)
                    out = _new(_tensor)
                    out.buffer = array if type(array) is _array else _asarray(array)
                    return out
                if (log := here.log) is not None:
                    return noted(here, log, evaluate, op, number, self, array)
                return recorded(op, evaluate, (self,), (array,))
            except RuntimeError:
                pass
        try:
            return general(self, other, modulus)
        except Exception as error:
            trim(error)
            raise

    return method


def ufuncs(general: Method) -> Method:
    """`__array_ufunc__`, of tensors and variables."""

    def by_numpy(ufunc: np.ufunc) -> Method:
        return lambda *inputs: general(inputs[0], ufunc, "__call__", *inputs)

    def by_numpy_turned(ufunc: np.ufunc) -> Method:
        return lambda x, first: general(x, ufunc, "__call__", first, x)

    first: dict[np.ufunc, Method] = {
        **{ufunc: unary(ufunc, by_numpy(ufunc)) for ufunc in UNARY},
        **{ufunc: binary(ufunc, by_numpy(ufunc)) for ufunc in BINARY},
        np.matmul: product(np.matmul, by_numpy(np.matmul)),
    }
    second: dict[np.ufunc, Method] = {
        **{ufunc: reflected(ufunc, by_numpy_turned(ufunc)) for ufunc in BINARY},
        np.matmul: turned(np.matmul, by_numpy_turned(np.matmul)),
    }

    def method(self: Operand, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if next(calls):
            proceed()
        try:
            if not kwargs and ufunc in first and method == "__call__" and (len(_modules) == _loaded.without or called_by_user()):
                if type(self) is not _tensor:
                    inputs = tuple(map(value_of, inputs))
                if type(inputs[0]) is _tensor:
                    return first[ufunc](*inputs)
                if ufunc in second and type(inputs[1]) is _tensor:
                    return second[ufunc](inputs[1], inputs[0])
            return general(self, ufunc, method, *inputs, **kwargs)
        except Exception as error:
            trim(error)
            raise

    return method


def value_of(x: Any) -> Any:
    """The value of a variable, if no function is being traced; a number that no tape watches; anything else unchanged."""
    if type(x) is _weak:
        return x.buffer.item() if not x.buffer.ndim and not listening.recorders else x
    if not isinstance(x, Operand) or x.read_operand is None or current_builder() is not None:
        return x
    return x.read_operand()


def wrapped(array: Any) -> Tensor:
    """Return a tensor whose type is determined on first access."""
    out = _new(_tensor)
    out.buffer = array if type(array) is _array else _asarray(array)
    return out


# ---- under a tape


def noted(here: Here, log: TapeLog, compute: Method, op: Op, number: int, x: Tensor, array: Array) -> Any:
    """Compute an op of one operand, with an entry in the log of the only tape that is recording."""
    source = log.numbers.get(id(x))
    if source is None and log.lost:
        return recorded(op, compute, (x,), (array,))
    array = here.run(compute, array)
    out = _new(_tensor)
    out.buffer = array if type(array) is _array else _asarray(array)
    if source is not None:
        log.structure.append((number, source))
        log.entries.append((op, (x,), (out,)))
        log.numbers[id(out)] = len(log.entries)
    return out


def noted_pair(here: Here, log: TapeLog, compute: Method, op: Op, number: int, x: Any, y: Any, a: Any, b: Any) -> Any:
    """The same of two operands, tensors, arrays or numbers: `a` and `b` are what NumPy is called with."""
    i, j = log.numbers.get(id(x)), log.numbers.get(id(y))
    if i is None and j is None and log.lost:
        raise RuntimeError("perhaps a dead end, which the general path records")
    array = here.run(compute, a, b)
    out = _new(_tensor)
    out.buffer = array if type(array) is _array else _asarray(array)
    if i is None:
        if j is None:
            return out
        if type(x) is not float or number not in LINEAR_NUMBERS:
            x, i = held(log, op, x)
    elif j is None and (type(y) is not float or number not in LINEAR_NUMBERS):
        y, j = held(log, op, y)
    log.structure.append((number, i, j))
    log.entries.append((op, (x, y), (out,)))
    log.numbers[id(out)] = len(log.entries)
    return out


def held(log: TapeLog, op: Op, x: Any) -> tuple[Any, Any]:
    """Return a constant as stored in an entry, and its description in the structure."""
    if type(x) is _array:
        x = wrapped(x.copy())  # the user may write to it
    return x, log.constant(op, x)


def recorded(op: Op, ufunc: Method, args: tuple[Operand, ...], arrays: tuple[Any, ...]) -> Any:
    """Compute an op and report it to the tapes that are recording."""
    here = listening.here
    recorders = here.recorders
    for recorder in recorders:
        if recorder.stand_ins(args) is not args:
            return apply(op, *args)
    out = wrapped(here.run(ufunc, *arrays))
    results = (out,)
    for recorder in recorders:
        recorder.applied(op, args, results)
    return out
