"""Creating, reshaping, joining, slicing and indexing tensors: the functions of `tf` itself."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from adjit.ir import ops
from adjit.ir.active import current_builder
from adjit.ir.operand import Operand
from adjit.ir.ops.complex import conj
from adjit.ir.ops.create import Constant
from adjit.ir.ops.shape import Reshape
from adjit.ir.types import BOOL
from adjit.tracer.regions import is_traced
from adjit.tracer.surface import create, elementwise, indexing, padding, sets, shapes, splitting

from .dtypes import as_dtype, float32, int32
from .errors import InvalidShape, out_of_scope
from .ranges import Range
from .scattering import nd_key, scattered
from .shape import TensorShape
from .specs import TensorSpec, spec_of
from .tensor import Tensor, check_dtypes, convert_to_tensor, dress, first_dtype, pair, same_dtypes
from .text import TextTensor, is_text, string
from .variable import Variable
from .wrapping import axes_of, named, public, sizes_of

# ---- creation


@public
def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = "Const") -> Any:
    """A tensor from a value; with a `shape`, reshaped to it, or filled with the single value."""
    if (dtype is None or dtype is string) and is_text(value):
        text = TextTensor(value)
        return text if shape is None else TextTensor(np.broadcast_to(text.numpy(), sizes_of(shape)))
    x = convert_to_tensor(value, dtype)
    if shape is None:
        return x
    sizes = sizes_of(shape)
    return ops.broadcast_to(ops.reshape(x, ()), sizes) if x.type.size == 1 else ops.reshape(x, sizes)


@public
def zeros(shape: Any, dtype: Any = float32, name: str | None = None, layout: Any = None) -> Any:
    return create.zeros(sizes_of(shape), as_dtype(dtype).dtype)


@public
def ones(shape: Any, dtype: Any = float32, name: str | None = None, layout: Any = None) -> Any:
    return create.ones(sizes_of(shape), as_dtype(dtype).dtype)


@public
def fill(dims: Any, value: Any, name: str | None = None, layout: Any = None) -> Any:
    return ops.broadcast_to(convert_to_tensor(value), sizes_of(dims))


@public
def zeros_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Any:
    x = convert_to_tensor(input)
    return create.zeros(x.type.shape, x.type.dtype if dtype is None else as_dtype(dtype).dtype)


@public
def ones_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Any:
    x = convert_to_tensor(input)
    return create.ones(x.type.shape, x.type.dtype if dtype is None else as_dtype(dtype).dtype)


@public
def eye(num_rows: int, num_columns: int | None = None, batch_shape: Any = None, dtype: Any = float32, name: str | None = None) -> Any:
    out = create.eye(int(num_rows), None if num_columns is None else int(num_columns), dtype=as_dtype(dtype).dtype)
    return out if batch_shape is None else ops.broadcast_to(out, (*sizes_of(batch_shape), *out.type.shape))


def _range_dtype(bounds: Sequence[Any], dtype: Any) -> Any:
    kinds = [convert_to_tensor(b).type.dtype for b in bounds]
    return max(kinds, key=lambda d: (d.kind == "f", d.itemsize)) if dtype is None else as_dtype(dtype).dtype


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str | None = None) -> Any:
    """Numbers from start (or 0) up to the limit, exclusive. A loop over one of traced bounds stays a loop."""
    bounds = (0, start, delta) if limit is None else (start, limit, delta)
    if any(is_traced(b) for b in bounds):
        return Range(bounds, _range_dtype(bounds, dtype))
    kind = _range_dtype(bounds, dtype)
    first, end, step = (np.asarray(convert_to_tensor(b)).astype(kind) for b in bounds)
    if not step:
        raise InvalidShape("Requires delta != 0: 0")
    if kind.kind != "f":
        return convert_to_tensor(np.arange(first.item(), end.item(), step.item(), dtype=kind))
    count = int(np.ceil((end - first) / step))  # in its own precision: rounded, 3 / 0.01 is 300
    return convert_to_tensor(first + step * np.arange(max(count, 0), dtype=kind))


@public
def linspace(start: Any, stop: Any, num: int, name: str | None = None, axis: int = 0) -> Any:
    low = convert_to_tensor(start)
    high = convert_to_tensor(stop, dtype_hint=low.dtype)
    check_dtypes("linspace", low, high)
    return create.linspace(low, high, int(num), axis=axis)


@public
def one_hot(
    indices: Any, depth: int, on_value: Any = None, off_value: Any = None, axis: int | None = None, dtype: Any = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    values = [v for v in (on_value, off_value) if v is not None]
    kinds = [convert_to_tensor(v, dtype_hint=dtype).dtype for v in values]
    if len(set(kinds)) > 1:
        raise TypeError(f"dtype {kinds[0]!r} of on_value does not match dtype {kinds[1]!r} of off_value")
    kind = as_dtype(dtype) if dtype is not None else convert_to_tensor(values[0]).dtype if values else float32
    out = indexing.one_hot(convert_to_tensor(indices), int(depth), kind.dtype, -1 if axis is None else axis)
    if not values:
        return out
    on, off = (convert_to_tensor(d if v is None else v, kind) for v, d in ((on_value, 1), (off_value, 0)))
    return ops.where(ops.not_equal(out, 0), ops.broadcast_to(on, out.type.shape), ops.broadcast_to(off, out.type.shape))


@public
def sequence_mask(lengths: Any, maxlen: int | None = None, dtype: Any = None, name: str | None = None) -> Any:
    sizes = convert_to_tensor(lengths)
    width = int(sizes.numpy().max()) if maxlen is None else int(maxlen)
    mask = ops.less(create.arange(width, dtype=sizes.type.dtype), ops.reshape(sizes, (*sizes.type.shape, 1)))
    return mask if dtype is None else ops.cast(mask, as_dtype(dtype).dtype)


# ---- properties


def shape(input: Any, out_type: Any = int32, name: str | None = None) -> Any:
    """The shape as a tensor; it is also known while tracing."""
    return convert_to_tensor(np.array(_type(input).shape, as_dtype(out_type).dtype))


def size(input: Any, out_type: Any = int32, name: str | None = None) -> Any:
    return convert_to_tensor(np.array(_type(input).size, as_dtype(out_type).dtype))


def rank(input: Any, name: str | None = None) -> Any:
    return convert_to_tensor(np.array(len(_type(input).shape), np.int32))


def shape_n(input: Sequence[Any], out_type: Any = int32, name: str | None = None) -> list[Any]:
    return [shape(x, out_type) for x in input]


def is_tensor(x: Any) -> bool:
    return isinstance(x, Operand)


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    return TensorShape(np.broadcast_shapes(tuple(shape_x), tuple(shape_y)))


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Any:
    return convert_to_tensor(np.array(np.broadcast_shapes(sizes_of(shape_x), sizes_of(shape_y)), np.int32))


def is_symbolic_tensor(tensor: Any) -> bool:
    return is_traced(tensor)


def type_spec_from_value(value: Any) -> TensorSpec:
    return spec_of(value)


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The value of a constant; None if it is traced."""
    return None if is_traced(tensor) else np.asarray(convert_to_tensor(tensor))


def _type(x: Any) -> Any:
    return (x if isinstance(x, Operand) else convert_to_tensor(x)).type


# ---- shaping


@public
def identity(input: Any, name: str | None = None) -> Any:
    """The same value as a distinct object."""
    x = convert_to_tensor(input)
    return ops.apply(Reshape(x.type.shape), x)


def identity_n(input: Sequence[Any], name: str | None = None) -> list[Any]:
    return [identity(x) for x in input]


@public
def reshape(tensor: Any, shape: Any, name: str | None = None) -> Any:
    return ops.reshape(convert_to_tensor(tensor), sizes_of(shape))


@public
def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str | None = "transpose") -> Any:
    turned = ops.transpose(convert_to_tensor(a), None if perm is None else sizes_of(perm))
    return conj(turned) if conjugate and turned.type.dtype.kind == "c" else turned


@public
def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Any:
    return shapes.squeeze(convert_to_tensor(input), axes_of(axis) or None)


@public
def expand_dims(input: Any, axis: Any, name: str | None = None) -> Any:
    return shapes.expand_dims(convert_to_tensor(input), axes_of(axis))


@public
def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Any:
    return ops.broadcast_to(convert_to_tensor(input), sizes_of(shape))


@public
def tile(input: Any, multiples: Any, name: str | None = None) -> Any:
    return shapes.tile(convert_to_tensor(input), sizes_of(multiples))


@public
def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Any:
    return shapes.repeat(convert_to_tensor(input), sizes_of(repeats) if not isinstance(repeats, int) else repeats, axis)


@public
def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None) -> Any:
    widths = np.asarray(convert_to_tensor(paddings)).tolist()
    x = convert_to_tensor(tensor)
    kind = mode.lower()
    return padding.pad(x, widths, constant_values=constant_values) if kind == "constant" else padding.pad(x, widths, kind)


@public
def reverse(tensor: Any, axis: Any, name: str | None = None) -> Any:
    return ops.flip(convert_to_tensor(tensor), axes_of(axis))


@public
def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Any:
    return shapes.roll(convert_to_tensor(input), axes_of(shift), axes_of(axis))


@public
def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Operand]:
    return list(create.meshgrid(*(convert_to_tensor(a) for a in args), indexing=indexing))


# ---- joining and splitting


def _converted(values: Any) -> list[Any]:
    xs = list(values)
    hint = first_dtype(xs)
    return same_dtypes("ConcatV2", [convert_to_tensor(x, dtype_hint=hint) for x in xs])


@public
def concat(values: Any, axis: Any, name: str | None = "concat") -> Any:
    if isinstance(values, Operand):
        return values
    return ops.concatenate(_converted(values), axes_of(axis))


@public
def stack(values: Any, axis: int = 0, name: str | None = "stack") -> Any:
    return shapes.stack(_converted(values), axis)


@public
def unstack(value: Any, num: int | None = None, axis: int = 0, name: str | None = "unstack") -> list[Operand]:
    out = list(shapes.unstack(convert_to_tensor(value), axis=axis))
    if num is not None and num != len(out):
        raise ValueError(f"unstack: there are {len(out)} values on axis {axis}, and num={num}")
    return out


@public
def split(value: Any, num_or_size_splits: Any, axis: int = 0, num: int | None = None, name: str | None = "split") -> list[Operand]:
    """Equal parts, or parts of the given sizes (one may be -1)."""
    x = convert_to_tensor(value)
    if isinstance(num_or_size_splits, int):
        return splitting.split(x, num_or_size_splits, axis)
    sizes = list(sizes_of(num_or_size_splits))
    if num is not None and num != len(sizes):
        raise InvalidShape(f"split: size of the split_tensor must be 1-D and have the same elements as outputs, {num}; got {len(sizes)}")
    if -1 in sizes:
        sizes[sizes.index(-1)] = x.type.shape[axis] - builtins.sum(s for s in sizes if s != -1)
    if builtins.sum(sizes) != x.type.shape[axis]:
        raise InvalidShape(f"split: sizes {sizes} do not add up to {x.type.shape[axis]}, the size of axis {axis}")
    return splitting.split(x, np.cumsum(sizes)[:-1].tolist(), axis)


# ---- selection


@public
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """x where the condition holds, else y; without x and y, the indices where it holds (not inside a trace)."""
    test = convert_to_tensor(condition)
    if x is None and y is None:
        return sets.argwhere(test) if is_traced(test) else convert_to_tensor(np.argwhere(np.asarray(test)))
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    a, b = pair("where", x, y)
    return elementwise.where(ops.cast(test, np.dtype(bool)), a, b)


@public
def gather(params: Any, indices: Any, validate_indices: Any = None, axis: Any = None, batch_dims: int = 0, name: str | None = None) -> Any:
    """Rows (or slices along an axis) by index."""
    x, index = convert_to_tensor(params), _checked_when_run(convert_to_tensor(indices))
    where = batch_dims if axis is None else axes_of(axis)
    if not batch_dims:
        return indexing.take(x, index, axis=where)
    key = tuple(ops.reshape(create.arange(n), tuple(n if i == j else 1 for j in builtins.range(len(index.type.shape))))
                for i, n in enumerate(index.type.shape[:batch_dims]))  # fmt: skip
    if where != batch_dims:
        out_of_scope("gather(axis=...) behind the batch dimensions", "transpose the axis next to them")
    return x[(*key, index)]


def _checked_when_run(index: Any) -> Any:
    """Indices known while tracing, as a constant of the function: their bounds are checked in runs that read the selected elements."""
    builder = current_builder()
    return index if builder is None or is_traced(index) else dress(builder.emit(Constant.of(np.asarray(index)), ())[0])


def check_policy(policy: str) -> None:
    if policy not in ("", "DEFAULT", "ERROR"):
        out_of_scope(f"bad_indices_policy={policy!r}", "take out the indices that are out of bounds; they raise an error")


@public
def gather_nd(params: Any, indices: Any, batch_dims: int = 0, name: str | None = None, bad_indices_policy: str = "") -> Any:
    check_policy(bad_indices_policy)
    if batch_dims:
        out_of_scope("gather_nd(batch_dims=...)", "use tf.gather")
    return convert_to_tensor(params)[nd_key(convert_to_tensor(indices))]


@public
def scatter_nd(indices: Any, updates: Any, shape: Any, bad_indices_policy: str = "", name: str | None = None) -> Any:
    """Zeros of a shape, with updates added at indices."""
    check_policy(bad_indices_policy)
    new = convert_to_tensor(updates)
    return ops.additem(dress(create.zeros(sizes_of(shape), new.type.dtype)), nd_key(convert_to_tensor(indices)), new)


def _scatter_nd(how: str) -> Any:
    def tensor_scatter(tensor: Any, indices: Any, updates: Any, *, bad_indices_policy: str = "", name: str | None = None) -> Any:
        check_policy(bad_indices_policy)
        x = convert_to_tensor(tensor)
        return scattered(how, x, nd_key(convert_to_tensor(indices)), convert_to_tensor(updates, dtype_hint=x.dtype))

    return named(public(tensor_scatter), f"tensor_scatter_nd_{how}")


tensor_scatter_nd_update = _scatter_nd("update")
tensor_scatter_nd_add = _scatter_nd("add")
tensor_scatter_nd_sub = _scatter_nd("sub")
tensor_scatter_nd_max = _scatter_nd("max")
tensor_scatter_nd_min = _scatter_nd("min")


@public
def boolean_mask(tensor: Any, mask: Any, axis: int | None = None, name: str = "boolean_mask") -> Any:
    places = convert_to_tensor(mask, dtype_hint=BOOL)
    return convert_to_tensor(tensor)[(slice(None),) * (axis or 0) + (places if places.type.dtype == BOOL else ops.not_equal(places, 0),)]


@public
def slice_(input_: Any, begin: Any, size: Any, name: str | None = None) -> Any:
    """`tf.slice`: `size` elements (-1: to the end) from `begin` along each axis."""
    x = convert_to_tensor(input_)
    pairs = zip(sizes_of(begin), sizes_of(size), x.type.shape, strict=True)
    return x[tuple(slice(b, n if s == -1 else b + s) for b, s, n in pairs)]


@public
def strided_slice(
    input_: Any, begin: Any, end: Any, strides: Any = None, begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0,
    new_axis_mask: int = 0, shrink_axis_mask: int = 0, var: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    if any((begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)) or var is not None:
        out_of_scope("tf.strided_slice(begin_mask=...) and its other masks, and var=", "write the slice as x[a:b:c, ..., None]")
    x = convert_to_tensor(input_)
    steps = (1,) * len(sizes_of(begin)) if strides is None else sizes_of(strides)
    return x[tuple(slice(*each) for each in zip(sizes_of(begin), sizes_of(end), steps, strict=True))]


@public
def searchsorted(sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = int32, name: str | None = None) -> Any:
    places = indexing.searchsorted(convert_to_tensor(sorted_sequence), convert_to_tensor(values), side=side)
    return ops.cast(places, as_dtype(out_type).dtype)


def _descending(what: str, direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"{what}: `direction` should be one of 'ASCENDING' or 'DESCENDING', not {direction!r}")
    return direction == "DESCENDING"


@public
def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Any:
    return ops.sort(convert_to_tensor(values), axes_of(axis), _descending("sort", direction))


@public
def argsort(values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None) -> Any:
    return ops.cast(ops.argsort(convert_to_tensor(values), axes_of(axis), _descending("argsort", direction)), int32.dtype)


@public
def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Any:
    """Flat indices into a shape as coordinates, one row per axis."""
    flat, rows = convert_to_tensor(indices), []
    for n in reversed(sizes_of(dims)):
        rows.append(ops.remainder(flat, n))
        flat = ops.floor_divide(flat, n)
    return shapes.stack(rows[::-1], 0)


class Unique(NamedTuple):
    """The result of `tf.unique`."""

    y: Any
    idx: Any


def unique(x: Any, out_idx: Any = int32, name: str | None = None) -> Unique:
    """The values in the order of their first appearance, and the index of each element's value."""
    values = convert_to_tensor(x)
    distinct, first, inverse = np.unique(values if is_traced(values) else np.asarray(values), return_index=True, return_inverse=True)
    order = np.argsort(first)
    places = np.argsort(order)
    return Unique(convert_to_tensor(distinct[order]), convert_to_tensor(places[inverse].astype(as_dtype(out_idx).dtype)))


# ---- derivatives


@public
def stop_gradient(input: Any, name: str | None = None) -> Any:
    """The value, treated as a constant by tapes."""
    return ops.stop_gradient(convert_to_tensor(input))


__all__ = [
    "Tensor", "Variable", "argsort", "boolean_mask", "broadcast_dynamic_shape", "broadcast_static_shape", "broadcast_to", "concat",
    "constant", "convert_to_tensor", "expand_dims", "eye", "fill", "gather", "gather_nd", "get_static_value", "identity", "identity_n",
    "is_symbolic_tensor", "is_tensor", "linspace", "meshgrid", "one_hot", "ones", "ones_like", "pad", "range", "rank", "repeat",
    "reshape", "reverse", "roll", "scatter_nd", "searchsorted", "sequence_mask", "shape", "shape_n", "size", "sort", "split", "squeeze",
    "stack", "stop_gradient", "strided_slice", "tensor_scatter_nd_add", "tensor_scatter_nd_max", "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub", "tensor_scatter_nd_update", "tile", "transpose", "type_spec_from_value", "unique", "unravel_index",
    "unstack", "where", "zeros", "zeros_like",
]  # fmt: skip
