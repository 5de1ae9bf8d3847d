"""Types of IR values, and all arithmetic on dtypes, shapes and axes.

Owns `TensorType` (`f32[128,784]`), dtype names, NumPy's promotion with weak Python scalars, and every rule that computes one shape from
others. A dimension is an int or a `Size` (`ir.sizes`), which behaves like one; other code calls this module rather than computing with
dimensions itself.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from .errors import AxisError, DTypeError, ShapeError
from .sizes import hint_of, is_symbolic, maximum

DType: TypeAlias = np.dtype[Any]
Shape: TypeAlias = tuple[int, ...]

DTYPE_NAMES: dict[DType, str] = {
    np.dtype(code): name
    for code, name in {
        "f4": "f32", "f8": "f64", "?": "bool",
        "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64",
        "u1": "u8", "u2": "u16", "u4": "u32", "u8": "u64",
        "c8": "c64", "c16": "c128", "f2": "f16",
    }.items()
}  # fmt: skip
DTYPES: dict[str, DType] = {name: dtype for dtype, name in DTYPE_NAMES.items()}
F32, F64, BOOL = DTYPES["f32"], DTYPES["f64"], DTYPES["bool"]
I8, I16, I32, I64 = (DTYPES[n] for n in ("i8", "i16", "i32", "i64"))
U8, U16, U32, U64 = (DTYPES[n] for n in ("u8", "u16", "u32", "u64"))
C64, C128 = DTYPES["c64"], DTYPES["c128"]
PYTHON = frozenset({BOOL, I64, F64, C128})  # the dtypes of Python's numbers
F16 = DTYPES["f16"]  # a dtype of storage, like bfloat16: every op but a cast converts its operands to float32 first

NUMBERS: dict[type, DType] = {int: I64, float: F64, complex: C128}  # Python numbers that are traced, and the dtypes of their arrays
SCALARS = (bool, int, float, complex)  # the Python classes whose values are weak in promotion

MAX_BYTES = 2**62


SUPPORTED = ", ".join(str(dtype) for dtype in DTYPE_NAMES)


def as_dtype(spec: Any) -> DType:
    """The supported dtype that `spec` (a name or type that NumPy supports, or one of adjit's names) denotes.

    NumPy counts bytes, the text of the IR counts bits: if both define a name, NumPy's meaning applies.

    >>> as_dtype("f32"), as_dtype(float), as_dtype("i8")
    (dtype('float32'), dtype('float64'), dtype('int64'))
    """
    try:
        dtype = np.dtype(spec)
    except TypeError:
        found = DTYPES.get(spec) if isinstance(spec, str) else None
        if found is None:
            raise DTypeError(f"{spec!r} is not a dtype; supported are {SUPPORTED}") from None
        return found
    if dtype not in DTYPE_NAMES and not is_bfloat16(dtype):
        hint = " (swap its bytes with .astype(dtype.newbyteorder('=')))" if dtype.newbyteorder("=") in DTYPE_NAMES else ""
        raise DTypeError(f"dtype {dtype} is not supported{hint}; supported are {SUPPORTED}")
    return DTYPES[DTYPE_NAMES[dtype]]  # NumPy has several equal int64 dtypes, with different `char`


def is_bfloat16(dtype: DType) -> bool:
    """Whether this is bfloat16 of the package ml_dtypes; if so, register it as \"bf16\"."""
    if dtype.name != "bfloat16" or dtype.itemsize != 2:
        return False
    DTYPE_NAMES[dtype], DTYPES["bf16"] = "bf16", dtype
    return True


def computed(dtype: DType) -> DType:
    """The dtype in which numbers of this dtype are computed: float32 for those of 16 bits."""
    return F32 if dtype.kind == "V" or dtype.char == "e" else dtype


class TensorType:
    """The dtype and shape of a value; immutable, compared by value. `str()` gives `f32[128,784]`."""

    __slots__ = ("dtype", "shape", "is_stored", "_hash")

    dtype: DType
    shape: Shape
    is_stored: bool  # a dtype of storage, in which nothing is computed

    def __init__(self, dtype: DType, shape: Sequence[int] = ()) -> None:
        self.dtype = dtype
        self.shape = shape if type(shape) is tuple else tuple(shape)
        char: str = dtype.char
        self.is_stored = char == "e" or char == "E"  # float16 and bfloat16
        self._hash = hash((char, self.shape))

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def is_float(self) -> bool:
        return self.dtype.kind in "fV"

    @property
    def is_complex(self) -> bool:
        return self.dtype.kind == "c"

    @property
    def is_inexact(self) -> bool:
        """Whether values are real or complex floating-point numbers, which have derivatives."""
        return self.dtype.kind in "fcV"

    def with_shape(self, shape: Sequence[int]) -> TensorType:
        return TensorType(self.dtype, shape)

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(dtype, self.shape)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        # different hashes first: they leave no question about sizes that are known only at run time
        return type(other) is TensorType and self._hash == other._hash and self.shape == other.shape and self.dtype == other.dtype

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        return f"{DTYPE_NAMES[self.dtype]}[{','.join(map(str, self.shape))}]"

    __repr__ = __str__


class StackType(TensorType):
    """The values that a loop saves for its backward counterpart: one element per iteration. Only the ops of `ops.stack` access elements.

    `dtype` and `shape` are those of an element; the cotangent of a stack of floats is a stack of the same type.
    """

    __slots__ = ("element",)

    def __init__(self, element: TensorType) -> None:
        super().__init__(element.dtype, element.shape)
        self.element = element

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StackType) and self.element == other.element

    def __hash__(self) -> int:
        return hash(("stack", self.element))

    def __str__(self) -> str:
        return f"stack<{self.element}>"

    __repr__ = __str__


def checked_type(dtype: DType, shape: Sequence[int], what: str) -> TensorType:
    """A TensorType whose size has been checked: for shapes that come from users."""
    out = TensorType(dtype, as_shape(shape, what))
    if hint_of(out.nbytes) > MAX_BYTES:
        raise ShapeError(f"{what}: {out} is too large ({hint_of(out.nbytes):.3g} bytes)")
    return out


def as_shape(shape: Any, what: str) -> Shape:
    """A shape given as an int or a sequence of ints."""
    items = shape if isinstance(shape, Iterable) else (shape,)
    try:
        out = tuple(map(as_size, items))
    except TypeError:
        raise ShapeError(f"{what}: a shape must be made of Python integers, not {shape!r}") from None
    if any(n < 0 for n in out):
        raise ShapeError(f"{what}: negative dimension in {out}")
    return out


def as_size(n: Any) -> int:
    """An integer of any class as a size; TypeError for anything else."""
    return n if is_symbolic(n) else operator.index(n)


# ---- promotion


def promote(*operands: Any) -> DType:
    """NumPy's result dtype; Python scalars (and dtypes wrapped by `weak_example`) are weak."""
    return as_dtype(np.result_type(*(computed(x) if isinstance(x, np.dtype) else x for x in operands)))


def weak_example(dtype: DType) -> Any:
    """A Python scalar of dtype's kind: passed to `promote`, it represents a weakly typed value of that dtype."""
    if dtype.kind in "fcV":
        return 1j if dtype.kind == "c" else 1.0
    return dtype if dtype == BOOL else 1


def float_dtype(dtype: DType) -> DType:
    """The dtype in which NumPy computes true division and means."""
    return computed(dtype) if dtype.kind in "fcV" else F64


def real_dtype(dtype: DType) -> DType:
    """The dtype of the real and imaginary parts of complex numbers; other dtypes unchanged."""
    return (F32 if dtype == C64 else F64) if dtype.kind == "c" else dtype


def complex_dtype(dtype: DType) -> DType:
    """The complex dtype that holds numbers of dtype: complex64 for float32, otherwise complex128."""
    return dtype if dtype.kind == "c" else C64 if computed(dtype) == F32 else C128


def math_dtype(*dtypes: DType) -> DType:
    """The dtype in which NumPy computes transcendental functions: float32 for 16-bit integers. For 8-bit integers it would be float16,
    which is not supported: those are computed in float64.
    """
    if len(dtypes) == 1 and dtypes[0].kind in "fc":
        return computed(dtypes[0])
    if any(dtype.kind in "fcV" for dtype in dtypes):
        return np.result_type(*map(computed, dtypes))
    return F32 if max((dtype.itemsize for dtype in dtypes), default=8) == 2 else F64


# ---- shapes


def broadcast_shapes(what: str, *shapes: Shape) -> Shape:
    """NumPy broadcasting, with an error that names the op.

    >>> broadcast_shapes("add", (3, 1), (4,))
    (3, 4)
    """
    rank = max(map(len, shapes))
    out = [1] * rank
    for shape in shapes:
        for axis, n in enumerate(shape, rank - len(shape)):
            if same_size(out[axis], n):  # without asking whether both are 1, which may depend on the call
                continue
            if out[axis] == 1:
                out[axis] = n
            elif n not in (1, out[axis]):
                pretty = " and ".join(str(list(s)) for s in shapes)
                raise ShapeError(f"{what}: shapes {pretty} do not broadcast ({out[axis]} against {n})")
    if hint_of(math.prod(out)) > MAX_BYTES // 8:
        pretty = " and ".join(str(list(s)) for s in shapes)
        raise ShapeError(f"{what}: shapes {pretty} broadcast to {hint_of(math.prod(out)):.3g} elements: that is too large")
    return tuple(out)


def same_size(a: int, b: int) -> bool:
    """Whether sizes are equal in all calls; unlike `==`, this assumes nothing about symbolic ones."""
    return type(a) is type(b) and hash(a) == hash(b) and a == b


def identical(a: Shape, b: Shape) -> bool:
    """Whether shapes are equal whatever the values of symbolic sizes; unlike `==`, this assumes nothing about them."""
    return a is b or (hash(a) == hash(b) and a == b)


def normalize_axis(axis: Any, rank: int, what: str) -> int:
    try:
        index = operator.index(axis)
    except TypeError:
        raise ShapeError(f"{what}: an axis must be a Python integer, not {axis!r}") from None
    if not -rank <= index < rank:
        raise AxisError(f"{what}: axis {index} is out of range for rank {rank}")
    return index % rank


def listed_axes(axes: Any) -> tuple[Any, ...]:
    """Axes given as an integer of any type (an array without axes is one) or as a sequence of integers."""
    return tuple(axes) if isinstance(axes, Iterable) and getattr(axes, "ndim", None) != 0 else (axes,)


def normalize_axes(axes: Any, rank: int, what: str) -> tuple[int, ...]:
    """Axes given as None (all), an int or a sequence of ints; sorted, duplicates are refused."""
    if axes is None:
        return tuple(range(rank))
    items = listed_axes(axes)
    out = tuple(sorted(normalize_axis(a, rank, what) for a in items))
    if len(set(out)) != len(out):
        raise ShapeError(f"{what}: axis named twice in {items}")
    return out


def reduced_shape(shape: Shape, axes: Sequence[int]) -> Shape:
    return tuple(n for axis, n in enumerate(shape) if axis not in axes)


def kept_shape(shape: Shape, axes: Sequence[int]) -> Shape:
    """`reduced_shape` with the reduced axes kept as 1."""
    return tuple(1 if axis in axes else n for axis, n in enumerate(shape))


def resolve_reshape(shape: Shape, wanted: Any) -> Shape:
    """The target of a reshape, with one -1 filled in."""
    items = wanted if isinstance(wanted, Iterable) else (wanted,)
    try:
        target = list(map(as_size, items))
    except TypeError:
        raise ShapeError(f"reshape: a shape must be made of Python integers, not {wanted!r}") from None
    size = math.prod(shape)
    if target.count(-1) == 1:
        rest = math.prod(n for n in target if n != -1)
        if rest and size % rest == 0:
            target[target.index(-1)] = size // rest
        elif rest == 0 and size == 0:
            raise ShapeError(f"reshape: -1 is ambiguous for {list(shape)} -> {target}")
    if any(n < 0 for n in target) or math.prod(target) != size:
        raise ShapeError(f"reshape: {list(shape)} ({size} elements) does not fit {list(items)}")
    return tuple(target)


def matmul_shape(a: Shape, b: Shape, what: str = "matmul") -> Shape:
    """Result shape of `a @ b` with equal batch dimensions (broadcasting is explicit in the IR)."""
    if not a or not b:
        raise ShapeError(f"{what}: a scalar operand ({list(a)} @ {list(b)}); use * instead")
    inner = b[-2] if len(b) > 1 else b[0]
    if a[-1] != inner:
        raise ShapeError(f"{what}: inner sizes differ: {list(a)} @ {list(b)} ({a[-1]} != {inner})")
    if len(a) > 1 and len(b) > 1 and a[:-2] != b[:-2]:
        raise ShapeError(f"{what}: batch sizes differ: {list(a)} @ {list(b)}")
    if (len(a) == 1 and len(b) > 2) or (len(b) == 1 and len(a) > 2):
        raise ShapeError(f"{what}: a vector operand takes a matrix beside it, not {list(a)} @ {list(b)}")
    return a[:-1] + (b[-1:] if len(b) > 1 else ())


def strided_size(start: int, stop: int, step: int) -> int:
    return maximum(0, -(-(stop - start) // step))


def row_major(shape: Shape) -> tuple[int, ...]:
    """Strides, counted in elements, of a contiguous array.

    >>> row_major((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)
