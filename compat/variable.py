"""tf.Variable: adjit's variable, with TensorFlow's constructor, names and repr."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.runtime.stores import OpenStore
from adjit.runtime.variable import Variable as RuntimeVariable
from adjit.tracer.trace import current_trace

from .dtypes import DType, as_dtype
from .naming import scoped
from .parts import Part, remember
from .scattering import IndexedSlices, nd_key, scattered
from .shape import TensorShape
from .tensor import Reference, Tensor, convert_to_tensor, dress, value_text, wide


class VariableAggregation(enum.Enum):
    """How replicas of a variable are combined; there is only one replica."""

    NONE, SUM, MEAN, ONLY_FIRST_REPLICA = range(4)


class VariableSynchronization(enum.Enum):
    """When replicas are synchronised: never."""

    AUTO, NONE, ON_WRITE, ON_READ = range(4)


class Constraint:
    """A user's function that is applied to values after updates, on tensors of `adjit.tf`."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, x: Any) -> Any:
        return self.function(dress(x))


class Variable(RuntimeVariable):
    """A tensor that can be assigned. Python floats become float32, ints int32.

    >>> Variable(3.0)
    <tf.Variable 'Variable:0' shape=() dtype=float32, numpy=3.0>
    """

    __slots__ = ()

    def __init__(
        self, initial_value: Any = None, trainable: bool | None = None, validate_shape: bool = True, caching_device: Any = None,
        name: str | None = None, variable_def: Any = None, dtype: Any = None, import_scope: str | None = None, constraint: Any = None,
        synchronization: Any = None, aggregation: Any = None, shape: Any = None, experimental_enable_variable_lifting: bool = True,
    ) -> None:  # fmt: skip
        if initial_value is None:
            raise ValueError("The `initial_value` arg to `tf.Variable` must be given: a tensor, or a function without arguments")
        value = initial_value() if callable(initial_value) and not isinstance(initial_value, Operand) else initial_value
        value = value if isinstance(value, Operand) and dtype is None else convert_to_tensor(value, dtype)
        if constraint is not None and not callable(constraint):
            raise ValueError(f"The `constraint` argument to `tf.Variable` must be a callable, not {constraint!r}")
        on_read = getattr(synchronization, "name", None) == "ON_READ"  # then not trainable by default
        super().__init__(value, not on_read if trainable is None else bool(trainable), scoped(name, "Variable"))
        if shape is not None:
            self._leave_open(TensorShape(shape))
        self.store.constraint = None if constraint is None else Constraint(constraint)

    def _leave_open(self, shape: TensorShape) -> None:
        """Allow assigning values of any shape that is compatible with this one."""
        if not shape.is_compatible_with(self.shape):
            raise ValueError(
                f"In this `tf.Variable` creation, the initial value's shape ({self.shape}) is not compatible with the explicitly supplied "
                f"`shape` argument ({shape})."
            )
        if not shape.is_fully_defined():
            before = self.store
            limits = None if shape.rank is None else tuple(shape.as_list())
            self.store = OpenStore(before.data, before.name, before.trainable, self, limits)

    @property
    def name(self) -> str:
        return f"{self.store.name or 'Variable'}:0"

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return as_dtype(self.store.type.dtype)

    @property
    def shape(self) -> TensorShape:  # type: ignore[override]
        return TensorShape(self.store.limits if isinstance(self.store, OpenStore) else self.store.type.shape)

    @property
    def constraint(self) -> Callable[[Any], Any] | None:
        """The function that optimizers apply to the value after each update."""
        own = self.store.constraint
        return own.function if isinstance(own, Constraint) else own

    @property
    def initializer(self) -> None:
        """Nothing to run: a variable has its value from the start."""

    def get_shape(self) -> TensorShape:
        return self.shape

    @property
    def synchronization(self) -> Any:
        """How replicas are kept equal: there is one."""
        return VariableSynchronization.AUTO

    @property
    def aggregation(self) -> Any:
        """How replicas are combined: there is one."""
        return VariableAggregation.NONE

    @property
    def device(self) -> str:
        return "/job:localhost/replica:0/task:0/device:CPU:0"

    def ref(self) -> Reference:
        return Reference(self)

    # ---- reading and assigning

    def read_operand(self) -> Operand:
        out: Operand = dress(super().read_operand())
        return out

    def read_value(self) -> Operand:
        return self.read_operand()

    def numpy(self) -> Any:
        data = super().numpy()
        return data.copy() if data.ndim else data[()]

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Assign a value, and return the variable, or None unless `read_value`."""
        super().assign(self._fitting(value))
        return self if read_value else None

    def assign_add(self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        super().assign(self.read_operand() + self._fitting(delta, self.type.shape))
        return self if read_value else None

    def assign_sub(self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        super().assign(self.read_operand() - self._fitting(delta, self.type.shape))
        return self if read_value else None

    # ---- parts of the value

    def __getitem__(self, key: Any) -> Any:
        """The part of the value at a key, which also has an `assign`: `v[0].assign(row)`."""
        out = dress(self.read_operand()[key])
        remember(out, Part(self, key))
        return out

    def _assign_part(self, key: Any, value: Any) -> Variable:
        """Assign at a key, as in NumPy. The shape of the part must be that of the value, or one that it broadcasts to."""
        new = convert_to_tensor(value, None if isinstance(value, Operand) else self.dtype)
        if new.dtype != self.dtype:
            raise ValueError(f"Tensor conversion requested dtype {self.dtype.name} for Tensor with dtype {new.dtype.name}: use tf.cast")
        out = ops.setitem(wide(self.read_operand()), key, wide(new))
        return self.assign(dress(ops.cast(out, self.dtype.dtype) if self.store.type.is_stored else out))  # type: ignore[no-any-return]

    def sparse_read(self, indices: Any, name: str | None = None) -> Operand:
        """The rows at some indices."""
        return dress(ops.getitem(self.read_operand(), (convert_to_tensor(indices),)))  # type: ignore[no-any-return]

    def gather_nd(self, indices: Any, name: str | None = None) -> Operand:
        return dress(ops.getitem(self.read_operand(), nd_key(convert_to_tensor(indices))))  # type: ignore[no-any-return]

    def scatter_update(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Assign rows. Of several for one index, the last one counts."""
        return self._scattered("update", sparse_delta)

    def scatter_add(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        return self._scattered("add", sparse_delta)

    def scatter_sub(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        return self._scattered("sub", sparse_delta)

    def scatter_mul(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        return self._scattered("mul", sparse_delta)

    def scatter_div(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        return self._scattered("div", sparse_delta)

    def scatter_max(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        return self._scattered("max", sparse_delta)

    def scatter_min(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        return self._scattered("min", sparse_delta)

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        return self._assign_scattered("update", nd_key(convert_to_tensor(indices)), updates)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        return self._assign_scattered("add", nd_key(convert_to_tensor(indices)), updates)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        return self._assign_scattered("sub", nd_key(convert_to_tensor(indices)), updates)

    def batch_scatter_update(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Assign rows, at indices along the last axis of the indices for each of the leading axes."""
        at = convert_to_tensor(sparse_delta.indices)
        leading = [np.arange(n).reshape([-1 if i == k else 1 for i in range(at.ndim)]) for k, n in enumerate(at.type.shape[:-1])]
        return self._assign_scattered("update", (*leading, at), sparse_delta.values)

    def _scattered(self, how: str, rows: IndexedSlices) -> Variable:
        if not isinstance(rows, IndexedSlices):
            raise TypeError(f"sparse_delta is not IndexedSlices: {rows}")
        return self._assign_scattered(how, (convert_to_tensor(rows.indices),), rows.values)

    def _assign_scattered(self, how: str, key: tuple[Any, ...], values: Any) -> Variable:
        new = scattered(how, wide(self.read_operand()), key, wide(convert_to_tensor(values, dtype_hint=self.dtype)))
        return self.assign(dress(ops.cast(new, self.dtype.dtype) if self.store.type.is_stored else new))  # type: ignore[no-any-return]

    def _fitting(self, value: Any, shape: Any = None) -> Operand:
        """A value of the variable's dtype and a shape that it takes, or of a given shape."""
        out = convert_to_tensor(value, None if isinstance(value, Operand) else self.dtype)
        if out.dtype != self.dtype:
            raise ValueError(f"Tensor conversion requested dtype {self.dtype.name} for Tensor with dtype {out.dtype.name}: use tf.cast")
        if not self.store.takes(out.type.shape) or (shape is not None and shape != out.type.shape):
            own = self.shape if shape is None else TensorShape(shape)
            raise ValueError(
                f"Cannot assign value to variable '{self.name}': Shape mismatch. The variable shape {own}, and the assigned value "
                f"shape {out.shape} are incompatible."
            )
        return out  # type: ignore[no-any-return]

    # ---- Python's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return Tensor.__array_ufunc__(self, ufunc, method, *inputs, **kwargs)  # type: ignore[arg-type] # it asks nothing of a tensor

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.read_operand().__array__(dtype, copy)

    def __copy__(self) -> Variable:
        return Variable(self.read_operand(), self.trainable, name=self.store.name)

    def __reduce__(self) -> Any:
        return _restored, (RuntimeVariable.numpy(self).copy(), self.trainable, self.store.name)

    def __repr__(self) -> str:
        text = "<traced>" if current_trace() is not None else value_text(self.store.read())
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, numpy={text}>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.store.read()[()], spec) if spec else repr(self)


def _restored(data: Any, trainable: bool, name: str | None) -> Variable:
    return Variable(data, trainable, name=name)
