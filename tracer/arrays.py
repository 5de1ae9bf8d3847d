"""The array interface that users see: the methods, properties and protocols of `np.ndarray`, shared by `Traced` and `Tensor`.

Arrays are immutable. Methods that would write into one raise an error that says what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from adjit.ir import ops
from adjit.ir.active import current_builder
from adjit.ir.errors import DTypeError, TraceError, UnsupportedError
from adjit.ir.operand import Operand, as_arithmetic
from adjit.ir.ops.base import Array
from adjit.ir.tracebacks import methods_end_at_callers, trim
from adjit.ir.types import DType, as_dtype

from .convert import array_of_list, present
from .frames import user_location
from .in_place import AugmentedAssignment
from .numpy_table import applied, call_function, call_ufunc, late
from .results import apart
from .slices import as_rows, has_traced_mask, has_traced_slice, key_to_write, taken, with_positions
from .sparse_products import is_sparse, product, product_from_left
from .surface import elementwise, reductions, shapes


class ArrayMethods(AugmentedAssignment):
    """The array interface, based on the ops; the classes that users hold inherit it and add `numpy()`."""

    __slots__ = ()
    __hash__: Any = None  # as for NumPy arrays: `{3: "a"}.get(x)` raises, where a hash by identity would silently miss

    # ---- NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        try:
            return call_ufunc(ufunc, method, inputs, kwargs)
        except Exception as error:
            trim(error)
            raise

    def __array_function__(self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        try:
            return call_function(function, args, kwargs)
        except Exception as error:
            trim(error)
            raise

    def __matmul__(self, other: Any) -> Operand:
        try:
            out = super().__matmul__(other)
            return out if out is not NotImplemented or self._scipy_computes(other) else present(product_from_left(self, other))
        except Exception as error:
            trim(error)
            raise

    def __rmatmul__(self, other: Any) -> Operand:
        try:
            out = super().__rmatmul__(other)
            return out if out is not NotImplemented or self._scipy_computes(other) else present(product(other, self))
        except Exception as error:
            trim(error)
            raise

    def __pos__(self) -> Operand:
        return apart(super().__pos__(), (self,), False)  # type: ignore[no-any-return]

    def __abs__(self) -> Operand:
        return apart(super().__abs__(), (self,), False)  # type: ignore[no-any-return]

    def _scipy_computes(self, other: Any) -> bool:
        """Whether the product is left to the other operand: that is no sparse matrix, or one for which SciPy can compute it."""
        return not is_sparse(other)

    def numpy(self) -> Array:
        raise NotImplementedError(type(self).__name__)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """Return the namespace of the array API standard: adjit itself."""
        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            raise ValueError(f"version {api_version!r} of the array API standard is not supported; use 2024.12")
        return import_module("adjit")

    @property
    def device(self) -> str:
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> Operand:
        """Return the array itself: there is only one device."""
        if device != "cpu":
            raise ValueError(f"device {device!r} does not exist; the only device is 'cpu'")
        return self

    # ---- array attributes

    @property
    def itemsize(self) -> int:
        return self.type.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.type.nbytes

    @property
    def mT(self) -> Operand:  # noqa: N802 - NumPy's name
        """The array with its last two axes swapped."""
        return shapes.matrix_transpose(self)

    @property
    def real(self) -> Operand:
        return late("complex_numbers", "real")(self)

    @property
    def imag(self) -> Operand:
        return late("complex_numbers", "imag")(self)

    @property
    def flat(self) -> Operand:
        """The flattened array, for reading."""
        return self.flatten()

    def __copy__(self) -> Operand:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Operand:
        return self

    def copy(self, order: str = "C") -> Operand:
        """Return an array that is not written to with this one: traced values are immutable, and their own copies."""
        return self

    # ---- indexing

    def __getitem__(self, key: Any) -> Operand:
        try:
            x: Operand = self
            if has_traced_mask(key):
                x, key = with_positions(x, key)
            if has_traced_slice(key):
                x, key = taken(x, key)
            return ops.getitem(x, key)
        except Exception as error:
            trim(error)
            raise

    def __iter__(self) -> Iterator[Operand]:
        if not self.type.shape:
            raise TraceError(f"iteration over a 0-dimensional value ({self.type}); iterate over an axis of an array").at(user_location())
        return (ops.getitem(self, i) for i in range(self.type.shape[0]))

    def __contains__(self, value: Any) -> bool:
        return bool(ops.any(ops.equal(self, as_arithmetic(value))))

    @property
    def at(self) -> At:
        """Functional updates: `x.at[index].set(value)`, `.add(value)`, ... return a new array, updated at an index."""
        return At(self)

    def __setitem__(self, key: Any, value: Any) -> None:
        immutable(
            "x[index] = value", "x = x.at[index].set(value)", ", or write to a variable in one step: x[i, j] = value, not x[i][j] = value"
        )

    def __delitem__(self, key: Any) -> None:
        immutable("del x[index]", "a slice or np.concatenate")

    def fill(self, value: Any) -> None:
        """Raise an error: arrays are immutable."""
        immutable("x.fill(value)", "np.full_like(x, value)")

    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Raise an error: arrays are immutable."""
        immutable("x.put(indices, values)", "x = x.at[index].set(value)")

    def sort(self, axis: int = -1) -> None:
        """Raise an error: arrays are immutable."""
        immutable("x.sort()", "x = np.sort(x)")

    def partition(self, kth: Any, axis: int = -1) -> None:
        """Raise an error: arrays are immutable."""
        immutable("x.partition(kth)", "x = np.partition(x, kth)")

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        """Raise an error: arrays are immutable."""
        immutable("x.resize(shape)", "x = np.resize(x, shape)")

    # ---- reductions, with NumPy's order of arguments

    def sum(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Operand:
        return reductions.sum(self, axis, dtype, out, keepdims, initial, where)

    def prod(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Operand:
        return reductions.prod(self, axis, dtype, out, keepdims, initial, where)

    def max(self, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Operand:
        return reductions.max(self, axis, out, keepdims, initial, where)

    def min(self, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = True) -> Operand:
        return reductions.min(self, axis, out, keepdims, initial, where)

    def mean(self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, *, where: Any = True) -> Operand:
        return reductions.mean(self, axis, dtype, out, keepdims, where=where)

    def var(
        self, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False, **options: Any
    ) -> Operand:
        return reductions.var(self, axis, dtype, out, ddof, keepdims, **options)

    def std(
        self, axis: Any = None, dtype: Any = None, out: None = None, ddof: float = 0, keepdims: bool = False, **options: Any
    ) -> Operand:
        return reductions.std(self, axis, dtype, out, ddof, keepdims, **options)

    def any(self, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = True) -> Operand:
        return reductions.any(self, axis, out, keepdims, where=where)

    def all(self, axis: Any = None, out: None = None, keepdims: bool = False, *, where: Any = True) -> Operand:
        return reductions.all(self, axis, out, keepdims, where=where)

    def argmax(self, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Operand:
        return reductions.argmax(self, axis, out, keepdims=keepdims)

    def argmin(self, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Operand:
        return reductions.argmin(self, axis, out, keepdims=keepdims)

    def cumsum(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Operand:
        return reductions.cumsum(self, axis, dtype, out)

    def cumprod(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Operand:
        return reductions.cumprod(self, axis, dtype, out)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None) -> Operand:
        reductions.unwritten("trace", out)
        return late("indexing", "trace")(self, offset, axis1, axis2, dtype)

    # ---- shapes

    def reshape(self, *shape: Any, order: str = "C") -> Operand:
        return shapes.reshape(self, shape[0] if len(shape) == 1 else shape, order=order)

    def ravel(self, order: str = "C") -> Operand:
        return shapes.ravel(self, order)

    def flatten(self, order: str = "C") -> Operand:
        return apart(shapes.ravel(self, order), (self,), False)  # type: ignore[no-any-return]

    def swapaxes(self, axis1: int, axis2: int) -> Operand:
        return shapes.swapaxes(self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Operand:
        return shapes.squeeze(self, axis)

    def transpose(self, *axes: Any) -> Operand:
        return apart(super().transpose(*axes), (self,), True)  # type: ignore[no-any-return]

    def repeat(self, repeats: Any, axis: int | None = None) -> Operand:
        return shapes.repeat(self, repeats, axis)

    def take(self, indices: Any, axis: int | None = None, out: None = None, mode: str = "raise") -> Operand:
        reductions.unwritten("take", out)
        return late("indexing", "take")(self, indices, axis, mode)

    def argsort(self, axis: int | None = -1, kind: Any = None, order: None = None, *, stable: bool | None = None) -> Operand:
        return applied(  # type: ignore[no-any-return]
            np.argsort, late("indexing", "argsort"), (self, axis), {"kind": kind, "order": order, "stable": stable}
        )

    def argpartition(self, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None) -> Operand:
        return applied(  # type: ignore[no-any-return]
            np.argpartition, late("indexing", "argpartition"), (self, kth, axis), {"kind": kind, "order": order}
        )

    def choose(self, choices: Any, out: None = None, mode: str = "raise") -> Operand:
        reductions.unwritten("choose", out)
        return late("choices", "choose")(self, choices, mode)

    def compress(self, condition: Any, axis: int | None = None, out: None = None) -> Operand:
        reductions.unwritten("compress", out)
        return late("sets", "compress")(condition, self, axis)

    def nonzero(self) -> tuple[Operand, ...]:
        return late("sets", "nonzero")(self)  # type: ignore[return-value]

    def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Operand:
        return late("indexing", "searchsorted")(self, v, side, sorter)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Operand:
        return late("indexing", "diagonal")(self, offset, axis1, axis2)

    # ---- elements

    def astype(self, dtype: Any, order: str = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True) -> Operand:
        out = ops.astype(self, castable(self, dtype, casting))
        return apart(out, (self,), False) if copy else out

    def clip(self, min: Any = None, max: Any = None, out: None = None) -> Operand:
        reductions.unwritten("clip", out)
        return elementwise.clip(self, min, max)

    def round(self, decimals: int = 0, out: None = None) -> Operand:
        reductions.unwritten("round", out)
        return elementwise.round(self, decimals)

    def conj(self) -> Operand:
        # bools stay bools, unlike those of the function
        return late("complex_numbers", "conjugate")(self) if self.type.is_complex else self

    conjugate = conj

    def dot(self, other: Any, out: None = None) -> Operand:
        reductions.unwritten("dot", out)
        return late("products", "dot")(self, other)


def castable(x: Operand, dtype: Any, casting: Any) -> DType:
    """Return the dtype to cast to, which NumPy's rule `casting` must allow."""
    target = as_dtype(dtype)
    if casting != "unsafe" and not np.can_cast(x.type.dtype, target, casting):
        raise DTypeError(f"{x.type} cannot be cast to {target} according to the rule {casting!r}").at(user_location())
    return target


class At:
    """The result of `x.at`, which is then indexed."""

    __slots__ = ("x",)

    def __init__(self, x: Operand) -> None:
        self.x = x

    def __getitem__(self, key: Any) -> AtIndex:
        return AtIndex(self.x, as_rows(self.x, key) if has_traced_slice(key) else key)


class AtIndex:
    """The result of `x.at[key]`. Values added at repeated indices accumulate; else the last one counts, as in NumPy's `x[key] *= v`."""

    __slots__ = ("x", "key")

    def __init__(self, x: Operand, key: Any) -> None:
        self.x = x
        self.key = key

    def get(self) -> Operand:
        """Return x[key]."""
        return ops.getitem(self.x, self.key)

    def set(self, value: Any) -> Operand:
        """Return a copy of x with x[key] = value."""
        value = array_of_list(value)
        return present(ops.setitem(self.x, key_to_write(self.x, self.key, value), value))

    def add(self, value: Any) -> Operand:
        """Return a copy of x with x[key] += value."""
        value = array_of_list(value)
        return present(ops.additem(self.x, key_to_write(self.x, self.key, value), value))

    def subtract(self, value: Any) -> Operand:
        """Return a copy of x with x[key] -= value."""
        return present(ops.additem(self.x, self.key, -as_arithmetic(value)))

    def multiply(self, value: Any) -> Operand:
        """Return a copy of x with x[key] *= value."""
        return present(ops.updateitem(self.x, self.key, lambda items: items * value))

    def divide(self, value: Any) -> Operand:
        """Return a copy of x with x[key] /= value."""
        return present(ops.updateitem(self.x, self.key, lambda items: items / value))

    def power(self, value: Any) -> Operand:
        """Return a copy of x with x[key] **= value."""
        return present(ops.updateitem(self.x, self.key, lambda items: items**value))

    def min(self, value: Any) -> Operand:
        """Return a copy of x with the smaller of x[key] and value."""
        return present(ops.updateitem(self.x, self.key, lambda items: elementwise.minimum(items, value)))

    def max(self, value: Any) -> Operand:
        """Return a copy of x with the larger of x[key] and value."""
        return present(ops.updateitem(self.x, self.key, lambda items: elementwise.maximum(items, value)))


def immutable(what: str, instead: str, traced: str = "") -> NoReturn:
    """`traced` is what else a function that is being compiled may do."""
    more = traced if current_builder() is not None else ""
    raise UnsupportedError(f"{what}: adjit arrays are immutable; use {instead}{more}").at(user_location())


methods_end_at_callers(ArrayMethods)
methods_end_at_callers(AtIndex)
