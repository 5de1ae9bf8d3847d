"""Operands: what derivative rules and users compute with.

An `Operand` has a type and the operators and methods of a NumPy array. Its class decides what an op does: a `Literal` folds, a `Concrete`
array evaluates, an IR value (`func.Value`) emits a statement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from .active import current_builder
from .arrays import as_array
from .effects import effects_of
from .errors import TraceError, UnsupportedError
from .silence import silently
from .sizes import is_symbolic
from .tracebacks import methods_end_at_callers, trim
from .types import BOOL, I64, SCALARS, DType, Shape, StackType, TensorType, as_dtype

if TYPE_CHECKING:
    from . import ops
    from .ops.base import Array, Op
else:
    from .vocabulary import functions as ops

PLAIN = frozenset({*SCALARS, np.ndarray})  # the most common operand classes, which need no further checks
LISTS: dict[type, Callable[[Any], Any]] = {}  # classes of lists, and the function that makes an array of one that holds operands
OperandLike: TypeAlias = "Operand | Array | np.generic | bool | int | float | complex | list[Any] | tuple[Any, ...]"

COUNTING = frozenset({"add", "sub", "mul", "div", "floor_divide", "remainder", "power", "left_shift", "right_shift"})

LARGE = 1024  # elements: ops on larger literals are left to the compiled program, so that tracing time does not grow with size


def is_arithmetic(x: Any) -> bool:
    """Whether adjit's operators accept `x` (or raise for it): numbers, and what NumPy converts to an array. Other objects, such as data
    frames, have their own operators.
    """
    kind = type(x)
    if isinstance(x, Operand) or kind in PLAIN or kind in LISTS:
        return True
    if isinstance(x, np.ndarray | np.generic | list | tuple | int | float | complex):
        return True
    if hasattr(kind, "__array_ufunc__"):
        return False
    return hasattr(kind, "__array__") or (isinstance(x, Sequence) and not isinstance(x, str | bytes))


def compares_itself(x: Any) -> bool:
    """Whether `==` is left to `x`, an object that adjit's operators do not accept, such as `pytest.approx(1.0)`."""
    return not is_arithmetic(x) and not isinstance(x, str) and any("__eq__" in vars(base) for base in type(x).__mro__[:-1])


def operators(name: str, scalars: bool = True) -> tuple[Callable[[Any, Any], Operand], Callable[[Any, Any], Operand]]:
    """The two methods of a binary operator, with the operand first and second. Looked up by each call: ops are built on this module.

    `scalars`: whether the op takes Python scalars, which do not determine the dtype.
    """
    counts = name in COUNTING

    def forward(self: Any, other: Any) -> Any:
        try:
            if type(other) is type(self) and not self.weak and self.read_operand is None:  # as below, but for what need not be asked
                return getattr(ops, name)(self, other)
            if not is_arithmetic(other):
                return NotImplemented
            second = as_arithmetic(other) if scalars else as_operand(other)
            if counts and self.weak:
                self = as_number(self, other)
                ops.check_integers(name, self, second)
            return getattr(ops, name)(self, second)
        except Exception as error:
            trim(error)
            raise

    def backward(self: Any, other: Any) -> Any:
        try:
            if not is_arithmetic(other):
                return NotImplemented
            first = as_arithmetic(other) if scalars else as_operand(other)
            if counts and self.weak:
                self = as_number(self, other)
                ops.check_integers(name, first, self)
            return getattr(ops, name)(first, self)
        except Exception as error:
            trim(error)
            raise

    return forward, backward


def as_number(x: Operand, other: Any = 0) -> Operand:
    """The operand of arithmetic on Python numbers, where Python's bools, known and traced, are integers. NumPy's bools are not."""
    among_numbers = type(other) in SCALARS or (isinstance(other, Operand) and other.weak)
    return ops.cast(x, I64) if x.weak and x.type.dtype == BOOL and among_numbers else x


def refuse_modulus() -> Any:
    raise UnsupportedError("pow: a third argument is for Python integers only; multiply in a loop, and take the remainder at every step")


class Operand:
    """Base of everything that an op takes. `level` decides which operand applies an op on mixed operands: the highest."""

    __slots__ = ()
    level: ClassVar[int] = 0
    weak: bool = False  # a traced Python scalar: does not determine the dtype in promotion
    read_operand: Any = None  # what a variable is read by
    is_watched: bool = False  # by a recording tape, which could not see what NumPy computes with it
    type: TensorType

    __array_priority__ = 1000

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        raise NotImplementedError

    def literal(self, value: Any, type: TensorType) -> Operand:
        """A constant filled with one value, for use with this operand."""
        return Literal(value, type)

    def filled(self, value: Any, type: TensorType) -> Operand:
        """A result filled with one value, of the class of other results of this operand."""
        return self.literal(value, type)

    def strong(self) -> Operand:
        """This value as NumPy's functions take it: a Python number becomes a scalar of NumPy, which determines the dtype in promotion."""
        return self.retyped(self.type.dtype, False) if self.weak else self

    def weakened(self) -> Operand:
        """A new value that nothing refers to yet, as a Python number: it does not determine the dtype in promotion."""
        return self

    def settled(self) -> Operand:
        """`strong`, for a new value that nothing refers to yet."""
        return self.strong()

    def apart(self, view: bool = False) -> Operand:
        """An equal value that is another object, for those that users can write to."""
        return self

    def retyped(self, dtype: DType, weak: bool) -> Operand:
        """A new value of a dtype, which may be the same, and weakly typed or not."""
        return ops.cast(self, dtype)

    if TYPE_CHECKING:  # attributes of the user-facing classes, for users' type checkers: public functions are annotated to return operands

        def numpy(self) -> Array: ...
        def item(self, *index: Any) -> Any: ...
        def tolist(self) -> Any: ...
        def mean(self, *args: Any, **kwargs: Any) -> Operand: ...
        def __getitem__(self, key: Any) -> Operand: ...
        def __float__(self) -> float: ...
        def __int__(self) -> int: ...
        def __index__(self) -> int: ...
        def __bool__(self) -> bool: ...
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array: ...

    # ---- array attributes

    @property
    def shape(self) -> Shape:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    @property
    def size(self) -> int:
        return self.type.size

    @property
    def T(self) -> Operand:  # noqa: N802 - NumPy's name
        return ops.transpose(self)

    def __len__(self) -> int:
        if not self.type.shape:
            raise TypeError("len() of a 0-dimensional value")
        return self.type.shape[0]

    # ---- arithmetic; objects that are neither numbers nor arrays use their own operators, as they do with NumPy's arrays

    __add__, __radd__ = operators("add")
    __sub__, __rsub__ = operators("sub")
    __mul__, __rmul__ = operators("mul")
    __truediv__, __rtruediv__ = operators("div")
    __floordiv__, __rfloordiv__ = operators("floor_divide")
    __mod__, __rmod__ = operators("remainder")
    _power, _powered = operators("power")

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return self._power(other) if modulus is None else refuse_modulus()

    def __rpow__(self, other: Any, modulus: Any = None) -> Any:
        return self._powered(other) if modulus is None else refuse_modulus()

    __matmul__, __rmatmul__ = operators("matmul", scalars=False)

    def __divmod__(self, other: Any) -> tuple[Operand, Operand]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Operand, Operand]:
        return other // self, other % self

    def __neg__(self) -> Operand:
        return ops.neg(as_number(self))

    def __pos__(self) -> Operand:
        return as_number(self)

    def __abs__(self) -> Operand:
        return ops.absolute(as_number(self))

    def __round__(self, digits: int | None = None) -> Operand:
        rounded = ops.round(self, digits or 0)
        return rounded.retyped(I64, True) if digits is None and not self.type.shape else rounded  # a Python integer

    # ---- comparisons, logic, bits

    __lt__, _ = operators("less")
    __le__, _ = operators("less_equal")
    __gt__, _ = operators("greater")
    __ge__, _ = operators("greater_equal")
    __and__, __rand__ = operators("bitwise_and")
    __or__, __ror__ = operators("bitwise_or")
    __xor__, __rxor__ = operators("bitwise_xor")
    __lshift__, __rlshift__ = operators("left_shift")
    __rshift__, __rrshift__ = operators("right_shift")

    def __eq__(self, other: object) -> Any:
        return ops.equal(self, as_arithmetic(other)) if is_arithmetic(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return ops.not_equal(self, as_arithmetic(other)) if is_arithmetic(other) else NotImplemented

    __hash__ = object.__hash__

    def __invert__(self) -> Operand:
        return ops.bitwise_not(self)

    # ---- a few methods, for IR built by hand; the user-facing classes have NumPy's instead. Rules use the functions of `ops`.

    def summed(self, axes: tuple[int, ...]) -> Operand:
        """The sum over axes, for the rules of `ops.shape`, which `ops.reduce` imports."""
        return ops.sum(self, axes)

    def sum(self, axis: Any = None, *, keepdims: bool = False) -> Operand:
        return ops.sum(self, axis, keepdims)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> Operand:
        return ops.max(self, axis, keepdims)

    def min(self, axis: Any = None, *, keepdims: bool = False) -> Operand:
        return ops.min(self, axis, keepdims)

    def prod(self, axis: Any = None, *, keepdims: bool = False) -> Operand:
        return ops.prod(self, axis, keepdims)

    def reshape(self, *shape: Any) -> Operand:
        return ops.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Operand:
        given = axes[0] if len(axes) == 1 and isinstance(axes[0], tuple | list) else axes
        return ops.transpose(self, tuple(given) if given else None)

    def astype(self, dtype: Any) -> Operand:
        return ops.astype(self, as_dtype(dtype))


class Literal(Operand):
    """A constant filled with one value: how Python scalars and zeros appear in the IR. Ops on literals fold immediately if they can."""

    __slots__ = ("type", "value")
    level = 0

    def __init__(self, value: Any, type: TensorType) -> None:
        self.type = type
        self.value = type.dtype.type(value)

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        folded = fold_literals(op, args)
        if folded is not None:
            return folded
        if any(is_symbolic(a.type.size) or a.type.size > LARGE for a in args):
            builder = current_builder()
            if builder is not None:
                return builder.apply(op, args)
        return Concrete(self.array()).apply_op(op, args)

    def array(self) -> Array:
        """The whole constant as a NumPy array (read-only, without allocating its elements)."""
        return np.broadcast_to(self.value, self.type.shape)

    def same(self, other: Any) -> bool:
        """Whether both are the same constant: same type, same bits (so that 0.0 is not -0.0, and NaN equals itself)."""
        return isinstance(other, Literal) and self.type == other.type and self.value.tobytes() == other.value.tobytes()

    def __repr__(self) -> str:
        return f"Literal({self.value}, {self.type})"


def fold_literals(op: Op, args: tuple[Operand, ...]) -> Literal | None:
    """The literal that `op` gives on literals, if one value fills its result."""
    for a in args:
        if not isinstance(a, Literal):
            return None
    if not effects_of(op).is_pure:
        return None
    value = op.splat(*(a.value for a in args if isinstance(a, Literal)))
    if value is None:
        return None
    return Literal(value, op.result_types([a.type for a in args])[0])


class Concrete(Operand):
    """A NumPy array as an operand: ops on it evaluate immediately."""

    __slots__ = ("type", "buffer")
    level = 1

    def __init__(self, data: Array) -> None:
        self.buffer = data  # never written to through this object: others may share it
        self.type = TensorType(as_dtype(data.dtype), data.shape)

    @property
    def data(self) -> Array:
        """The elements, read-only."""
        return read_only(self.buffer)

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        out = evaluate(op, [array_of(a, op) for a in args], [a.type for a in args])
        results = tuple(Concrete(a) for a in out)
        return results[0] if len(results) == 1 else results

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.buffer!r})"


def read_only(array: Array) -> Array:
    """A read-only view of an array."""
    view = np.asarray(array).view()  # also for NumPy's scalars, which are not arrays
    view.flags.writeable = False
    return view


def array_of(operand: Operand, op: Op) -> Array:
    """The NumPy array behind a concrete operand; a literal operand of an elementwise op stays a scalar, which NumPy broadcasts."""
    if isinstance(operand, Concrete):
        return operand.buffer
    if isinstance(operand, Literal):
        return np.asarray(operand.value) if op.is_elementwise else operand.array()
    raise TraceError(f"{op.name}: a traced value of type {operand.type} outside of its trace")


def evaluate(op: Op, arrays: list[Array], types: list[TensorType]) -> tuple[Array, ...]:
    """Check, then evaluate eagerly; results have exactly the inferred types."""
    expected = op.result_types(types)
    if op.is_elementwise or op.is_view or op.is_reduction or op.is_product:
        out = silently(op.evaluate, *arrays)
    else:
        with np.errstate(all="ignore"):
            out = op.evaluate(*arrays)
    if type(out) is np.ndarray and len(expected) == 1 and out.shape == expected[0].shape and out.dtype == expected[0].dtype:
        return (out,)
    results = out if isinstance(out, tuple) else (out,)
    if len(expected) == 1 and isinstance(expected[0], StackType):
        return results  # a list of arrays
    return tuple(
        a if a.shape == t.shape and a.dtype == t.dtype else np.broadcast_to(a, t.shape).astype(t.dtype)
        for a, t in zip((np.asarray(r) for r in results), expected, strict=True)
    )


def as_operand(x: Any) -> Operand:
    """The user's value as an operand; a `Variable` is read. Raises DTypeError for non-numeric values."""
    if isinstance(x, Operand):
        read = x.read_operand
        return x if read is None else read()
    if is_symbolic(x):
        return ops.size_value(x).weakened()
    if type(x) in LISTS:
        x = LISTS[type(x)](x)
    return x if isinstance(x, Operand) else Concrete(as_array(x))


def as_index(x: Operand | int) -> Operand:
    """An integer, known or computed, as an i64 scalar of the IR."""
    return Literal(x, TensorType(I64)) if type(x) is int else ops.cast(as_operand(x), I64)


def as_arithmetic(x: Any) -> Any:
    """`as_operand`, except that Python scalars pass unchanged: they are weak in promotion."""
    return x if type(x) in SCALARS else as_operand(x)


methods_end_at_callers(Operand, ())
