"""Tensors of text: constants that are passed through, joined, compared and printed. Everything else about text is out of scope.

They are Python objects, not operands: in a function they are part of the trace, as Python strings are, so a different text is a different
trace; operations on them are performed while tracing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import InvalidDType, MissingPartError
from .shape import TensorShape


class TextDType:
    """`tf.string`."""

    name = "string"
    dtype = np.dtype(object)
    is_floating = is_integer = is_bool = is_complex = False

    def __reduce__(self) -> str:
        return "string"

    def __repr__(self) -> str:
        return "tf.string"

    def __str__(self) -> str:
        return "<dtype: 'string'>"


string = TextDType()


class TextTensor:
    """`tf.constant("text")`: bytes, in UTF-8.

    >>> TextTensor("a") + "b"
    <tf.Tensor: shape=(), dtype=string, numpy=b'ab'>
    """

    __slots__ = ("_data", "__weakref__")

    _data: Any  # an array of bytes
    __array_priority__ = 100

    def __init__(self, value: Any) -> None:
        given: Any = value._data if isinstance(value, TextTensor) else value
        data: Any = np.array(given, dtype="O")
        if not all(isinstance(x, str | bytes) for x in data.flat):
            raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype string")
        self._data = np.empty(data.shape, object)
        self._data[...] = np.vectorize(lambda x: x.encode() if isinstance(x, str) else x, otypes=[object])(data) if data.size else data

    @property
    def dtype(self) -> TextDType:
        return string

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._data.shape)

    def get_shape(self) -> TensorShape:
        return self.shape

    @property
    def ndim(self) -> int:
        return int(self._data.ndim)

    def numpy(self) -> Any:
        return self._data.copy() if self._data.ndim else self._data[()]

    def __tf_tracing_type__(self, context: Any) -> Any:
        """The key by which traces are distinguished: the whole text."""
        return "string", self._data.shape, tuple(self._data.flat)

    # ---- supported operations

    def __add__(self, other: Any) -> TextTensor:
        return TextTensor(self._data + _text(other)._data)

    def __radd__(self, other: Any) -> TextTensor:
        return TextTensor(_text(other)._data + self._data)

    def __eq__(self, other: object) -> Any:
        return _compared(self, other, np.equal)

    def __ne__(self, other: object) -> Any:
        return _compared(self, other, np.not_equal)

    __hash__ = None  # type: ignore[assignment] # as for all tensors

    def __getitem__(self, key: Any) -> TextTensor:
        return TextTensor(self._data[key])

    def __len__(self) -> int:
        if not self._data.ndim:
            raise TypeError("Scalar tensor has no `len()`")
        return len(self._data)

    def __iter__(self) -> Any:
        if not self._data.ndim:
            raise TypeError("Cannot iterate over a scalar tensor")
        return (TextTensor(row) for row in self._data)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise MissingPartError(None, None, f"{name} of a tensor of strings is out of the scope of adjit.tf; keep text in Python")

    def __repr__(self) -> str:
        text = repr(self._data) if self._data.ndim else repr(self._data[()])
        return f"<tf.Tensor: shape={self.shape}, dtype=string, numpy={chr(10) if chr(10) in text else ''}{text}>"

    def __str__(self) -> str:
        text = str(self._data) if self._data.ndim else repr(self._data[()])
        return f"tf.Tensor({chr(10) if chr(10) in text else ''}{text}, shape={self.shape}, dtype=string)"

    def __reduce__(self) -> Any:
        return TextTensor, (self._data.tolist(),)


def _text(x: Any) -> TextTensor:
    if isinstance(x, TextTensor):
        return x
    if not is_text(x):
        raise InvalidDType(f"cannot compute AddV2 as input #1(zero-based) was expected to be a string tensor but is {x!r}")
    return TextTensor(x)


def _compared(a: TextTensor, b: Any, how: Any) -> Any:
    from .tensor import eager  # noqa: PLC0415 - numbers convert from text there

    if b is None or not (isinstance(b, TextTensor) or is_text(b)):
        return how is np.not_equal
    return eager(np.asarray(how(a._data, _text(b)._data), bool))


def is_text(value: Any) -> bool:
    """Whether a value is text, by itself or as the first element of nested lists."""
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, str | bytes | TextTensor) or (
        isinstance(value, np.ndarray | np.generic)
        and (value.dtype.kind in "US" or (value.dtype == object and value.size > 0 and isinstance(value.flat[0], str | bytes)))
    )
