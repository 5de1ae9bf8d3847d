"""Variable: state that functions read and assign.

The state itself is a `Store`. An eager assignment gives it a new array. A compiled function writes into the existing array, but only if
nothing else refers to it: a tensor read earlier never changes. While tracing, reads and assignments go to the trace, which turns them into
parameters and updates of the Func.
"""

from __future__ import annotations

import operator
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from adjit.ir.arrays import as_array
from adjit.ir.errors import DTypeError, ShapeError, TraceError
from adjit.ir.func import Value
from adjit.ir.operand import Operand, as_operand
from adjit.ir.ops.base import Array, Op, apply
from adjit.ir.ops.maps import cast
from adjit.ir.tracebacks import boundary, ended, methods_end_at_callers
from adjit.ir.types import DType, TensorType
from adjit.tracer.arrays import immutable
from adjit.tracer.in_place import AugmentedAssignment
from adjit.tracer.sparse_products import called_by_scipy, declined, is_sparse
from adjit.tracer.trace import current_trace

from . import quick, quick_arrays
from .initial import initial_value
from .recording import listening
from .stores import OpenStore, separate
from .stores import Store as Store
from .tensor import Tensor, owned_array, wrap

if TYPE_CHECKING:
    from .tensor_types import TensorMethods
else:
    from adjit.tracer.arrays import ArrayMethods as TensorMethods


class Scope(threading.local):
    """Permissions and collected objects of the function being traced on this thread; set by `runtime.creation`."""

    refusal: str | None = None  # why no variable may be created now
    is_stepwise = False  # whether the function runs op by op, without a trace, under the same rules
    created: list[weakref.ref[Variable]] | None = None
    closed_over: set[Store] | None = None  # stores reached other than through an argument


scope = Scope()


class Journal(threading.local):
    """The assignments of eager calls on this thread: for each variable, the previous array and the current one."""

    entries: dict[Store, tuple[Array, Array]] | None = None


journal = Journal()


@contextmanager
def undone_by_errors() -> Iterator[None]:
    """Restore variables if the call raises; later assignments by other threads are kept."""
    around = journal.entries
    own: dict[Store, tuple[Array, Array]] = {}
    journal.entries = own
    try:
        yield
    except BaseException:
        for store, (before, now) in own.items():
            store.assign(before, expected=now)
        raise
    finally:
        journal.entries = around
    if around is not None:
        for store, (before, now) in own.items():
            around[store] = around.get(store, (before,))[0], now


class Variable(TensorMethods, Operand):
    """A tensor that can be assigned. Trainable variables are watched by active tapes when they are read.

    >>> w = Variable([1.0, 2.0], name="w")
    >>> w.assign_sub([0.5, 0.5])
    Variable([0.5, 1.5], f64[2], name='w')
    """

    __slots__ = ("store", "bound", "__weakref__")
    __hash__ = object.__hash__  # by identity, not by value: sets and dicts of variables are common
    in_place = False  # `v += 1` reads the variable, and is no assignment to it
    level = 4  # above traced values: an op on a variable reads it first

    store: Store
    bound: bool  # represents an argument of the function being traced: other calls may pass another variable

    def __init__(self, initial: Any, trainable: bool = True, name: str | None = None, dtype: Any = None) -> None:
        trace = current_trace()
        is_ruled = trace is not None or scope.is_stepwise
        if is_ruled and scope.refusal is not None:
            raise ValueError(scope.refusal)
        value = initial() if callable(initial) and not isinstance(initial, Operand) else initial
        if isinstance(value, Value):
            value = initial_value(value, name)
        self.store = Store(owned_array(value, dtype), name, trainable, self)
        self.bound = False
        if is_ruled and scope.created is not None:
            scope.created.append(weakref.ref(self))

    @staticmethod
    def of(store: Store, bound: bool = False) -> Variable:
        """Return the variable of a store; a new object for the same state if it is to be `bound` or the user's no longer exists."""
        owner = None if bound else store.owner()
        if owner is not None:
            return owner
        out: Variable = Variable.__new__(Variable)
        out.store = store
        out.bound = bound
        return out

    # ---- properties

    @property
    def type(self) -> TensorType:  # type: ignore[override]
        if isinstance(self.store, OpenStore) and current_trace() is not None:
            return self.read_operand().type  # the function may have assigned a value of another shape
        return self.store.type

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> DType:
        return self.store.type.dtype

    @property
    def name(self) -> str | None:
        return self.store.name

    @property
    def trainable(self) -> bool:
        return self.store.trainable

    # ---- reading

    def read_operand(self) -> Operand:
        """Return the current value: a tensor, or a traced value inside a function being traced."""
        store, recorders = self.store, listening.recorders
        trace = current_trace()
        if trace is not None:
            self._reached()
            value: Operand = trace.read(store)
        else:
            value = seen(store, store.read())
        for recorder in recorders:
            recorder.read(self, value)
        return value

    def value(self) -> Operand:
        """Return the current value, as a tensor that later assignments do not change."""
        return self.read_operand()

    def numpy(self) -> Array:
        """Return the current value as a read-only array that later assignments do not change."""
        if current_trace() is not None:
            raise TraceError(f"variable {self.name or ''!r} has no array inside a traced function; use the variable itself")
        if listening.recorders:  # a tape may watch it
            return Tensor.numpy(self.read_operand())  # type: ignore[arg-type]
        return wrap(self.store.read()).numpy()

    def _scipy_computes(self, other: Any) -> bool:
        return not (is_sparse(other) and (listening.recorders or current_trace() is not None))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if called_by_scipy() and (listening.recorders or current_trace() is not None):
            return declined()
        if listening.recorders and current_trace() is None:
            return self.read_operand().__array__(dtype, copy)  # a tape may watch it
        return np.array(self.numpy(), dtype) if copy or dtype is not None else self.numpy()

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        return apply(op, *(a.read_operand() if isinstance(a, Variable) else a for a in args))

    # ---- assigning

    @boundary
    def assign(self, value: Any) -> Variable:
        """Assign a new value of the same type; Python numbers and lists are converted to the variable's dtype."""
        operand = self._checked(value)
        trace = current_trace()
        if trace is not None:
            self._reached()
            trace.write(self.store, operand)
            return self
        self._assign(operand)
        for recorder in listening.recorders:
            recorder.assigned(self, operand)
        return self

    def _assign(self, operand: Operand, expected: Array | None = None) -> bool:
        """Replace the store's array, unless it is no longer the `expected` one; return whether it was replaced."""
        data, entries = separate(owned_array(operand)), journal.entries
        before = self.store.read() if entries is not None else None
        if not self.store.assign(data, expected):
            return False
        if entries is not None and before is not None:
            entries[self.store] = entries.get(self.store, (before,))[0], data
        return True

    @boundary
    def assign_add(self, delta: Any) -> Variable:
        return self._change(operator.add, delta)

    @boundary
    def assign_sub(self, delta: Any) -> Variable:
        return self._change(operator.sub, delta)

    def _change(self, change: Callable[[Any, Any], Any], delta: Any) -> Variable:
        """Assign the result of `change`. It is recomputed if another thread assigns meanwhile, so that no update is lost."""
        delta = self._delta(delta)
        while True:
            value = self.read_operand()
            changed = change(value, delta)
            if not isinstance(value, Tensor) or listening.recorders:  # traced, or recorded: a retry would be recorded twice
                return self.assign(changed)
            if self._assign(self._checked(changed), expected=value.buffer):
                return self

    def _reached(self) -> None:
        if scope.closed_over is not None and not self.bound:
            scope.closed_over.add(self.store)

    def _delta(self, value: Any) -> Any:
        return value if isinstance(value, Operand | np.ndarray | np.generic | bool | int | float | complex) else self._checked(value)

    def _checked(self, value: Any) -> Operand:
        """Return the value as an operand of this variable's type, or raise an error that names both types."""
        here = self.type
        if isinstance(value, Operand):
            operand = as_operand(value)
            if (operand.weak and np.can_cast(operand.dtype, here.dtype, "same_kind")) or (here.is_stored and operand.type.is_float):
                operand = cast(operand, here.dtype)  # numbers of 16 bits are computed in float32
        elif isinstance(value, np.ndarray | np.generic):
            operand = wrap(owned_array(value))
        else:
            array = as_array(value)
            if not np.can_cast(array.dtype, here.dtype, "same_kind") and array.size:
                raise DTypeError(f"{self._label()} is {here}: {array.dtype} values do not fit it")
            operand = wrap(owned_array(value, here.dtype))
        if not self.store.takes(operand.type.shape):
            raise ShapeError(f"{self._label()} is {here}: a value of type {operand.type} has another shape; reshape it")
        if operand.dtype != here.dtype:
            raise DTypeError(f"{self._label()} is {here}: a value of type {operand.type} must be cast with .astype({str(here.dtype)!r})")
        return operand

    def _label(self) -> str:
        return f"variable {self.name!r}" if self.name else "the variable"

    # ---- Python's protocols

    def __bool__(self) -> bool:
        return bool(self.read_operand())

    def __float__(self) -> float:
        return float(self.read_operand())

    def __int__(self) -> int:
        return int(self.read_operand())

    def __index__(self) -> int:
        return self.read_operand().__index__()

    def __iter__(self) -> Any:
        return iter(self.read_operand())

    def item(self, *index: Any) -> Any:
        return self.read_operand().item(*index)

    def tolist(self) -> Any:
        return self.read_operand().tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        return self.read_operand().tobytes(order)  # type: ignore[attr-defined, no-any-return]

    def __dlpack__(self, **options: Any) -> Any:
        return self.read_operand().__dlpack__(**options)  # type: ignore[attr-defined]

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.store.data.__dlpack_device__()

    def __setitem__(self, key: Any, value: Any) -> None:
        immutable("variable[index] = value", "variable.assign(variable.at[index].set(value))")

    def __copy__(self) -> Variable:
        return Variable(self.numpy(), self.trainable, self.name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        return self.__copy__()

    def __reduce__(self) -> Any:
        return Variable, (self.numpy().copy(), self.trainable, self.name)

    def __repr__(self) -> str:
        extra = (f", name={self.name!r}" if self.name else "") + ("" if self.trainable else ", trainable=False")
        return f"Variable({repr(wrap(self.store.read()))[len('Tensor(') : -1]}{extra})"

    def _repr_html_(self) -> str:
        return wrap(self.store.data)._repr_html_()

    def __format__(self, spec: str) -> str:
        return format(wrap(self.store.read()), spec)


def seen(store: Store, data: Array) -> Tensor:
    """Return the array of a store as a tensor: the one that tapes already watch, if they read the same array before."""
    known = (recorder.last_read(store) for recorder in listening.recorders)
    same = [k for k in known if isinstance(k, Tensor) and k.buffer is data]
    return same[0] if same else wrap(data)


def _reading(name: str) -> Callable[..., Any]:
    def method(self: Variable, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.read_operand(), name)(*args, **kwargs)

    method.__name__ = name
    method.__qualname__ = f"Variable.{name}"
    return ended(method)  # type: ignore[arg-type] # it is a function


def _read_and_get(name: str) -> Callable[[Variable], Any]:
    return lambda self: getattr(self.read_operand(), name)


def _delegate_array_interface() -> None:
    """Define array operators and methods on the value currently read, so that results never change with the variable."""
    typed = {"ndim", "size", "itemsize", "nbytes", "__len__", "literal", "apply_op"}  # these only need the type, which is not a read
    protocols = {"__array_ufunc__", "__array_function__"}
    own = {*dir(object), *vars(Variable), *vars(AugmentedAssignment), *protocols, *typed} - {
        "__eq__",
        "__ne__",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
    }
    for base in (*TensorMethods.__mro__[:-1], Operand):
        for name, member in vars(base).items():
            if name in own:
                continue
            if isinstance(member, property):
                setattr(Variable, name, property(_read_and_get(name)))
            elif callable(member) and not isinstance(member, type):
                setattr(Variable, name, _reading(name))


methods_end_at_callers(Variable, ("numpy", "item", "tolist", "tobytes"))
_delegate_array_interface()
Variable.__array_ufunc__ = quick.ufuncs(Variable.__array_ufunc__)  # type: ignore[method-assign]
Variable.__array_function__ = quick_arrays.functions(Variable.__array_function__)  # type: ignore[method-assign]
