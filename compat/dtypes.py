"""TensorFlow's dtypes: `tf.float32` and so on, as thin wrappers of NumPy's.

A `DType` compares equal to the NumPy dtype it names and can be used in its place. Dtypes that adjit does not support (strings) are
rejected; those names raise from `adjit.tf` itself. float16 and bfloat16 are storage dtypes (docs/numerics.md): functions compute in
float32, and round their results, as TensorFlow's kernels do (`public` in wrapping.py).
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from adjit.ir.types import DTYPES, F16, is_bfloat16
from adjit.ir.types import as_dtype as supported

from .errors import MissingPartError, missing

ENUM = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "complex64": 8, "int64": 9, "bool": 10, "bfloat16": 14,
    "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23,
}  # fmt: skip


KINDS = "buifVc"  # of dtypes: Python values of a kind convert to its own and all later kinds; V is bfloat16


class DType:
    """`tf.float32`: prints like TensorFlow's, and acts as NumPy's float32 everywhere else."""

    __slots__ = ("dtype",)

    dtype: np.dtype[Any]

    def __init__(self, dtype: Any) -> None:
        self.dtype = supported(dtype)

    @property
    def name(self) -> str:
        return str(self.dtype.name)

    @property
    def as_numpy_dtype(self) -> type[Any]:
        return self.dtype.type

    @property
    def as_datatype_enum(self) -> int:
        """The number of the dtype in TensorFlow's files."""
        return ENUM[self.name]

    @property
    def base_dtype(self) -> DType:
        return self

    @property
    def is_floating(self) -> bool:
        return self.dtype.kind == "f" or is_bfloat16(self.dtype)

    @property
    def is_integer(self) -> bool:
        return self.dtype.kind in "iu"

    @property
    def is_unsigned(self) -> bool:
        return self.dtype.kind == "u"

    @property
    def is_bool(self) -> bool:
        return self.dtype.kind == "b"

    @property
    def is_complex(self) -> bool:
        return self.dtype.kind == "c"

    def converts_to(self, other: DType) -> bool:
        """Whether Python values of this kind take another dtype beside a tensor of it."""
        return self == other or (KINDS.index(self.dtype.kind) <= KINDS.index(other.dtype.kind) and not self.is_bool)

    @property
    def real_dtype(self) -> DType:
        """The dtype of the real part."""
        return _known[np.zeros(0, self.dtype).real.dtype]

    @property
    def size(self) -> int:
        return self.dtype.itemsize

    @property
    def min(self) -> Any:
        return False if self.is_bool else self._limits().min

    @property
    def max(self) -> Any:
        return True if self.is_bool else self._limits().max

    @property
    def limits(self) -> tuple[Any, Any]:
        return self.min, self.max

    def _limits(self) -> Any:
        return np.finfo(self.dtype) if self.is_floating else np.iinfo(self.dtype)

    def is_compatible_with(self, other: Any) -> bool:
        return self == as_dtype(other)

    def __getattr__(self, name: str) -> Any:
        if name == "dtype":  # not set yet while an object is being copied
            raise AttributeError(name)
        return getattr(self.dtype, name)  # `kind`, `itemsize`, ...: ops read them from a tensor's dtype

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.dtype == other.dtype
        try:
            return self.dtype == supported(other)
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __reduce__(self) -> Any:
        return as_dtype, (self.name,)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"


_known = {dtype: DType(dtype) for dtype in DTYPES.values()}

complex64, complex128 = (_known[DTYPES[n]] for n in ("c64", "c128"))
float16 = half = _known[F16]
float32, float64, bool_ = (_known[DTYPES[n]] for n in ("f32", "f64", "bool"))
int8, int16, int32, int64 = (_known[DTYPES[n]] for n in ("i8", "i16", "i32", "i64"))
uint8, uint16, uint32, uint64 = (_known[DTYPES[n]] for n in ("u8", "u16", "u32", "u64"))

_python: dict[type | str, DType] = {float: float32, int: int32, bool: bool_, "float": float32, "int": int32}


def as_dtype(type_value: Any) -> DType:
    """The dtype with that name or type; Python's `float` and `int` are float32 and int32 here."""
    spec = type_value
    if isinstance(spec, DType):
        return spec
    if type(spec) is int:
        spec = next((name for name, number in ENUM.items() if number == spec), spec)
    found = _known.get(spec) if isinstance(spec, np.dtype) else _python.get(spec) if isinstance(spec, type | str) else None
    return _known_as(supported(spec)) if found is None else found


def _known_as(dtype: np.dtype[Any]) -> DType:
    if dtype not in _known:  # bfloat16, which NumPy supports once ml_dtypes is imported
        _known[dtype] = DType(dtype)
    return _known[dtype]


def found_bfloat16() -> DType:
    """`tf.bfloat16`, of the package ml_dtypes."""
    try:
        return as_dtype(importlib.import_module("ml_dtypes").bfloat16)
    except ModuleNotFoundError:
        raise MissingPartError(None, None, "tf.bfloat16 needs the package ml_dtypes: pip install ml_dtypes") from None


def __getattr__(name: str) -> Any:
    if name == "bool":
        return bool_
    if name == "double":
        return float64
    if name == "bfloat16":
        return found_bfloat16()
    if name in ("cast", "saturate_cast"):
        from . import math  # noqa: PLC0415 - it computes with dtypes

        return getattr(math, name)
    return missing("tf.dtypes", "it has float16, float32, float64, complex64, complex128, bool and integers")(name)


def __dir__() -> list[str]:
    kinds = [name for name, value in globals().items() if isinstance(value, DType) and name != "bool_"]
    return ["DType", "as_dtype", "bfloat16", "bool", "cast", "double", "saturate_cast", *kinds]
