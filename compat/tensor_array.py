"""tf.TensorArray: a list of tensors, written one by one, often by a loop."""

from __future__ import annotations

from typing import Any, NamedTuple

from adjit.tracer.pytree import register_pytree_node
from adjit.tracer.regions import is_traced
from adjit.tracer.surface import create

from .array_elements import Buffer, Elements
from .dtypes import as_dtype
from .errors import InvalidShape
from .shape import TensorShape
from .tensor import convert_to_tensor, dress, tracing
from .wrapping import public


class TensorArray:
    """`ta = tf.TensorArray(tf.float32, size=3)`, then `ta = ta.write(i, x)`, and `ta.stack()` at the end.

    >>> squares = TensorArray("float32", size=0, dynamic_size=True)
    >>> for i in range(3):
    ...     squares = squares.write(i, i * i)
    >>> squares.stack().numpy()
    array([0., 1., 4.], dtype=float32)
    """

    def __init__(
        self, dtype: Any, size: Any = None, dynamic_size: bool | None = None, clear_after_read: bool | None = None,
        tensor_array_name: str | None = None, handle: Any = None, flow: Any = None, infer_shape: bool = True, element_shape: Any = None,
        colocate_with_first_write_call: bool = True, name: str | None = None,
    ) -> None:  # fmt: skip
        own, shape = as_dtype(dtype), TensorShape(element_shape)
        grows = bool(dynamic_size)
        count = size if size is not None and is_traced(size) else 0 if size is None else int(size)
        self._held: Elements | Buffer
        if not tracing():
            self._held = Elements([None] * count, own, shape, grows, infer_shape, clear_after_read is not False)
            return
        rows: Any = own.dtype.type(0).item()
        if isinstance(count, int):
            known = shape.is_fully_defined()
            self._held = Buffer(create.zeros((count, *shape), own.dtype) if known else rows, count, own, grows, grows)
        else:
            self._held = Buffer(rows, count, own, grows, True)
            if shape.is_fully_defined():
                self._held.rows = self._held.with_capacity(tuple(shape))

    @classmethod
    def _of(cls, held: Elements | Buffer) -> TensorArray:
        out = cls.__new__(cls)
        out._held = held
        return out

    def _here(self) -> Elements | Buffer:
        """The elements, in the form that ops take here."""
        if isinstance(self._held, Elements) and tracing():
            return Buffer.of(self._held)
        return self._held

    def _after(self, held: Elements | Buffer) -> TensorArray:
        return self if held is self._held else TensorArray._of(held)

    # ---- writing

    @public
    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Write an element, and return the array."""
        return self._after(self._here().write(index, value))

    @public
    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array whose elements are the rows of a tensor."""
        rows = convert_to_tensor(value, dtype_hint=self.dtype)
        if rows.dtype != self.dtype:
            raise InvalidShape(f"TensorArray dtype is {self.dtype.name} but Op is trying to write dtype {rows.dtype.name}")
        held = self._here()
        return self._after(held.fill(list(rows) if isinstance(held, Elements) else rows))

    @public
    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Write the rows of a tensor at the given indices."""
        rows, held = convert_to_tensor(value, dtype_hint=self.dtype), self._here()
        if isinstance(held, Elements):
            return self._after(held.put(convert_to_tensor(indices).numpy().tolist(), list(rows)))
        return self._after(held.put(indices, rows))

    @public
    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Write parts of a tensor, of the given lengths."""
        x, held = convert_to_tensor(value, dtype_hint=self.dtype), self._here()
        sizes = convert_to_tensor(lengths).numpy().tolist()
        if not isinstance(sizes, list):
            raise InvalidShape(f"Expected lengths to be a vector, received shape: {convert_to_tensor(lengths).shape}")
        if not x.type.shape:
            raise InvalidShape(f"Expected value to be at least a vector, but received shape: {x.shape}")
        if sum(sizes) != x.type.shape[0]:
            raise InvalidShape(
                f"Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {sum(sizes)} and value's shape is: "
                f"{x.shape} "
            )
        if len(sizes) > self._length() and not held.grows:
            raise InvalidShape(
                f"TensorArray's size is not equal to the size of lengths ({self._length()} vs. {len(sizes)}), and the TensorArray is not "
                "marked as dynamically resizeable."
            )
        start, out = 0, held
        if isinstance(out, Elements) and len(set(sizes)) > 1:
            out.infers = False  # as in TensorFlow, the parts may have different lengths
        for k, length in enumerate(sizes):
            out = out.write(k, x[start : start + length])
            start += length
        return self._after(out)

    def identity(self) -> TensorArray:
        return self

    # ---- reading

    @public
    def read(self, index: Any, name: str | None = None) -> Any:
        """One element."""
        return self._here().read(index)

    @public
    def gather(self, indices: Any, name: str | None = None) -> Any:
        """Some elements as one tensor."""
        return self._here().gather(indices)

    @public
    def stack(self, name: str | None = None) -> Any:
        """All elements as one tensor."""
        return self._here().stack()

    @public
    def concat(self, name: str | None = None) -> Any:
        """All elements concatenated along their first axis."""
        return self._here().concat()

    def size(self, name: str | None = None) -> Any:
        return dress(convert_to_tensor(self._held.size))

    def _length(self) -> int:
        return self._held.size if isinstance(self._held.size, int) else 0

    def close(self, name: str | None = None) -> None:
        """Eagerly, drop the elements; in a function their memory is planned."""
        if isinstance(self._held, Elements):
            self._held.items.clear()

    @property
    def dtype(self) -> Any:
        return self._held.dtype

    @property
    def dynamic_size(self) -> bool:
        return self._held.grows

    @property
    def element_shape(self) -> TensorShape:
        return self._held.shape


class _Eager(NamedTuple):
    """The state of an array outside of a trace, without the elements that were written."""

    written: tuple[bool, ...]
    dtype: Any
    shape: TensorShape
    grows: bool
    infers: bool
    clears: bool


class _Traced(NamedTuple):
    """The state of an array in a trace, without its rows, and without their number if that may be known only at run time."""

    size: int | None
    dtype: Any
    grows: bool


def _taken_apart(array: TensorArray) -> tuple[list[Any], _Eager | _Traced]:
    """Return the leaves of an array, and its other state. In a trace, if the number of rows may be known only at run time, the leaves have
    spare capacity, so that loops can add rows.
    """
    held = array._held
    if isinstance(held, Elements) and not tracing():
        items = [item for item in held.items if item is not None]
        there = tuple(item is not None for item in held.items)
        return items, _Eager(there, held.dtype, held.shape, held.grows, held.infers, held.clears)
    buffer = Buffer.of(held) if isinstance(held, Elements) else held
    if buffer.spare:
        return [buffer.with_capacity(), buffer.size], _Traced(None, buffer.dtype, buffer.grows)
    return [buffer.rows], _Traced(buffer.size, buffer.dtype, buffer.grows)


def _rebuilt(kept: _Eager | _Traced, children: Any) -> TensorArray:
    if isinstance(kept, _Eager):
        rest = iter(children)
        items = [next(rest) if there else None for there in kept.written]
        elements = Elements(items, kept.dtype, kept.shape, kept.grows, kept.infers, kept.clears)
        return TensorArray._of(Buffer.of(elements) if tracing() else elements)
    rows, count = children if kept.size is None else (*children, kept.size)
    count = count if is_traced(count) else int(count)
    buffer = Buffer(rows, count, kept.dtype, kept.grows, kept.size is None)
    if tracing():
        if kept.size is None and isinstance(count, int) and buffer.written:
            buffer.rows = rows[:count]
        return TensorArray._of(buffer)
    items = [rows[i] for i in range(count)] if buffer.written else [None] * count
    return TensorArray._of(Elements(items, kept.dtype, buffer.shape, kept.grows, True, False))


register_pytree_node(TensorArray, _taken_apart, _rebuilt)
