"""Structures of arguments, results and attributes as JSON data: lists, tuples, dicts, plain values, specs, and references by number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjit.ir.errors import UnsupportedError
from adjit.ir.sizes import is_symbolic
from adjit.runtime.signature import Static

from .dtypes import DType, as_dtype
from .specs import TensorSpec, VariableSpec

PLAIN = (bool, int, float, str, type(None))
KINDS = ("result", "node", "variable", "function", "constant")


class SavedReference:
    """A reference by number to a result of a function, a variable or an object that is stored elsewhere."""

    __slots__ = ("kind", "number")

    def __init__(self, kind: str, number: int) -> None:
        self.kind = kind
        self.number = number


def encode(value: Any, what: str) -> Any:
    """The value as data; `what` names it in errors."""
    if isinstance(value, Static):
        return {"static": encode(value.value, what)}
    if isinstance(value, SavedReference):
        return {value.kind: value.number}
    if isinstance(value, TensorSpec) and not isinstance(value, VariableSpec):
        shape = None if value.shape is None else [None if is_symbolic(n) else n for n in value.shape]
        return {"tensor": [shape, value.dtype.name]}
    if isinstance(value, DType):
        return {"dtype": value.name}
    if type(value) in PLAIN:
        return value
    if type(value) in (list, tuple):
        return {type(value).__name__: [encode(each, what) for each in value]}
    if isinstance(value, Mapping):
        return {"dict": [[encode(key, what), encode(each, what)] for key, each in value.items()]}
    raise UnsupportedError(f"{what} contains {value!r}, which cannot be saved; use tensors, numbers, strings, lists and dicts")


def decode(data: Any) -> Any:
    """The inverse of `encode`; raises ValueError for anything that `encode` does not write."""
    if type(data) in PLAIN:
        return data
    if isinstance(data, dict) and len(data) == 1:
        (kind, held), *_ = data.items()
        if kind in KINDS and isinstance(held, int) and held >= 0:
            return SavedReference(kind, held)
        if kind == "static":
            return Static(decode(held))
        if kind == "tensor" and isinstance(held, list) and len(held) == 2:
            return TensorSpec(*held)
        if kind == "dtype":
            return as_dtype(held)
        if kind in ("list", "tuple") and isinstance(held, list):
            return (list if kind == "list" else tuple)(map(decode, held))
        if kind == "dict" and isinstance(held, list):
            return {decode(key): decode(each) for key, each in held}
    raise ValueError(f"not a description of a saved model: {str(data)[:80]}")
