"""tf.TensorArray: a list of tensors of one shape, written one by one, often by a loop. Growing at a traced index is not supported.

It is a buffer with a row for each tensor, so loops carry it and gradients flow through it as through any other tensor. Until an element is
written, the shape of the rows may be unknown: the buffer is then a Python number, which takes the type of the other operand.
"""

from __future__ import annotations

from typing import Any

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.tracer.pytree import register_pytree_node
from adjit.tracer.regions import is_traced
from adjit.tracer.surface import create, padding

from .dtypes import as_dtype
from .errors import InvalidShape, out_of_scope
from .shape import TensorShape
from .tensor import convert_to_tensor, dress, tracing
from .wrapping import public


class TensorArray:
    """`ta = tf.TensorArray(tf.float32, size=3)`, then `ta = ta.write(i, x)`, and `ta.stack()` at the end."""

    def __init__(
        self, dtype: Any, size: Any = None, dynamic_size: bool | None = None, clear_after_read: bool | None = None,
        tensor_array_name: str | None = None, handle: Any = None, flow: Any = None, infer_shape: bool = True, element_shape: Any = None,
        colocate_with_first_write_call: bool = True, name: str | None = None,
    ) -> None:  # fmt: skip
        self._dtype = as_dtype(dtype)
        self._dynamic = bool(dynamic_size)
        if size is not None and is_traced(size):
            out_of_scope("a tf.TensorArray of a size that is only known at run time", "give a Python number, the most that will be needed")
        self._size = 0 if size is None else int(size)
        self._rows: Any = self._dtype.dtype.type(0).item()
        if element_shape is not None and TensorShape(element_shape).is_fully_defined():
            self._rows = self._empty(tuple(TensorShape(element_shape)))

    def _empty(self, shape: tuple[Any, ...]) -> Any:
        return create.zeros((self._size, *shape), self._dtype.dtype)

    def _with(self, rows: Any) -> TensorArray:
        """An array with these rows; eagerly, this array is changed, as in TensorFlow."""
        out = self if not tracing() else TensorArray(self._dtype, self._size, self._dynamic)
        out._rows = dress(rows)
        out._size = rows.type.shape[0]
        return out

    @property
    def _written(self) -> bool:
        return isinstance(self._rows, Operand) and not (self._rows.weak and not self._rows.type.shape)

    def _known(self, use: str) -> Any:
        if not self._written:
            raise InvalidShape(f"TensorArray.{use}: nothing was written, so the shape of an element is not known; give element_shape=")
        return self._rows

    def _grown(self, index: Any, shape: tuple[int, ...]) -> Any:
        """The rows, extended to include one at `index`."""
        rows = self._rows if self._written else self._empty(shape)
        if is_traced(index):
            if self._dynamic:
                out_of_scope("a TensorArray that grows in a traced loop (dynamic_size=True)", "give the size, the most that will be needed")
            return rows
        missing = int(index) + 1 - self._size
        if missing > 0 and not self._dynamic:
            raise InvalidShape(f"TensorArray: Tried to write to index {int(index)} but array is not resizeable and size is: {self._size}")
        return padding.pad(rows, [(0, missing)] + [(0, 0)] * len(shape)) if missing > 0 else rows

    # ---- writing

    @public
    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Write an element, and return the array."""
        x = convert_to_tensor(value, dtype_hint=self._dtype)
        if x.dtype != self._dtype:
            raise InvalidShape(f"TensorArray dtype is {self._dtype.name} but Op is trying to write dtype {x.dtype.name}")
        rows = self._grown(index, x.type.shape)
        if rows.type.shape[1:] != x.type.shape:
            raise ValueError(f"Inconsistent shapes: saw {x.type.shape} but expected {rows.type.shape[1:]} as the shape of every element")
        return self._with(ops.setitem(rows, index, x))

    @public
    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array whose elements are the rows of a tensor."""
        return self._with(convert_to_tensor(value, dtype_hint=self._dtype))

    @public
    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        places, rows = convert_to_tensor(indices), convert_to_tensor(value, dtype_hint=self._dtype)
        most = 0 if is_traced(places) or not places.type.size else int(places.numpy().max())
        return self._with(ops.setitem(self._grown(most, rows.type.shape[1:]), places, rows))

    def identity(self) -> TensorArray:
        return self

    # ---- reading

    @public
    def read(self, index: Any, name: str | None = None) -> Any:
        return ops.getitem(self._known("read"), index)

    @public
    def gather(self, indices: Any, name: str | None = None) -> Any:
        return ops.getitem(self._known("gather"), convert_to_tensor(indices))

    @public
    def stack(self, name: str | None = None) -> Any:
        """All elements as one tensor."""
        return self._known("stack")

    @public
    def concat(self, name: str | None = None) -> Any:
        """All elements concatenated along their first axis."""
        rows = self._known("concat")
        return ops.reshape(rows, (-1, *rows.type.shape[2:]))

    def size(self, name: str | None = None) -> Any:
        return convert_to_tensor(self._size)

    def close(self, name: str | None = None) -> None:
        """Does nothing: memory is freed with the last reference to the array."""

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        return self._dynamic

    @property
    def element_shape(self) -> TensorShape:
        return TensorShape(self._rows.type.shape[1:] if self._written else None)


def _rebuilt(kept: tuple[Any, int, bool], children: Any) -> TensorArray:
    dtype, size, dynamic = kept
    out = TensorArray(dtype, size, dynamic)
    (out._rows,) = children
    return out


register_pytree_node(TensorArray, lambda x: ([x._rows], (x._dtype, x._size, x._dynamic)), _rebuilt)
