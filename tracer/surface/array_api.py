"""Names of the Python array API standard (2024.12) that NumPy's other names do not cover, and its queries about dtypes and devices."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError
from adjit.ir.operand import Operand, as_operand
from adjit.ir.tracebacks import end_at_callers
from adjit.ir.types import DTYPE_NAMES, DType, as_dtype, computed, normalize_axes, real_dtype, weak_example

from ..convert import of_immutable, to_operand
from . import elementwise
from .complex_numbers import conjugate
from .complex_numbers import imag as imag
from .complex_numbers import real as real
from .create import check_device, zeros, zeros_like
from .elementwise import (
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    bitwise_not,
    left_shift,
    power,
    right_shift,
)  # fmt: skip
from .reductions import cumprod, cumsum
from .shapes import concatenate, transpose

conj = conjugate
acos, acosh, asin, asinh, atan, atan2, atanh = arccos, arccosh, arcsin, arcsinh, arctan, arctan2, arctanh
bitwise_invert, bitwise_left_shift, bitwise_right_shift, pow = bitwise_not, left_shift, right_shift, power
bool = np.bool_

KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


# ---- arrays


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Operand:
    """Return an array of zeros.

    >>> aj.empty(2)
    Tensor([0., 0.], f64[2])
    """
    return zeros(shape, as_dtype(float if dtype is None else dtype), device=device)


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Operand:
    """Return zeros with the shape and dtype of x.

    >>> aj.empty_like([1, 2])
    Tensor([0, 0], i64[2])
    """
    return zeros_like(x, dtype, device=device)


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Operand:
    """Return an array of another library, imported through DLPack: a copy, unless the library marks it as read-only, as JAX does.

    >>> aj.from_dlpack(np.array([1.0, 2.0]))
    Tensor([1., 2.], f64[2])
    """
    check_device(device)
    array = np.from_dlpack(x)
    changes = array.flags.writeable or isinstance(x, np.ndarray)  # a read-only array of NumPy may be a view of one that is not
    if changes and copy is False:
        raise BufferError("from_dlpack: the other library may write to its array, and nothing else may change a tensor: a copy is needed")
    return of_immutable(array.copy() if changes or copy else array)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Operand:
    """Return the arrays joined along an existing axis.

    >>> aj.concat([[1, 2], [3]])
    Tensor([1, 2, 3], i64[3])
    """
    return concatenate(arrays, axis)


def permute_dims(x: Any, /, axes: Any) -> Operand:
    """Return x with its axes permuted.

    >>> aj.permute_dims(aj.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return transpose(x, axes)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Operand:
    """Return the elements limited to the range from min to max.

    >>> aj.clip([-1.0, 0.5, 2.0], 0.0, 1.0)
    Tensor([0. , 0.5, 1. ], f64[3])
    >>> aj.grad(lambda x: aj.clip(x, 0.0, 1.0))(2.0)
    Tensor(0., f64[])
    """
    return elementwise.clip(x, min, max)


# ---- dtypes


def dtype_of(x: Any) -> DType:
    return as_operand(x).dtype if isinstance(x, Operand) or (hasattr(x, "__array__") and not isinstance(x, type)) else np.dtype(x)


def finfo(type: Any, /) -> SimpleNamespace:
    """Return the limits of a floating-point dtype (or of an array's).

    >>> aj.finfo("float64").eps
    2.220446049250313e-16
    """
    dtype = dtype_of(type)
    if dtype.kind not in "fc":
        raise DTypeError(f"finfo: {dtype} is not a floating-point dtype")
    info, dtype = np.finfo(dtype), real_dtype(dtype)
    numbers = {name: float(getattr(info, name)) for name in ("eps", "max", "min", "smallest_normal")}
    return SimpleNamespace(bits=info.bits, dtype=dtype, **numbers)


def iinfo(type: Any, /) -> SimpleNamespace:
    """Return the limits of an integer dtype (or of an array's).

    >>> aj.iinfo("int8").max
    127
    """
    dtype = dtype_of(type)
    if dtype.kind not in "iu":
        raise DTypeError(f"iinfo: {dtype} is not an integer dtype")
    info = np.iinfo(dtype)
    return SimpleNamespace(bits=info.bits, max=int(info.max), min=int(info.min), dtype=dtype)


def isdtype(dtype: Any, kind: Any) -> Any:
    """Return whether a dtype equals another dtype, or belongs to a kind ("integral", "real floating", ...), or to any of a tuple of them.

    >>> aj.isdtype(np.dtype("float32"), "real floating")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, str) and kind not in KINDS:
        raise ShapeError(f"isdtype: {kind!r} is not a kind of dtypes; choose one of {', '.join(KINDS)}")
    return np.dtype(dtype).kind in KINDS[kind] if isinstance(kind, str) else np.dtype(dtype) == np.dtype(kind)


def can_cast(from_: Any, to: Any, /) -> Any:
    """Return whether a dtype (or an array) can be cast to another without loss, by the promotion rules.

    >>> aj.can_cast("int32", "float64")
    True
    """
    return np.can_cast(dtype_of(from_), dtype_of(to))


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Return the dtype that arrays, dtypes and Python numbers promote to.

    >>> aj.result_type("int32", "float32")
    dtype('float64')
    """
    given = [(weak_example(x.dtype) if x.weak else x.dtype) if isinstance(x, Operand) else x for x in arrays_and_dtypes]
    return np.result_type(*given)


# ---- the namespace


class Info:
    """The result of `__array_namespace_info__()`."""

    def capabilities(self) -> dict[str, Any]:
        """Return the capabilities: boolean indexing and data-dependent shapes work eagerly; compiled functions have static shapes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        return "cpu"

    def devices(self) -> list[str]:
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        check_device(device)
        whole = np.dtype("i8")
        return {"real floating": np.dtype("f8"), "complex floating": np.dtype("c16"), "integral": whole, "indexing": whole}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        check_device(device)
        return {dtype.name: dtype for dtype in DTYPE_NAMES if computed(dtype) == dtype and (kind is None or isdtype(dtype, kind))}


def __array_namespace_info__() -> Info:
    return Info()


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False) -> Operand:
    """Return the cumulative sums along an axis; with `include_initial`, starting with 0.

    >>> aj.cumulative_sum([1, 2, 3], include_initial=True)
    Tensor([0, 1, 3, 6], i64[4])
    """
    return cumulative(to_operand(x), axis, cumsum, dtype, 0 if include_initial else None)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False) -> Operand:
    """Return the cumulative products along an axis; with `include_initial`, starting with 1.

    >>> aj.cumulative_prod([1, 2, 3], include_initial=True)
    Tensor([1, 1, 2, 6], i64[4])
    """
    return cumulative(to_operand(x), axis, cumprod, dtype, 1 if include_initial else None)


def cumulative(x: Operand, axis: int | None, scan: Callable[..., Operand], dtype: Any, first: int | None) -> Operand:
    if axis is None and x.ndim != 1:
        raise ShapeError(f"cumulative_sum, cumulative_prod: {x.type} needs an axis")
    (at,) = normalize_axes(0 if axis is None else axis, x.ndim, "cumulative_sum")
    out = scan(x, at, dtype)
    if first is None:
        return out
    start = ops.full((*out.shape[:at], 1, *out.shape[at + 1 :]), first, out.dtype)
    return ops.concatenate([start, out], at)


end_at_callers(globals())
