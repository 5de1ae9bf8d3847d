"""Tensors with TensorFlow's interface: adjit's own objects, in subclasses that print, compare and convert as TensorFlow's do.

`Tensor` defines the common interface; `EagerTensor`, `SymbolicTensor` and `ConstantTensor` are the runtime's tensor, a traced value and a
constant of a trace. `dress` changes the class of an object in place, so that it stays the same object for tapes and traces.

Arithmetic is strict, as in TensorFlow: dtypes are never promoted; Python numbers and NumPy arrays take the dtype of the other operand.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import AdjitError, TraceError
from adjit.ir.operand import Concrete, Literal, Operand, as_operand, compares_itself
from adjit.ir.ops.base import Array, Op
from adjit.ir.tracebacks import lookup
from adjit.ir.types import F32, F64, I32, I64, TensorType
from adjit.runtime.tensor import Tensor as RuntimeTensor
from adjit.runtime.tensor import WeakTensor, materialize
from adjit.tracer.arrays import ArrayMethods
from adjit.tracer.numpy_table import call_ufunc
from adjit.tracer.pytree import flatten
from adjit.tracer.traced import Splat, Traced, WeakSplat

from .dtypes import DType, as_dtype
from .errors import InvalidDType, NoValueError, translate
from .parts import part_of
from .shape import TensorShape
from .values import converted


class Tensor(ArrayMethods):
    """The common base of eager tensors, traced values and constants of a trace: `isinstance(x, tf.Tensor)` holds for all."""

    __slots__ = ()
    in_place = False

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return as_dtype(self.type.dtype)

    @property
    def shape(self) -> TensorShape:  # type: ignore[override]
        return TensorShape(self.type.shape)

    def get_shape(self) -> TensorShape:
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Check that the shapes agree: shapes are always known here."""
        self.shape.assert_is_compatible_with(shape)

    @property
    def device(self) -> str:
        return "/job:localhost/replica:0/task:0/device:CPU:0"

    def ref(self) -> Reference:
        return Reference(self)

    def __len__(self) -> int:
        if not self.type.shape:
            raise TypeError("Scalar tensor has no `len()`")
        return self.type.shape[0]

    def __getitem__(self, key: Any) -> Any:
        try:
            return dress(ArrayMethods.__getitem__(self, key))
        except AdjitError as error:
            translate(error)
            raise

    @lookup
    def __getattr__(self, name: str) -> Any:
        part = part_of(self) if name == "assign" else None
        if part is not None:
            return part.assign
        inherited = getattr(super(), "__getattr__", self.__getattribute__)  # raises the original error again
        return inherited(name)

    def __eq__(self, other: object) -> Any:
        return NotImplemented if compares_itself(other) else False if other is None or isinstance(other, str) else _equal(self, other)

    def __ne__(self, other: object) -> Any:
        return NotImplemented if compares_itself(other) else True if other is None or isinstance(other, str) else _not_equal(self, other)

    __hash__ = Operand.__hash__

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError(f"{type(self).__name__!r} object does not support item assignment; use tf.tensor_scatter_nd_update")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """An operator with an array on its left is handled by the tensor; other NumPy functions work as everywhere in adjit."""
        combine = _UFUNCS.get(ufunc) if method == "__call__" and not kwargs else None
        return call_ufunc(ufunc, method, inputs, kwargs) if combine is None else combine(*inputs)


class EagerTensor(Tensor, RuntimeTensor):
    """A tensor with a value."""

    __slots__ = ()
    apart = Operand.apart  # type: ignore[assignment] # it cannot be written to

    def __init__(self, value: Any, dtype: Any = None) -> None:
        RuntimeTensor.__init__(self, value, None if dtype is None else as_dtype(dtype).dtype)

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        return dress_results(super().apply_op(op, args))

    def __hash__(self) -> int:
        raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")

    def __bool__(self) -> bool:
        if self.buffer.size != 1:
            raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()")
        return bool(self.buffer.reshape(()))

    def numpy(self) -> Any:
        """The value, as a copy or a NumPy scalar."""
        view = RuntimeTensor.numpy(self)  # reports the conversion to tapes
        return view.copy() if view.ndim else view[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        changed = dtype is not None and np.dtype(dtype) != self.buffer.dtype
        return RuntimeTensor.__array__(self, dtype, copy or changed or None)

    def __reduce__(self) -> Any:
        return EagerTensor, (np.array(self.buffer),)

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={value_text(self.buffer)}>"

    def __str__(self) -> str:
        text = str(self.buffer)
        return f"tf.Tensor({chr(10) if chr(10) in text else ''}{text}, shape={self.shape}, dtype={self.dtype.name})"


class SymbolicTensor(Tensor, Traced):
    """A tensor inside a function that is being traced."""

    __slots__ = ()

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        return dress_results(super().apply_op(op, args))

    def numpy(self) -> Any:
        """Symbolic tensors have no value; TensorFlow's do not even have this method."""
        try:
            return super().numpy()
        except TraceError as error:
            raise NoValueError(*error.args) from None

    def __repr__(self) -> str:
        return f'Tensor("{self.name or "tensor"}:0", shape={self.shape}, dtype={self.dtype.name})'

    __str__ = __repr__


class ConstantTensor(Tensor, Splat):
    """A tensor inside a trace that is filled with one known value."""

    __slots__ = ()

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        return dress_results(super().apply_op(op, args))

    def __repr__(self) -> str:
        return f'Tensor("Const:0", shape={self.shape}, dtype={self.dtype.name})'

    __str__ = __repr__


class Reference:
    """`x.ref()`: a hashable reference to x, for use as a dict key."""

    __slots__ = ("_x", "__weakref__")

    def __init__(self, x: Any) -> None:
        self._x = x

    def deref(self) -> Any:
        return self._x

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._x is other._x

    def __hash__(self) -> int:
        return id(self._x)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._x!r}>"


def value_text(data: Array) -> str:
    """A value inside a repr: Python's repr of a scalar, NumPy's repr of an array, on separate lines if it has several."""
    if not data.ndim:
        return repr(data.item())
    text = repr(data)
    return f"\n{text}" if "\n" in text else text


# ---- dressing

_DRESSES: dict[type[Any], type[Any]] = {
    RuntimeTensor: EagerTensor,
    WeakTensor: EagerTensor,
    Traced: SymbolicTensor,
    Splat: ConstantTensor,
    WeakSplat: ConstantTensor,
}


def dress(x: Any) -> Any:
    """An operand with TensorFlow's interface: the same object if possible."""
    dress = _DRESSES.get(type(x))
    if dress is not None:
        x.__class__ = dress
        return x
    return dress_bare(x) if type(x) is Literal or type(x) is Concrete else x


def dress_bare(x: Operand) -> Operand:
    if isinstance(x, Literal):
        out: Operand = ConstantTensor(x.value, x.type) if tracing() else materialize(x)
        return out if isinstance(out, Tensor) else dress(out)
    assert isinstance(x, Concrete)
    return eager(x.buffer)


def dress_results(out: Any) -> Any:
    return tuple(map(dress, out)) if type(out) is tuple else dress(out)


def dress_structure(structure: Any) -> Any:
    """A structure of results, with its leaves dressed; the same object if they can all be dressed in place."""
    if isinstance(structure, Operand):
        return dress(structure)
    leaves, tree = flatten(structure)
    dressed = [dress(leaf) for leaf in leaves]
    return structure if all(a is b for a, b in zip(leaves, dressed, strict=True)) else tree.unflatten(dressed)


def tracing() -> bool:
    from adjit.tracer.trace import current_trace  # noqa: PLC0415 - the trace depends on traced values, which are dressed here

    return current_trace() is not None


def eager(array: Array) -> EagerTensor:
    """A tensor that owns an array which is never written to."""
    out: EagerTensor = EagerTensor.__new__(EagerTensor)
    out.buffer = array
    out.type = TensorType(array.dtype, array.shape)
    return out


# ---- conversion


def convert_to_tensor(value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None) -> Any:
    """Convert an array-like to a tensor. Python floats become float32, ints int32; NumPy arrays keep their dtype."""
    wanted = None if dtype is None else as_dtype(dtype)
    value = value.made_tensor() if hasattr(type(value), "made_tensor") else value  # a range of traced bounds
    if isinstance(value, Operand):
        operand = dress(as_operand(value))
        if operand.weak and isinstance(operand, Traced):  # a Python number that a loop or a branch computes
            return dress(ops.cast(operand, (wanted or python_dtype(operand, dtype_hint)).dtype))
        if wanted is not None and operand.type.dtype != wanted.dtype:
            raise ValueError(f"Tensor conversion requested dtype {wanted.name} for Tensor with dtype {operand.dtype.name}: {operand!r}")
        return operand
    if isinstance(value, list | tuple) and holds_operand(value):
        return packed(value, wanted, dtype_hint)
    if wanted is None and dtype_hint is not None:
        try:
            return eager(converted(value, as_dtype(dtype_hint)))
        except TypeError:
            pass
    return eager(converted(value, wanted))


def python_dtype(x: Operand, hint: Any) -> DType:
    """The dtype of a tensor made from a Python number: that of a hint which it fits, else int32 or float32."""
    own = as_dtype(I32 if x.type.dtype == I64 else F32 if x.type.is_float else x.type.dtype)
    if hint is None:
        return own
    wished = as_dtype(hint)
    return wished if own.converts_to(wished) else own


def holds_operand(value: Any) -> bool:
    return isinstance(value, Operand) or (isinstance(value, list | tuple) and any(map(holds_operand, value)))


def packed(values: Any, wanted: DType | None, hint: Any = None) -> Any:
    """A list of tensors (and numbers) stacked into one tensor along a new first axis, which takes the dtype of the context.

    As in TensorFlow, that converts tensors in a list, and no others; here not from floats to integers, which would lose digits in silence.
    """
    own = first_dtype(values)
    if wanted is None:
        wished = None if hint is None else as_dtype(hint)
        target = wished if wished is not None and (own is None or own.converts_to(wished)) else own
    else:
        target = wanted
    parts = [convert_to_tensor(v, dtype_hint=target) for v in values]
    if target is not None:
        parts = [ops.cast(p, target.dtype) if as_dtype(p.type.dtype).converts_to(target) else p for p in parts]
        parts = [convert_to_tensor(dress(p), dtype=wanted) for p in parts]
    return dress(ops.concatenate([ops.reshape(p, (1, *p.type.shape)) for p in same_dtypes("pack", parts)], 0))


def first_dtype(value: Any) -> DType | None:
    if isinstance(value, Operand):
        return None if value.weak and isinstance(value, Traced) else as_dtype(value.type.dtype)
    if isinstance(value, list | tuple):
        return next((found for found in map(first_dtype, value) if found is not None), None)
    return None


def same_dtypes(what: str, xs: list[Any]) -> list[Any]:
    for x in xs[1:]:
        check_dtypes(what, xs[0], x)
    return xs


def check_dtypes(what: str, a: Operand, b: Operand) -> None:
    """Reject different dtypes. A Python number that a loop carries is weakly typed: it takes the dtype of the other operand, if it fits."""
    if a.type.dtype == b.type.dtype or (a.weak and b.weak):
        return
    number, tensor = (a, b) if a.weak else (b, a)
    if not (number.weak and as_dtype(number.type.dtype).converts_to(as_dtype(tensor.type.dtype))):
        raise InvalidDType(
            f"cannot compute {what} as input #1(zero-based) was expected to be a {a.type.dtype} tensor but is a {b.type.dtype} tensor: "
            "TensorFlow does not promote dtypes; use tf.cast"
        )


def beside(what: str, x: Operand, other: Any) -> Any:
    """The other operand of an op on tensor x: an operand of its dtype, or a Python number, which takes it."""
    kind = type(other)
    if kind is float or kind is int or kind is bool:
        here = x.type.dtype.kind
        if not x.weak and ((kind is float and here not in "fc") or (kind is bool) != (here == "b")):
            check_dtypes(what, x, convert_to_tensor(other))
        return other
    if not isinstance(other, Operand):
        other = convert_to_tensor(other, dtype_hint=as_dtype(x.type.dtype))
    other = as_operand(other)
    check_dtypes(what, x, other)
    return other


def pair(what: str, a: Any, b: Any) -> tuple[Any, Any]:
    """The two operands of a function: at least one is a tensor, and both have the same dtype."""
    if isinstance(a, Operand):
        x = dress(as_operand(a))
        return x, beside(what, x, b)
    if isinstance(b, Operand):
        y = dress(as_operand(b))
        return beside(what, y, a), y
    x = convert_to_tensor(a)
    return x, beside(what, x, b)


def true_quotient(a: Any, b: Any) -> Operand:
    """Integer division gives floats: float32 for small integer types, float64 for the others."""
    x = a if isinstance(a, Operand) else b
    if x.type.dtype.kind in "iu":
        wide = F32 if x.type.dtype.itemsize <= 2 else F64
        a, b = (ops.cast(v, wide) if isinstance(v, Operand) else v for v in (a, b))
    return ops.div(a, b)


def floor_quotient(a: Any, b: Any) -> Operand:
    check_divisor(a, b)
    return ops.floor_divide(a, b)


def floor_remainder(a: Any, b: Any) -> Operand:
    check_divisor(a, b)
    return ops.remainder(a, b)


def check_divisor(a: Any, b: Any) -> None:
    """Integer division by zero raises, as in TensorFlow; NumPy warns, and gives 0."""
    if (a if isinstance(a, Operand) else b).type.dtype.kind in "iu":
        ops.check(ops.all(ops.not_equal(as_operand(b), 0)), "Integer division by zero")


def wide(x: Any) -> Any:
    """An argument with its 16-bit floats as float32."""
    if isinstance(x, list | tuple) and not hasattr(x, "_fields"):
        return type(x)(map(wide, x))
    return ops.cast(as_operand(x), F32) if isinstance(x, Operand) and x.type.is_stored else x


def rounded(out: Any, operands: Iterable[Any]) -> Any:
    """A result in the 16-bit dtype of its operands: adjit computes in float32, TensorFlow's kernels round."""
    if isinstance(out, Operand) and out.type.dtype == F32:
        floats = {x.type.dtype for x in operands if isinstance(x, Operand) and not x.weak and x.type.is_float}
        if len(floats) == 1 and F32 not in floats:
            return ops.cast(out, *floats)
    return out


# ---- operators


def binary(what: str, function: Callable[[Any, Any], Operand]) -> Callable[[Any, Any], Any]:
    """`function` of two operands, with TensorFlow's rules for combining them."""

    def combine(a: Any, b: Any) -> Any:
        try:
            operands = pair(what, a, b)
            return dress(rounded(function(*map(wide, operands)), operands))
        except AdjitError as error:
            translate(error)
            raise

    return combine


_equal, _not_equal = binary("Equal", ops.equal), binary("NotEqual", ops.not_equal)

_product = binary("MatMul", ops.matmul)

_OPERATORS: dict[str, tuple[str, Callable[[Any, Any], Operand]]] = {
    "add": ("AddV2", ops.add), "sub": ("Sub", ops.sub), "mul": ("Mul", ops.mul), "truediv": ("RealDiv", true_quotient),
    "floordiv": ("FloorDiv", floor_quotient), "mod": ("FloorMod", floor_remainder), "pow": ("Pow", ops.power),
    "and": ("LogicalAnd", ops.bitwise_and), "or": ("LogicalOr", ops.bitwise_or), "xor": ("LogicalXor", ops.bitwise_xor),
}  # fmt: skip
_COMPARISONS = {"lt": ops.less, "le": ops.less_equal, "gt": ops.greater, "ge": ops.greater_equal}


_UFUNCS: dict[np.ufunc, Callable[[Any, Any], Any]] = {
    np.matmul: _product, np.equal: _equal, np.not_equal: _not_equal, np.add: binary("AddV2", ops.add), np.subtract: binary("Sub", ops.sub),
    np.multiply: binary("Mul", ops.mul), np.true_divide: binary("RealDiv", true_quotient),
    np.floor_divide: binary("FloorDiv", floor_quotient), np.remainder: binary("FloorMod", floor_remainder),
    np.power: binary("Pow", ops.power), np.less: binary("Less", ops.less), np.less_equal: binary("LessEqual", ops.less_equal),
    np.greater: binary("Greater", ops.greater), np.greater_equal: binary("GreaterEqual", ops.greater_equal),
}  # fmt: skip


def _define_operators() -> None:
    """Define each operator in both directions; a `Variable` reads its value and uses these operators too."""
    for name, (what, function) in _OPERATORS.items():
        combine = binary(what, function)
        setattr(Tensor, f"__{name}__", _method(combine))
        setattr(Tensor, f"__r{name}__", _reflected(combine))
    for name, function in _COMPARISONS.items():
        setattr(Tensor, f"__{name}__", _method(binary(name.capitalize(), function)))
    for name, unary in {"neg": ops.neg, "abs": ops.absolute}.items():
        setattr(Tensor, f"__{name}__", _of_one(unary))
    setattr(Tensor, "__matmul__", lambda self, other: _product(self, other))  # noqa: B010
    setattr(Tensor, "__rmatmul__", lambda self, other: _product(other, self))  # noqa: B010
    setattr(Tensor, "__divmod__", lambda self, other: (operator.floordiv(self, other), operator.mod(self, other)))  # noqa: B010


def _of_one(function: Callable[[Any], Operand]) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        return dress(rounded(function(wide(self)), (self,)))

    return method


def _method(combine: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return combine(self, other)

    return method


def _reflected(combine: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        return combine(other, self)

    return method


_define_operators()
