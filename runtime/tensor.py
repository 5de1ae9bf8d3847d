"""Tensor: a NumPy array whose ops tapes can record.

Owns eager evaluation and all conversions from and to other arrays (`numpy`, DLPack, pickle, repr). Memory that others can see is never
written to: `numpy()` is a read-only view without a copy, users' arrays are copied on entry, and a write to elements (`writing.py`) gives
the tensor other memory, unless it has its memory for itself.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from adjit.ir.arrays import as_array, brief
from adjit.ir.errors import DTypeError, TraceError
from adjit.ir.operand import Concrete, Literal, Operand, array_of, as_operand, evaluate, read_only
from adjit.ir.ops.base import Array, Op, View, apply
from adjit.ir.ops.maps import Cast, Map
from adjit.ir.tracebacks import boundary, methods_end_at_callers, trim
from adjit.ir.types import PYTHON, TensorType, as_dtype
from adjit.tracer.arrays import castable
from adjit.tracer.convert import set_concrete_class
from adjit.tracer.numpy_table import surface
from adjit.tracer.pytree import add_leaf_class
from adjit.tracer.sparse_products import called_by_scipy, declined, is_sparse
from adjit.tracer.trace import TracedProgram, current_trace

from . import quick, quick_arrays, writing
from .leaving import entering, leaving
from .recording import listening

if TYPE_CHECKING:
    from .tensor_types import TensorMethods
else:
    from adjit.tracer.arrays import ArrayMethods as TensorMethods


_type: Callable[[Any], TensorType] = vars(Concrete)["type"].__get__
_set_type: Callable[[Any, TensorType], None] = vars(Concrete)["type"].__set__

WRITABLE = 1  # inspect.BufferFlags.WRITABLE, which Python has from 3.12 on


class Tensor(TensorMethods, Concrete):
    """An n-dimensional array of one dtype, with NumPy's operators and methods, recorded by active tapes.

    >>> Tensor([1.0, 2.0]) * 2
    Tensor([2., 4.], f64[2])
    """

    __slots__ = ("__weakref__",)
    level = 2

    def __init__(self, value: Any, dtype: Any = None) -> None:
        super().__init__(owned_array(value, dtype))

    @property
    def type(self) -> TensorType:
        """The dtype and shape, determined on first access: eager ops and the native entry leave them out.

        A property, since `__getattr__` would slow down every access to any attribute.
        """
        try:
            return _type(self)
        except AttributeError:
            type = TensorType(as_dtype(self.buffer.dtype), self.buffer.shape)
            _set_type(self, type)
            return type

    @type.setter
    def type(self, type: TensorType) -> None:
        _set_type(self, type)

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        recorders = listening.recorders
        for recorder in recorders:
            traced = recorder.stand_ins(args)
            if traced is not args:
                return apply(op, *traced)
        given = [array_of(a, op) for a in args]
        found = evaluate(op, given, [a.type for a in args])
        for array in found:
            base = array.base
            if base is not None and any(base is a or base is a.base for a in given) and not any(array is a for a in given):
                array.flags.writeable = False  # writes to it are no writes to an operand: see `writing`
        results = tuple(wrap(a) for a in found)
        if recorders:
            for a in args:
                if type(a) is Concrete:
                    entering(a.buffer)
            kept = tuple(wrap(a.buffer.copy()) if type(a) is Concrete else a for a in args)  # the user may write to the underlying array
            for recorder in recorders:
                recorder.applied(op, kept, results)
        return results[0] if len(results) == 1 else results

    @property
    def data(self) -> Array:
        """The value as a read-only array, as returned by `numpy()`."""
        return self.numpy()

    @property
    def is_watched(self) -> bool:  # type: ignore[override]
        return any(recorder.watches(self) for recorder in listening.recorders)

    def literal(self, value: Any, type: TensorType) -> Operand:
        if listening.recorders:
            entering(value)
        return Literal(value, type)

    def filled(self, value: Any, type: TensorType) -> Operand:
        return wrap(np.full(type.shape, value, type.dtype))

    # ---- writes

    def __setitem__(self, key: Any, value: Any) -> None:
        try:
            writing.write(self, key, value)
        except Exception as error:
            trim(error)
            raise

    def _update(self, operation: Callable[[Any, Any], Any], value: Any) -> Any:
        out = super()._update(operation, value)
        if out is NotImplemented or self.buffer.base is None:
            return out
        return writing.update(self, out, sys._getframe(2))  # of what is no view, the result is a new tensor

    @property
    def flat(self) -> Tensor:
        """The flattened tensor, as a view."""
        if not self.buffer.flags.c_contiguous:
            self.buffer = self.buffer.copy()
        return self.reshape(-1)

    def fill(self, value: Any) -> None:
        """Set all elements."""
        self[...] = value

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Set the elements at indices of the flattened tensor."""
        self[...] = surface("updates").put(self, indices, values, mode)

    def sort(self, axis: int = -1) -> None:
        """Sort the elements along an axis."""
        self[...] = surface("indexing").sort(self, axis)

    def partition(self, kth: Any, axis: int = -1) -> None:
        """Move the elements that sorting would put at positions `kth` there, with smaller ones before and larger ones after them."""
        self[...] = surface("indexing").partition(self, kth, axis)

    def apart(self, view: bool = False) -> Tensor:
        """An equal tensor that is another object: a view, or a copy."""
        return writing.apart(self, view)

    def copy(self, order: str = "C") -> Tensor:
        """Return a copy."""
        return self.apart()

    def __copy__(self) -> Tensor:
        return self.apart()

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return self.apart()

    # ---- conversion to other types

    def numpy(self) -> Array:
        """Return the value as a read-only array that shares this tensor's memory; `.copy()` it to write."""
        view = read_only(self.buffer)
        if listening.recorders:
            leaving(self, "named", view)
        return view

    def _scipy_computes(self, other: Any) -> bool:
        return not (self.is_watched and is_sparse(other))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if listening.recorders:
            if called_by_scipy() and self.is_watched:
                return declined()
            leaving(self, "array")
        if copy or (dtype is not None and np.dtype(dtype) != self.buffer.dtype):
            if copy is False:
                raise ValueError(f"a {self.type} tensor cannot become {np.dtype(dtype)} without a copy")
            return np.array(self.buffer, dtype)
        return read_only(self.buffer)

    def __buffer__(self, flags: int) -> memoryview:
        """Read-only memory, for `memoryview` and others that read bytes; Python calls this from 3.12 on."""
        if flags & WRITABLE:
            raise BufferError("the memory of a tensor cannot be written to")
        if self.is_watched:
            raise BufferError("a tensor that is being differentiated has no buffer: its gradient would be lost")
        return read_only(self.buffer).data

    @property
    def __array_struct__(self) -> Any:
        """The same in C, which NumPy prefers to `__array_interface__`."""
        self._need_code("__array_struct__")
        if listening.recorders:
            if called_by_scipy() and self.is_watched:
                raise AttributeError("hidden from SciPy, so that it leaves the product to this tensor")
            leaving(self, "array")
        return read_only(self.buffer).__array_struct__

    def _need_code(self, name: str) -> None:
        """Raise AttributeError for bfloat16, for which these protocols have no code: NumPy then calls `__array__`."""
        if self.buffer.dtype.kind == "V":
            raise AttributeError(f"a {self.type} tensor has no {name}")

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's description of the memory, for consumers that read it without NumPy."""
        self._need_code("__array_interface__")
        if listening.recorders:
            if called_by_scipy() and self.is_watched:
                raise AttributeError("hidden from SciPy, so that it leaves the product to this tensor")
            leaving(self, "array")
        return {**read_only(self.buffer).__array_interface__, "strides": self.buffer.strides}  # without strides, Pillow requests a buffer

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        """Return a DLPack capsule. Consumers without read-only arrays (before DLPack 1.0, and PyTorch) get a copy, as they might write."""
        if listening.recorders:
            leaving(self, "array")
        supports = max_version is not None and max_version[0] >= 1 and not called_by("torch")
        if not supports and copy is False:
            raise BufferError("a tensor is read-only, which this consumer of DLPack does not support; allow a copy")
        if not supports:
            return self.buffer.copy().__dlpack__(stream=stream)
        return read_only(self.buffer).__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.buffer.__dlpack_device__()

    def item(self, *index: Any) -> Any:
        """Return the only element, or the one at an index (in NumPy's order), as a Python number."""
        return self._left(self.buffer.item(*index))

    def tolist(self) -> Any:
        """Return the elements as Python numbers, in nested lists."""
        return self._left(self.buffer.tolist())

    def tobytes(self, order: Any = "C") -> bytes:
        """Return the bytes of the elements, in row-major order by default."""
        return self._left(self.buffer.tobytes(order))  # type: ignore[no-any-return]

    def view(self, dtype: Any = None) -> Tensor:
        """Reinterpret the same memory as another dtype. No derivative passes through it."""
        array = self.buffer if dtype is None else self.buffer.view(as_dtype(dtype))
        return self.apart(view=True) if array is self.buffer else wrap(self._left(array))

    def _left(self, out: Any) -> Any:
        if listening.recorders:
            leaving(self, "named", out)
        return out

    def __float__(self) -> float:
        return self._number(float(self._only("float")))  # type: ignore[no-any-return]

    def __int__(self) -> int:
        return int(self._only("int"))

    __trunc__ = __int__

    def __bool__(self) -> bool:
        return bool(self._only("bool"))

    def __complex__(self) -> complex:
        return self._number(complex(self._only("complex")))  # type: ignore[no-any-return]

    def __index__(self) -> int:
        if self.buffer.dtype.kind not in "iu" or self.buffer.ndim:
            raise TypeError(f"only an integer scalar is an index, not {self.type}")
        return operator.index(self.buffer.item())

    def _number(self, out: Any) -> Any:
        if listening.recorders:
            leaving(self, "number", out)
        return out

    def _only(self, what: str) -> Any:
        if self.buffer.size != 1:
            advice = "use .any() or .all()" if what == "bool" else "index it, or reduce it first"
            raise TypeError(f"{what}(): a {self.type} tensor has {self.buffer.size} elements, not one; {advice}")
        return self.buffer.item()

    def retyped(self, dtype: np.dtype[Any], weak: bool) -> Tensor:
        out: Tensor = apply(Cast(dtype), self)  # type: ignore[assignment] # of tensors
        out.__class__ = WeakTensor if weak else Tensor
        return out

    def __iter__(self) -> Iterator[Tensor]:
        if not self.buffer.ndim:
            raise TypeError("iteration over a 0-dimensional tensor")
        return (self[i] for i in range(len(self.buffer)))

    def __reduce__(self) -> Any:
        return type(self), (np.ascontiguousarray(self.buffer).reshape(self.buffer.shape),)

    def __repr__(self) -> str:
        return f"Tensor({np.array2string(self.buffer, separator=', ', prefix='Tensor(', threshold=100, edgeitems=3)}, {self.type})"

    def _repr_html_(self) -> str:
        from .html import table  # noqa: PLC0415 - only notebooks need it

        return table(self.buffer, str(self.type))

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self.buffer)
        return format(self._only("format"), spec)


class WeakTensor(Tensor):
    """A Python number: one that is being differentiated, or that a compiled function returns. Weakly typed in promotion, as while tracing.

    >>> t = aj.function(lambda t: 0.5 * t)(3.0)
    >>> t.weak, np.float32([1.0, 2.0]) * t
    (True, Tensor([1.5, 3. ], f32[2]))
    """

    __slots__ = ()
    weak = True

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        out = super().apply_op(op, args)
        weak = isinstance(op, Map | View) and all(a.weak or isinstance(a, Literal) for a in args)
        if weak and out.type.dtype in PYTHON:  # a value cast to the dtype of an array is no longer a Python number
            out.__class__ = WeakTensor  # tapes already refer to the object
        return out

    def astype(self, dtype: Any, order: str = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True) -> Tensor:
        """Cast to another dtype, or to the same one, which counts in promotion from then on."""
        return self.retyped(castable(self, dtype, casting), False)


methods_end_at_callers(Tensor, ("numpy", "item", "tolist", "tobytes", "view"))
methods_end_at_callers(WeakTensor, ("astype",))
add_leaf_class(Tensor)
add_leaf_class(WeakTensor)
quick.equip(Tensor, WeakTensor)
quick_arrays.equip(Tensor, WeakTensor)


def result_classes(program: TracedProgram) -> list[type[Tensor]]:
    """The class of the tensor for each result of a program."""
    return [WeakTensor if weak else Tensor for weak in program.weak]


def entered(array: Array) -> Tensor:
    """Return a tensor of an array that a user passes to an op."""
    if listening.recorders:
        entering(array)
    return Tensor(array)


def wrap(array: Array) -> Tensor:
    """Wrap an array that will not be written to: no check, no copy."""
    out: Tensor = Tensor.__new__(Tensor)
    out.buffer = array
    return out


def shared(array: Array) -> Tensor:
    """Return a tensor that shares the memory of an array that a user passes and that is never written to."""
    if listening.recorders:
        entering(array)
    return wrap(array)


set_concrete_class(entered, shared)  # from here on, NumPy's functions return tensors to users


@boundary
def tensor(value: Any, dtype: Any = None) -> Tensor:
    """Return anything array-like as a tensor, which is a copy. Traced values are returned as they are, or cast; variables are read.

    Python numbers, also those that are traced or that a compiled function returned, become arrays, whose dtype counts in promotion.

    >>> aj.array([[1, 2], [3, 4]], dtype="float32")
    Tensor([[1., 2.],
            [3., 4.]], f32[2,2])
    """
    if not isinstance(value, Operand):
        is_nested = isinstance(value, list | tuple) and (listening.recorders or current_trace())
        if not is_nested or not surface("create").contains_operand(value):
            return Tensor(value, dtype)
        value = surface("create").asarray(value)  # of values that are traced or recorded: an op, so that they remain connected
    operand = as_operand(value)
    if isinstance(operand, Concrete | Literal):
        operand = materialize(operand).apart() if operand is value else materialize(operand)
    return operand.strong() if dtype is None else operand.astype(as_dtype(dtype))  # type: ignore[return-value] # in a trace, what stands for one


def materialize(x: Operand) -> Tensor:
    """Return a concrete operand as a tensor: a literal or bare array left by a rule becomes one."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, Literal):
        return wrap(np.full(x.type.shape, x.value, x.type.dtype))
    if isinstance(x, Concrete):
        return wrap(x.buffer)
    raise TraceError(f"a traced value of type {x.type} has no array while it is traced; return it from the function to see it")


writing.equip(Tensor, materialize)


def owned_array(value: Any, dtype: Any = None) -> Array:
    """Return `value` as an array of a supported dtype that nothing else can write to. Raises DTypeError if it is not numeric."""
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(value, Operand):
        data = materialize(as_operand(value)).buffer
        return data if wanted is None or wanted == data.dtype else data.astype(wanted)
    array = as_array(value)
    if wanted is not None and wanted != array.dtype:
        check_integers(value, array, wanted)
        return array.astype(wanted)
    # otherwise the caller may hold the array, and write to it
    made_here = isinstance(value, bool | int | float | complex | np.generic | list | tuple)
    return array if made_here else array.copy()


def check_integers(value: Any, array: Array, wanted: np.dtype[Any]) -> None:
    """Raise DTypeError if integers overflow an explicitly requested dtype; rounding is allowed."""
    if wanted.kind in "iu" and array.dtype.kind in "iu" and array.size:
        info = np.iinfo(wanted)
        if int(array.min()) < info.min or int(array.max()) > info.max:
            raise DTypeError(f"{brief(value)} does not fit {wanted}, which holds {info.min} to {info.max}")


def called_by(library: str) -> bool:
    """Whether the calling method was called by code of this library."""
    return str(sys._getframe(2).f_globals.get("__name__", "")).partition(".")[0] == library
