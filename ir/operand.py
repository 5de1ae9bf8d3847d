"""What rules and users compute with.

An `Operand` has a type and the operators and methods of a NumPy array. Which class it is decides what an op does: a `Literal` folds, a
`Concrete` array evaluates, an IR value (`func.Value`) emits a statement.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import numpy as np

from . import ops
from .arrays import plain_array
from .effects import effects_of
from .errors import DTypeError, ShapeError, TraceError
from .ops.base import Array, Op, result_types
from .ops.maps import Map
from .types import DType, Shape, StackType, TensorType, as_dtype

OperandLike: TypeAlias = "Operand | Array | np.generic | bool | int | float | list[Any] | tuple[Any, ...]"


class Operand:
    """Base of everything that an op takes. `level` decides who applies an op on mixed operands: the highest does."""

    __slots__ = ()
    level: ClassVar[int] = 0
    weak: bool = False  # a traced Python scalar: gives way in promotion
    type: TensorType

    __array_priority__ = 1000

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        raise NotImplementedError

    def literal(self, value: Any, type: TensorType) -> Operand:
        """A constant filled with one value, to stand beside this operand."""
        return Literal(value, type)

    # ---- the look of an array

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

    # ---- arithmetic

    def __add__(self, other: Any) -> Operand:
        return ops.add(self, as_arithmetic(other))

    def __radd__(self, other: Any) -> Operand:
        return ops.add(as_arithmetic(other), self)

    def __sub__(self, other: Any) -> Operand:
        return ops.sub(self, as_arithmetic(other))

    def __rsub__(self, other: Any) -> Operand:
        return ops.sub(as_arithmetic(other), self)

    def __mul__(self, other: Any) -> Operand:
        return ops.mul(self, as_arithmetic(other))

    def __rmul__(self, other: Any) -> Operand:
        return ops.mul(as_arithmetic(other), self)

    def __truediv__(self, other: Any) -> Operand:
        return ops.div(self, as_arithmetic(other))

    def __rtruediv__(self, other: Any) -> Operand:
        return ops.div(as_arithmetic(other), self)

    def __floordiv__(self, other: Any) -> Operand:
        return ops.floor_divide(self, as_arithmetic(other))

    def __rfloordiv__(self, other: Any) -> Operand:
        return ops.floor_divide(as_arithmetic(other), self)

    def __mod__(self, other: Any) -> Operand:
        return ops.remainder(self, as_arithmetic(other))

    def __rmod__(self, other: Any) -> Operand:
        return ops.remainder(as_arithmetic(other), self)

    def __divmod__(self, other: Any) -> tuple[Operand, Operand]:
        return self // other, self % other

    def __pow__(self, other: Any) -> Operand:
        return ops.power(self, as_arithmetic(other))

    def __rpow__(self, other: Any) -> Operand:
        return ops.power(as_arithmetic(other), self)

    def __matmul__(self, other: Any) -> Operand:
        return ops.matmul(self, as_operand(other))

    def __rmatmul__(self, other: Any) -> Operand:
        return ops.matmul(as_operand(other), self)

    def __neg__(self) -> Operand:
        return ops.neg(self)

    def __pos__(self) -> Operand:
        return self

    def __abs__(self) -> Operand:
        return ops.absolute(self)

    def __round__(self, digits: int = 0) -> Operand:
        return ops.round(self, digits)

    # ---- comparisons, logic, bits

    def __eq__(self, other: object) -> Any:
        # what is no number equals no array: `x == None` and `x in (None, "same")` are questions of plain Python
        return False if other is None or isinstance(other, str) else ops.equal(self, as_arithmetic(other))

    def __ne__(self, other: object) -> Any:
        return True if other is None or isinstance(other, str) else ops.not_equal(self, as_arithmetic(other))

    def __lt__(self, other: Any) -> Operand:
        return ops.less(self, as_arithmetic(other))

    def __le__(self, other: Any) -> Operand:
        return ops.less_equal(self, as_arithmetic(other))

    def __gt__(self, other: Any) -> Operand:
        return ops.greater(self, as_arithmetic(other))

    def __ge__(self, other: Any) -> Operand:
        return ops.greater_equal(self, as_arithmetic(other))

    __hash__ = object.__hash__

    def __and__(self, other: Any) -> Operand:
        return ops.bitwise_and(self, as_arithmetic(other))

    def __rand__(self, other: Any) -> Operand:
        return ops.bitwise_and(as_arithmetic(other), self)

    def __or__(self, other: Any) -> Operand:
        return ops.bitwise_or(self, as_arithmetic(other))

    def __ror__(self, other: Any) -> Operand:
        return ops.bitwise_or(as_arithmetic(other), self)

    def __xor__(self, other: Any) -> Operand:
        return ops.bitwise_xor(self, as_arithmetic(other))

    def __rxor__(self, other: Any) -> Operand:
        return ops.bitwise_xor(as_arithmetic(other), self)

    def __invert__(self) -> Operand:
        return ops.bitwise_not(self)

    def __lshift__(self, other: Any) -> Operand:
        return ops.left_shift(self, as_arithmetic(other))

    def __rlshift__(self, other: Any) -> Operand:
        return ops.left_shift(as_arithmetic(other), self)

    def __rshift__(self, other: Any) -> Operand:
        return ops.right_shift(self, as_arithmetic(other))

    def __rrshift__(self, other: Any) -> Operand:
        return ops.right_shift(as_arithmetic(other), self)

    # ---- the methods that derivative rules use; the full NumPy surface is added by the classes that users hold

    def sum(self, axis: Any = None, keepdims: bool = False) -> Operand:
        return ops.sum(self, axis, keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Operand:
        return ops.max(self, axis, keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Operand:
        return ops.min(self, axis, keepdims)

    def prod(self, axis: Any = None, keepdims: bool = False) -> Operand:
        return ops.prod(self, axis, keepdims)

    def reshape(self, *shape: Any) -> Operand:
        return ops.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Operand:
        given = axes[0] if len(axes) == 1 and isinstance(axes[0], tuple | list) else axes
        return ops.transpose(self, tuple(given) if given else None)

    def astype(self, dtype: Any) -> Operand:
        return ops.cast(self, as_dtype(dtype))


class Literal(Operand):
    """A constant filled with one value: how Python scalars and zeros stand in the IR. Ops on literals fold at once where they can."""

    __slots__ = ("type", "value")
    level = 0

    def __init__(self, value: Any, type: TensorType) -> None:
        self.type = type
        self.value = type.dtype.type(value)

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        folded = fold_literals(op, args)
        if folded is not None:
            return folded
        return Concrete(self.array()).apply_op(op, args)

    def array(self) -> Array:
        """The whole constant as a (read-only, unallocated) NumPy array."""
        return np.broadcast_to(self.value, self.type.shape)

    def same(self, other: Any) -> bool:
        """Equal as constants: same type, same bits (so that 0.0 is not -0.0, and NaN is itself)."""
        return isinstance(other, Literal) and self.type == other.type and self.value.tobytes() == other.value.tobytes()

    def __repr__(self) -> str:
        return f"Literal({self.value}, {self.type})"


def fold_literals(op: Op, args: tuple[Operand, ...]) -> Literal | None:
    """The literal that `op` gives on literals, where one value fills its result."""
    if not effects_of(op).is_pure or not all(isinstance(a, Literal) for a in args):
        return None
    value = op.splat(*(a.value for a in args if isinstance(a, Literal)))
    if value is None:
        return None
    return Literal(value, result_types(op, [a.type for a in args])[0])


class Concrete(Operand):
    """A NumPy array as an operand: ops on it evaluate at once."""

    __slots__ = ("type", "data")
    level = 1

    def __init__(self, data: Array) -> None:
        self.data = data
        self.type = TensorType(as_dtype(data.dtype), data.shape)

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        out = evaluate(op, [array_of(a, op) for a in args], [a.type for a in args])
        results = tuple(Concrete(a) for a in out)
        return results[0] if len(results) == 1 else results

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.data!r})"


def array_of(operand: Operand, op: Op) -> Array:
    """The NumPy array behind a concrete operand; a literal beside an elementwise op stays a scalar, which NumPy broadcasts."""
    if isinstance(operand, Concrete):
        return operand.data
    if isinstance(operand, Literal):
        return np.asarray(operand.value) if isinstance(op, Map) else operand.array()
    raise TraceError(f"{op.name}: a traced value of type {operand.type} outside of its trace")


def evaluate(op: Op, arrays: list[Array], types: list[TensorType]) -> tuple[Array, ...]:
    """Check, then evaluate eagerly; results have exactly the inferred types."""
    expected = result_types(op, types)
    with np.errstate(all="ignore"):
        out = op.evaluate(*arrays)
    results = out if isinstance(out, tuple) else (out,)
    if len(expected) == 1 and isinstance(expected[0], StackType):
        return results  # a list of arrays
    return tuple(
        a if a.shape == t.shape and a.dtype == t.dtype else np.broadcast_to(a, t.shape).astype(t.dtype)
        for a, t in zip((np.asarray(r) for r in results), expected, strict=True)
    )


def as_operand(x: Any) -> Operand:
    """Whatever the user gave, as an operand; a `Variable` is read. Raises DTypeError for what is not numeric."""
    if isinstance(x, Operand):
        read = getattr(x, "read_operand", None)
        return x if read is None else read()
    try:
        array = plain_array(x)
    except ValueError as error:  # ragged lists
        raise ShapeError(f"a {type(x).__name__} does not make an array: {error}") from None
    if array.dtype == object:
        held = f"{type(x).__name__} of Python objects" if isinstance(x, np.ndarray | list | tuple) else type(x).__name__
        raise DTypeError(f"dtype object is not supported: an operand is a {held}; give numbers, or name their dtype with .astype")
    as_dtype(array.dtype)
    return Concrete(array)


def as_arithmetic(x: Any) -> Any:
    """`as_operand`, but Python scalars pass: they are weak in promotion."""
    return x if type(x) in (int, float, bool) else as_operand(x)
