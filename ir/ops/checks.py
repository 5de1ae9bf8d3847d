"""The checks that the verifier makes of every op before its type rule: the number of operands, and the types and ranges of attributes.

Type rules trust their attributes, which the functions that users call have checked; a text of the IR may contain anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from ..errors import DTypeError, ShapeError, VerifyError
from ..sizes import at_least, hint_of, is_symbolic
from ..types import DTYPE_NAMES, MAX_BYTES, StackType, TensorType
from .base import Op

MAX_RANK = 64  # as in NumPy
MAX_INTEGER = 2**63 - 1


def checked_result_types(op: Op, types: Sequence[TensorType]) -> tuple[TensorType, ...]:
    """The result of `op.infer`, after operands and attributes have been checked."""
    if op.arity is not None and len(types) != op.arity:
        raise ShapeError(f"{op.name} takes {op.arity} operand{'s' * (op.arity != 1)}, not {len(types)}")
    check_attributes(op, types)
    out = op.result_types(types)
    for type in out:
        check_type(type)
    return out


def check_type(type: TensorType) -> None:
    """Check that native code can allocate buffers of this type."""
    element = type.element if isinstance(type, StackType) else type
    if element.dtype not in DTYPE_NAMES:
        raise DTypeError(f"{element.dtype} is not a dtype of the IR")
    sizes = element.shape
    if len(sizes) > MAX_RANK or any(not _is_one(n, "size") for n in sizes):
        raise ShapeError(f"{list(sizes)} is not a shape: up to {MAX_RANK} sizes, none below 0")
    if max(1, *map(hint_of, sizes), 1) > MAX_BYTES or hint_of(element.nbytes) > MAX_BYTES:
        raise ShapeError(f"{element} is too large")


def check_attributes(op: Op, types: Sequence[TensorType]) -> None:
    for field in fields(op):
        value = getattr(op, field.name)
        if not conforms(value, str(field.type)):
            raise VerifyError(f"{op.name}: attribute {field.name}={value!r} is not {field.type}")
        if field.name in ("axis", "axes"):
            check_axes(op, value if isinstance(value, tuple) else (value,), types)


def check_axes(op: Op, axes: Sequence[int], types: Sequence[TensorType]) -> None:
    shape = getattr(op, "shape", None)
    rank = types[0].rank if types else len(shape) if isinstance(shape, tuple) else 0
    if any(not 0 <= axis < rank for axis in axes):
        raise ShapeError(f"{op.name}: axes {list(axes)} of an array of {rank} axes: they count from 0 up to {rank - 1}")
    if len(set(axes)) < len(axes):
        raise ShapeError(f"{op.name}: an axis is named twice: {list(axes)}")


def conforms(value: Any, annotation: str) -> bool:
    """Whether a value has an attribute's declared type, which is text here as in `attributes`."""
    return any(_is_one(value, part.strip()) for part in annotation.split("|"))


def _is_one(value: Any, annotation: str) -> bool:
    if annotation.startswith("tuple[") or annotation == "Shape":
        item = "size" if annotation == "Shape" else annotation[6:-1].partition(",")[0]
        return isinstance(value, tuple) and all(_is_one(v, item) for v in value)
    if annotation in ("int", "size"):
        if is_symbolic(value):
            return annotation == "int" or at_least(value, 0)
        return type(value) is int and (0 if annotation == "size" else -MAX_INTEGER) <= value <= MAX_INTEGER
    if annotation == "str":
        return type(value) is str and "\0" not in value
    if annotation == "DType":
        return isinstance(value, np.dtype) and value in DTYPE_NAMES
    if annotation == "TensorType":
        if not isinstance(value, TensorType):
            return False
        check_type(value)
        return True
    known = {"bool": (bool, np.bool_), "float": (float, np.floating), "bytes": (bytes,), "None": (type(None),)}
    return annotation not in known or isinstance(value, known[annotation])
