"""Tensor: an immutable NumPy array whose ops tapes can record.

Owns eager evaluation and everything by which an array enters or leaves (`numpy`, DLPack, pickle, repr). Refuses: mutation. A tensor's
memory is never written after its creation, so `numpy()` is a read-only view without a copy, and arrays of the user's are copied on entry.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from adjit.ir.arrays import plain_array
from adjit.ir.errors import DTypeError, ShapeError, TraceError
from adjit.ir.operand import Concrete, Literal, Operand, array_of, as_operand, check_unmasked, evaluate
from adjit.ir.ops.base import Array, Op, View, apply
from adjit.ir.ops.maps import Map
from adjit.ir.types import TensorType, as_dtype
from adjit.tracer.arrays import ArrayMethods
from adjit.tracer.convert import set_concrete_class

from .recording import listening


class Tensor(ArrayMethods, Concrete):
    """An immutable n-dimensional array of one dtype: NumPy's operators and methods, recorded by active tapes.

    >>> Tensor([1.0, 2.0]) * 2
    Tensor([2., 4.], f64[2])
    """

    __slots__ = ("__weakref__",)
    level = 2

    def __init__(self, value: Any, dtype: Any = None) -> None:
        super().__init__(owned_array(value, dtype))

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        recorders = listening.recorders
        for recorder in recorders:
            traced = recorder.stand_ins(args)
            if traced is not args:
                return apply(op, *traced)
        results = tuple(wrap(a) for a in evaluate(op, [array_of(a, op) for a in args], [a.type for a in args]))
        if recorders:
            kept = tuple(wrap(a.data.copy()) if type(a) is Concrete else a for a in args)  # the user may write to the array behind it
            for recorder in recorders:
                recorder.applied(op, kept, results)
        return results[0] if len(results) == 1 else results

    @property
    def is_watched(self) -> bool:  # type: ignore[override]
        return any(recorder.watches(self) for recorder in listening.recorders)

    # ---- out of adjit

    def numpy(self) -> Array:
        """The value as a read-only array that shares this tensor's memory; `.copy()` it to write."""
        self._leave()
        view = self.data.view()
        view.flags.writeable = False
        return view

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy or (dtype is not None and np.dtype(dtype) != self.data.dtype):
            if copy is False:
                raise ValueError(f"a {self.type} tensor cannot become {np.dtype(dtype)} without a copy")
            self._leave()
            return np.array(self.data, dtype)
        return self.numpy()

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        """A DLPack capsule. Consumers that know no read-only flag (before DLPack 1.0) get a copy, for they might write."""
        if max_version is not None and max_version[0] >= 1:
            return self.numpy().__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
        if copy is False:
            raise BufferError("a tensor is read-only, which this version of DLPack cannot say; allow a copy")
        return self.data.copy().__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.data.__dlpack_device__()

    def item(self) -> Any:
        """The only element, as a Python number."""
        self._leave()
        return self.data.item()

    def tolist(self) -> Any:
        self._leave()
        return self.data.tolist()

    def _leave(self) -> None:
        for recorder in listening.recorders:
            recorder.left(self)

    def __float__(self) -> float:
        return float(self._only("float"))

    def __int__(self) -> int:
        return int(self._only("int"))

    def __bool__(self) -> bool:
        return bool(self._only("bool"))

    def __complex__(self) -> complex:
        return complex(self._only("complex"))

    def __index__(self) -> int:
        if self.data.dtype.kind not in "iu" or self.data.ndim:
            raise TypeError(f"only an integer scalar is an index, not {self.type}")
        return operator.index(self.data.item())

    def _only(self, what: str) -> Any:
        if self.data.size != 1:
            advice = "use .any() or .all()" if what == "bool" else "index it, or reduce it first"
            raise TypeError(f"{what}(): a {self.type} tensor has {self.data.size} elements, not one; {advice}")
        self._leave()
        return self.data.item()

    def __iter__(self) -> Iterator[Operand]:
        if not self.data.ndim:
            raise TypeError("iteration over a 0-dimensional tensor")
        return (self[i] for i in range(len(self.data)))

    def __reduce__(self) -> Any:
        return Tensor, (np.ascontiguousarray(self.data).reshape(self.data.shape),)

    def __repr__(self) -> str:
        return f"Tensor({np.array2string(self.data, separator=', ', prefix='Tensor(', threshold=100, edgeitems=3)}, {self.type})"

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self.data)
        return format(self._only("format"), spec)


class WeakTensor(Tensor):
    """A Python float that is differentiated by: still weak in promotion, as it would be inside of a compiled function."""

    __slots__ = ()
    weak = True

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        out = super().apply_op(op, args)
        if isinstance(op, Map | View) and all(a.weak or isinstance(a, Literal) for a in args):
            out.__class__ = WeakTensor  # tapes know the object already
        return out


set_concrete_class(Tensor)  # from here on, what NumPy's functions give back to users are tensors


def wrap(array: Array) -> Tensor:
    """A tensor around an array that nobody will write to: no check, no copy."""
    out: Tensor = Tensor.__new__(Tensor)
    out.data = array
    out.type = TensorType(array.dtype, array.shape)
    return out


def tensor(value: Any, dtype: Any = None) -> Operand:
    """A tensor of anything like an array. Tensors and traced values are given back, cast if need be; a variable is read."""
    if not isinstance(value, Operand):
        return Tensor(value, dtype)
    operand = as_operand(value)
    if isinstance(operand, Concrete | Literal):
        operand = materialize(operand)
    return operand if dtype is None else operand.astype(as_dtype(dtype))


def materialize(x: Operand) -> Tensor:
    """A concrete operand as a tensor: what rules left as a literal or a bare array gets its own memory."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, Literal):
        return wrap(np.full(x.type.shape, x.value, x.type.dtype))
    if isinstance(x, Concrete):
        return wrap(x.data)
    raise TraceError(f"a traced value of type {x.type} has no array while it is traced; return it from the function to see it")


def owned_array(value: Any, dtype: Any = None) -> Array:
    """`value` as an array of a supported dtype that nobody else can write to. Raises DTypeError for what is not numeric."""
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(value, Operand):
        data = materialize(as_operand(value)).data
        return data if wanted is None or wanted == data.dtype else data.astype(wanted)
    array = numeric_array(value)
    if wanted is not None and wanted != array.dtype:
        check_integers(value, array, wanted)
        return array.astype(wanted)
    made_here = isinstance(value, bool | int | float | np.generic | list | tuple)  # else somebody may hold the array, and write to it
    return array if made_here else array.copy()


def numeric_array(value: Any) -> Array:
    """`np.asarray`, with errors that say what is wrong with the input."""
    check_unmasked(value)
    try:
        array = plain_array(value)
    except ValueError as error:
        if "inhomogeneous" in str(error):
            raise ShapeError(f"a ragged sequence is not a tensor: {_brief(value)}; pad it to one length") from None
        raise
    if array.dtype == object:
        what = "integers too large for 64 bits" if _huge(value) else "Python objects"
        raise DTypeError(f"{what} do not fit a tensor: {_brief(value)}; give numbers, or name their dtype with .astype")
    if array.dtype.kind in "USTMm":
        raise DTypeError(f"{_brief(value)} is not numeric (NumPy calls it {array.dtype})")
    as_dtype(array.dtype)
    return array


def check_integers(value: Any, array: Array, wanted: np.dtype[Any]) -> None:
    """A dtype asked for by name may round; it may not wrap around integers."""
    if wanted.kind in "iu" and array.dtype.kind in "iu" and array.size:
        info = np.iinfo(wanted)
        if int(array.min()) < info.min or int(array.max()) > info.max:
            raise DTypeError(f"{_brief(value)} does not fit {wanted}, which holds {info.min} to {info.max}")


def _huge(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, list | tuple) and bool(value) and all(isinstance(x, int) for x in value))


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
