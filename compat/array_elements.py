"""The elements of a tf.TensorArray: a Python list of tensors, eagerly, or the rows of one buffer in a trace.

A buffer is carried by loops, and gradients flow through it, as any other tensor. Until an element is written, the shape of the rows may be
unknown: the buffer is then a Python number, which takes the type of the other operand. A buffer that grows at indices that are only known
at run time has spare capacity, as lists in loops of unknown length (tracer/list_items.py), and the number of rows in use is traced.
"""

from __future__ import annotations

from typing import Any

from adjit.ir import ops
from adjit.ir.errors import CapacityError
from adjit.ir.found_sizes import found_size
from adjit.ir.operand import Literal, Operand, as_operand
from adjit.ir.ops.base import Op, apply
from adjit.ir.types import TensorType
from adjit.tracer.list_items import ItemForm, resized
from adjit.tracer.pytree import register_pytree_node
from adjit.tracer.regions import is_traced
from adjit.tracer.surface import create, shapes
from adjit.tracer.trace import current_trace

from .dtypes import DType, as_dtype
from .errors import InvalidArgumentError, InvalidShape, OutOfRangeError
from .shape import TensorShape
from .tensor import Tensor, convert_to_tensor, dress, tracing


class Elements:
    """A list of tensors, whose shapes may differ; None where nothing was written."""

    def __init__(self, items: list[Any], dtype: DType, shape: TensorShape, grows: bool, infers: bool, clears: bool) -> None:
        self.items, self.dtype, self.shape = items, dtype, shape
        self.grows, self.infers, self.clears = grows, infers, clears
        self.cleared: set[int] = set()

    @property
    def size(self) -> int:
        return len(self.items)

    def element(self, value: Any) -> Any:
        x = convert_to_tensor(value, dtype_hint=self.dtype)
        if x.dtype != self.dtype:
            raise InvalidShape(f"TensorArray dtype is {self.dtype.name} but Op is trying to write dtype {x.dtype.name}")
        if not self.shape.is_compatible_with(x.shape):
            raise ValueError(f"Incompatible shape for value ({x.shape}), expected ({self.shape})")
        if self.infers:
            self.shape = self.shape.merge_with(x.shape)
        return x

    def write(self, index: Any, value: Any) -> Elements:
        at = int(index)
        if at < 0:
            raise OutOfRangeError(None, None, f"Writing to negative indices (index {at}) is not allowed.")
        if at >= self.size and not self.grows:
            raise OutOfRangeError(None, None, f"Tried to write to index {at} but array is not resizeable and size is: {self.size}")
        x = self.element(value)
        self.items.extend([None] * (at + 1 - self.size))
        self.items[at] = x
        return self

    def put(self, indices: Any, rows: list[Any]) -> Elements:
        for index, row in zip(indices, rows, strict=True):
            self.write(index, row)
        return self

    def fill(self, rows: list[Any]) -> Elements:
        """Set all elements at once."""
        if len(rows) > self.size and not self.grows:
            raise ValueError(f"Cannot unstack {len(rows)} tensors into a TensorArray of static size {self.size}")
        kept = [self.element(row) for row in rows]
        self.items[: len(kept)] = kept
        return self

    def read(self, index: Any) -> Any:
        at = int(index)
        if at < 0:
            raise OutOfRangeError(None, None, f"Reading from negative indices (index {at}) is not allowed.")
        if at >= self.size:
            raise OutOfRangeError(None, None, f"Tried to read from index {at} but array size is: {self.size} ")
        if at in self.cleared and self.items[at] is None:
            raise InvalidArgumentError(
                None, None,
                f"Could not read index {at} twice because it was cleared after a previous read (perhaps try setting clear_after_read = "
                "false?)",
            )  # fmt: skip
        out = self.at(at)
        if self.clears:
            self.items[at] = None
            self.cleared.add(at)
        return out

    def at(self, index: int) -> Any:
        item = self.items[index]
        if item is None and not self.shape.is_fully_defined():
            raise ValueError(
                f"Tried to read from index {index}, which was never written, of a TensorArray with element_shape={self.shape}: "
                "element_shape= must be known, and full, for its zeros"
            )
        return dress(create.zeros(tuple(self.shape), self.dtype.dtype)) if item is None else item

    def gather(self, indices: Any) -> Any:
        return self.joined([self.read(i) for i in convert_to_tensor(indices).numpy().tolist()])

    def stack(self) -> Any:
        return self.joined([self.at(i) for i in range(self.size)])

    def joined(self, items: list[Any]) -> Any:
        if items:
            return shapes.stack(items)
        return create.zeros((0, *(0 if n is None else n for n in (self.shape if self.shape.rank is not None else ()))), self.dtype.dtype)

    def concat(self) -> Any:
        items = [self.at(i) for i in range(self.size)]
        return shapes.concatenate(items) if items else self.joined([])


class Buffer:
    """Rows of one tensor, of which the first `size` are elements."""

    def __init__(self, rows: Any, size: Any, dtype: DType, grows: bool, spare: bool) -> None:
        self.rows, self.size, self.dtype = rows, size, dtype
        self.grows = grows
        self.spare = spare  # whether the number of elements may be known only at run time

    @staticmethod
    def of(elements: Elements) -> Buffer:
        """Return a buffer with the elements of an array that was created outside of the trace."""
        known = elements.shape.is_fully_defined() or any(item is not None for item in elements.items)
        rows = elements.stack() if known else elements.dtype.dtype.type(0).item()
        return Buffer(rows, elements.size, elements.dtype, elements.grows, elements.grows)

    @property
    def written(self) -> bool:
        return isinstance(self.rows, Operand) and not (self.rows.weak and not self.rows.type.shape)

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self.rows.type.shape[1:] if self.written else None)

    def known(self, use: str) -> Any:
        if not self.written:
            raise InvalidShape(f"TensorArray.{use}: nothing was written, so the shape of an element is not known; give element_shape=")
        return self.rows

    def with_rows(self, rows: Any, size: Any) -> Buffer:
        return Buffer(dress(rows), size, self.dtype, self.grows, self.spare)

    # ---- capacity

    def with_capacity(self, shape: tuple[Any, ...] | None = None) -> Any:
        """Return the rows with spare capacity; a number as long as the shape of an element is not known."""
        if not self.written and shape is None:
            return self.rows
        shape = tuple(self.rows.type.shape[1:]) if shape is None else shape
        size = self.size if isinstance(self.size, int) else 0
        capacity = max(size, ItemForm.like(Literal(0, TensorType(self.dtype.dtype, shape))).capacity)
        rows = self.rows if self.written else create.zeros((capacity, *shape), self.dtype.dtype)
        return rows if rows.type.shape[0] >= capacity else resized(rows, capacity)

    def write(self, index: Any, value: Any) -> Buffer:
        x = convert_to_tensor(value, dtype_hint=self.dtype)
        if x.dtype != self.dtype:
            raise InvalidShape(f"TensorArray dtype is {self.dtype.name} but Op is trying to write dtype {x.dtype.name}")
        counted = self.spare and (is_traced(index) or is_traced(self.size) or in_region())
        rows, index, size = self._counted(index, x) if counted else self._with_row(index, x)
        if rows.type.shape[1:] != x.type.shape:
            raise ValueError(f"Inconsistent shapes: saw {x.type.shape} but expected {rows.type.shape[1:]} as the shape of every element")
        return self.with_rows(ops.setitem(rows, index, x), size)

    def _counted(self, index: Any, x: Operand) -> tuple[Any, Any, Any]:
        """Return rows with capacity for an index that is checked at run time, the index, and the number of elements after the write."""
        rows, at, size = self.with_capacity(x.type.shape), convert_to_tensor(index), convert_to_tensor(self.size)
        most = rows.type.shape[0]
        ops.check(ops.greater_equal(at, 0), "TensorArray: Writing to negative indices is not allowed.")
        if not self.grows:
            ops.check(ops.less(at, size), "TensorArray: Tried to write to an index beyond its size, but array is not resizeable")
        full = f"a TensorArray has more than {most} elements, its capacity; give its size"
        ops.check(ops.less(at, most), full, CapacityError.__name__)
        return rows, ops.minimum(at, most - 1), ops.maximum(size, at + 1) if self.grows else self.size

    def _with_row(self, index: Any, x: Operand) -> tuple[Any, Any, Any]:
        """Return the same as `_counted`, where the number of elements is known."""
        rows = self.rows if self.written else create.zeros((self.size, *x.type.shape), self.dtype.dtype)
        if is_traced(index):
            return rows, index, self.size
        if int(index) >= self.size and not self.grows:
            raise InvalidShape(f"TensorArray: Tried to write to index {int(index)} but array is not resizeable and size is: {self.size}")
        size = max(self.size, int(index) + 1)
        return resized(rows, size), index, size

    def put(self, indices: Any, rows: Any) -> Buffer:
        places = convert_to_tensor(indices)
        if self.spare and (is_traced(places) or is_traced(self.size)):
            out = self
            for k in range(places.type.shape[0]):
                out = out.write(places[k], rows[k])
            return out
        most = 0 if is_traced(places) or not places.type.size else int(places.numpy().max()) + 1
        if most > self.size and not self.grows:
            raise InvalidShape(f"TensorArray: Tried to write to index {most - 1} but array is not resizeable and size is: {self.size}")
        size = max(self.size, most)
        kept = self.rows if self.written else create.zeros((size, *rows.type.shape[1:]), self.dtype.dtype)
        return self.with_rows(ops.setitem(resized(kept, size), places, rows), size)

    def fill(self, rows: Any) -> Buffer:
        return self.with_rows(rows, rows.type.shape[0])

    def read(self, index: Any) -> Any:
        rows = self.known("read")
        if is_traced(self.size):
            ops.check(ops.less(index, self.size), "Tried to read from an index of a TensorArray beyond its size")
        return ops.getitem(rows, index)

    def gather(self, indices: Any) -> Any:
        places = convert_to_tensor(indices)
        if is_traced(self.size):
            ops.check(ops.less(ops.max(places), self.size), "Tried to read from an index of a TensorArray beyond its size")
        return ops.getitem(self.known("gather"), places)

    def stack(self) -> Any:
        rows = self.known("stack")
        return UnknownRows(rows, self.size) if is_traced(self.size) else rows

    def concat(self) -> Any:
        rows = self.known("concat")
        if len(rows.type.shape) < 2:
            raise InvalidShape("TensorArray.concat: the elements are scalars; use stack()")
        flat = ops.reshape(rows, (-1, *rows.type.shape[2:]))
        return UnknownRows(flat, self.size * rows.type.shape[1]) if is_traced(self.size) else flat


def in_region() -> bool:
    """Whether a branch or a loop is being traced: whether its writes happen, and how often, is known only at run time."""
    trace = current_trace()
    return trace is not None and trace is not trace.root()


class UnknownRows(Tensor, Operand):
    """The first rows of a tensor; their number is known when the function has run.

    If it is returned from the function, it is cut to size then. An op on it reads a tensor whose size the call has to find first.
    """

    level = 4  # above traced values, as for variables: an op reads it first

    def __init__(self, rows: Any, count: Any) -> None:
        self._rows, self._count = rows, count
        self._known: Any = None

    def read_operand(self) -> Any:
        if self._known is None:
            self._known = dress(resized(self._rows, found_size(self._count, UNKNOWN)))
        return self._known

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        return apply(op, *map(as_operand, args))

    @property
    def type(self) -> TensorType:  # type: ignore[override]
        return self.read_operand().type  # type: ignore[no-any-return]

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return as_dtype(self._rows.type.dtype)

    @property
    def shape(self) -> TensorShape:  # type: ignore[override]
        return TensorShape([None, *self._rows.type.shape[1:]])

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self.read_operand().__array__(*args, **kwargs)

    def __bool__(self) -> bool:
        return bool(self.read_operand())

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}>"


UNKNOWN = (
    "the number of rows of this tensor, made from a TensorArray that grows in a loop, is only known when the function runs: return it and "
    "compute with it outside, read elements of the array, or give the array its size"
)


def _known_rows(kept: None, children: Any) -> Any:
    rows, count = children
    return UnknownRows(rows, count) if tracing() else dress(rows[: int(count)])


register_pytree_node(UnknownRows, lambda x: ([x._rows, x._count], None), _known_rows)
